"""Nulls at the edge of a support: truncated normal posteriors, a variance, what is refused."""

import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.evidence.posterior_density import log_posterior
from pymc_anneal.posthoc.edge import _candidates, edge_density, find_edge
from pymc_anneal.results.container import dataset
from tests.repetitions import REPETITIONS, coverage

Y = np.array([0.5, -0.2, 0.7, 0.3])


def draws_of(**values: np.ndarray) -> object:
    return container({"posterior": dataset(values, ("chain", "draw"))})


def from_grid(log_density, grid: np.ndarray, seed: int = 1) -> np.ndarray:
    """Return independent draws of a density on a fine grid, shape (4, 1000)."""
    rng = np.random.default_rng(seed)
    mass = np.exp(log_density - log_density.max())
    index = rng.choice(len(grid), size=(4, 1000), p=mass / mass.sum())
    return grid[index] + rng.uniform(-0.5, 0.5, (4, 1000)) * (grid[1] - grid[0])


def two_parameters() -> pm.Model:
    """Return a uniform parameter, and a second one that it is correlated with."""
    with pm.Model() as model:
        theta = pm.Uniform("theta", 0.0, 2.0)
        other = pm.Normal("other", 0, 1)
        pm.Normal("y", theta + other, 1.0, observed=Y)
    return model


GRID = np.linspace(0, 2, 20001)
LOG_DENSITY = stats.multivariate_normal(np.zeros(len(Y)), np.eye(len(Y)) + 1).logpdf(
    Y - GRID[:, None]
)


def exact(edge: float) -> float:
    at_edge = LOG_DENSITY[0 if edge == 0 else -1]
    return float(np.log(np.exp(LOG_DENSITY).mean()) - at_edge)


def draws_of_two(seed: int) -> dict[str, np.ndarray]:
    n, theta = len(Y), from_grid(LOG_DENSITY[1:-1], GRID[1:-1], seed)
    mean = (Y.sum() - n * theta) / (n + 1)
    noise = np.random.default_rng([2, seed]).normal(0, (n + 1) ** -0.5, theta.shape)
    return {"theta": theta, "other": mean + noise}


@pytest.mark.parametrize("edge", [0.0, 2.0])
def test_the_ends_of_a_uniform_prior(edge: float) -> None:
    draws = draws_of(**draws_of_two(1))
    found = pma.savage_dickey(draws, {"theta": edge}, model=two_parameters())
    assert found.log_bayes_factor == pytest.approx(exact(edge), abs=4 * found.mcse)
    assert found.mcse < 0.05
    assert found.verdict.trusted


@pytest.mark.slow
def test_coverage() -> None:
    compiled = pma.compile_model(two_parameters())
    edge = find_edge(compiled, {"theta": 0.0})
    log_density, scores = log_posterior(compiled), []
    for seed in range(REPETITIONS):
        values = {name: x.ravel() for name, x in draws_of_two(seed).items()}
        draws = compiled.unconstrain(values).reshape(4, -1, 2)
        found = edge_density(edge, draws, log_density).density
        scores.append((np.log(0.5) - found.log_mean - exact(0.0)) / found.mcse)
    assert 0.92 <= coverage(scores) <= 0.98


@pytest.mark.slow
def test_a_variance_of_random_effects() -> None:
    """``y_ij ~ N(m + t_i, 1)``, ``t_i ~ N(0, tau)``, summed out: against two evidences."""
    rng = np.random.default_rng(3)
    group = rng.normal(0, 0.6, 5)
    means = group + rng.normal(0, 0.4, 5)

    def build(full: bool) -> pm.Model:
        with pm.Model() as model:
            tau = pm.HalfNormal("tau", 1.0) if full else 0.0
            m = pm.Normal("m", 0, 2)
            pm.Normal("y", m, pm.math.sqrt(0.16 + tau**2), observed=means)
        return model

    runs = [
        pma.sample_ais(build(full), draws=2000, target_mcse=0.01, random_seed=1, progressbar=False)
        for full in (True, False)
    ]
    exact = pma.log_bayes_factor(*runs)
    found = pma.savage_dickey(runs[0], {"tau": 0}, model=build(True))
    error = np.hypot(found.mcse, exact.mcse)
    assert found.log_bayes_factor == pytest.approx(exact.log_bayes_factor, abs=4 * error)
    assert found.mcse < 0.05


@pytest.mark.parametrize("shape", [0.5, 2.0])
def test_densities_that_are_zero_or_infinite(shape: float) -> None:
    with pm.Model() as model:
        theta = pm.Gamma("theta", shape, 1.0)
        pm.Normal("y", theta, 1.0, observed=Y)
    draws = draws_of(theta=np.abs(np.random.default_rng(0).normal(size=(4, 200))))
    with pytest.raises(ValueError, match="is zero or infinite at the edge 0 of its support"):
        pma.savage_dickey(draws, {"theta": 0.0}, model=model)


def test_what_is_no_edge() -> None:
    with pm.Model() as model:
        a = pm.HalfNormal("a")
        pm.HalfNormal("b", a)
        pm.HalfNormal("c", shape=2)
        pm.Normal("d")
    compiled = pma.compile_model(model)
    assert find_edge(compiled, {"a": 0.0}).inwards == 1
    for null in ({"a": 1.0}, {"b": 0.0}, {"c": 0.0}, {"d": 0.0}, {"a": 0.0, "d": 0.0}, {}):
        assert find_edge(compiled, null) is None


def test_the_cut_densities_integrate_to_one() -> None:
    b = np.abs(np.random.default_rng(0).normal(0.5, 1.0, 500))
    grid = np.linspace(0, b.max(), 200_001)
    for log_w in _candidates(b):
        assert np.exp(log_w(grid)).sum() * (grid[1] - grid[0]) == pytest.approx(1, rel=1e-3)
