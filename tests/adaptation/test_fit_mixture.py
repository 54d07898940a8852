"""Mixtures fitted to particles, and the measured discrepancy of their paths."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.adaptation import fit_mixture as module
from pymc_anneal.adaptation.curvature import locate_tail
from pymc_anneal.adaptation.fit_mixture import fit_mixture, fit_to_particles
from pymc_anneal.adaptation.fitted_reference import FittedReference, draw_start
from pymc_anneal.adaptation.peaks import Search
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base import LogTerms
from pymc_anneal.base.contracts import NanDensityError
from tests.adaptation import neck

D, PRIOR_SD = 4, 5.0
CENTRES = np.stack([np.full(D, 3.0), np.full(D, -3.0)])


def log_prior(x: jax.Array) -> jax.Array:
    return -0.5 * (x**2).sum() / PRIOR_SD**2 - 0.5 * D * jnp.log(2 * jnp.pi * PRIOR_SD**2)


def two_modes(share: float):
    """Return the terms of a likelihood with two modes; the evidence does not depend on the share.

    Both modes have the same mass under the prior, so ``share`` is the posterior's.
    """

    def terms(x: jax.Array) -> LogTerms:
        square = ((x - CENTRES) ** 2).sum(axis=1)
        log_weight = jnp.log(jnp.array([share, 1 - share]))
        return LogTerms(log_prior(x), jax.nn.logsumexp(log_weight - 0.5 * square))

    return terms


def log_evidence() -> float:
    total = 1 + PRIOR_SD**2
    return D * (-0.5 * np.log(total) - 0.5 * 9.0 / total)


def draw_prior(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, PRIOR_SD, (draws, D))


def posterior(shares: list[int], seed: int = 3) -> np.ndarray:
    rng, variance = np.random.default_rng(seed), PRIOR_SD**2 / (1 + PRIOR_SD**2)
    centre = np.repeat(variance * CENTRES, shares, axis=0)
    return rng.normal(centre, np.sqrt(variance))


def fit(share: float, shares: list[int]) -> FittedReference:
    target = TargetDensity(pma.GeometricPath(two_modes(share)), 256)
    return fit_mixture(target, posterior(shares), draw_prior, np.random.SeedSequence(5))


class TestFit:
    def test_a_component_of_each_kind_for_each_mode(self) -> None:
        found = fit(0.8, [205, 51])
        assert found.modes == 2
        kinds = [type(c) for c in found.path.reference.components]
        assert kinds == [pma.GaussianReference, pma.StudentTReference] * 2
        assert found.discrepancy < 0.15

    def test_weights_are_those_of_the_posterior(self) -> None:
        # The particles of the survey have a wrong share: its transitions do not cross.
        found = fit(0.8, [128, 128])
        weight = found.path.reference.without_room().weight.reshape(2, 2).sum(axis=1)
        assert max(weight) == pytest.approx(0.8, abs=0.05)

    def test_a_single_mode_is_exact(self) -> None:
        # Normal prior and likelihood: all that is lost is the share of the prior and of Student-t.
        target = TargetDensity(pma.GeometricPath(two_modes(1.0)), 256)
        found = fit_mixture(target, posterior([256, 0]), draw_prior, np.random.SeedSequence(1))
        assert found.discrepancy < 0.1
        assert found.log_z == pytest.approx(log_evidence(), abs=0.05)

    def test_without_a_draw_in_the_support_nothing_is_typical(self) -> None:
        none = replace(fit(0.8, [205, 51]), log_ratio_draws=np.full(20, -np.inf))
        assert none.typical_log_z == -np.inf
        few = replace(none, log_ratio_draws=np.repeat([3.0, -np.inf], [2, 18]))
        assert few.typical_log_z == pytest.approx(3.0 - np.log(10))

    def test_a_missed_mode_is_seen_by_the_particles(self) -> None:
        found = fit(0.8, [205, 51])
        missed = posterior([0, 20], seed=8)
        blind = fit(0.8, [256, 0])
        with jax.enable_x64(True):
            terms = blind.path.evaluate(missed)
            ratio = np.asarray(terms.log_target - terms.log_reference)
        unseen = replace(blind, log_ratio_particles=ratio)
        assert blind.modes == 1
        assert unseen.discrepancy > 1 > found.discrepancy


class TestHeavyWeight:
    """A draw of a very large weight must not end the search for modes."""

    LUCK = 16.0

    @pytest.fixture(autouse=True)
    def one_heavy_weight(self, monkeypatch: pytest.MonkeyPatch) -> None:
        measure = module.MixtureFitter.measure

        def lucky(*args: Any) -> FittedReference:
            found = measure(*args)
            log_ratio = found.log_ratio_draws.copy()
            log_ratio[7] = found.log_z + self.LUCK
            return replace(found, log_ratio_draws=log_ratio)

        monkeypatch.setattr(module.MixtureFitter, "measure", lucky)

    def search(self) -> FittedReference:
        target = TargetDensity(pma.GeometricPath(two_modes(0.5)), 256)
        seed, search = np.random.SeedSequence(5), Search(draws=512, starts=32)
        return fit_mixture(target, posterior([256, 0]), draw_prior, seed, search)

    def test_the_search_goes_on(self) -> None:
        found = self.search()
        assert found.modes == 2
        assert found.typical_log_z == pytest.approx(log_evidence(), abs=0.3)

    def test_the_mean_of_the_weights_would_end_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(FittedReference, "typical_log_z", FittedReference.log_z)
        assert self.search().modes == 1


class TestManyModes:
    """Twenty-two modes, of which the particles have met one."""

    MEANS = np.random.default_rng(0).uniform(-20, 20, (22, D))

    def fit(self, most: int) -> FittedReference:
        with pm.Model() as model:
            x = pm.Normal("x", 0, 20, shape=D)
            pm.Potential("modes", pt.logsumexp(-0.5 * ((x[None] - self.MEANS) ** 2).sum(axis=1)))
        particles = self.MEANS[0] + np.random.default_rng(1).normal(size=(64, D))
        seed = np.random.SeedSequence(1)
        return fit_to_particles(pma.compile_model(model), particles, seed, 1000, most=most)

    def test_a_search_goes_on_while_it_may(self) -> None:
        found = self.fit(most=1_000_000)
        assert found.complete
        assert found.modes == 22

    def test_unmet_modes_are_worth_more(self) -> None:
        assert self.fit(most=0).complete

    def test_after_few_climbs_it_ends_with_its_evaluations(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(FittedReference, "price", lambda self: 1.0)
        found = self.fit(most=0)
        assert not found.complete
        assert 16 <= found.modes < 22


class TestStepUp:
    """A box of a fiftieth of the evidence in each coordinate, e^20 times as likely: no valley."""

    SIDE, RISE = 0.1, 20.0

    def further(self) -> np.ndarray:
        """Draws in the box, where all of the posterior is."""
        return np.random.default_rng(6).uniform(-self.SIDE, self.SIDE, (200, D)) + 1.0

    def fit(self, further: np.ndarray | None) -> FittedReference:
        def terms(x: jax.Array) -> LogTerms:
            inside = (jnp.abs(x - 1.0) < self.SIDE).all()
            return LogTerms(log_prior(x), jnp.where(inside, self.RISE, 0.0))

        target = TargetDensity(pma.GeometricPath(terms), 256, gradients=False)
        particles = draw_prior(np.random.SeedSequence(7), 240)
        seed = np.random.SeedSequence(8)
        return fit_mixture(target, particles, draw_prior, seed, further=further)

    def log_z(self) -> float:
        edge = (1.0 + self.SIDE * np.array([-1, 1])) / PRIOR_SD
        return float(np.logaddexp(0, self.RISE + D * np.log(np.diff(stats.norm.cdf(edge))[0])))

    def test_draws_above_all_particles_have_a_component(self) -> None:
        found = self.fit(self.further())
        assert found.log_z == pytest.approx(self.log_z(), abs=0.3)
        assert found.unmet_share_of(np.nan) > 0.5

    def test_without_them_it_is_missed(self) -> None:
        assert self.fit(None).log_z < self.log_z() - 1.0


class TestWiderComponent:
    """Forty coordinates that are normal, and one with an exponential tail."""

    COUNT = 40
    PRIOR_SD = np.repeat([10.0, 3.0], [1, COUNT])

    def _terms(self, x: jax.Array) -> LogTerms:
        # log(y) of y ~ Gamma(2): exp(2 t - e^t), about exp(2 t) on the left.
        log_prior = jax.scipy.stats.norm.logpdf(x, 0, self.PRIOR_SD).sum()
        log_posterior = 2 * x[0] - jnp.exp(x[0]) - 0.5 * (x[1:] ** 2).sum()
        return LogTerms(log_prior, log_posterior - log_prior)

    def _draw_prior(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        return np.random.default_rng(seed).normal(0, self.PRIOR_SD, (draws, 1 + self.COUNT))

    def _posterior(self, draws: int) -> np.ndarray:
        rng = np.random.default_rng(4)
        e = rng.normal(size=(draws, self.COUNT))
        return np.column_stack([np.log(rng.gamma(2.0, size=draws)), e])

    def _log_ratio_in_tail(self, widen: list[int]) -> np.ndarray:
        """Return posterior over mixture, in nats, where the posterior has a probability of 1e-4."""
        target = TargetDensity(pma.GeometricPath(self._terms), 64)
        seed = np.random.SeedSequence(5)
        found = fit_mixture(target, self._posterior(256), self._draw_prior, seed, None, widen=widen)
        tail = self._posterior(200)
        tail[:, 0] = np.log(stats.gamma(2).ppf(1e-4))
        with jax.enable_x64(True):
            terms = found.path.evaluate(tail)
            return np.asarray(terms.log_target - terms.log_reference) - found.log_z

    def test_tails_along_few_coordinates(self) -> None:
        assert np.quantile(self._log_ratio_in_tail([0]), 0.9) < 2.0

    def test_student_t_components_are_not_enough(self) -> None:
        assert np.quantile(self._log_ratio_in_tail([]), 0.9) > 3.0


class TestNeck:
    """Many effects that are wide where their scale is small (`neck.py`)."""

    def _log_ratio_in_neck(self) -> np.ndarray:
        """Return posterior over mixture, in nats, at draws of the posterior in the neck."""
        target = TargetDensity(pma.GeometricPath(neck.terms), 64)
        position, seed = neck.posterior(250), np.random.SeedSequence(5)
        found = fit_mixture(target, position, neck.draw_prior, seed)
        inside = neck.posterior(4000, seed=4)
        inside = inside[inside[:, 0] < neck.NECK]
        with jax.enable_x64(True):
            terms = found.path.evaluate(inside)
            return np.asarray(terms.log_target - terms.log_reference)

    def test_the_curvature_there(self) -> None:
        assert np.quantile(self._log_ratio_in_neck(), 0.9) < 3.0

    def test_moments_are_not_enough(self, monkeypatch: pytest.MonkeyPatch) -> None:
        by_moments = lambda *found: locate_tail(*found)[:1]  # noqa: E731
        monkeypatch.setattr(module, "locate_tail", by_moments)
        assert np.quantile(self._log_ratio_in_neck(), 0.9) > 5.0


class TestProfile:
    def test_length_of_the_whole_path(self) -> None:
        # sum sqrt(D_k) over small steps is the length; for a normal log ratio its square is D.
        rng = np.random.default_rng(2)
        log_u = rng.normal(0, 0.7, 20_000)
        found = replace(fit(0.8, [205, 51]), log_ratio_draws=log_u, log_ratio_particles=log_u[:100])
        betas, discrepancy = found.profile()
        assert betas[0] == 0
        assert betas[-1] == 1
        np.testing.assert_allclose(np.sqrt(discrepancy).sum() ** 2, found.discrepancy, rtol=0.05)

    def test_densities_of_next_to_nothing(self) -> None:
        """Draws at -1e300 weigh nothing at any temperature but the first."""
        log_u = np.random.default_rng(2).normal(0, 0.7, 1000)
        fitted = replace(fit(0.8, [205, 51]), log_ratio_particles=log_u[:100])
        few = replace(fitted, log_ratio_draws=np.append(log_u, [-1e300, -1e200]))
        none = replace(fitted, log_ratio_draws=np.append(log_u, [-np.inf, -np.inf]))
        np.testing.assert_allclose(few.profile()[1], none.profile()[1])

    def test_no_discrepancy(self) -> None:
        equal = replace(
            fit(0.8, [205, 51]), log_ratio_draws=np.zeros(50), log_ratio_particles=np.zeros(50)
        )
        betas, discrepancy = equal.profile()
        assert (discrepancy == 0).all()
        assert len(betas) == len(discrepancy) + 1


class TestDrawStart:
    def test_the_ratio_is_unbiased(self) -> None:
        # E_r[f / r] = Z, with the share of the prior in draws and density.
        found = fit(0.8, [205, 51])
        draws = draw_start(found.path, draw_prior)(np.random.SeedSequence(4), 20_000)
        with jax.enable_x64(True):
            terms = found.path.evaluate(draws)
            u = np.exp(np.asarray(terms.log_target - terms.log_reference) - log_evidence())
        assert u.mean() == pytest.approx(1, abs=4 * u.std() / np.sqrt(len(u)))

    def test_a_density_that_disagrees_with_the_draws_is_biased(self) -> None:
        # The twin that is wrong: draws without the prior's share.
        found = fit(0.8, [205, 51])
        draws = found.path.reference.sample(np.random.SeedSequence(4), 20_000)
        with jax.enable_x64(True):
            terms = found.path.evaluate(draws)
            u = np.exp(np.asarray(terms.log_target - terms.log_reference) - log_evidence())
        assert abs(u.mean() - 1) > 4 * u.std() / np.sqrt(len(u))


def test_a_density_that_is_no_number_beyond_the_prior_is_fitted() -> None:
    """Tails of the mixture reach where it is NaN, 25 nats below the top of the prior."""
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=2)
        pm.Normal("y", pt.switch(pt.abs(x) < 7, x, np.nan), 0.5, observed=[5.0, 5.0])
    compiled = pma.compile_model(model)
    exact = 2 * stats.norm(0, np.sqrt(1.25)).logpdf(5)
    particles = np.random.default_rng(1).normal(4, np.sqrt(0.2), size=(256, 2))
    seeds = [np.random.SeedSequence(1) for _ in range(2)]
    with pytest.raises(NanDensityError):  # without a survey
        fit_to_particles(compiled, particles, seeds[0])
    fitted = fit_to_particles(compiled, particles, seeds[1], surveyed=len(particles))
    assert np.isneginf(fitted.log_ratio_draws).any()
    assert fitted.log_z == pytest.approx(exact, abs=0.1)
