"""Transforms onto a part of the support, for variables of several shapes: masses in closed form."""

import math

from collections.abc import Callable
from functools import partial

import numpy as np
import pymc as pm
import pytest

from pymc.distributions.transforms import Interval, Ordered, log, ordered
from scipy import special, stats

import pymc_anneal as pma

from tests.model.models import assert_agrees_with_pymc

MEANS_OF_ROWS = np.array([[-9.0], [5.0]])
# The difference of two entries, in standard deviations: in the wrong order in the second row.
DIFFERENCE = np.array([2.0, -1.0]) / 8**0.5
DRAWS = 4000


def _sorted(shape: tuple[int, ...], mu=0.0, transform: Ordered = ordered) -> Callable:
    start = np.arange(float(shape[-1]))
    start = np.broadcast_to(start if transform.ascending else start[::-1], shape)
    return partial(pm.Normal, mu=mu, sigma=2.0, shape=shape, transform=transform, initval=start)


# Rows of exchangeable entries, whose draws are sorted: declaration and shape.
SORTED = {
    "pair": (_sorted((2,)), (2,)),
    "rows_of_pairs": (_sorted((3, 2)), (3, 2)),
    "one_row": (_sorted((1, 3)), (1, 3)),
    "blocks": (_sorted((2, 2, 3)), (2, 2, 3)),
    "single_entries": (_sorted((4, 1)), (4, 1)),
    "means_of_rows": (_sorted((2, 3), mu=MEANS_OF_ROWS), (2, 3)),
    "descending": (_sorted((2, 4), transform=Ordered(ascending=False)), (2, 4)),
}


def _normal(shape: tuple[int, ...], transform) -> Callable:
    return partial(pm.Normal, shape=shape, transform=transform, initval=np.full(shape, 0.5))


# Others, of whose draws some are rejected: declaration, log mass, and a function of the draws that
# is uniform.
REJECTED: dict[str, tuple[Callable, float, Callable]] = {
    "unequal_rows": (
        _sorted((2, 2), mu=np.array([[-1.0, 1.0], [1.0, 0.0]])),
        float(stats.norm.logcdf(DIFFERENCE).sum()),
        lambda x: stats.truncnorm(-DIFFERENCE, np.inf).cdf(
            (x[..., 1] - x[..., 0]) / 8**0.5 - DIFFERENCE
        ),
    ),
    "positive": (_normal((3,), log), 3 * math.log(0.5), stats.halfnorm.cdf),
    "inside": (
        _normal((2, 2), Interval(-0.5, 1.5)),
        4 * math.log(stats.norm.cdf(1.5) - stats.norm.cdf(-0.5)),
        stats.truncnorm(-0.5, 1.5).cdf,
    ),
}


def build(declarations: dict[str, Callable]) -> pm.Model:
    with pm.Model() as model:
        total = sum(declare(name).sum() for name, declare in declarations.items())
        pm.Normal("y", total, 3.0, observed=0.5)
    return model


def draw(compiled: pma.CompiledModel) -> dict[str, np.ndarray]:
    return compiled.constrain(compiled.sample_prior(np.random.SeedSequence(7), DRAWS))


@pytest.fixture(scope="module")
def all_sorted() -> pma.CompiledModel:
    """The log prior less the mass is the density of PyMC."""
    return assert_agrees_with_pymc(build({name: declare for name, (declare, _) in SORTED.items()}))


def test_the_mass_of_sorted_rows(all_sorted) -> None:
    """``1/k!`` for every row of ``k`` entries."""
    exact = -sum(
        math.prod(shape[:-1]) * special.gammaln(shape[-1] + 1) for _, shape in SORTED.values()
    )
    assert all_sorted.log_prior_mass == pytest.approx(exact, rel=1e-12)
    assert all_sorted.log_prior_mass_mcse == 0


def test_every_row_is_sorted_on_its_own(all_sorted) -> None:
    drawn = draw(all_sorted)
    drawn["descending"] = drawn["descending"][..., ::-1]
    drawn["means_of_rows"] = drawn["means_of_rows"] - MEANS_OF_ROWS
    for name, (_, shape) in SORTED.items():
        rows, size = drawn[name].reshape(DRAWS, -1, shape[-1]), shape[-1]
        assert (np.diff(rows) > 0).all(), name
        for k in range(size):  # order statistics of uniforms are Beta(k, size + 1 - k)
            u = stats.beta(k + 1, size - k).cdf(stats.norm.cdf(rows[:, :, k] / 2))
            assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-6, name
            assert np.abs(np.corrcoef(u.T) - np.eye(rows.shape[1])).max() < 0.1, name


@pytest.mark.parametrize("name", REJECTED)
def test_rejected_draws(name: str) -> None:
    declare, log_mass, uniform = REJECTED[name]
    compiled = assert_agrees_with_pymc(build({name: declare}))
    assert 0 < compiled.log_prior_mass_mcse < 0.02
    assert abs(compiled.log_prior_mass - log_mass) < 5 * compiled.log_prior_mass_mcse
    u = uniform(draw(compiled)[name]).reshape(DRAWS, -1)
    assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-6
    assert np.abs(np.corrcoef(u.T) - np.eye(u.shape[1])).max() < 0.1
