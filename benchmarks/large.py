"""Measure error, time and memory of `sample_ais` on large models.

    python benchmarks/large.py [--models cox,groups,rows] [--target 0.5] [--draws 25] [--single]

- `cox`: log-Gaussian Cox process on a grid of 40 x 40 cells, 1,600 dimensions. The covariance of
  the log intensity is a product over the two axes, so its root is applied axis by axis.
- `groups`: hierarchical model with 5,000 group effects, non-centred, mean and scale unknown. Its
  evidence is known by quadrature over the scale, with the other parameters integrated out.
- `rows`: logistic regression with 100,000 rows and ten coefficients.

Each model runs in its own process, whose peak memory is printed. The limit is an error of at most
0.5 within 20 minutes and 4 GB on 2 cores. One hundred particles, 25 in each of four chains, are
enough for this error, but not for the effective sample size of one hundred that a verdict of
"trust" needs.
"""

import argparse
import resource
import subprocess
import sys
import time
import warnings

import numpy as np
import pymc as pm

from scipy import special, stats

import pymc_anneal as pma

warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")

SIDE, GROUPS, ROWS = 40, 5000, 100_000


def _data() -> np.random.Generator:
    """Return the generator from which every model simulates its data."""
    return np.random.default_rng(1998)


def _root(length: float = 8.0) -> np.ndarray:
    """Return the Cholesky factor of an exponential covariance along one axis."""
    at = np.arange(SIDE)
    return np.linalg.cholesky(np.exp(-np.abs(at[:, None] - at) / length))


def cox() -> tuple[pm.Model, float]:
    """Return a log-Gaussian Cox process; its evidence is unknown."""
    rng, root = _data(), _root()
    field = 1.2 * root @ rng.normal(size=(SIDE, SIDE)) @ root.T
    counts = rng.poisson(np.exp(field - 0.5))
    with pm.Model() as model:
        z = pm.Normal("z", shape=(SIDE, SIDE))
        log_intensity = pm.Normal("mean", -0.5, 0.5) + 1.2 * pm.math.dot(
            pm.math.dot(root, z), root.T
        )
        pm.Poisson("y", pm.math.exp(log_intensity), observed=counts)
    return model, np.nan


def groups() -> tuple[pm.Model, float]:
    """Return a hierarchical model with one observation per group, and its log evidence."""
    rng = _data()
    y = rng.normal(rng.normal(1.0, 0.7, size=GROUPS), 1.0)
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 2), pm.HalfNormal("tau", 1)
        pm.Normal("y", mu + tau * pm.Normal("z", shape=GROUPS), 1, observed=y)
    tau, weight = special.roots_legendre(2000)
    tau, weight = 2 * (tau + 1), 2 * weight  # from 0 to 4
    variance = 1 + tau**2
    within = -0.5 * (GROUPS * np.log(2 * np.pi * variance) + GROUPS * y.var() / variance)
    mean = stats.norm.logpdf(y.mean(), 0, np.sqrt(4 + variance / GROUPS))
    mean += 0.5 * np.log(2 * np.pi * variance / GROUPS)
    log_density = within + mean + stats.halfnorm.logpdf(tau)
    return model, float(special.logsumexp(log_density, b=weight))


def rows() -> tuple[pm.Model, float]:
    """Return a logistic regression with many rows; its evidence is unknown."""
    rng = _data()
    x = rng.normal(size=(ROWS, 10))
    y = rng.uniform(size=ROWS) < special.expit(x @ rng.normal(0, 0.5, size=10))
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, 1, shape=10)
        pm.Bernoulli("y", logit_p=pm.math.dot(x, beta), observed=y.astype(int))
    return model, np.nan


MODELS = {f.__name__: f for f in (cox, groups, rows)}


def run(name: str, target: float, draws: int, single_precision: bool) -> None:
    """Run a model in this process and print its row of the table."""
    model, exact = MODELS[name]()
    begin = time.perf_counter()
    idata = pma.sample_ais(
        draws,
        model=model,
        target_mcse=target,
        transition=pma.HMC(single_precision=True) if single_precision else "auto",
        random_seed=1,
        progressbar=False,
    )
    seconds = time.perf_counter() - begin
    found, evidence = pma.log_evidence(idata), idata["evidence"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    z = (found.log_evidence - exact) / found.mcse
    print(
        f"{name:8} {found.log_evidence:12.3f} {found.mcse:6.3f} {z:+6.1f} "
        f"{int(evidence['steps']):6} {seconds:8.0f} {peak:6.2f}  {found.verdict}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=lambda t: t.split(","), default=list(MODELS))
    parser.add_argument("--target", type=float, default=0.5)
    parser.add_argument("--draws", type=int, default=25)
    parser.add_argument("--single", action="store_true", help="gradients in single precision")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        run(args.one, args.target, args.draws, args.single)
        return
    print("model    log evidence   mcse      z  steps  seconds     GB  verdict", flush=True)
    for name in args.models:
        settings = ["--one", name, "--target", str(args.target), "--draws", str(args.draws)]
        settings += ["--single"] * args.single
        subprocess.run([sys.executable, __file__, *settings], check=True)


if __name__ == "__main__":
    main()
