"""Paths on models whose prior and data disagree: length, and variance realised at equal cost.

    python benchmarks/paths.py [--models hierarchical,scale] [--seeds 3]

Each path has its own pilot, which tunes its trajectories and lays out its schedule. Then both run
with the number of steps that makes their evaluations of gradient and density for each particle the
same, pilots excluded: that at which the pilot of the geometric path predicts a variance of one. The
ratio is that of the variances of the log weights, below 1 where the moment-averaged path wins;
``z`` is the difference of the two log evidences in standard errors, and ``auto`` tells how often
`path="auto"` takes the moment-averaged path.
"""

import argparse
import warnings

from collections.abc import Callable

import numpy as np
import pymc as pm

from pymc_anneal import compile_model, variational_schedule
from pymc_anneal.adaptation.plan import effective_length, predicted_cost
from pymc_anneal.evidence.ais import ais
from pymc_anneal.evidence.diagnostics import log_weight_variance
from pymc_anneal.execution.progress import ProgressDisplay
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.pipeline.choose_path import Cheapest, MomentAveragedPath
from pymc_anneal.pipeline.choose_reference import Start
from pymc_anneal.pipeline.rounds import survey
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.settings import Options
from pymc_anneal.transitions.hmc import HMC

warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")


def _data() -> np.random.Generator:
    return np.random.default_rng(20240)


def normal_mean() -> pm.Model:
    """Five means, six prior deviations away."""
    y = _data().normal(6, 1, size=(20, 5))
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1, shape=5)
        pm.Normal("y", mu, 1, observed=y)
    return model


def student_t_regression() -> pm.Model:
    """Coefficients of five prior deviations, heavy-tailed errors."""
    rng = _data()
    x = rng.normal(size=(40, 5))
    y = x @ np.full(5, 5.0) + 0.5 * rng.standard_t(4, size=40)
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, 1, shape=5)
        pm.StudentT("y", nu=4, mu=x @ beta, sigma=0.5, observed=y)
    return model


def logistic() -> pm.Model:
    """Coefficients that a tight prior does not expect."""
    rng = _data()
    x = rng.normal(size=(300, 5))
    y = rng.uniform(size=300) < 1 / (1 + np.exp(-x @ np.full(5, 2.0)))
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, 0.2, shape=5)
        pm.Bernoulli("y", logit_p=x @ beta, observed=y.astype(int))
    return model


def poisson() -> pm.Model:
    """Log rates around 4 under a standard normal prior."""
    rng = _data()
    x = rng.normal(size=(40, 4)) * 0.5
    y = rng.poisson(np.exp(4 + x @ np.full(4, 1.0)))
    with pm.Model() as model:
        alpha, beta = pm.Normal("alpha", 0, 1), pm.Normal("beta", 0, 1, shape=4)
        pm.Poisson("y", mu=pm.math.exp(alpha + x @ beta), observed=y)
    return model


def negative_binomial() -> pm.Model:
    """Overdispersed counts, their log mean far from the prior."""
    rng = _data()
    x = rng.normal(size=(60, 4)) * 0.5
    y = rng.poisson(np.exp(4 + x @ np.full(4, 1.5)) * rng.gamma(2, 0.5, size=60))
    with pm.Model() as model:
        alpha, beta = pm.Normal("alpha", 0, 1), pm.Normal("beta", 0, 0.5, shape=4)
        size = pm.HalfNormal("size", 1)
        pm.NegativeBinomial("y", mu=pm.math.exp(alpha + x @ beta), alpha=size, observed=y)
    return model


def distant_modes() -> pm.Model:
    """Two separate modes, five prior deviations out."""
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=3)
        modes = [-0.5 * (((x - m) / 0.3) ** 2).sum() for m in (-5.0, 5.0)]
        pm.Potential("modes", pm.math.logaddexp(*modes))
    return model


def scale() -> pm.Model:
    """A standard deviation twenty times what the prior expects."""
    y = _data().normal(0, 20, size=50)
    with pm.Model() as model:
        pm.Normal("y", 0, pm.HalfNormal("sigma", 1), observed=y)
    return model


def hierarchical() -> pm.Model:
    """Groups whose common mean is eight prior deviations away."""
    rng = _data()
    y = rng.normal(rng.normal(8, 1, size=8)[:, None], 1, size=(8, 5))
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 1), pm.HalfNormal("tau", 0.5)
        theta = mu + tau * pm.Normal("z", 0, 1, shape=8)
        pm.Normal("y", theta[:, None], 1, observed=y)
    return model


def mixture() -> pm.Model:
    """Two components, far apart and far from the prior."""
    rng = _data()
    y = np.concatenate([rng.normal(-4, 0.5, 30), rng.normal(5, 0.5, 30)])
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1, shape=2)
        sigma, weight = pm.HalfNormal("sigma", 1, shape=2), pm.Dirichlet("weight", np.ones(2))
        pm.NormalMixture("y", weight, mu, sigma, observed=y)
    return model


def gamma_rate() -> pm.Model:
    """A rate of waiting times, thirty times the prior's."""
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


def _session(model: pm.Model, seed: int) -> Session:
    compiled = compile_model(model)
    options = Options(draws=500, chains=4, steps="auto", target_mcse=0.1)
    return Session(
        compiled,
        GeometricPath(compiled.log_terms),
        compiled.sample_prior,
        options,
        ProgressDisplay(False),
        np.random.SeedSequence(seed),
    )


def _run(start: Start, evaluations: float, seed: np.random.SeedSequence):
    """Anneal with the number of steps that takes so many evaluations a particle."""
    pilot, session = start.pilot, start.session
    share = effective_length(pilot)
    mean_cost = float((share * pilot.cost).sum() / share.sum())
    steps = max(16, round(evaluations / mean_cost))
    betas = variational_schedule(pilot.betas, share, steps)
    return session.run("", session.blocks(pilot.transition, betas, 2000, seed))


def measure(name: str, seed: int, statistics: str) -> tuple[float, ...] | str:
    """Return the two lengths, the ratio of variances, z, and whether "auto" takes the moments."""
    kernel, seeds = HMC(), np.random.SeedSequence([seed, 7]).spawn(4)
    session = _session(MODELS[name](), seed)
    geometric = Start(session, "prior", survey(session, kernel, seeds[0]))
    try:
        moment = MomentAveragedPath(statistics).lay_out(geometric, kernel, None, seeds[1])
    except ValueError as error:
        return str(error)
    evaluations = predicted_cost(geometric.pilot)
    runs = [_run(s, evaluations, seeds[3].spawn(1)[0]) for s in (geometric, moment)]
    first, second = (ais(r.log_weight) for r in runs)
    ratio = log_weight_variance(runs[1].log_weight) / log_weight_variance(runs[0].log_weight)
    z = (second.log_evidence - first.log_evidence) / np.hypot(first.mcse, second.mcse)
    chosen = Cheapest(MomentAveragedPath(statistics)).lay_out(geometric, kernel, None, seeds[1])
    taken = float(chosen.session.path is not session.path)
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
