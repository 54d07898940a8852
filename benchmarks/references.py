"""Compare the efficiency with a fitted reference and with the prior, for vague priors.

    python benchmarks/references.py --seeds 5

The models are linear regressions with known noise and priors of standard deviation 100, in 20 to
100 dimensions, whose evidence is known exactly. Their posterior is Gaussian, and a fitted Gaussian
equals it up to rounding, so the ratios are upper bounds. `--kind logistic` uses logistic
regressions with twenty rows per coefficient, whose posterior is not Gaussian and whose evidence is
unknown. Efficiency is 1 / (MSE x seconds) of the whole call on a compiled model, including pilots
and fit; the references take turns. By default the MSE is computed from the reported errors, because
few seeds are used; `--realised` uses the realised errors.
"""

import argparse
import time
import warnings

import numpy as np
import pymc as pm

from scipy import stats

import pymc_anneal as pma

warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")


def regression(d: int, sd: float = 100.0, rows: int = 200):
    """Return a linear regression with vague priors, and its log evidence."""
    rng = np.random.default_rng(d)
    x = rng.normal(size=(rows, d))
    y = x @ rng.normal(size=d) + rng.normal(size=rows)
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, sd, shape=d)
        pm.Normal("y", pm.math.dot(x, beta), 1, observed=y)
    covariance = np.eye(rows) + sd**2 * x @ x.T
    return pma.compile_model(model), stats.multivariate_normal(None, covariance).logpdf(y)


def logistic(d: int, sd: float = 100.0):
    """Return a logistic regression with vague priors."""
    rng = np.random.default_rng(d)
    x = rng.normal(size=(20 * d, d)) / np.sqrt(d)
    y = rng.uniform(size=20 * d) < 1 / (1 + np.exp(-x @ rng.normal(size=d)))
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, sd, shape=d)
        pm.Bernoulli("y", logit_p=pm.math.dot(x, beta), observed=y.astype(int))
    return pma.compile_model(model), np.nan


KINDS = {"linear": regression, "logistic": logistic}


def measure(model, exact: float, reference: str, draws: int, seed: int) -> tuple[float, ...]:
    """Return the error, its reported standard error, and the seconds of one run."""
    begin = time.perf_counter()
    idata = pma.sample_ais(
        draws, model=model, reference=reference, progressbar=False, random_seed=seed
    )
    found = pma.log_evidence(idata)
    return found.log_evidence - exact, found.mcse, time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dimensions", type=lambda t: [int(d) for d in t.split(",")])
    parser.add_argument("--kind", choices=KINDS, default="linear")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--draws", type=int, default=500, help="draws in each of four chains")
    parser.add_argument("--realised", action="store_true")
    parser.set_defaults(dimensions=[20, 50, 100])
    args = parser.parse_args()
    if args.realised and args.kind == "logistic":
        parser.error("--realised needs exact values, which the logistic regressions do not have")
    print("   d reference  seconds    mcse      z efficiency  ratio")
    for d in args.dimensions:
        model, exact = KINDS[args.kind](d)
        runs: dict[str, list] = {"prior": [], "pilot": [], "auto": []}
        for reference in runs:  # compiles
            measure(model, exact, reference, args.draws, 1000)
        for seed in range(args.seeds):
            for reference, kept in runs.items():
                kept.append(measure(model, exact, reference, args.draws, seed))
        base = None
        for reference, kept in runs.items():
            error, mcse, seconds = np.transpose(kept)
            square = np.mean((error if args.realised else mcse) ** 2)
            efficiency = 1 / (square * seconds.mean())
            base = base or efficiency
            print(
                f"{d:4} {reference:9} {seconds.mean():8.2f} {mcse.mean():7.4f} "
                f"{np.mean(error / mcse):+6.2f} {efficiency:10.4g} {efficiency / base:6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
