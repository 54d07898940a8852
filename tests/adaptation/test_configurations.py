"""Configurations of discrete coordinates: their masses, and what the search finds."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import special, stats

import pymc_anneal as pma

from pymc_anneal.adaptation import configurations
from pymc_anneal.adaptation.conditional_peak import ConditionalDensity
from pymc_anneal.adaptation.configurations import Configurations, find_configurations
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel
from tests import indicators
from tests.problems import unknown_trials

INFINITE = (-np.inf, np.inf)


@cache
def selection() -> CompiledModel:
    return pma.compile_model(indicators.build())


def search(
    compiled: CompiledModel, discrete, support, seed: int = 0, start=None
) -> Configurations | None:
    real = tuple(j for j in range(compiled.ndim) if j not in discrete)
    density = ConditionalDensity(pma.GeometricPath(compiled.log_terms), real)
    draws = compiled.sample_prior(np.random.SeedSequence(seed), configurations.DRAWS)
    if start is not None:
        draws[:, list(discrete)] = start
    return find_configurations(density, draws, discrete, support, np.random.SeedSequence(seed))


def search_selection(seed: int = 0, start=None) -> Configurations:
    found = search(selection(), range(4), [(0, 1)] * 4, seed, start)
    assert found is not None
    return found


class TestPeaks:
    @double_precision
    def peaks(self, log_terms, position, real):
        path = pma.GeometricPath(log_terms)
        return ConditionalDensity(path, real).peaks(np.asarray(position, dtype=float))

    def test_masses_of_normal_densities_are_exact(self) -> None:
        position = np.random.default_rng(2).normal(size=(16, 8)) * 5
        position[:, :4] = np.arange(16)[:, None] >> np.arange(4) & 1
        found = self.peaks(selection().log_terms, position, (4, 5, 6, 7))
        np.testing.assert_allclose(found.log_mass, indicators.log_masses(), rtol=1e-8)
        np.testing.assert_array_equal(found.position[:, :4], position[:, :4])

    def test_climbs_from_where_a_newton_step_leads_away(self) -> None:
        with pm.Model() as model:
            k = pm.Bernoulli("k", 0.5)
            x = pm.Normal("x", 0, 5)
            pm.Potential("y", -10 * pt.log1p((x - 2 - k) ** 2))
        log_terms = pma.compile_model(model).log_terms
        found = self.peaks(log_terms, [[0.0, -9.0], [1.0, 12.0], [1.0, 2.5]], (1,))
        np.testing.assert_allclose(found.position[:, 1], [2, 3, 3], atol=0.02)

    def test_a_density_of_zero_has_no_mass(self) -> None:
        with pm.Model() as model:
            pm.Bernoulli("k", 0.5)
            x = pm.Normal("x")
            pm.Potential("y", pt.switch(x > 1, -np.inf, 0.0))
        found = self.peaks(pma.compile_model(model).log_terms, [[0.0, 3.0], [0.0, 0.5]], (1,))
        assert found.log_mass[0] == -np.inf
        assert np.isfinite(found.log_mass[1])

    def test_nor_has_one_without_a_slope(self) -> None:
        def terms(x: jax.Array) -> LogTerms:  # 0 / 0 in the gradient below 1
            return LogTerms(-0.5 * x[1] ** 2, jnp.sqrt(jnp.maximum(x[1] - 1, 0.0)))

        found = self.peaks(terms, [[0.0, 0.0], [0.0, 1.5]], (1,))
        assert found.log_mass[0] == -np.inf
        assert np.isfinite(found.log_mass[1])


class TestSearch:
    @pytest.mark.parametrize("seed", range(3))
    def test_two_indicators_that_matter_only_together(self, seed: int) -> None:
        found = search_selection(seed, start=[0, 0, 0, 0])
        assert found.complete
        assert found.pairs
        assert abs(found.log_evidence - indicators.log_evidence()) < 4 * found.mcse
        assert found.mcse < 0.01
        best = np.asarray(found.reference.values)[np.asarray(found.reference.weight).argmax()]
        np.testing.assert_array_equal(best, [1, 1, 0, 0])

    def test_changes_of_one_do_not_find_them(self, monkeypatch) -> None:
        none = configurations._Search.pairs
        monkeypatch.setattr(configurations._Search, "pairs", lambda s, i: none(s, i)[:0])
        monkeypatch.setattr(configurations._Search, "spread", lambda s: False)
        found = search_selection(start=[0, 0, 0, 0])
        assert found.log_evidence < indicators.log_evidence() - 2

    def test_climbs_by_changes_of_two_do(self, monkeypatch) -> None:
        monkeypatch.setattr(configurations._Search, "spread", lambda s: False)
        found = search_selection(start=[0, 0, 0, 0])
        assert found.log_evidence > indicators.log_evidence() - 0.5

    def test_the_budget_ends_it(self, monkeypatch) -> None:
        monkeypatch.setattr(configurations, "_MOST_PEAKS", 3)
        found = search_selection()
        assert not found.complete
        assert found.log_evidence < indicators.log_evidence() + 4 * found.mcse

    def test_counts_without_bounds(self) -> None:
        problem = unknown_trials()
        found = search(pma.compile_model(problem.build()), [0], [INFINITE])
        assert found is not None
        assert found.complete
        assert abs(found.log_evidence - problem.log_evidence) < 4 * found.mcse + 1e-3

    def test_discrete_variables_alone_are_summed(self) -> None:
        with pm.Model() as model:
            c = pm.Categorical("c", [0.1, 0.2, 0.7], shape=3)
            n = pm.Poisson("n", 2.0)
            pm.Normal("y", (c * [1.0, 2.0, -1.0]).sum() + n, 0.5, observed=1.2)
        found = search(pma.compile_model(model), range(4), [*[(0, 2)] * 3, INFINITE])
        c = np.stack(np.meshgrid(*[np.arange(3)] * 3, np.arange(60), indexing="ij"), -1)
        c = c.reshape(-1, 4)
        log_prior = np.log([0.1, 0.2, 0.7])[c[:, :3]].sum(1) + stats.poisson(2.0).logpmf(c[:, 3])
        mean = c[:, 0] + 2 * c[:, 1] - c[:, 2] + c[:, 3]
        exact = special.logsumexp(log_prior + stats.norm(mean, 0.5).logpdf(1.2))
        assert found is not None
        assert found.mcse == 0
        assert exact - 2e-3 < found.log_evidence < exact + 1e-7

    def test_no_draw_of_positive_density(self) -> None:
        with pm.Model() as model:
            k = pm.Bernoulli("k", 0.5)
            pm.Potential("y", pt.switch(k < 2, -np.inf, 0.0))
        assert search(pma.compile_model(model), [0], [(0, 1)]) is None
