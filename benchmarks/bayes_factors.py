"""Compare a direct path between two models with two separate runs, at the same error.

    python benchmarks/bayes_factors.py --seeds 10

Nested neighbours, or nearly so:

- `covariate`: logistic regression in 20 dimensions, against 19;
- `pine`: strength of radiata pine on density, against resin-adjusted density (exact);
- `schools`: pooled against hierarchical, non-centred (exact by quadrature).

For each seed, the direct path starts from draws of a run with the default settings, of the first
model, of the second one, or of both, and aims at an error of `--target` nats; "two runs" are
`sample_ais` for both models with a target of `--target` / sqrt(2) each. The cost is the number of
evaluations of the gradient or the density that a method reports, of one model each.

- `path`: the direct path alone, for a user who has posterior draws;
- `total`: with the run that the draws come from;
- `ratio`: evaluations over those of two runs, both per variance: `evaluations x error^2`.

Without an exact value the reference is the mean over the seeds of two runs, with its error. `z rms`
is the root mean square of the errors in standard errors (about 1), `worst` the largest.
"""

import argparse
import sys
import warnings

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pymc as pm

from scipy import integrate, stats

import pymc_anneal as pma

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import radiata_pine

warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")

Models = tuple[pm.Model, pm.Model]
METHODS = {"from a": "a", "from b": "b", "both": "ab"}


@dataclass(frozen=True)
class Pair:
    """Two models and, if it is known, the exact log Bayes factor of the first."""

    name: str
    build: Callable[[], Models]
    exact: float | None = None


def covariate() -> Models:
    rng = np.random.default_rng(0)
    x, slopes = rng.normal(size=(200, 20)), 0.5 * rng.normal(size=20)
    slopes[-1] = 0.25
    y = (rng.uniform(size=200) < 1 / (1 + np.exp(-x @ slopes))).astype(int)

    def model(full: bool) -> pm.Model:
        with pm.Model() as built:
            logit = x[:, :-1] @ pm.Normal("slope", 0, 1, shape=19)
            if full:
                logit = logit + x[:, -1] * pm.Normal("last", 0, 1)
            pm.Bernoulli("y", logit_p=logit, observed=y)
        return built

    return model(False), model(True)


def pine() -> Models:
    data = radiata_pine.read_data()
    return tuple(radiata_pine.build(data["y"], data[name]) for name in ("x", "z"))


def exact_pine() -> float:
    data = radiata_pine.read_data()
    first, second = (radiata_pine.exact_log_evidence(data["y"], data[name]) for name in ("x", "z"))
    return first - second


EFFECT = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
ERROR = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])


def schools() -> Models:
    with pm.Model() as pooled:
        pm.Normal("y", pm.Normal("mu", 0, 5), ERROR, observed=EFFECT)
    with pm.Model() as hierarchical:
        mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
        pm.Normal("y", mu + tau * pm.Normal("z", shape=8), ERROR, observed=EFFECT)
    return pooled, hierarchical


def exact_schools() -> float:
    def log_density(tau: float) -> float:
        covariance = np.diag(ERROR**2 + tau**2) + 25.0
        return stats.multivariate_normal(np.zeros(8), covariance).logpdf(EFFECT)

    def relative(tau: float) -> float:
        return np.exp(log_density(tau) - log_density(0)) * stats.halfcauchy.pdf(tau, scale=5)

    parts = [integrate.quad(relative, *ends)[0] for ends in ((0, 20), (20, np.inf))]
    return -float(np.log(sum(parts)))


PAIRS = [
    Pair("covariate", covariate),
    Pair("pine", pine, exact_pine()),
    Pair("schools", schools, exact_schools()),
]


@dataclass(frozen=True)
class Found:
    """A log Bayes factor, its error, and evaluations without and with those of the draws."""

    value: float
    mcse: float
    path: int
    total: int
    verdict: str


def evaluations(idata: object) -> int:
    return int(idata["evidence"]["evaluations"])


def two_runs(models: Models, seed: int, target: float) -> Found:
    runs = [
        pma.sample_ais(m, target_mcse=target / np.sqrt(2), random_seed=[seed, i], progressbar=False)
        for i, m in enumerate(models)
    ]
    factor, cost = pma.log_bayes_factor(*runs), sum(map(evaluations, runs))
    return Found(factor.log_bayes_factor, factor.mcse, cost, cost, factor.verdict.status)


def direct(models: Models, seed: int, target: float) -> dict[str, Found]:
    names = dict(zip("ab", models, strict=True))
    draws = {
        name: pma.sample_ais(m, random_seed=[seed, 2, i], progressbar=False)
        for i, (name, m) in enumerate(names.items())
    }
    found = {}
    for method, given in METHODS.items():
        factor = pma.sample_bayes_factor(
            *models,
            **{f"draws_{name}": draws[name] for name in given},
            target_mcse=target,
            random_seed=[seed, 3],
            progressbar=False,
        )
        total = factor.evaluations + sum(evaluations(draws[name]) for name in given)
        found[method] = Found(
            factor.log_bayes_factor, factor.mcse, factor.evaluations, total, factor.verdict.status
        )
    return found


def report(pair: Pair, found: dict[str, list[Found]]) -> None:
    reference = found["two runs"]
    values = np.array([f.value for f in reference])
    exact = values.mean() if pair.exact is None else pair.exact
    own = values.std(ddof=1) / np.sqrt(len(values)) if pair.exact is None else 0.0
    print(f"\n{pair.name}: log BF {exact:.4f}" + (f" +- {own:.4f}" if own else " (exact)"))
    header = ("method", "mcse", "path", "total", "ratio, path", "total", "z rms", "worst", "trust")
    print("{:<9s}{:>8s}{:>10s}{:>10s}{:>13s}{:>8s}{:>8s}{:>8s}{:>8s}".format(*header))

    def cost(name: str, field: str) -> float:
        return float(np.mean([getattr(f, field) * f.mcse**2 for f in found[name]]))

    for name, rows in found.items():
        z = np.array([(f.value - exact) / np.hypot(f.mcse, own) for f in rows])
        ratios = [cost(name, field) / cost("two runs", field) for field in ("path", "total")]
        trusted = sum(f.verdict == "trust" for f in rows)
        print(
            f"{name:<9s}{np.median([f.mcse for f in rows]):8.4f}"
            f"{np.median([f.path for f in rows]):10.3g}{np.median([f.total for f in rows]):10.3g}"
            f"{ratios[0]:13.2f}{ratios[1]:8.2f}{np.sqrt((z**2).mean()):8.2f}"
            f"{np.abs(z).max():8.2f}{trusted:5d}/{len(rows)}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--target", type=float, default=0.02)
    parser.add_argument("--pairs", nargs="+", default=[p.name for p in PAIRS])
    options = parser.parse_args()
    for pair in (p for p in PAIRS if p.name in options.pairs):
        models, found = pair.build(), {}
        for seed in range(options.seeds):
            both = {"two runs": two_runs(models, seed, options.target)}
            for name, row in {**both, **direct(models, seed, options.target)}.items():
                found.setdefault(name, []).append(row)
        report(pair, found)


if __name__ == "__main__":
    main()
