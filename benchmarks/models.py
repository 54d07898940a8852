"""Define six models with their log evidences.

Four log evidences are exact: by closed form (radiata pine, linear regression) or by quadrature over
the scale, with the other parameters integrated out (eight schools, hierarchical normal). Those of
the two logistic regressions are computed by importance sampling from a Student-t distribution
fitted to the posterior, with a standard error far below the errors that are compared.

    python benchmarks/models.py

recomputes all of them and prints them next to the stored values.
"""

import argparse
import csv

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pymc as pm

from scipy import integrate, optimize, special, stats

__all__ = ["MODELS", "BenchmarkModel", "columns", "data_folders"]

HERE = Path(__file__).resolve().parent
SCHOOLS_Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])  # Rubin (1981)
SCHOOLS_SIGMA = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

data_folders = [HERE / "data", HERE.parent / "examples" / "data"]


@dataclass(frozen=True)
class BenchmarkModel:
    """A model with its log evidence.

    Attributes
    ----------
    name : str
    build : Callable
        Function that returns a new `pm.Model`.
    log_evidence : float
        In nats.
    mcse : float
        Standard error of `log_evidence`, 0 for a closed form or a quadrature.
    reference : Callable
        Function that recomputes both numbers.
    """

    name: str
    build: Callable[[], pm.Model]
    log_evidence: float
    mcse: float
    reference: Callable[[], tuple[float, float]]


def columns(name: str) -> dict[str, np.ndarray]:
    """Return the numeric columns of a data file by name."""
    for folder in data_folders:
        if (folder / name).exists():
            with open(folder / name, newline="") as file:
                rows = list(csv.DictReader(file))
            keep = [k for k in rows[0] if _is_number(rows[0][k])]
            return {k: np.array([float(r[k]) for r in rows]) for k in keep}
    raise FileNotFoundError(f"No {name} in {[str(f) for f in data_folders]}; see --data.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# Logistic regressions


def logistic_data() -> tuple[np.ndarray, np.ndarray]:
    """Return simulated covariates, shape (300, 20), and binary responses."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 20))
    coefficients = rng.normal(size=20)
    y = rng.random(300) < 1 / (1 + np.exp(-x @ coefficients))
    return x, y.astype(int)


def pima_data() -> tuple[np.ndarray, np.ndarray]:
    """Return the data of Friel & Wyse (2012), model 1: intercept, npreg, glu, bmi, ped, scaled."""
    table = columns("pima_532.csv")
    x = np.column_stack([table[k] for k in ("npreg", "glu", "bmi", "ped")])
    x = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    return np.column_stack([np.ones(len(x)), x]), table["diabetes"].astype(int)


def build_logistic() -> pm.Model:
    x, y = logistic_data()
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=x.shape[1])
        pm.Bernoulli("y", logit_p=x @ b, observed=y)
    return model


def build_pima() -> pm.Model:
    x, y = pima_data()
    with pm.Model() as model:
        b = pm.Normal("b", 0, 10, shape=x.shape[1])
        pm.Bernoulli("y", logit_p=x @ b, observed=y)
    return model


def reference_logistic() -> tuple[float, float]:
    return importance_sampling(*logistic_data(), prior_sd=1.0)


def reference_pima() -> tuple[float, float]:
    return importance_sampling(*pima_data(), prior_sd=10.0)


def importance_sampling(x: np.ndarray, y: np.ndarray, prior_sd: float) -> tuple[float, float]:
    """Return the log evidence of a logistic regression and its error, from Student-t proposals.

    The proposal is fitted twice to weighted draws before the final ones.
    """
    d = x.shape[1]
    signs = np.where(y > 0, 1.0, -1.0)[:, None] * x

    def log_joint(b: np.ndarray) -> np.ndarray:
        margin = b @ signs.T
        log_likelihood = (np.minimum(margin, 0) - np.log1p(np.exp(-np.abs(margin)))).sum(axis=-1)
        return log_likelihood + stats.norm(0, prior_sd).logpdf(b).sum(axis=-1)

    found = optimize.minimize(lambda b: -log_joint(b), np.zeros(d), method="BFGS")
    mean, covariance = found.x, np.atleast_2d(found.hess_inv)
    rng = np.random.default_rng(1)
    for _ in range(2):
        b, log_w = _weighted_draws(log_joint, mean, covariance, 50_000, rng)
        w = np.exp(log_w - special.logsumexp(log_w))
        mean, covariance = w @ b, np.cov(b.T, aweights=w)
    batches = [_weighted_draws(log_joint, mean, covariance, 50_000, rng)[1] for _ in range(20)]
    return _log_mean(np.concatenate(batches))


def _weighted_draws(log_joint, mean, covariance, count: int, rng):
    proposal = stats.multivariate_t(mean, covariance, df=10)
    b = proposal.rvs(count, random_state=rng)
    return b, log_joint(b) - proposal.logpdf(b)


def _log_mean(log_w: np.ndarray) -> tuple[float, float]:
    w = np.exp(log_w - log_w.max())
    return float(log_w.max() + np.log(w.mean())), float(w.std() / w.mean() / np.sqrt(len(w)))


# Eight schools


def build_schools() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        eta = pm.Normal("eta", 0, 1, shape=8)
        pm.Normal("y", mu + tau * eta, SCHOOLS_SIGMA, observed=SCHOOLS_Y)
    return model


def reference_schools() -> tuple[float, float]:
    log_prior = stats.halfcauchy(scale=5).logpdf
    return _quadrature(SCHOOLS_Y, SCHOOLS_SIGMA, log_prior, [0, 1, 5, 20, 100]), 0.0


def _quadrature(y: np.ndarray, sigma: np.ndarray, log_prior, points: list[float]) -> float:
    """Return the log density of ``y_i ~ N(mu, tau^2 + sigma_i^2)``, ``mu ~ N(0, 5)``, over tau."""

    def log_integrand(tau: float) -> float:
        weight = 1 / (tau**2 + sigma**2)
        precision = weight.sum() + 1 / 25
        mean = (weight * y).sum() / precision
        square = (weight * y**2).sum() - precision * mean**2
        log_scale = np.log(weight / (2 * np.pi)).sum() - np.log(25 * precision)
        return 0.5 * (log_scale - square) + log_prior(tau)

    limits = [*points, np.inf]
    peak = max(log_integrand(t) for t in np.linspace(points[0] + 1e-9, points[-1], 2001))
    parts = [
        integrate.quad(lambda t: np.exp(log_integrand(t) - peak), a, b, epsrel=1e-11, limit=500)[0]
        for a, b in zip(limits[:-1], limits[1:], strict=True)
    ]
    return float(peak + np.log(sum(parts)))


# Hierarchical normal, 200 dimensions


def hierarchical_data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(198), 5)
    effect = rng.normal(1, 0.7, size=198)
    return group, effect[group] + rng.normal(size=group.size)


def build_hierarchical() -> pm.Model:
    group, y = hierarchical_data()
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfNormal("tau", 2)
        z = pm.Normal("z", 0, 1, shape=198)
        pm.Normal("y", (mu + tau * z)[group], 1, observed=y)
    return model


def reference_hierarchical() -> tuple[float, float]:
    group, y = hierarchical_data()
    size = 5
    mean = np.bincount(group, y) / size
    # Factors of the likelihood of the groups other than N(mean; effect, 1/size).
    rest = -0.5 * ((y - mean[group]) ** 2).sum()
    rest -= 198 * (0.5 * (size - 1) * np.log(2 * np.pi) + 0.5 * np.log(size))
    log_prior = stats.halfnorm(scale=2).logpdf
    sigma = np.full(198, size**-0.5)
    return rest + _quadrature(mean, sigma, log_prior, [0, 0.4, 0.6, 0.8, 1.0, 1.5]), 0.0


# Linear regressions


def pine_data() -> tuple[np.ndarray, np.ndarray]:
    """Return the radiata pine data of Friel & Pettitt (2008): design matrix and strength."""
    table = columns("radiata_pine.csv")
    x = table["x"] - table["x"].mean()
    return np.column_stack([np.ones(len(x)), x]), table["y"]


def build_pine() -> pm.Model:
    x, y = pine_data()
    with pm.Model() as model:
        tau = pm.Gamma("tau", 3, 2 * 300**2)
        alpha = pm.Normal("alpha", 3000, tau=0.06 * tau)
        beta = pm.Normal("beta", 185, tau=6 * tau)
        pm.Normal("y", alpha + beta * x[:, 1], tau=tau, observed=y)
    return model


def reference_pine() -> tuple[float, float]:
    x, y = pine_data()
    mean, precision = np.array([3000.0, 185.0]), np.diag([0.06, 6.0])
    return normal_inverse_gamma(x, y, mean, precision, 3.0, 2 * 300**2), 0.0


def regression_data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 50))
    return x, x @ rng.normal(size=50) + rng.normal(size=200)


def build_regression() -> pm.Model:
    x, y = regression_data()
    with pm.Model() as model:
        variance = pm.InverseGamma("variance", 3, 2)
        sigma = pm.math.sqrt(variance)
        b = pm.Normal("b", 0, sigma, shape=x.shape[1])
        pm.Normal("y", x @ b, sigma, observed=y)
    return model


def reference_regression() -> tuple[float, float]:
    x, y = regression_data()
    d = x.shape[1]
    return normal_inverse_gamma(x, y, np.zeros(d), np.eye(d), 3.0, 2.0), 0.0


def normal_inverse_gamma(x, y, mean, precision, shape: float, rate: float) -> float:
    """Return the log evidence of a conjugate linear regression.

    ``b ~ N(mean, s2 / precision)``, ``s2 ~ InverseGamma(shape, rate)``, ``y ~ N(x b, s2)``.
    """
    n = len(y)
    after = x.T @ x + precision
    centre = np.linalg.solve(after, x.T @ y + precision @ mean)
    square = y @ y + mean @ precision @ mean - centre @ after @ centre
    shape_after, rate_after = shape + n / 2, rate + square / 2
    log_determinants = np.linalg.slogdet(precision)[1] - np.linalg.slogdet(after)[1]
    return float(
        -0.5 * n * np.log(2 * np.pi)
        + 0.5 * log_determinants
        + shape * np.log(rate)
        - shape_after * np.log(rate_after)
        + special.gammaln(shape_after)
        - special.gammaln(shape)
    )


MODELS = {
    m.name: m
    for m in (
        BenchmarkModel("logistic", build_logistic, -135.5228, 6.5e-4, reference_logistic),
        BenchmarkModel("pima", build_pima, -257.2327, 2e-4, reference_pima),
        BenchmarkModel("schools", build_schools, -31.31134735, 0.0, reference_schools),
        BenchmarkModel("pine", build_pine, -310.12828554, 0.0, reference_pine),
        BenchmarkModel("regression", build_regression, -398.03173735, 0.0, reference_regression),
        BenchmarkModel(
            "hierarchical", build_hierarchical, -1573.04996423, 0.0, reference_hierarchical
        ),
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="additional folder with data files")
    args = parser.parse_args()
    if args.data:
        data_folders.insert(0, args.data)
    print(f"{'model':14s}{'stored':>20s}{'recomputed':>20s}{'mcse':>12s}")
    for model in MODELS.values():
        value, mcse = model.reference()
        print(f"{model.name:14s}{model.log_evidence:20.8f}{value:20.8f}{mcse:12.1e}")


if __name__ == "__main__":
    main()
