"""The neck of a funnel, on the way to a top that holds nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation import fit_mixture as module
from pymc_anneal.adaptation.fit_mixture import fit_mixture
from pymc_anneal.adaptation.fitted_reference import FittedReference
from pymc_anneal.adaptation.missing import Missing, _normal_at, missed_on_the_way
from pymc_anneal.adaptation.peaks import Search
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base import LogTerms

# Standard deviation of the log variance `v` of D coordinates, and of the prior of these.
SPREAD, D, WIDE = 3.0, 6, 20.0
# The particles know `v` above this number: half of the posterior is missing.
KNOWN = 0.0


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def log_normal(x: jax.Array, scale: jax.Array | float) -> jax.Array:
    return -0.5 * (x / scale) ** 2 - jnp.log(scale) - 0.5 * np.log(2 * np.pi)


def funnel(position: jax.Array) -> LogTerms:
    v, x = position[0], position[1:]
    log_prior = log_normal(v, SPREAD) + log_normal(x, WIDE).sum()
    return LogTerms(log_prior, (log_normal(x, jnp.exp(v / 2)) - log_normal(x, WIDE)).sum())


def draw_prior(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
    scale = np.array([SPREAD, *D * [WIDE]])
    return scale * np.random.default_rng(seed).standard_normal((draws, D + 1))


def posterior(above: float, draws: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    v = SPREAD * rng.standard_normal(20 * draws)
    v = v[v > above][:draws, None]
    return np.hstack([v, np.exp(v / 2) * rng.standard_normal((draws, D))])


def fit(seed: int, search: bool = True, above: float = KNOWN) -> FittedReference:
    target = TargetDensity(pma.GeometricPath(funnel), 240)
    effort = Search(draws=2000, starts=32, evaluations=1e6) if search else None
    particles = posterior(above, 240, seed)
    return fit_mixture(
        target, particles, draw_prior, np.random.SeedSequence(seed), effort, draws=4096
    )


def log_evidences() -> np.ndarray:
    """Return the rough log evidences of a few fits; the exact value is zero."""
    return np.array([fit(seed).log_z for seed in range(4)])


def test_the_neck_is_found() -> None:
    found = log_evidences()
    assert abs(found.mean()) < 0.1
    assert found.min() > -0.2


def test_without_the_way_it_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ON_THE_WAY", 0)
    assert log_evidences().mean() < -0.25


class TestMissedOnTheWay:
    def peaks(self, most: float = np.inf, above: float = KNOWN) -> tuple[list, FittedReference]:
        target = TargetDensity(pma.GeometricPath(funnel), 240)
        found = fit(1, search=False, above=above)
        candidate, seed = np.array([-4.0, *D * [0.0]]), np.random.SeedSequence(2)
        return missed_on_the_way(Missing(target, found), candidate, seed, most), found

    def test_masses_are_those_of_what_is_missing(self) -> None:
        """No part holds more than the whole posterior, whose mass is one."""
        peaks, found = self.peaks()
        largest = np.array([np.exp(peak.log_mass) for peak in peaks])
        assert len(peaks) > 2
        assert 0.02 < largest.max() < 1.0
        assert found.log_z < -0.2
        depth = [float(np.asarray(peak.normal.mean)[0]) for peak in peaks]
        assert max(depth) < KNOWN
        assert min(depth) > KNOWN - 3 * SPREAD

    def test_parts_are_as_wide_as_the_neck(self) -> None:
        for peak in self.peaks()[0]:
            v = float(np.asarray(peak.normal.mean)[0])
            width = np.linalg.norm(np.asarray(peak.normal.scale).reshape(D + 1, -1)[1:], axis=-1)
            np.testing.assert_allclose(np.log(np.median(width)), v / 2, atol=0.7)

    def test_no_place_is_weighed_after_the_last_evaluation(self) -> None:
        assert self.peaks(most=0.0)[0] == []

    def test_an_edge_of_the_support_on_the_way(self) -> None:
        """Draws outside have neither a target nor a mixture: no warning, and no mass."""

        def cut(position: jax.Array) -> LogTerms:
            terms = funnel(position)
            outside = position[0] < -2.0
            return LogTerms(*(jnp.where(outside, -jnp.inf, term) for term in terms))

        target = TargetDensity(pma.GeometricPath(cut), 240)
        seed = np.random.SeedSequence(1)
        found = fit_mixture(target, posterior(KNOWN, 240, 1), draw_prior, seed, draws=4096)
        candidate = np.array([-1.9, *D * [0.0]])
        for peak in missed_on_the_way(Missing(target, found), candidate, seed, np.inf):
            assert float(np.asarray(peak.normal.mean)[0]) > -2.0

    def test_a_mixture_that_misses_nothing(self) -> None:
        def normal(x: jax.Array) -> LogTerms:
            return LogTerms(log_normal(x, WIDE).sum(), log_normal(x - 1.0, 1.0).sum())

        target = TargetDensity(pma.GeometricPath(normal), 240)
        rng, seed = np.random.default_rng(1), np.random.SeedSequence(1)
        found = fit_mixture(target, 1 + rng.standard_normal((240, 3)), draw_prior_3, seed)
        assert missed_on_the_way(Missing(target, found), np.ones(3), seed, np.inf) == []

    def test_a_mixture_around_a_hole(self) -> None:
        """The mean of a ring is where the density is zero: no way leads from there."""

        def ring(position: jax.Array) -> LogTerms:
            radius = jnp.sqrt((position**2).sum())
            log_prior = log_normal(position, 3.0).sum()
            return LogTerms(log_prior, jnp.where(jnp.abs(radius - 2.0) < 0.1, 0.0, -jnp.inf))

        angle = 2 * np.pi * np.random.default_rng(1).uniform(size=240)
        particles = 2 * np.column_stack([np.cos(angle), np.sin(angle)])
        target, seed = TargetDensity(pma.GeometricPath(ring), 240), np.random.SeedSequence(2)

        def draw(own: np.random.SeedSequence, draws: int) -> np.ndarray:
            return 3 * np.random.default_rng(own).standard_normal((draws, 2))

        found = fit_mixture(target, particles, draw, seed)
        inside = [target.log_density(mean[None])[0] for mean in found.centres]
        assert -np.inf in inside[:1]
        missed_on_the_way(Missing(target, found), particles[0], seed, np.inf)


class TestNormalAt:
    def test_places_beside_the_ridge_are_moved_to_it(self) -> None:
        def ridge(x: jax.Array) -> LogTerms:
            return LogTerms(0.0 * x[0], 4.0 * x[0] - 0.5 * ((x[1] - 1.0) / 0.01) ** 2)

        target = TargetDensity(pma.GeometricPath(ridge), 16)
        peak = _normal_at(target, np.array([2.0, 1.02]), np.ones(2))
        assert peak is not None
        np.testing.assert_allclose(np.asarray(peak.normal.mean), [2.0, 1.0], atol=1e-6)
        np.testing.assert_allclose(np.diag(np.asarray(peak.normal.scale)), [1.0, 0.01], rtol=1e-4)
        np.testing.assert_allclose(peak.log_mass, 8.0 + np.log(2 * np.pi * 0.01), atol=1e-6)

    def test_a_place_without_a_scale(self) -> None:
        target = TargetDensity(pma.GeometricPath(funnel), 16)
        with np.errstate(invalid="ignore"):
            assert _normal_at(target, np.zeros(D + 1), np.array([1.0, *D * [0.0]])) is None

    def test_no_step_leads_down(self) -> None:
        target = TargetDensity(pma.GeometricPath(funnel), 64)
        places = posterior(-9.0, 64, seed=5)
        spread = np.array([1.0, *D * [2.0]])
        means = [peak.normal.mean for x in places if (peak := _normal_at(target, x, spread))]
        rise = target.log_density(np.array(means)) - target.log_density(places)
        assert rise.min() >= 0
        assert (rise > 0.5).mean() > 0.2


def draw_prior_3(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
    return draw_prior(seed, draws)[:, 1:4]
