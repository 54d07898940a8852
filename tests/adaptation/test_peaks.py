"""Narrow peaks in the bulk of the posterior: found, climbed and weighed."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation import fit_mixture as fit_module
from pymc_anneal.adaptation import peaks as peaks_module
from pymc_anneal.adaptation.climb import climb_together
from pymc_anneal.adaptation.fit_mixture import fit_mixture
from pymc_anneal.adaptation.fitted_reference import FittedReference
from pymc_anneal.adaptation.missing import Missing
from pymc_anneal.adaptation.peaks import (
    Search,
    Top,
    climb,
    climb_by_likelihood,
    draw_near_centres,
    share_of_single,
    weigh_top,
)
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base import LogTerms

D, SLAB, SPIKE, SHIFT = 5, 0.5, 0.02, 0.05


def log_normal(x: jax.Array, sd: float) -> jax.Array:
    return -0.5 * ((x / sd) ** 2).sum() - D * jnp.log(sd * jnp.sqrt(2 * jnp.pi))


def spike_and_slab(x: jax.Array) -> LogTerms:
    """A spike of mass 9 in a slab of mass 1, under a nearly flat prior of density 1 there."""
    log_prior = log_normal(x, 10.0)
    density = jnp.logaddexp(jnp.log(9.0) + log_normal(x - SHIFT, SPIKE), log_normal(x, SLAB))
    return LogTerms(log_prior, density)


def slab_draws(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, SLAB, (draws, D))


def prior_draws(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 10, (draws, D))


PATH = pma.GeometricPath(spike_and_slab)
SEARCH = Search(20_000, starts=256)


def climb_and_weigh(target: TargetDensity, start: np.ndarray, spread: np.ndarray, seed: int):
    top = climb(target, start, spread)
    return weigh_top(target, target.log_density, top, np.random.SeedSequence(seed))


def fit(search: Search | None):
    seeds = np.random.SeedSequence(4).spawn(2)
    particles = slab_draws(seeds[0], 256)
    return fit_mixture(TargetDensity(PATH, 256), particles, prior_draws, seeds[1], search)


class TestSearch:
    def test_a_spike_is_found(self) -> None:
        found = fit(SEARCH)
        weight = np.asarray(found.path.reference.weight).reshape(-1, 2).sum(axis=1)
        assert found.modes == 2
        assert weight[1] > 0.75  # 0.9 but for the floor under the weight of the slab

    def test_its_mass_is_in_the_evidence(self) -> None:
        # The prior is flat over both: the evidences with and without the spike differ by log 10.
        assert fit(SEARCH).log_z - fit(None).log_z == pytest.approx(np.log(10), abs=0.1)

    def test_one_mode_has_no_other_peak(self) -> None:
        def slab(x: jax.Array) -> LogTerms:
            return LogTerms(log_normal(x, 10.0), log_normal(x, SLAB))

        seeds = np.random.SeedSequence(4).spawn(2)
        particles = slab_draws(seeds[0], 256)
        target = TargetDensity(pma.GeometricPath(slab), 256)
        found = fit_mixture(target, particles, prior_draws, seeds[1], SEARCH)
        assert found.modes == 1


@pytest.mark.parametrize(("tops", "more"), [([0.0], False), ([-6.0, 6.0], True)])
def test_further_rounds_where_climbs_end_at_several_tops(tops, more) -> None:
    def terms(x: jax.Array) -> LogTerms:
        # The second top is the lower one.
        each = [log_normal(x - top, 0.3) - i * 20.0 for i, top in enumerate(tops)]
        return LogTerms(log_normal(x, 10.0), jax.nn.logsumexp(jnp.stack(each)))

    seeds = np.random.SeedSequence(4).spawn(2)
    particles = tops[0] + 0.3 * np.random.default_rng(seeds[0]).normal(size=(256, D))
    once, thrice = (
        fit_mixture(
            TargetDensity(pma.GeometricPath(terms), 256),
            particles,
            prior_draws,
            seeds[1],
            replace(SEARCH, rounds=rounds),
        ).evaluations
        for rounds in (0, 2)
    )
    # The level with which the ends are compared is evaluated at each particle.
    assert (thrice > once + len(particles)) == more


NEEDLE = 5.07


@pytest.mark.parametrize(("rounds", "found"), [(0, False), (8, True)])
def test_where_tops_are_many_the_search_goes_on_to_a_narrow_one(rounds: int, found: bool) -> None:
    """All climbs end as high as the particles, most of them at tops of their own."""

    def terms(x: jax.Array) -> LogTerms:
        needle = 60 - 0.5 * ((x[0] - NEEDLE) / 2e-4) ** 2
        return LogTerms(0.0 * needle, jnp.logaddexp(5 * jnp.cos(20 * x[0]), needle))

    def draws(seed: np.random.SeedSequence, number: int) -> np.ndarray:
        return np.random.default_rng(seed).uniform(-25, 25, (number, 1))

    seeds = np.random.SeedSequence(4).spawn(2)
    tops = np.pi / 10 * np.round(draws(seeds[0], 256) / (np.pi / 10))
    tops += 0.02 * np.random.default_rng(seeds[0]).normal(size=tops.shape)
    target = TargetDensity(pma.GeometricPath(terms), 256)
    search = Search(0, starts=256, rounds=rounds, evaluations=1e6)
    mixture = fit_mixture(target, tops, draws, seeds[1], search).path.reference
    assert (np.abs(np.asarray(mixture.mean) - NEEDLE).min() < 0.01) == found


class TestConflict:
    """Effects of a common scale, eight or more standard deviations off what the prior says.

    The likelihood has heavy tails: at the prior all effects are outliers, 50 nats below the
    posterior, where the scale is that of the effects. Between both no slope leads up.
    """

    PLACE, WIDTH, LOG_SCALE = 15.0, 0.02, 0.17

    def terms(self, x: jax.Array) -> LogTerms:
        log_scale, effects = x[0], x[1:]
        log_prior = (
            -0.5 * (log_scale / self.LOG_SCALE) ** 2
            - 0.5 * ((effects * jnp.exp(-log_scale)) ** 2).sum()
            - len(effects) * log_scale
        )
        off = (effects - self.PLACE) / self.WIDTH
        return LogTerms(log_prior, -1.5 * jnp.log1p(off**2).sum())

    def draws(self, seed: np.random.SeedSequence, number: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        log_scale = self.LOG_SCALE * rng.normal(size=(number, 1))
        return np.hstack([log_scale, np.exp(log_scale) * rng.normal(size=(number, 8))])

    def test_climbs_by_the_likelihood_end_higher(self) -> None:
        target = TargetDensity(pma.GeometricPath(self.terms), 32)
        start, scale = self.draws(np.random.SeedSequence(5), 32), np.full(9, 0.1)
        of_prior, height = climb_together(target.value_and_gradient, start, scale, 130)
        assert (np.abs(of_prior[:, 1:]) < 5).all()
        led = climb_by_likelihood(target, start, scale)
        assert (np.abs(led[:, 1:] - self.PLACE) < 1).all()
        assert target.log_density(led).min() > height.max() + 30

    @pytest.mark.parametrize("climbs", [0, 32])
    def test_the_fit_goes_there_by_them_alone(self, climbs: int, monkeypatch) -> None:
        monkeypatch.setattr(peaks_module, "_BY_LIKELIHOOD", climbs)
        seeds = np.random.SeedSequence(6).spawn(2)
        target = TargetDensity(pma.GeometricPath(self.terms), 32)
        particles = self.draws(seeds[0], 32)
        search = Search(100, starts=32)
        found = fit_mixture(target, particles, self.draws, seeds[1], search, draws=2000)
        mean = np.asarray(found.path.reference.mean)[:, 1:]
        assert (np.abs(mean - self.PLACE) < 1).all(axis=1).any() == (climbs > 0)


class TestShareOfSingle:
    """The probability that a further climb ends at a top that none has met."""

    SCALE = np.diag([2.0, 0.1])

    @pytest.mark.parametrize("scale", [SCALE, np.diag(SCALE)])
    @pytest.mark.parametrize(("single", "share"), [(0, 0.0), (50, 1 / 3), (100, 0.5)])
    def test_tops_that_one_climb_has_met(self, single: int, share: float, scale) -> None:
        twice = np.repeat(np.arange(50.0), 2)
        once = 100 + np.arange(single)
        # Six standard deviations apart along the narrower coordinate, and next to none within.
        end = np.column_stack([np.zeros(100 + single), 0.6 * np.concatenate([twice, once])])
        end += 0.01 * np.random.default_rng(1).normal(size=end.shape) @ self.SCALE
        assert share_of_single(end, scale) == pytest.approx(share)

    def test_climbs_that_failed_do_not_count(self) -> None:
        end = np.array([[0.0, 0.0], [np.nan, 0.0], [0.0, 0.0], [np.inf, 1.0], [0.0, 9.0]])
        assert share_of_single(end, self.SCALE) == pytest.approx(1 / 3)

    def test_a_single_climb_says_nothing(self) -> None:
        assert share_of_single(np.array([[0.0, 0.0], [np.nan, 1.0]]), self.SCALE) == 1.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("normal", "cusp"), [(5, 3), (3, 1), (0, 1)])
def test_a_peak_as_wide_as_the_mode_nearby_without_curvature_is_weighed(
    normal: int, cusp: int, seed: int
) -> None:
    """Normal in some coordinates, a cusp in others; the density has no curvature there.

    Differences of gradients across a single cusp are a curvature, of a peak with 3 % of the mass.
    """
    d = normal + cusp

    def terms(x: jax.Array) -> LogTerms:
        return LogTerms(0.0 * x[0], -0.5 * (x[:normal] ** 2).sum() - jnp.abs(x[normal:]).sum())

    target, start = TargetDensity(pma.GeometricPath(terms), 64), np.full(d, 0.5)
    peak = climb_and_weigh(target, start, np.full(d, 2.0), seed)
    assert peak is not None
    exact = normal / 2 * np.log(2 * np.pi) + cusp * np.log(2)
    assert peak.log_mass == pytest.approx(exact, abs=0.6)


@pytest.mark.parametrize(("failures", "modes"), [(2, 1), (8, 2)])
def test_tops_that_hold_nothing_do_not_end_the_search(failures: int, modes: int, monkeypatch):
    """Four needles are higher than the second mode, and hold 6e-6 of it each."""
    monkeypatch.setattr(fit_module, "_MAX_FAILURES", failures)
    needles, mode = 10.0 * np.arange(2, 6), 8.0

    def terms(x: jax.Array) -> LogTerms:
        log_prior = -0.5 * (x / 20) ** 2 - jnp.log(20 * np.sqrt(2 * np.pi))
        broad = -0.5 * ((x - jnp.array([0.0, mode])[:, None]) ** 2).sum(axis=1) - np.log(2 * np.pi)
        sharp = -0.5 * (((x - needles[:, None]) / 1e-5) ** 2).sum(axis=1) + 23.0 - np.log(1e6)
        return LogTerms(log_prior.sum(), jax.nn.logsumexp(jnp.concatenate([broad, sharp])))

    def draws(seed: np.random.SeedSequence, number: int) -> np.ndarray:
        return 20 * np.random.default_rng(seed).standard_normal((number, 2))

    seeds = np.random.SeedSequence(3).spawn(2)
    particles = np.random.default_rng(seeds[0]).standard_normal((256, 2))
    target = TargetDensity(pma.GeometricPath(terms), 256)
    tops = np.repeat([*needles, mode], 2).reshape(-1, 2)
    search = Search(0, starts=1, hints=tops, evaluations=1e6)
    assert fit_mixture(target, particles, draws, seeds[1], search).modes == modes


class TestSameTop:
    """Climbs to a top that held nothing new are not weighed again."""

    def weighed(self, log_density, hints: np.ndarray, monkeypatch) -> tuple[int, int]:
        """Return how many tops were weighed, and the modes of the fit."""
        tops = list[np.ndarray]()

        def weigh_and_count(target, log_part, top, seed):
            tops.append(top.position)
            return weigh_top(target, log_part, top, seed)

        monkeypatch.setattr(fit_module, "weigh_top", weigh_and_count)
        seeds = np.random.SeedSequence(3).spawn(2)
        particles = np.random.default_rng(seeds[0]).standard_normal((256, 2))

        def terms(x: jax.Array) -> LogTerms:
            log_prior = -0.5 * (x**2).sum() - jnp.log(2 * jnp.pi)
            return LogTerms(log_prior, log_density(x) - log_prior)

        search = Search(0, starts=1, hints=hints, evaluations=1e6)
        target = TargetDensity(pma.GeometricPath(terms), 256)
        found = fit_mixture(target, particles, self.prior_draws, seeds[1], search)
        return len(tops), found.modes

    @staticmethod
    def prior_draws(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        return np.random.default_rng(seed).standard_normal((draws, 2))

    def test_needles_of_one_place(self, monkeypatch) -> None:
        """Each of two needles, whose masses are small, is weighed once for all that climb to it."""
        tops = np.array([[10.0, 10.0], [10.01, 10.0]])

        def log_density(x: jax.Array) -> jax.Array:
            sharp = -0.5 * (((x - tops) / 1e-4) ** 2).sum(axis=1) + 7.0
            return jax.nn.logsumexp(jnp.append(sharp, -0.5 * (x**2).sum()))

        hints = np.repeat(tops, 3, axis=0) + 5e-5 * np.arange(6)[:, None]
        assert self.weighed(log_density, hints, monkeypatch) == (2, 1)
        monkeypatch.setattr(peaks_module, "_VALLEY", np.inf)
        assert self.weighed(log_density, hints, monkeypatch) == (1, 1)

    def test_far_away_on_a_ridge_is_another_top(self) -> None:
        flat = TargetDensity(pma.GeometricPath(lambda x: LogTerms(0.0 * x[0], 0.0 * x[0])), 1)
        top, near, far = (Top(np.array([at, 0.0]), 0.0, np.ones(2)) for at in (0.0, 0.05, 1.0))
        with jax.enable_x64(True):
            assert top.is_same(flat, near)
            assert not top.is_same(flat, far)

    def test_modes_of_one_place(self, monkeypatch) -> None:
        """A top that holds something is weighed with what the mixture has by then."""

        def log_density(x: jax.Array) -> jax.Array:
            return jax.nn.logsumexp(
                -0.5 * ((x - jnp.array([[0.0, 0.0], [30.0, 0.0]])) ** 2).sum(axis=1)
            )

        hints = np.array([[29.0, 0.5], [31.0, -0.5], [30.5, 1.0]])
        assert self.weighed(log_density, hints, monkeypatch) == (1, 2)


class TestFlatTopAmidMore:
    """A box in eight coordinates that holds a third of the evidence, within a wide Laplace density.

    No gradient leads there; of the draws of the Laplace density one in 600 is in the box.
    """

    D, HALF, MASS = 8, 0.5, 0.5

    def terms(self, x: jax.Array) -> LogTerms:
        inside = jnp.where((jnp.abs(x - 0.5) < self.HALF).all(), 0.0, -jnp.inf)
        box = jnp.log(self.MASS) - self.D * jnp.log(2 * self.HALF) + inside
        density = jnp.logaddexp(box, -jnp.abs(x).sum() - self.D * jnp.log(2.0))
        log_prior = -jnp.abs(x / 2).sum() - self.D * jnp.log(4.0)
        return LogTerms(log_prior, density - log_prior)

    def fit(self, seed: int) -> FittedReference:
        seeds = np.random.SeedSequence(seed).spawn(2)
        particles = np.random.default_rng(seeds[0]).laplace(size=(240, self.D))
        target = TargetDensity(pma.GeometricPath(self.terms), 240)
        inside = np.random.default_rng(seed).uniform(0.1, 0.9, size=(8, self.D))
        search = Search(0, starts=8, hints=inside, evaluations=1e6)
        return fit_mixture(target, particles, self.prior_draws, seeds[1], search, draws=4096)

    def prior_draws(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        return np.random.default_rng(seed).laplace(scale=2.0, size=(draws, self.D))

    def off(self) -> np.ndarray:
        """Return how far the estimates of three fits are off, in nats."""
        return np.array([self.fit(seed).log_z for seed in range(3)]) - np.log1p(self.MASS)

    def test_it_is_found_and_weighed(self) -> None:
        assert np.abs(self.off()).max() < 0.3

    def test_by_the_mass_of_all_that_is_there_it_is_not(self, monkeypatch) -> None:
        """Importance sampling goes astray to the Laplace density."""

        def log_all(missing: Missing, position: np.ndarray) -> np.ndarray:
            return missing.target.log_density(position)

        monkeypatch.setattr(Missing, "log_density", log_all)
        assert np.median(np.abs(self.off())) > 0.3


def test_the_search_is_counted() -> None:
    assert fit(SEARCH).evaluations >= fit(None).evaluations + 20_000


def test_draws_near_centres() -> None:
    components = [pma.GaussianReference(np.array([c, -c]), np.ones(2)) for c in (0.0, 50.0)]
    draws = draw_near_centres(components, 1000, np.random.SeedSequence(1))
    first, second = np.split(draws, 2)
    assert len(draws) == 1000
    assert np.abs(first).max() < 5
    assert np.abs(second - [50, -50]).max() < 5
    spread = 0.5 ** np.arange(1.0, 3.5, 0.5)  # the scales in turn
    assert first.std() == pytest.approx(np.sqrt((spread**2).mean()), rel=0.1)


class TestClimb:
    def test_to_the_top(self) -> None:
        target = TargetDensity(PATH, 1)
        with jax.enable_x64(True):
            start, spread = np.full(D, SHIFT + SPIKE), np.full(D, SLAB)
            peak = climb_and_weigh(target, start, spread, 1)
        assert peak is not None
        assert target.evaluations > 2 * D
        np.testing.assert_allclose(peak.normal.mean, SHIFT, atol=1e-4)
        np.testing.assert_allclose(np.diag(np.asarray(peak.normal.scale)), SPIKE, rtol=1e-2)
        height = np.log(9.0) - D * np.log(10.0 * np.sqrt(2 * np.pi))
        # Four errors of the mean of 512 weights, a quarter of which are effective.
        assert peak.log_mass == pytest.approx(height, abs=4 * 128**-0.5)

    def test_no_peak(self) -> None:
        def saddle(x: jax.Array) -> LogTerms:
            return LogTerms(jnp.zeros(()), x[0] ** 2 - x[1] ** 2)

        target = TargetDensity(pma.GeometricPath(saddle), 1)
        with jax.enable_x64(True):
            assert climb_and_weigh(target, np.zeros(2), np.ones(2), 1) is None
