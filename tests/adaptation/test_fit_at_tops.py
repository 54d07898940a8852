"""Mixtures fitted at the tops of climbs from the prior."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation import fit_at_tops as module
from pymc_anneal.adaptation import fit_mixture, target_density
from pymc_anneal.adaptation.fit_at_tops import (
    _is_near,
    _mixture_of,
    _scale_at,
    _with_light_tails,
    find_tops,
    fit_at_tops,
)
from pymc_anneal.adaptation.fit_mixture import MixtureFitter
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base import LogTerms

D, PRIOR_SD = 3, 5.0


def draw_prior(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, PRIOR_SD, (draws, D))


def terms(log_likelihood: Any) -> Any:
    def log_terms(x: jax.Array) -> LogTerms:
        return LogTerms(jax.scipy.stats.norm.logpdf(x, 0, PRIOR_SD).sum(), log_likelihood(x))

    return log_terms


def two_modes(x: jax.Array) -> jax.Array:
    each = jnp.stack([-0.5 * ((x - c) ** 2).sum() / s**2 for c, s in ((3.0, 1.0), (-3.0, 0.5))])
    return jax.nn.logsumexp(each)


def tops_of(log_likelihood: Any, climbs: int = 32) -> list:
    target = TargetDensity(pma.GeometricPath(terms(log_likelihood)), 32)
    return find_tops(target, draw_prior, np.random.SeedSequence(1), climbs)


class TestTops:
    def test_places_scales_and_masses(self) -> None:
        # Of normal densities Laplace's mass is exact, as far as they do not overlap.
        found = tops_of(two_modes)
        precision = [1 / PRIOR_SD**2 + 1 / s**2 for s in (1.0, 0.5)]
        places = [3.0 / precision[0], -3.0 / 0.25 / precision[1]]
        order = np.argsort([-float(top.normal.mean[0]) for top in found])
        assert len(found) == 2
        for i, top in enumerate(found[j] for j in order):
            np.testing.assert_allclose(top.normal.mean, places[i], rtol=1e-4)
            np.testing.assert_allclose(
                top.normal.scale, np.eye(D) / np.sqrt(precision[i]), atol=1e-4
            )
            s = (1.0, 0.5)[i]
            total = s**2 + PRIOR_SD**2
            exact = D * (np.log(s) - 0.5 * np.log(total) - 4.5 / total)
            assert top.log_mass == pytest.approx(exact, abs=1e-3)

    def test_a_posterior_a_million_times_narrower_than_the_prior(self) -> None:
        # At six standard deviations from the top, the slope has hardly changed.
        (top,) = tops_of(lambda x: -jnp.sqrt(1 + ((x - 1.0) / 5e-6) ** 2).sum())
        np.testing.assert_allclose(np.diag(top.normal.scale), 5e-6, rtol=1e-3)

    def test_a_top_in_a_valley(self) -> None:
        def spike(x: jax.Array) -> jax.Array:
            return jnp.logaddexp(20 - 0.5 * (x**2).sum() / 5e-6**2, (x**2).sum())

        target = TargetDensity(pma.GeometricPath(terms(spike)), 32)
        scale = _scale_at(target, np.zeros(D), np.full(D, 50.0))
        np.testing.assert_allclose(scale, 5e-6 * np.eye(D), atol=1e-8)

    def test_a_regression_on_a_predictor_far_from_zero(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Intercept and slope have a correlation of 0.9999: the first climbs crawl along it.
        rng = np.random.default_rng(3)
        predictor = 100 + rng.standard_normal(100)
        y = 1 + 0.5 * predictor + 0.1 * rng.standard_normal(100)

        def regression(x: jax.Array) -> jax.Array:
            mu = x[0] + x[1] * predictor
            return jax.scipy.stats.norm.logpdf(jnp.asarray(y), mu, jnp.exp(x[2])).sum()

        (top,) = tops_of(regression)
        slope = jax.grad(lambda x: sum(terms(regression)(x)))(jnp.asarray(top.normal.mean))
        assert np.abs(np.asarray(top.normal.scale).T @ slope).max() < 1e-2
        monkeypatch.setattr(module, "_MORE_CLIMBS", 0)
        assert tops_of(regression) == []

    def test_many_tops_are_none(self) -> None:
        assert tops_of(lambda x: -0.5 * (jnp.sin(3 * x) ** 2).sum() / 0.01) == []

    def test_climbs_that_end_at_no_top_are_none(self) -> None:
        def bowl(x: jax.Array) -> jax.Array:  # Outside of a ball the density rises for ever.
            squared = (x**2).sum()
            return jnp.where(squared > 64.0, squared / PRIOR_SD**2, 5.0 - squared / 50)

        assert tops_of(bowl) == []

    def test_flat_steps_are_none(self) -> None:
        assert tops_of(lambda x: jnp.where(x[0] > 1.0, 3.0, 0.0)) == []
        assert len(tops_of(lambda x: jnp.where(x[0] > 1.0, 3.0, 1e-9 * x[0]))) > 0


@dataclass
class Model:
    """What the fit takes of a compiled model."""

    log_terms: Any
    ndim: int = D
    unimodal_columns: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    branches: None = None
    variables: tuple = ()
    sample_prior: Any = staticmethod(draw_prior)


def fit(log_likelihood: Any, seed: int = 0, log_concave: bool = False) -> Any:
    return fit_at_tops(Model(terms(log_likelihood)), np.random.SeedSequence(seed), log_concave)


def skewed(x: jax.Array) -> jax.Array:
    return (2 * x - jnp.exp(x)).sum()


def beside_a_rare_mode(height: float) -> Any:
    """Return a likelihood with a mode that none of 32 climbs may meet, and one of 320 does."""

    def log_likelihood(x: jax.Array) -> jax.Array:
        near = -0.5 * (x**2).sum() / 4.0
        return jnp.logaddexp(near, height - 0.5 * ((x - 12.0) ** 2).sum())

    return log_likelihood


class TestFit:
    def test_of_a_skewed_density(self) -> None:
        found = fit(skewed).fitted
        grid = np.linspace(-15, 6, 20_001)
        log_density = 2 * grid - np.exp(grid) - 0.5 * (grid / PRIOR_SD) ** 2
        norm = np.log(PRIOR_SD * np.sqrt(2 * np.pi))
        exact = D * (np.log(np.trapezoid(np.exp(log_density), grid)) - norm)
        assert found.modes == 1
        assert found.discrepancy < 0.5
        assert found.log_z == pytest.approx(exact, abs=0.1)
        assert found.climbs >= 64

    def test_a_costly_density_takes_fewer_evaluations_and_says_so(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        usual = fit(skewed)
        monkeypatch.setattr(target_density, "_CHEAP", 1.0)
        costly = fit(skewed)
        assert 2 * costly.evaluations < usual.evaluations
        assert (usual.fitted.effort, costly.fitted.effort) == (1.0, 0.125)
        assert costly.fitted.climbs == 32 + 40 < usual.fitted.climbs
        assert costly.fitted.discrepancy < 0.5
        assert costly.fitted.log_z == pytest.approx(usual.fitted.log_z, abs=0.1)

    def test_of_two_modes(self) -> None:
        found = fit(two_modes).fitted
        assert found.modes == 2
        assert found.discrepancy < 0.3

    def test_a_log_concave_density_is_not_searched(self) -> None:
        found, plain = fit(skewed, log_concave=True), fit(skewed)
        assert found.fitted.climbs == 0
        assert 3 * found.evaluations < plain.evaluations

    @pytest.mark.parametrize(
        ("tails", "further"), [([0.4], 0), ([0.6, 0.3], 1), ([0.6, 0.5, 0.1], 2)]
    )
    def test_components_are_added_until_the_tail_is_light(
        self, tails: list[float], further: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        target = TargetDensity(pma.GeometricPath(terms(skewed)), 32)
        found, left = fit(skewed).fitted, iter(tails)
        fitter = MixtureFitter(target, draw_prior(np.random.SeedSequence(1), 80), draw_prior, 0, 64)
        monkeypatch.setattr(module, "weight_pareto_k", lambda log_weight: next(left))
        light = _with_light_tails(fitter, found, np.random.SeedSequence(2), 2048)
        assert next(left, None) is None
        before, after = (len(_mixture_of(fit_).mean) for fit_ in (found, light))
        assert after == before + further
        assert len(light.log_ratio_draws) == 2048

    @pytest.mark.parametrize(("largest", "even"), [((9.0, 5.0, 7.0), 1), ((9.0, 7.0, 6.5), None)])
    def test_without_a_light_tail_the_most_even_is_taken(
        self, largest: tuple[float, ...], even: int | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Proposals leave a tail of which no weight is large."""
        target = TargetDensity(pma.GeometricPath(terms(skewed)), 32)
        found = fit(skewed).fitted
        fitter = MixtureFitter(target, draw_prior(np.random.SeedSequence(1), 80), draw_prior, 0, 64)
        monkeypatch.setattr(module, "weight_pareto_k", lambda log_weight: 0.6)
        before = len(_mixture_of(found).mean)
        measured = iter((*largest, min(largest)))
        monkeypatch.setattr(module, "largest_weight", lambda log_weight: next(measured))
        tried = _with_light_tails(fitter, found, np.random.SeedSequence(2), 2048)
        if even is None:
            assert tried is None
        else:
            assert len(_mixture_of(tried).mean) == before + even

    def test_all_evaluations_are_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        spent: list[int] = []
        for name in ("evaluate", "value_and_gradient"):
            own = getattr(TargetDensity, name)

            def counted(self: Any, position: np.ndarray, *rest: Any, _own: Any = own, **named: Any):
                spent.append(len(position))
                return _own(self, position, *rest, **named)

            monkeypatch.setattr(TargetDensity, name, counted)
        assert fit(skewed).evaluations == sum(spent)

    def test_a_mode_that_the_search_finds_makes_it_none(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seeds, rare = range(4), beside_a_rare_mode(10.0)
        assert any(fit(rare, seed).fitted is None for seed in seeds)
        skip = lambda self, mixture, found, *rest: (mixture, found)  # noqa: E731
        monkeypatch.setattr(MixtureFitter, "add_peaks", skip)
        kept = [fit(rare, seed).fitted for seed in seeds]
        assert any(found is not None and found.modes == 1 for found in kept)

    def test_a_small_mode_that_the_search_finds_gets_a_component(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        small = beside_a_rare_mode(6.0)
        found = fit(small).fitted
        assert found.modes == 2
        # 1.3 % by the masses of two normal densities.
        precision = np.array([1 / 4 + 1 / PRIOR_SD**2, 1 + 1 / PRIOR_SD**2])
        distance = 12.0**2 * D / (1 + PRIOR_SD**2)
        odds = np.exp(6.0 - distance / 2) * (precision[0] / precision[1]) ** (D / 2)
        assert found.share[1] == pytest.approx(odds / (1 + odds), rel=0.5)
        monkeypatch.setattr(module, "_SMALL", 0.0)
        assert fit(small).fitted is None

    def test_a_candidate_that_leads_to_no_peak_makes_it_none(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Something is there, whatever it holds: a cusp on which climbs get stuck hid 4.6 nats."""
        monkeypatch.setattr(fit_mixture, "weigh_top", lambda *_: None)
        monkeypatch.setattr(fit_mixture, "missed_on_the_way", lambda *_: [])
        assert fit(beside_a_rare_mode(6.0)).fitted is None

    def test_searches_that_go_on_finding_modes_make_it_none(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_SEARCHES", 1)
        assert fit(beside_a_rare_mode(6.0)).fitted is None

    def test_a_mixture_that_stays_far_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert fit(skewed).fitted.discrepancy > 0.02
        monkeypatch.setattr(module, "NEAR", 0.02)
        assert fit(skewed).fitted is None

    def test_held_out_particles_have_a_say(self) -> None:
        target = TargetDensity(pma.GeometricPath(terms(skewed)), 32)
        found, near = fit(skewed).fitted, draw_prior(np.random.SeedSequence(1), 80) / 10
        assert _is_near(found, target, near)
        # Four of 80 lie where the density is far above the mixture.
        beyond = terms(lambda x: skewed(x) + jnp.where(x[0] > 4.0, 150.0, 0.0))
        far = np.concatenate([near[4:], np.tile([5.0, 0.0, 0.0], (4, 1))])
        assert not _is_near(found, TargetDensity(pma.GeometricPath(beyond), 32), far)

    @pytest.mark.parametrize("ndim", [0, 101])
    def test_other_dimensions(self, ndim: int) -> None:
        model = Model(terms(skewed), ndim=ndim)
        assert fit_at_tops(model, np.random.SeedSequence(0)) == (None, 0)

    def test_nan_is_left_to_the_survey(self) -> None:
        assert fit(lambda x: jnp.where(x[0] < 0, jnp.nan, skewed(x))).fitted is None


def test_a_model_without_likelihood_at_the_draws_is_left_to_the_survey() -> None:
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=2)
        pm.Potential("far", pm.math.switch(x[0] > 7, 0.0, -np.inf))
    found = fit_at_tops(pma.compile_model(model), np.random.SeedSequence(0))
    assert found.fitted is None
