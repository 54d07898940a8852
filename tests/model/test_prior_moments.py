"""Prior draws of all families of distributions in one model, tested together at one level."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from tests.normal_scores import ScoreRows

DRAWS = 10_000

# Variables of one kind each, by name, and their distributions.
LAWS: dict[str, tuple[Callable[[str], object], object]] = {
    "normal": (lambda name: pm.Normal(name, 1.0, 2.0), stats.norm(1.0, 2.0)),
    "student_t": (
        lambda name: pm.StudentT(name, nu=3.0, mu=0.5, sigma=1.5),
        stats.t(3.0, 0.5, 1.5),
    ),
    "skew_normal": (
        lambda name: pm.SkewNormal(name, mu=0.5, sigma=2.0, alpha=3.0),
        stats.skewnorm(3.0, 0.5, 2.0),
    ),
    "laplace": (lambda name: pm.Laplace(name, 0.5, 2.0), stats.laplace(0.5, 2.0)),
    "logistic": (lambda name: pm.Logistic(name, 0.5, 2.0), stats.logistic(0.5, 2.0)),
    "gumbel": (lambda name: pm.Gumbel(name, 0.5, 2.0), stats.gumbel_r(0.5, 2.0)),
    "moyal": (lambda name: pm.Moyal(name, 0.5, 2.0), stats.moyal(0.5, 2.0)),
    "cauchy": (lambda name: pm.Cauchy(name, 0.5, 2.0), stats.cauchy(0.5, 2.0)),
    "exponential": (lambda name: pm.Exponential(name, 1.7), stats.expon(scale=1 / 1.7)),
    "gamma": (lambda name: pm.Gamma(name, 2.5, 0.7), stats.gamma(2.5, scale=1 / 0.7)),
    "chi_squared": (lambda name: pm.ChiSquared(name, 3.0), stats.chi2(3.0)),
    "inverse_gamma": (
        lambda name: pm.InverseGamma(name, 3.5, 2.0),
        stats.invgamma(3.5, scale=2.0),
    ),
    "weibull": (lambda name: pm.Weibull(name, 1.5, 2.0), stats.weibull_min(1.5, scale=2.0)),
    "wald": (lambda name: pm.Wald(name, mu=1.5, lam=2.0), stats.invgauss(0.75, scale=2.0)),
    "half_normal": (lambda name: pm.HalfNormal(name, 2.0), stats.halfnorm(scale=2.0)),
    "half_cauchy": (lambda name: pm.HalfCauchy(name, 2.0), stats.halfcauchy(scale=2.0)),
    "log_normal": (
        lambda name: pm.LogNormal(name, 0.3, 0.8),
        stats.lognorm(0.8, scale=np.exp(0.3)),
    ),
    "pareto": (lambda name: pm.Pareto(name, 2.5, 1.5), stats.pareto(2.5, scale=1.5)),
    "beta": (lambda name: pm.Beta(name, 2.0, 5.0), stats.beta(2.0, 5.0)),
    "uniform": (lambda name: pm.Uniform(name, -1.0, 3.0), stats.uniform(-1.0, 4.0)),
    "triangular": (
        lambda name: pm.Triangular(name, lower=-1.0, c=0.5, upper=3.0),
        stats.triang(0.375, -1.0, 4.0),
    ),
    "von_mises": (lambda name: pm.VonMises(name, 0.0, 1.2), stats.vonmises(1.2)),
    "truncated_normal": (
        lambda name: pm.TruncatedNormal(name, 0.5, 2.0, lower=-1.0),
        stats.truncnorm(-0.75, np.inf, 0.5, 2.0),
    ),
}
COVARIANCE = np.array([[2.0, 0.6], [0.6, 0.5]])
CONCENTRATION = np.array([0.8, 1.5, 3.0])


@cache
def values() -> dict[str, np.ndarray]:
    """Return prior draws, in the space of the model."""
    with pm.Model() as model:
        for name, (declare, _) in LAWS.items():
            declare(name)
        scale = pm.Gamma("scale", 3.0, 2.0)
        pm.Normal("child", 0.5, scale, shape=2)
        pm.MvNormal("vector", [1.0, -1.0], cov=COVARIANCE)
        pm.Dirichlet("simplex", CONCENTRATION)
        pm.ZeroSumNormal("zero_sum", 1.5, shape=3)
    compiled = pma.compile_model(model)
    return compiled.constrain(compiled.sample_prior(np.random.SeedSequence(3), DRAWS))


def independent(x: dict[str, np.ndarray]) -> dict[str, tuple[np.ndarray, object]]:
    """Return functions of the variables with several entries that are independent, and laws."""
    child = (x["child"] - 0.5) / x["scale"][:, None]
    vector = np.linalg.solve(np.linalg.cholesky(COVARIANCE), (x["vector"] - [1.0, -1.0]).T)
    first, second = CONCENTRATION[0], CONCENTRATION[1:]
    broken = x["simplex"][:, 1] / (1 - x["simplex"][:, 0])
    contrasts = x["zero_sum"] @ np.array([[1, -1, 0], [1, 1, -2]]).T / np.sqrt([2.0, 6.0])
    normal = stats.norm()
    return {
        **{f"child {i}": (child[:, i], normal) for i in (0, 1)},
        **{f"vector {i}": (vector[i], normal) for i in (0, 1)},
        "simplex 0": (x["simplex"][:, 0], stats.beta(first, second.sum())),
        "simplex 1": (broken, stats.beta(*second)),
        **{f"zero_sum {i}": (contrasts[:, i], stats.norm(scale=1.5)) for i in (0, 1)},
    }


def all_scores(wider: float = 1.0) -> ScoreRows:
    x, rows = values(), ScoreRows("prior", wider)
    pairs = {name: (x[name], law) for name, (_, law) in LAWS.items()} | independent(x)
    for name, (draws, law) in pairs.items():
        rows.add(name, draws, law)
    return rows


@pytest.mark.slow
def test_means() -> None:
    """Family "draws: prior means"."""
    found = all_scores().means
    assert found.visible_shift < 0.05
    found.check()


@pytest.mark.slow
def test_variances() -> None:
    """Family "draws: prior variances"."""
    found = all_scores().variances
    assert found.visible_shift < 0.02
    found.check()


def test_draws_one_percent_too_wide() -> None:
    assert not all_scores(wider=1.01).variances.agrees
