"""Copies of draws side by side: where they go, and what bridge sampling finds with them.

The twin moves copies to the place of the first one, which comes early if there are many.
"""

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.annealing.resampling import equal_weights
from pymc_anneal.base.arviz_compat import container
from pymc_anneal.evidence import posterior_density
from pymc_anneal.evidence.bridge_sampling import bridge_evidence
from pymc_anneal.evidence.posterior_density import grouped_draws
from pymc_anneal.results.container import dataset

# Of the posterior, a share in a narrow part within a wide one; shares of the particles, of which
# those in the wide part are few and have large weights.
NARROW, WIDE, SHARE = 0.5, 5.0, 0.3
SPREADS, PARTICLES = np.array([0.6, 4.0]), np.array([0.9, 0.1])
REPETITIONS = 60
BRIDGES = 40  # each takes a tenth of a second


@pytest.fixture(scope="module")
def model() -> pma.CompiledModel:
    """A mixture of two normal densities in two dimensions; its log evidence is zero."""
    with pm.Model() as model:
        x = pm.Normal("x", 0, WIDE, shape=2)
        ratio = 2 * np.log(WIDE / NARROW) - (x**2).sum() * (NARROW**-2 - WIDE**-2) / 2
        pm.Potential("peak", pm.math.logaddexp(np.log1p(-SHARE), np.log(SHARE) + ratio))
    return pma.compile_model(model)


def standard_score(values: np.ndarray) -> float:
    """Return the mean of independent values in standard errors."""
    return float(values.mean() / values.std(ddof=1) * np.sqrt(len(values)))


def log_mixture(x: np.ndarray, spreads: np.ndarray, shares: np.ndarray) -> np.ndarray:
    each = np.log(shares) - 2 * np.log(spreads) - (x**2).sum(axis=-1)[..., None] / spreads**2 / 2
    return np.logaddexp.reduce(each, axis=-1)


def resampled(seed: int) -> object:
    """Resample weighted particles of the posterior, in an order without copies side by side."""
    rng = np.random.default_rng(seed)
    spread = rng.choice(SPREADS, size=(4, 2000, 1), p=PARTICLES)
    x = spread * rng.normal(size=(4, 2000, 2))
    target = log_mixture(x, np.array([NARROW, WIDE]), np.array([SHARE, 1 - SHARE]))
    draws = equal_weights(x, target - log_mixture(x, SPREADS, PARTICLES), 500, rng)
    for chain in draws:
        rng.shuffle(chain)
    return container({"posterior": dataset({"x": draws}, ("chain", "draw"))})


def at_the_first_place(x: np.ndarray) -> np.ndarray:
    _, first, index = np.unique(x, axis=0, return_index=True, return_inverse=True)
    return x[np.argsort(first[np.ravel(index)], kind="stable")]


@pytest.fixture
def twin(monkeypatch) -> None:
    monkeypatch.setattr(posterior_density, "group_copies", at_the_first_place)


def test_copies_are_side_by_side(model) -> None:
    idata = resampled(1)
    found = grouped_draws(idata, model)
    for before, after in zip(idata["posterior"]["x"].values, found, strict=True):
        values, copies = np.unique(before, axis=0, return_counts=True)
        assert copies.max() > 2
        assert (np.diff(after, axis=0) != 0).any(axis=1).sum() == len(values) - 1
        assert np.array_equal(np.sort(before[:, 0]), np.sort(after[:, 0]))


def test_a_chain_that_stood_still_keeps_its_order(model) -> None:
    x = np.random.default_rng(1).normal(size=(2, 100, 2)).repeat(3, axis=1)
    idata = container({"posterior": dataset({"x": x}, ("chain", "draw"))})
    assert np.array_equal(grouped_draws(idata, model), x)


def _wide_part(model: pma.CompiledModel) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of draws of the wide part in the first and the second halves."""
    draws = np.stack([grouped_draws(resampled(seed), model) for seed in range(REPETITIONS)])
    wide = (draws**2).sum(axis=-1) > (4 * NARROW) ** 2
    first, second = np.split(wide, 2, axis=2)
    return first.mean(axis=(1, 2)), second.mean(axis=(1, 2))


class TestHalves:
    def test_have_the_same_share_of_each_part(self, model) -> None:
        first, second = _wide_part(model)
        assert abs(standard_score(first - second)) < 4

    def test_have_not_if_copies_go_to_the_first_place(self, model, twin) -> None:
        first, second = _wide_part(model)
        assert standard_score(first - second) > 10


def _scores(model: pma.CompiledModel) -> np.ndarray:
    """Return the errors of estimates from resampled draws, in standard errors."""
    found = [
        bridge_evidence(
            resampled(seed), model=model, method="normal", random_seed=[1, seed], warnings=False
        )
        for seed in range(BRIDGES)
    ]
    return np.array([each.log_evidence / each.mcse for each in found])


class TestBridge:
    def test_scores_are_standard_normal(self, model) -> None:
        scores = _scores(model)
        assert abs(standard_score(scores)) < 4
        assert scores.std() == pytest.approx(1, rel=0.4)

    @pytest.mark.slow
    def test_they_are_not_if_copies_go_to_the_first_place(self, model, twin) -> None:
        assert standard_score(_scores(model)) > 10
