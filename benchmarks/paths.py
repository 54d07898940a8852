"""Compare two paths on models whose prior and data disagree: length, and variance at equal cost.

    python benchmarks/paths.py [--models hierarchical,scale] [--seeds 3]

Each path has its own pilot, which tunes the transitions and computes the schedule. Both paths then
run with the same number of evaluations of gradient and density per particle, not counting the
pilots: the number for which the pilot of the geometric path predicts a variance of one. ``ratio``
is the variance of the log weights on the moment-averaged path over that on the geometric path;
``z`` is the difference between the two log evidences in standard errors; ``auto`` is the fraction
of runs in which `path="auto"` selects the moment-averaged path.
"""

import argparse
import warnings

from collections.abc import Callable

import numpy as np
import pymc as pm

from pymc_anneal import compile_model, variational_schedule
from pymc_anneal.adaptation.plan import effective_length
from pymc_anneal.evidence.ais import ais
from pymc_anneal.evidence.diagnostics import log_weight_variance
from pymc_anneal.execution.blocks import AnnealedRun, StartDraws, make_blocks
from pymc_anneal.pipeline.choose_path import AutoPath
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.moment_averaged_path import MomentAveragedPath
from pymc_anneal.pipeline.path_choice import with_pilot
from pymc_anneal.pipeline.session import Session, open_session
from pymc_anneal.pipeline.settings import Settings
from pymc_anneal.pipeline.target import RunCandidate
from pymc_anneal.transitions.hmc import HMC

warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")


def _data() -> np.random.Generator:
    """Return the generator from which every model simulates its data."""
    return np.random.default_rng(20240)


def normal_mean() -> pm.Model:
    """Return five normal means, six prior standard deviations from the prior mean."""
    y = _data().normal(6, 1, size=(20, 5))
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1, shape=5)
        pm.Normal("y", mu, 1, observed=y)
    return model


def student_t_regression() -> pm.Model:
    """Return a regression with coefficients of five prior standard deviations, heavy tails."""
    rng = _data()
    x = rng.normal(size=(40, 5))
    y = x @ np.full(5, 5.0) + 0.5 * rng.standard_t(4, size=40)
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, 1, shape=5)
        pm.StudentT("y", nu=4, mu=x @ beta, sigma=0.5, observed=y)
    return model


def logistic() -> pm.Model:
    """Return a logistic regression with coefficients of ten prior standard deviations."""
    rng = _data()
    x = rng.normal(size=(300, 5))
    y = rng.uniform(size=300) < 1 / (1 + np.exp(-x @ np.full(5, 2.0)))
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, 0.2, shape=5)
        pm.Bernoulli("y", logit_p=x @ beta, observed=y.astype(int))
    return model


def poisson() -> pm.Model:
    """Return a Poisson regression with log rates around 4 under a standard normal prior."""
    rng = _data()
    x = rng.normal(size=(40, 4)) * 0.5
    y = rng.poisson(np.exp(4 + x @ np.full(4, 1.0)))
    with pm.Model() as model:
        alpha, beta = pm.Normal("alpha", 0, 1), pm.Normal("beta", 0, 1, shape=4)
        pm.Poisson("y", mu=pm.math.exp(alpha + x @ beta), observed=y)
    return model


def negative_binomial() -> pm.Model:
    """Return a regression of overdispersed counts with a log mean far from the prior."""
    rng = _data()
    x = rng.normal(size=(60, 4)) * 0.5
    y = rng.poisson(np.exp(4 + x @ np.full(4, 1.5)) * rng.gamma(2, 0.5, size=60))
    with pm.Model() as model:
        alpha, beta = pm.Normal("alpha", 0, 1), pm.Normal("beta", 0, 0.5, shape=4)
        size = pm.HalfNormal("size", 1)
        pm.NegativeBinomial("y", mu=pm.math.exp(alpha + x @ beta), alpha=size, observed=y)
    return model


def distant_modes() -> pm.Model:
    """Return a density with two separate modes, five prior standard deviations from the mean."""
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=3)
        modes = [-0.5 * (((x - m) / 0.3) ** 2).sum() for m in (-5.0, 5.0)]
        pm.Potential("modes", pm.math.logaddexp(*modes))
    return model


def scale() -> pm.Model:
    """Return a standard deviation that is twenty times as large as its prior scale."""
    y = _data().normal(0, 20, size=50)
    with pm.Model() as model:
        pm.Normal("y", 0, pm.HalfNormal("sigma", 1), observed=y)
    return model


def hierarchical() -> pm.Model:
    """Return groups whose common mean is eight prior standard deviations from its prior mean."""
    rng = _data()
    y = rng.normal(rng.normal(8, 1, size=8)[:, None], 1, size=(8, 5))
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 1), pm.HalfNormal("tau", 0.5)
        theta = mu + tau * pm.Normal("z", 0, 1, shape=8)
        pm.Normal("y", theta[:, None], 1, observed=y)
    return model


def mixture() -> pm.Model:
    """Return a mixture of two components, far apart and far from the prior."""
    rng = _data()
    y = np.concatenate([rng.normal(-4, 0.5, 30), rng.normal(5, 0.5, 30)])
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1, shape=2)
        sigma, weight = pm.HalfNormal("sigma", 1, shape=2), pm.Dirichlet("weight", np.ones(2))
        pm.NormalMixture("y", weight, mu, sigma, observed=y)
    return model


def gamma_rate() -> pm.Model:
    """Return a rate of waiting times that is thirty times its prior mean."""
    y = _data().exponential(1 / 30, size=40)
    with pm.Model() as model:
        pm.Exponential("y", pm.Gamma("rate", 2, 2), observed=y)
    return model


MODELS: dict[str, Callable[[], pm.Model]] = {
    f.__name__: f
    for f in (
        normal_mean,
        student_t_regression,
        logistic,
        poisson,
        negative_binomial,
        distant_modes,
        scale,
        hierarchical,
        mixture,
        gamma_rate,
    )
}


def _run(
    session: Session, candidate: RunCandidate, evaluations: float, seed: np.random.SeedSequence
) -> AnnealedRun:
    """Anneal 2,000 particles with a given number of evaluations per particle."""
    pilot, settings = candidate.pilot, session.settings
    length = effective_length(pilot)
    mean_cost = float((length * pilot.cost).sum() / length.sum())
    steps = max(16, round(evaluations / mean_cost))
    betas = variational_schedule(pilot.betas, length, steps)
    start = StartDraws(candidate.draw_reference, settings.chains, 2000)
    blocks = make_blocks(candidate.path, pilot.transition, betas, start, settings.block_draws, seed)
    return session.anneal("", blocks)


def measure(name: str, seed: int, statistics: str) -> tuple[float, ...] | str:
    """Return both lengths, the ratio of variances, z, and whether "auto" takes the moments."""
    target, settings = ModelTarget(compile_model(MODELS[name]())), Settings(draws=500, chains=4)
    choice = MomentAveragedPath(statistics)
    with open_session(target, settings, random_seed=[seed, 7], progressbar=False) as session:
        geometric = with_pilot(session, target.candidate(), HMC())
        try:
            moment = choice.build(session, geometric, HMC(), None).chosen
        except ValueError as error:
            return str(error)
        seeds = np.random.SeedSequence(seed).spawn(2)
        runs = [
            _run(session, candidate, geometric.cost, child)
            for candidate, child in zip((geometric, moment), seeds, strict=True)
        ]
        auto = AutoPath(choice).build(session, geometric, HMC(), None).chosen
    first, second = (ais(r.log_weight) for r in runs)
    ratio = log_weight_variance(runs[1].log_weight) / log_weight_variance(runs[0].log_weight)
    z = (second.log_evidence - first.log_evidence) / np.hypot(first.mcse, second.mcse)
    taken = float(auto is not geometric)
    return geometric.pilot.barrier, moment.pilot.barrier, ratio, z, taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=lambda t: t.split(","), default=list(MODELS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--statistics", default="linear")
    args = parser.parse_args()
    print(f"{'model':22} geometric  moment  ratio      z  auto")
    for name in args.models:
        rows = []
        for seed in range(args.seeds):
            row = measure(name, seed, args.statistics)
            if isinstance(row, str):
                print(f"{name:22} {row}", flush=True)
            else:
                rows.append(row)
        if rows:
            ga, ma, ratio, z, auto = np.transpose(rows)
            print(
                f"{name:22} {ga.mean():9.2f} {ma.mean():7.2f} {np.exp(np.log(ratio).mean()):6.2f} "
                f"{np.abs(z).max():6.1f} {auto.mean():5.0%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
