"""Missing values of normal variables, by conditioning a joint normal distribution by hand."""

import warnings

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import jax
import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel

RNG = np.random.default_rng(3)
# Gaps of one, two and no value in a row, and of two values side by side.
ROWS = RNG.normal(size=(6, 3)) + 5
ROWS[2, 1] = ROWS[4, 0] = ROWS[4, 2] = np.nan
SERIES = RNG.normal(size=9) + 5
SERIES[[0, 4, 5]] = np.nan
COVARIANCE = np.array([[2.0, 0.6, 0.3], [0.6, 1.0, -0.2], [0.3, -0.2, 1.5]])
N = len(SERIES)


class Joint(NamedTuple):
    """A model of one scale ``s`` and the mean and covariance of all values given it."""

    declare: Callable[[pm.Distribution, np.ndarray], None]
    data: np.ndarray
    mean: Callable[[float], np.ndarray]
    covariance: Callable[[float], np.ndarray]


def _autoregression_covariance(s: float) -> np.ndarray:
    step = np.eye(N)
    step[np.arange(2, N), np.arange(1, N - 1)] = -0.5
    step[np.arange(2, N), np.arange(N - 2)] = -0.2
    noise = np.diag([4.0, 4.0, *[s**2] * (N - 2)])
    return np.linalg.inv(step) @ noise @ np.linalg.inv(step).T


def _walk_covariance(s: float) -> np.ndarray:
    return 4.0 + s**2 * np.minimum.outer(np.arange(N), np.arange(N))


JOINTS = {
    "rows of a multivariate normal": Joint(
        lambda s, y: pm.MvNormal("y", s * np.ones(3), s**2 * COVARIANCE, observed=y),
        ROWS,
        lambda s: s * np.ones(18),
        lambda s: np.kron(np.eye(6), s**2 * COVARIANCE),
    ),
    "an autoregression": Joint(
        lambda s, y: pm.AR(
            "y", [0.5, 0.2], sigma=s, init_dist=pm.Normal.dist(0.0, np.array(2.0)), observed=y
        ),
        SERIES,
        lambda s: np.zeros(N),
        _autoregression_covariance,
    ),
    "a random walk": Joint(
        lambda s, y: pm.GaussianRandomWalk(
            "y", sigma=s, init_dist=pm.Normal.dist(0.0, np.array(2.0)), observed=y
        ),
        SERIES,
        lambda s: np.zeros(N),
        _walk_covariance,
    ),
}


def _build(joint: Joint) -> pm.Model:
    with pm.Model() as model, warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
        joint.declare(pm.HalfNormal("s"), joint.data)
    return model


def _condition(joint: Joint, s: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the log density of the observed values, and mean and covariance of the others."""
    y, mean, covariance = joint.data.ravel(), joint.mean(s), joint.covariance(s)
    gap = np.isnan(y)
    seen, across = covariance[np.ix_(~gap, ~gap)], covariance[np.ix_(gap, ~gap)]
    gain = across @ np.linalg.inv(seen)
    return (
        stats.multivariate_normal(mean[~gap], seen).logpdf(y[~gap]),
        mean[gap] + gain @ (y - mean)[~gap],
        covariance[np.ix_(gap, gap)] - gain @ across.T,
    )


@cache
def _compile(name: str) -> CompiledModel:
    return pma.compile_model(_build(JOINTS[name]))


@pytest.fixture(params=JOINTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@double_precision
def test_density_of_the_observed_values_and_its_derivative(name: str) -> None:
    joint, compiled = JOINTS[name], _compile(name)
    assert [v.name for v in compiled.variables] == ["s"]
    density = jax.value_and_grad(lambda x: compiled.log_terms(x).log_likelihood)
    s, factor = np.array([0.3, 1.0, 4.0]), np.exp(1e-5)
    values, slopes = jax.jit(jax.vmap(density))(np.log(s)[:, None])
    for one, value, slope in zip(s, values, slopes[:, 0], strict=True):
        assert value == pytest.approx(_condition(joint, one)[0], rel=1e-10)
        above, below = (_condition(joint, x)[0] for x in (one * factor, one / factor))
        assert slope == pytest.approx((above - below) / 2e-5, rel=1e-5)


def test_graphs_with_more_than_arrays_are_searched_for_branches(name: str) -> None:
    assert not _compile(name).branches.terms


def test_draws_are_those_of_the_conditional_distribution(name: str) -> None:
    joint, compiled = JOINTS[name], _compile(name)
    # Nearly the same scale, since the same position gives the same draw.
    found = compiled.constrain(np.log(1.5) + 1e-9 * np.arange(4000)[:, None])
    _, mean, covariance = _condition(joint, 1.5)
    apart = np.linalg.solve(np.linalg.cholesky(covariance), (found["y_unobserved"] - mean).T).T
    # The mean, the variance and the correlations of standard normal numbers, together.
    k = len(mean)
    scores = [np.sqrt(4000) * apart.mean(axis=0), np.sqrt(2000) * (apart.var(axis=0) - 1)]
    scores.append(np.sqrt(4000) * (apart.T @ apart / 4000)[np.triu_indices(k, 1)])
    square = (np.concatenate(scores) ** 2).sum()
    assert stats.chi2(k * (k + 3) / 2).sf(square) > 1e-3
    assert np.array_equal(
        found["y"].reshape(4000, -1)[:, np.isnan(joint.data.ravel())], found["y_unobserved"]
    )


@pytest.mark.slow
def test_an_evidence_in_closed_form() -> None:
    with pm.Model() as model, warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
        mu = pm.Normal("mu", 4.0, 2.0, shape=3)
        pm.MvNormal("y", mu, COVARIANCE, observed=ROWS)
    names = [rv.name for rv in model.free_RVs]
    idata = pma.sample_ais(model, draws=200, chains=2, random_seed=1, progressbar=False)
    y, seen = ROWS.ravel(), ~np.isnan(ROWS.ravel())
    joint = np.kron(np.eye(6), COVARIANCE) + np.kron(np.ones((6, 6)), 4 * np.eye(3))
    exact = stats.multivariate_normal(np.full(seen.sum(), 4.0), joint[np.ix_(seen, seen)])
    found = pma.log_evidence(idata)
    assert abs(found.log_evidence - exact.logpdf(y[seen])) < 4 * found.mcse < 0.2
    assert "integrated out exactly" in idata.evidence.attrs["notes"]
    assert set(idata.posterior) == {"mu", "y", "y_unobserved"}
    assert [rv.name for rv in model.free_RVs] == names  # the user's model is as it was


@double_precision
def test_a_model_without_parameters() -> None:
    joint = JOINTS["rows of a multivariate normal"]
    with pm.Model() as model, warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
        joint.declare(1.0, joint.data)
    found = jax.jit(pma.compile_model(model).log_terms)(jax.numpy.zeros(0))
    assert found.log_likelihood == pytest.approx(_condition(joint, 1.0)[0], rel=1e-10)


def _student() -> None:
    pm.MvStudentT("y", nu=4, mu=np.zeros(3), scale=np.eye(3), observed=ROWS)


def _volatility() -> None:
    pm.GARCH11("y", omega=1.0, alpha_1=0.3, beta_1=0.2, initial_vol=1.0, observed=SERIES)


def _parent() -> None:
    y = pm.MvNormal("y", np.zeros(3), COVARIANCE, observed=ROWS)
    pm.Normal("total", y.sum(), 1.0, observed=0.3)


def _in_a_potential() -> None:
    y = pm.MvNormal("y", np.zeros(3), COVARIANCE, observed=ROWS)
    pm.Potential("total", -(y.sum() ** 2))


def _car() -> None:
    ring = np.roll(np.eye(N), 1, axis=0) + np.roll(np.eye(N), -1, axis=0)
    pm.CAR("y", mu=np.zeros(N), W=ring, alpha=0.5, tau=1.0, observed=SERIES)


@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (_student, "normal; that of this variable is not"),
        (_volatility, "normal; that of this variable is not"),
        (_car, "normal; that of this variable is not"),
        (_parent, "another variable depends on them"),
        (_in_a_potential, "another variable depends on them"),
    ],
)
def test_what_is_refused(declare: Callable[[], None], message: str) -> None:
    with pm.Model() as model:
        pm.Normal("x")
        declare()
    with pytest.raises(NotImplementedError, match=f"'y_unobserved' holds missing.*{message}"):
        pma.compile_model(model)


@double_precision
def test_missing_values_of_a_mixture_are_parameters() -> None:
    with pm.Model() as model, warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
        mu = pm.Normal("mu", shape=2)
        pm.NormalMixture("y", [0.4, 0.6], mu, 1.0, observed=SERIES)
    compiled = pma.compile_model(model)
    x = np.array([0.2, 0.7, 1.0, 2.0, 3.0])
    found = jax.jit(compiled.log_terms)(jax.numpy.asarray(x))

    def density(y: np.ndarray) -> float:
        terms = stats.norm(x[:2], 1.0).pdf(y[:, None]) @ [0.4, 0.6]
        return float(np.log(terms).sum())

    prior = stats.norm.logpdf(x[:2]).sum() + density(x[2:])
    assert found.log_prior == pytest.approx(prior, rel=1e-10)
    assert found.log_likelihood == pytest.approx(density(SERIES[~np.isnan(SERIES)]), rel=1e-10)
