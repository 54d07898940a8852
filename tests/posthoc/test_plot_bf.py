"""The figure of a point null: densities in closed form, edges, an entry of an array."""

import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.results.bayes_factor import factor_range
from tests.posthoc.test_edge import draws_of, draws_of_two, exact, two_parameters

Y = np.array([0.4, 1.1, 0.3, 0.9])
PRECISION = 1 + len(Y)


def means() -> pm.Model:
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("b", 0, 1, shape=2)[0], 1, observed=Y)
    return model


def draws(seed: int = 1) -> object:
    rng = np.random.default_rng(seed)
    b = rng.normal([Y.sum() / PRECISION, 0], [PRECISION**-0.5, 1], size=(4, 1000, 2))
    return draws_of(b=b)


def heights(axis) -> list[float]:
    """Heights of the two points."""
    return [float(line.get_ydata()[0]) for line in axis.lines if line.get_marker() == "o"]


def test_points_and_title() -> None:
    null = {"b": [0.0, np.nan]}
    factor, axis = pma.plot_bf(draws(), null, model=means(), random_seed=1)
    same = pma.savage_dickey(draws(), null, model=means(), random_seed=1)
    assert factor.log_bayes_factor == same.log_bayes_factor
    posterior = stats.norm(Y.sum() / PRECISION, PRECISION**-0.5)
    assert heights(axis) == pytest.approx([stats.norm.pdf(0), posterior.pdf(0)], rel=0.1)
    assert heights(axis)[0] == pytest.approx(stats.norm.pdf(0))
    assert np.log(heights(axis)[0] / heights(axis)[1]) == pytest.approx(factor.log_bayes_factor)
    assert f"({factor_range(factor.interval)})" in axis.get_title()
    shares = sum(patch.get_path().get_extents().width > 0 for patch in axis.patches)
    assert shares == 2


def test_densities_of_a_transformed_variable() -> None:
    """Of sigma itself, not of its logarithm."""
    with pm.Model() as model:
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", 0, sigma, observed=Y)
    grid = np.linspace(1e-3, 4, 20001)
    log_density = stats.norm.logpdf(Y[:, None], 0, grid).sum(0) + stats.halfnorm.logpdf(grid)
    mass = np.exp(log_density - log_density.max())
    density = mass / mass.sum() / (grid[1] - grid[0])
    value = np.random.default_rng(2).choice(grid, size=(4, 1000), p=mass / mass.sum())
    _, axis = pma.plot_bf(draws_of(sigma=value), {"sigma": 0.8}, model=model)
    at = [stats.halfnorm.pdf(0.8), np.interp(0.8, grid, density)]
    assert heights(axis)[0] == pytest.approx(at[0], rel=1e-6)
    assert heights(axis)[1] == pytest.approx(at[1], rel=0.1)


def test_at_an_edge() -> None:
    factor, axis = pma.plot_bf(draws_of(**draws_of_two(1)), {"theta": 0.0}, model=two_parameters())
    assert factor.log_bayes_factor == pytest.approx(exact(0.0), abs=4 * factor.mcse)
    assert heights(axis)[0] == pytest.approx(0.5, rel=1e-5)
    assert axis.get_title().startswith("BF against theta = 0: ")


def test_a_doubt_is_drawn() -> None:
    rng = np.random.default_rng(3)
    apart = np.array([-1.0, -1.0, 1.0, 1.0])[:, None, None]
    b = rng.normal(size=(4, 500, 2)) * 0.3 + apart
    factor, axis = pma.plot_bf(draws_of(b=b), {"b": [0.0, np.nan]}, model=means())
    assert factor.verdict.status == "do not trust"
    assert axis.get_title().endswith("do not trust")
    assert axis.lines[1].get_markerfacecolor() == "white"


def test_one_number() -> None:
    with pytest.raises(ValueError, match="of 2 numbers, expected one"):
        pma.plot_bf(draws(), {"b": 0.0}, model=means())
