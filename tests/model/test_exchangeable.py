"""Exchangeable components in one order."""

import pickle

from collections.abc import Callable
from functools import cache, partial
from itertools import product
from math import lgamma

import jax
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import stats
from scipy.special import gammaln, logsumexp

import pymc_anneal as pma

from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.model import exchangeable
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.exchangeable import Axis, OrderedModel, find_exchangeable, ordered_model
from pymc_anneal.model.sum_out import sum_out
from pymc_anneal.paths.geometric import GeometricPath

DATA = np.array([-6.1, -5.2, -4.9, 0.2, 0.9, 7.3, 8.1])
PLACES, PRIOR_SD = 3, 5.0


def mixture(y: np.ndarray = DATA, components: int = PLACES) -> pm.Model:
    """Return a mixture of unit normal densities with unknown weights and places."""
    with pm.Model() as model:
        weight = pm.Dirichlet("weight", np.ones(components))
        place = pm.Normal("place", 0, PRIOR_SD, shape=components)
        pm.NormalMixture("y", weight, place, sigma=1.0, observed=y)
    return model


def exact_log_evidence(y: np.ndarray = DATA, components: int = PLACES) -> float:
    """Return the log evidence of `mixture`, a sum over all allocations."""

    def log_of_component(own: np.ndarray) -> float:
        covariance = np.eye(len(own)) + PRIOR_SD**2
        zero = np.zeros(len(own))
        return float(stats.multivariate_normal.logpdf(own, zero, covariance)) if len(own) else 0.0

    subsets = {m: log_of_component(y[list(m)]) for m in product((False, True), repeat=len(y))}
    total = []
    for z in product(range(components), repeat=len(y)):
        masks = [tuple(i == k for i in z) for k in range(components)]
        weights = gammaln(components) + sum(gammaln(1 + sum(m)) for m in masks)
        total.append(weights - gammaln(components + len(y)) + sum(subsets[m] for m in masks))
    return float(logsumexp(total))


def full_mixture(components: int = 4) -> pm.Model:
    with pm.Model() as model:
        weight = pm.Dirichlet("weight", np.ones(components))
        place = pm.Normal("place", 0, 3, shape=components)
        scale = pm.HalfNormal("scale", 1, shape=components)
        pm.NormalMixture("y", weight, place, sigma=scale, observed=DATA)
    return model


def allocated() -> pm.Model:
    with pm.Model() as model:
        weight = pm.Dirichlet("weight", np.ones(3))
        rate = pm.Gamma("rate", 2.0, 1.0, shape=3)
        z = pm.Categorical("z", weight, shape=5)
        pm.Poisson("y", rate[z], observed=[0, 1, 5, 6, 2])
    return model


def layer() -> pm.Model:
    """Return a layer of three units, and further parameters that are not exchangeable."""
    x = np.linspace(-1, 1, 8).reshape(4, 2)
    with pm.Model() as model:
        into = pm.Normal("into", shape=(2, 3))
        out = pm.Normal("out", shape=3)
        own = pm.Normal("own", shape=3)
        unit = pt.tanh(x @ into) @ out
        pm.Normal("y", unit + own[[0, 1, 2, 2]], 1.0, observed=np.ones(4))
    return model


def hidden_chain() -> pm.Model:
    with pm.Model() as model:
        turn = pm.Dirichlet("turn", np.ones((3, 3)), shape=(3, 3))
        place = pm.Normal("place", shape=3)
        forward = pt.ones(3) / 3
        for y in (0.3, 1.2, -0.4):
            forward = (forward @ turn) * pt.exp(-((y - place) ** 2) / 2)
        pm.Potential("likelihood", pt.log(forward.sum()))
    return model


def chain_of_rates() -> pm.Model:
    """Return a chain whose matrix comes first, and whose rates have a transform as it has."""
    with pm.Model() as model:
        turn = pm.Dirichlet("turn", np.ones((3, 3)), shape=(3, 3))
        rate = pm.Gamma("rate", 2.0, 1.0, shape=3)
        forward = pt.ones(3) / 3
        for y in (1.0, 4.0, 0.0):
            forward = (forward @ turn) * rate**y * pt.exp(-rate)
        pm.Potential("likelihood", pt.log(forward.sum()))
    return model


def only_a_matrix() -> pm.Model:
    """Return a walk over three states, which no variable with one axis tells apart."""
    with pm.Model() as model:
        first = pm.Dirichlet("first", np.ones(3))
        turn = pt.exp(pm.Normal("turn", shape=(3, 3)))
        pm.Normal("y", (first @ turn @ turn @ (turn @ first)), 1.0, observed=2.0)
    return model


def regression() -> pm.Model:
    x = np.random.default_rng(1).normal(size=(6, 3))
    with pm.Model() as model:
        slope, scale = pm.Normal("slope", shape=3), pm.HalfNormal("scale", shape=3)
        pm.Normal("y", x @ (slope * scale), 1.0, observed=np.ones(6))
    return model


def unequal_prior() -> pm.Model:
    with pm.Model() as model:
        weight = pm.Dirichlet("weight", np.ones(3))
        place = pm.Normal("place", [0.0, 1e-6, 0.0], 3, shape=3)
        pm.NormalMixture("y", weight, place, sigma=1.0, observed=DATA)
    return model


def each_alone() -> pm.Model:
    with pm.Model() as model:
        a, b = pm.Normal("a", shape=3), pm.HalfNormal("b", shape=3)
        pm.Normal("y", a.sum(), b.sum(), observed=DATA)
    return model


def only_simplices() -> pm.Model:
    with pm.Model() as model:
        share = pm.Dirichlet("share", np.ones(3))
        topic = pm.Dirichlet("topic", np.ones(3))
        pm.Binomial("y", 5, (share * topic).sum(), observed=2)
    return model


@cache
def compiled_of(build: Callable[[], pm.Model]) -> CompiledModel:
    return sum_out(pma.compile_model(build()))


def ordered(build: Callable[[], pm.Model]) -> OrderedModel:
    found = ordered_model(compiled_of(build))
    assert isinstance(found, OrderedModel)
    return found


def log_density(compiled: CompiledModel, position: np.ndarray) -> np.ndarray:
    return TargetDensity(GeometricPath(compiled.log_terms), len(position)).log_density(position)


class TestWhatIsExchangeable:
    @pytest.mark.parametrize(
        ("build", "expected"),
        [
            (mixture, {("weight", 0), ("place", 0)}),
            (full_mixture, {("weight", 0), ("place", 0), ("scale", 0)}),
            (allocated, {("weight", 0), ("rate", 0)}),
            (layer, {("into", 1), ("out", 0)}),
            (hidden_chain, {("turn", 0), ("turn", 1), ("place", 0)}),
            (chain_of_rates, {("turn", 0), ("turn", 1), ("rate", 0)}),
            (only_a_matrix, set()),
            (regression, set()),
            (unequal_prior, set()),
            (each_alone, set()),
            (only_simplices, set()),
            (partial(mixture, components=2), set()),
        ],
    )
    def test_axes(self, build: Callable[[], pm.Model], expected: set[tuple[str, int]]) -> None:
        compiled = compiled_of(build)
        assert {(a.variable.name, a.axis) for a in find_exchangeable(compiled)} == expected
        assert (ordered_model(compiled) is not None) == bool(expected)
        assert not compiled.fallbacks

    def test_a_variable_without_bounds_orders_them(self) -> None:
        first = ordered(full_mixture)._axes[0]
        assert first.variable.name == "place"
        assert "The 4 components of 'place', 'weight', 'scale'" in ordered(full_mixture).notes[-1]

    def test_not_twice(self) -> None:
        assert ordered_model(ordered(mixture)) is None

    def test_an_error_is_noted(self, monkeypatch) -> None:
        def fail(*_):
            raise ValueError("no graph")

        monkeypatch.setattr(exchangeable, "find_exchangeable", fail)
        compiled = sum_out(pma.compile_model(mixture()))
        assert ordered_model(compiled) is None
        assert "Exchangeable components keep all of their orders: ValueError: no graph." in (
            compiled.fallbacks
        )


class TestPermutations:
    @pytest.mark.parametrize("build", [mixture, full_mixture, layer, hidden_chain])
    def test_are_those_of_the_values(self, build: Callable[[], pm.Model]) -> None:
        compiled = compiled_of(build)
        x = compiled.sample_prior(np.random.SeedSequence(1), 6)
        values = compiled.constrain(x)
        order = np.random.default_rng(2)
        for axis in find_exchangeable(compiled):
            name, count = axis.variable.name, axis.components
            perm = order.permuted(np.tile(np.arange(count), (len(x), 1)), axis=1)
            after = compiled.constrain(axis.permute(x, perm))
            wanted = [v.take(p, axis=axis.axis) for v, p in zip(values[name], perm, strict=True)]
            np.testing.assert_allclose(after[name], wanted, rtol=1e-12)
            others = set(values) - {name}
            assert all(np.array_equal(after[other], values[other]) for other in others)

    def test_places_of_the_entries(self) -> None:
        compiled = compiled_of(layer)
        into = next(v for v in compiled.variables if v.name == "into")
        assert Axis(into, 1, False).first.tolist() == [into.start + k for k in range(3)]
        assert Axis(into, 0, False).first.tolist() == [into.start, into.start + 3]


class TestDensity:
    @pytest.mark.parametrize(
        "build", [mixture, full_mixture, allocated, layer, hidden_chain, chain_of_rates]
    )
    def test_is_that_of_all_orders_together(self, build: Callable[[], pm.Model]) -> None:
        found, compiled = ordered(build), compiled_of(build)
        y = found.sample_prior(np.random.SeedSequence(3), 8)
        own = found._axes[0].first
        x = y.copy()
        for k in range(1, len(own)):
            x[:, own[k]] = x[:, own[k - 1]] + np.exp(y[:, own[k]])
        volume = y[:, own[1:]].sum(axis=1) + lgamma(len(own) + 1)
        np.testing.assert_allclose(
            log_density(found, y), log_density(compiled, x) + volume, rtol=1e-12
        )

    def test_prior_has_the_mass_one_and_its_draws_have_its_density(self, monkeypatch) -> None:
        """Two places: y_1 is the smaller of two normal draws, y_2 the log of their distance."""
        monkeypatch.setattr(exchangeable, "_FEWEST", 2)
        two = ordered(lambda: mixture(components=2))
        y = two.sample_prior(np.random.SeedSequence(4), 20_000)
        smaller = stats.norm(0, PRIOR_SD)
        low = y[:, 1]
        assert stats.kstest(low, lambda t: 1 - smaller.sf(t) ** 2).pvalue > 1e-3
        distance = stats.halfnorm(scale=np.sqrt(2) * PRIOR_SD)
        assert stats.kstest(np.exp(y[:, 2]), distance.cdf).pvalue > 1e-3

    def test_of_a_copy_in_another_process(self) -> None:
        found = ordered(full_mixture)
        y = found.sample_prior(np.random.SeedSequence(8), 3)
        with jax.enable_x64(True):
            copy = pickle.loads(pickle.dumps(found))
        np.testing.assert_array_equal(log_density(copy, y), log_density(found, y))
        assert all(np.array_equal(v, copy.constrain(y)[k]) for k, v in found.constrain(y).items())


class TestDraws:
    def test_come_back_to_their_positions(self) -> None:
        found = ordered(full_mixture)
        y = found.sample_prior(np.random.SeedSequence(5), 50)
        np.testing.assert_allclose(found.unconstrain(found.constrain(y)), y, atol=1e-10)

    def test_have_their_components_together_in_random_order(self) -> None:
        found = ordered(full_mixture)
        y = found.sample_prior(np.random.SeedSequence(6), 3000)
        values = found.constrain(y)
        by_place = np.argsort(values["place"], axis=1)
        x = found._full.sample_prior(np.random.SeedSequence(6), 3000)
        prior = found._full.constrain(x)
        order = np.argsort(prior["place"], axis=1)
        for name in ("place", "weight", "scale"):
            sorted_ = np.take_along_axis(values[name], by_place, axis=1)
            wanted = np.take_along_axis(prior[name], order, axis=1)
            np.testing.assert_allclose(sorted_, wanted, rtol=1e-10)
        first = np.bincount(by_place[:, 0], minlength=4)
        assert stats.chisquare(first).pvalue > 1e-3
        same = found.constrain(y)
        assert all(np.array_equal(same[name], values[name]) for name in values)

    def test_observations_have_their_likelihood(self) -> None:
        found, compiled = ordered(full_mixture), compiled_of(full_mixture)
        y = found.sample_prior(np.random.SeedSequence(7), 5)
        wanted = compiled.pointwise_log_likelihood(compiled.unconstrain(found.constrain(y)))
        np.testing.assert_allclose(found.pointwise_log_likelihood(y)["y"], wanted["y"], rtol=1e-9)


def flat_at_the_prior() -> pm.Model:
    """Return a model with a likelihood that tells components apart only where `a` is far out."""
    with pm.Model() as model:
        a, b = pm.Normal("a", shape=3), pm.HalfNormal("b", shape=3)
        pm.Normal("y", pm.math.dot(a, b), 1.0, observed=[1.0, 2.0])
        pm.Potential("far", pt.where(a[0] > 5, a[0], 0.0))
    return model


def all_flat() -> pm.Model:
    with pm.Model() as model:
        a, b = pm.Normal("a", shape=3), pm.HalfNormal("b", shape=3)
        pm.Potential("far", pt.where(a[0] > 5, a[0] * b[0], 0.0))
    return model


class TestTwinThatIsNotSymmetric:
    def test_a_flat_likelihood_shows_nothing(self) -> None:
        assert find_exchangeable(compiled_of(all_flat)) == ()

    def test_is_doubted_where_it_shows(self) -> None:
        """Draws of the prior did not show it, draws of the posterior do."""
        found = ordered(flat_at_the_prior)
        y = found.sample_prior(np.random.SeedSequence(1), 200)
        assert found.doubt_density(y) == ""
        y[:, found._axes[0].first[2]] += 3.0  # the largest is beyond five, its place is random
        assert "'a', 'b' are exchangeable at draws of the prior, and not" in found.doubt_density(y)
        assert (
            ordered(full_mixture).doubt_density(
                ordered(full_mixture).sample_prior(np.random.SeedSequence(2), 200)
            )
            == ""
        )

    def test_verdict(self, monkeypatch) -> None:
        """Components of unequal data that are taken for exchangeable."""
        with pm.Model() as model:
            place, scale = pm.Normal("place", 0, 2, shape=3), pm.HalfNormal("scale", shape=3)
            pm.Normal("y", place, scale + 0.1, observed=[-1.0, 0.0, 2.0])
        axes = tuple(Axis(v, 0, False) for v in pma.compile_model(model).variables)
        monkeypatch.setattr(exchangeable, "find_exchangeable", lambda compiled: axes)
        found = pma.log_evidence(pma.sample_ais(model, random_seed=1, progressbar=False))
        assert found.verdict.status == "do not trust"
        assert "take reference='prior'" in str(found.verdict)


class TestEvidence:
    def test_of_a_mixture(self) -> None:
        idata = pma.sample_ais(mixture(), random_seed=1, progressbar=False)
        found = pma.log_evidence(idata)
        assert found.verdict.trusted
        assert abs(found.log_evidence - exact_log_evidence()) < 4 * found.mcse
        assert found.mcse < 0.03
        place = idata["posterior"]["place"].to_numpy().reshape(-1, PLACES)
        # All six orders, as often as one another.
        orders, count = np.unique(place.argsort(axis=1), axis=0, return_counts=True)
        assert len(orders) == 6
        assert stats.chisquare(count).pvalue > 1e-6

    def test_twin_of_one_order_alone(self, monkeypatch) -> None:
        """Without its factor K! the evidence is that of one order."""
        monkeypatch.setattr(exchangeable, "lgamma", lambda _: 0.0)
        found = pma.log_evidence(pma.sample_ais(mixture(), random_seed=1, progressbar=False))
        assert abs(found.log_evidence + np.log(6) - exact_log_evidence()) < 5 * found.mcse

    def test_of_allocations_that_are_summed_out(self) -> None:
        """Their draws belong to the components of the same draw."""
        model = allocated()
        idata = pma.sample_ais(model, random_seed=1, progressbar=False)
        assert pma.log_evidence(idata).verdict.trusted
        assert "in random order" in idata["evidence"].attrs["notes"]
        posterior = idata["posterior"]
        rate, z = (posterior[name].to_numpy() for name in ("rate", "z"))
        own = np.take_along_axis(rate, z.astype(int), axis=2)
        mean = own.reshape(-1, 5).mean(axis=0)
        assert mean[0] < mean[4] < mean[2] < mean[3]
        assert abs(z.mean() - 1) < 0.05
