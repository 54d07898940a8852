"""Bayes factors of orders and intervals: exact masses, tiny ones, a wrong twin."""

import itertools
import math

import numpy as np
import pymc as pm
import pytest

from scipy import integrate, stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.between import constraint_mass
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.results.container import dataset

PRIOR_SD, ERROR = 2.0, 0.5
VARIANCE = 1 / (1 / ERROR**2 + 1 / PRIOR_SD**2)


def means(observed: list[float]) -> pm.Model:
    """Independent normal means, one observation each."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, PRIOR_SD, shape=len(observed))
        pm.Normal("y", mu, ERROR, observed=np.array(observed))
    return model


def exact_draws(observed: list[float], seed: int, draws: int = 1000) -> object:
    rng = np.random.default_rng(seed)
    centre = VARIANCE * np.array(observed) / ERROR**2
    x = rng.normal(centre, VARIANCE**0.5, (4, draws, len(observed)))
    return container({"posterior": dataset({"mu": x}, ("chain", "draw"))})


def log_mass_of_order(observed: list[float]) -> float:
    """Posterior mass of increasing means, one integral after the other."""
    centre, sd = VARIANCE * np.array(observed) / ERROR**2, VARIANCE**0.5
    x = np.linspace(centre.min() - 9 * sd, centre.max() + 9 * sd, 20_001)
    below = np.ones_like(x)
    for mean in centre:
        below = integrate.cumulative_trapezoid(stats.norm(mean, sd).pdf(x) * below, x, initial=0)
    return float(np.log(below[-1]))


ORDERED, REVERSED = [0.0, 0.3, 0.8, 1.0, 1.6], [2.2, 1.5, 1.0, 0.4, 0.0]


class TestFiveMeans:
    @pytest.mark.parametrize("observed", [ORDERED, REVERSED])
    def test_bayes_factor(self, observed: list[float]) -> None:
        exact = log_mass_of_order(observed) + math.log(120)
        found = pma.constraint_bayes_factor(
            exact_draws(observed, 1),
            pma.Increasing("mu"),
            model=means(observed),
            random_seed=1,
            progressbar=False,
        )
        assert found.verdict.trusted
        assert found.mcse < 0.12
        assert abs(found.log_bayes_factor - exact) < 3 * found.mcse

    def test_the_reversed_order_is_tiny(self) -> None:
        assert log_mass_of_order(REVERSED) < math.log(1e-6)

    @pytest.mark.slow
    def test_a_mass_of_1e_8(self) -> None:
        observed = [4.1, 0.0]
        distance = 4.1 * VARIANCE / ERROR**2 / math.sqrt(2 * VARIANCE)
        log_mass = float(stats.norm.logsf(distance))
        assert log_mass < math.log(1.1e-8)
        found = pma.constraint_bayes_factor(
            exact_draws(observed, 1),
            pma.Increasing("mu"),
            model=means(observed),
            random_seed=1,
            progressbar=False,
        )
        assert found.verdict.trusted
        assert abs(found.log_bayes_factor - log_mass - math.log(2)) < 3 * found.mcse

    @pytest.mark.slow
    def test_estimated_prior_mass(self) -> None:
        exact = log_mass_of_order(ORDERED) + math.log(120)
        found = pma.constraint_bayes_factor(
            exact_draws(ORDERED, 1),
            lambda values: values["mu"][1:] - values["mu"][:-1],
            model=means(ORDERED),
            random_seed=1,
            progressbar=False,
        )
        assert found.verdict.trusted
        assert 0.01 < found.mcse < 0.15
        assert abs(found.log_bayes_factor - exact) < 3 * found.mcse

    @pytest.mark.slow
    def test_without_the_indicator_at_the_end_it_is_wrong(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The twin counts particles that end outside; with a weak penalty many do."""
        monkeypatch.setattr(constraint_mass, "_PENALTY", 2.0)
        run = {"model": means(REVERSED), "random_seed": 1, "progressbar": False}
        given, order = exact_draws(REVERSED, 1), pma.Increasing("mu")
        exact = log_mass_of_order(REVERSED) + math.log(120)
        weak = pma.constraint_bayes_factor(given, order, **run, warnings=False)
        inside, calls = constraint_mass._inside, itertools.count()

        def at_the_start_only(slacks: np.ndarray) -> np.ndarray:
            return np.ones(slacks.shape[:2]) if next(calls) else inside(slacks)

        monkeypatch.setattr(constraint_mass, "_inside", at_the_start_only)
        twin = pma.constraint_bayes_factor(given, order, **run, warnings=False)
        assert abs(twin.log_bayes_factor - exact) > 10 * twin.mcse
        assert weak.log_bayes_factor < twin.log_bayes_factor - 1


class TestRepeatedCalls:
    """Constraints of this package are compiled once, functions of the user at each call."""

    def find(self, constraint: object) -> float:
        found = pma.constraint_bayes_factor(
            exact_draws([2.2, 0.0], 1),
            constraint,
            model=self.MODEL,
            random_seed=1,
            progressbar=False,
        )
        return found.log_bayes_factor

    MODEL = means([2.2, 0.0])

    @pytest.mark.slow
    def test_the_same_constraint(self) -> None:
        first = self.find(pma.Increasing("mu", order=[0, 1]))
        known = [f.cache_info().misses for f in (constraint_mass._bind_terms, constraint_mass._map)]
        assert self.find(pma.Increasing("mu", order=[0, 1])) == first
        assert known == [
            f.cache_info().misses for f in (constraint_mass._bind_terms, constraint_mass._map)
        ]

    @pytest.mark.slow
    def test_a_function_of_a_value_that_changes(self) -> None:
        limit = 0.0

        def above(values: dict) -> object:
            return values["mu"][1] - limit

        low = self.find(above)
        limit = 0.8
        assert self.find(above) < low - 1


def test_an_empty_region_is_not_trusted() -> None:
    found = pma.constraint_bayes_factor(
        exact_draws([1.0, 0.0], 1),
        lambda values: values["mu"][0] * np.array([1.0, -1.0]) - 1.0,
        model=means([1.0, 0.0]),
        log_prior_mass=math.log(0.1),
        random_seed=1,
        progressbar=False,
        warnings=False,
    )
    assert found.verdict.status == "do not trust"
    assert "no particle reached the region: of 800, expected where all slacks are" in str(found)
    assert "evaluate the constraint at values that should fulfil it" in str(found)
    assert found.interval == (-math.inf, math.inf)


@pytest.mark.parametrize("order", [(0, 3), (1, -2), (0, -4), (0, 1, 0)])
def test_orders_that_make_no_sense(order: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected different numbers from 0 to 2"):
        pma.Increasing("mu", order)({"mu": np.zeros(3)})


class TestPriorMass:
    def mass(self, constraint: object) -> float | None:
        with pm.Model() as model:
            pm.Normal("a", 0, [1.0, 2.0])
            pm.Normal("b", 0, 1, shape=4)
            scale = pm.HalfNormal("scale", 1)
            pm.Normal("child", 0, scale)
            pm.Gamma("g", 2, 1)
        return constraint.log_prior_mass(as_compiled(model))

    def test_exact(self) -> None:
        assert self.mass(pma.Increasing("b")) == pytest.approx(-math.log(24))
        assert self.mass(pma.Increasing("b", order=[2, 0])) == pytest.approx(-math.log(2))
        interval = stats.norm.cdf(1) - stats.norm.cdf(-0.5)
        assert self.mass(pma.Between("b", -0.5, 1)) == pytest.approx(4 * math.log(interval))
        above = stats.gamma(2).sf(3)
        assert self.mass(pma.Between("g", lower=3)) == pytest.approx(math.log(above))

    def test_unknown(self) -> None:
        assert self.mass(pma.Increasing("a")) is None
        assert self.mass(pma.Between("child", lower=0)) is None
        assert self.mass(pma.Between("b", lower=9)) is None


def test_coverage_of_shares() -> None:
    """Intervals of counted shares, over 300 sets of draws."""
    rng = np.random.default_rng(1)
    log_share, covered = math.log(0.3), 0
    for _ in range(300):
        inside = (rng.uniform(size=(4, 500)) < 0.3).astype(float)
        mass = constraint_mass._counted(inside)
        covered += abs(mass.log_mass - log_share) < 1.96 * mass.mcse
    assert 0.92 <= covered / 300 <= 0.98


def test_a_share_of_all_draws_has_an_error() -> None:
    mass = constraint_mass._counted(np.ones((4, 500)))
    assert mass.log_mass == 0
    assert mass.mcse > 1 / 8000


class TestRefused:
    def find(self, constraint: object, **settings: object) -> None:
        pma.constraint_bayes_factor(
            exact_draws(ORDERED, 1),
            constraint,
            model=means(ORDERED),
            progressbar=False,
            **settings,
        )

    def test_unknown_variable(self) -> None:
        with pytest.raises(ValueError, match="'nu', which is not one of"):
            self.find(pma.Increasing("nu"))

    def test_an_interval_without_ends(self) -> None:
        with pytest.raises(ValueError, match="one of them finite"):
            pma.Between("mu")

    def test_a_prior_mass_above_one(self) -> None:
        with pytest.raises(ValueError, match="at most 0"):
            self.find(pma.Increasing("mu"), log_prior_mass=0.5)

    def test_whether_instead_of_by_how_much(self) -> None:
        with pytest.raises(TypeError, match=r"returns whether it holds, expected by how much"):
            self.find(lambda values: values["mu"][0] > values["mu"][1])

    def test_a_single_entry(self) -> None:
        with pytest.raises(ValueError, match="no slack"):
            self.find(pma.Increasing("mu", order=[1]))


def test_an_order_is_that_of_one_axis() -> None:
    order = pma.Increasing("x", order=[0, 1])
    with pytest.raises(ValueError, match="'x' has 2 axes, and .Increasing. orders"):
        order({"x": np.zeros((2, 2))})
    with pm.Model() as model:
        pm.Normal("x", shape=(2, 2))
    assert order.log_prior_mass(pma.compile_model(model)) is None
    with pm.Model() as model:
        pm.Normal("x", shape=3)
    assert order.log_prior_mass(pma.compile_model(model)) == pytest.approx(-math.log(2))
