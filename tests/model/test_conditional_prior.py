"""Priors of some variables given the others: every row of draws belongs to its own values."""

import jax
import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.model.conditional_prior import ConditionalPrior, conditional_prior
from pymc_anneal.model.prior_draws import BATCH

# Rows of one value, less than a batch, whole batches, one more and one less, and a part of one.
COUNTS = [1, 37, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH, 3 * BATCH - 200]
# Parents lie ten apart; their children are within a thousandth.
GAP, WIDTH = 10.0, 1e-3


def given(declare) -> tuple[pma.CompiledModel, ConditionalPrior]:
    """Return a model of wide parents and the conditional prior of what ``declare`` adds."""
    with pm.Model() as model:
        far, near = pm.Normal("far", 0, 1e6), pm.Normal("near", 0, 1e6, shape=2)
        names = declare(far, near)
        pm.Normal("y", far, 1, observed=0.0)
    compiled = pma.compile_model(model)
    return compiled, conditional_prior(compiled, names)


def parents(count: int) -> dict[str, np.ndarray]:
    """Values of which no two rows are near to each other; the second one decreases."""
    far = GAP * np.arange(count)
    return {"far": far, "near": np.column_stack([3e5 - far, 7 * far]), "unused": far[::-1]}


def child_and_grandchild(far, near) -> list[str]:
    child = pm.Normal("child", far + near, WIDTH, shape=2)
    pm.Normal("grandchild", child.sum(), WIDTH)
    return ["child", "grandchild"]


def scaled(far, near) -> list[str]:
    """A child whose parents have no axis for its size, and a matrix for a parent."""
    pm.Normal("child", far, WIDTH, shape=3)
    pm.MvNormal("vector", near, WIDTH**2 * np.eye(2))
    return ["child", "vector"]


def factor(far, near) -> list[str]:
    """A graph with generators of its own, one of which draws the scales."""
    scales = pm.LogNormal.dist(far / 1e6, WIDTH, shape=2)
    pm.LKJCholeskyCov("factor", n=2, eta=2.0, sd_dist=scales)
    return ["factor"]


def custom(far, near) -> list[str]:
    """A graph that PyMC does not build anew on other parameters."""
    pm.CustomDist("child", far, dist=lambda mean, size: pm.Normal.dist(mean, WIDTH, size=size))
    return ["child"]


@pytest.fixture(scope="module", params=[child_and_grandchild, scaled], ids=lambda f: f.__name__)
def case(request):
    compiled, prior = given(request.param)
    assert prior._draw.func.__name__ == "_draw_batches"
    return request.param, compiled, prior


def standardise(declare, values: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """Residuals of the draws at the values of their own rows, in standard deviations."""
    far, near = values["far"][:, None], values["near"]
    if declare is child_and_grandchild:
        child, last = x[:, :2], x[:, 2:]
        return np.hstack([child - far - near, last - child.sum(axis=1, keepdims=True)]) / WIDTH
    return np.hstack([x[:, :3] - far, x[:, 3:] - near]) / WIDTH


@pytest.mark.parametrize("count", COUNTS)
def test_rows_follow_their_own_parents(case, count: int) -> None:
    declare, _, prior = case
    values = parents(count)
    z = standardise(declare, values, prior.draw(np.random.SeedSequence(count), values, count))
    assert z.shape == (count, len(prior.coordinates))
    assert np.abs(z).max() < 6
    # Every entry has noise of its own, in all batches.
    assert len(np.unique(z)) == z.size


def test_residuals_are_standard_normal(case) -> None:
    declare, _, prior = case
    values, count = parents(COUNTS[-1]), COUNTS[-1]
    z = standardise(declare, values, prior.draw(np.random.SeedSequence(5), values, count))
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-5
    assert np.abs(np.corrcoef(z.T) - np.eye(z.shape[1])).max() < 5 / np.sqrt(count)


def test_the_density_is_that_of_the_draws(case) -> None:
    declare, compiled, prior = case
    values = parents(40)
    own = prior.draw(np.random.SeedSequence(6), values, 40)
    x = np.zeros((40, compiled.ndim))
    x[:, prior.coordinates] = own
    others = np.setdiff1d(np.arange(compiled.ndim), prior.coordinates)
    x[:, others] = np.column_stack([values["far"], values["near"]])
    with jax.enable_x64(True):
        found = np.asarray(jax.vmap(prior.log_density)(x))
    z = standardise(declare, values, own)
    expected = (stats.norm.logpdf(z) - np.log(WIDTH)).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("declare", "how"), [(factor, "_draw_batches"), (custom, "_draw_one_by_one")]
)
def test_graphs_with_generators(declare, how: str) -> None:
    _, prior = given(declare)
    assert prior._draw.func.__name__ == how
    unit = 1e6 if declare is factor else 1.0  # the first coordinate: the logarithm of a scale
    for count in (1, BATCH + 1):
        values = {**parents(count), "far": np.linspace(-2e7, 2e7, count)}
        x = prior.draw(np.random.SeedSequence(7), values, count)
        z = (x[:, 0] - values["far"] / unit) / WIDTH
        assert np.abs(z).max() < 6
        assert len(np.unique(z)) == count


def test_no_variables(case) -> None:
    _, compiled, _ = case
    prior = conditional_prior(compiled, [])
    assert prior.draw(np.random.SeedSequence(8), parents(9), 9).shape == (9, 0)
    assert float(prior.log_density(np.zeros(compiled.ndim))) == 0
