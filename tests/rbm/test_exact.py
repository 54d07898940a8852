"""Exact sums over a small layer against sums over the states of both, in NumPy."""

import jax
import numpy as np
import pytest

from scipy.special import expit

from pymc_anneal import rbm
from pymc_anneal.rbm import exact, state_sums
from pymc_anneal.rbm.exact import (
    MAX_UNITS,
    exact_moments,
    log_partition_function,
    sample_exact,
)
from pymc_anneal.rbm.model import RBM
from pymc_anneal.rbm.state_sums import Moments
from tests.rbm_cases import (
    enumerate_hidden_states,
    enumerate_states,
    flat,
    frequencies_agree,
    index_of,
    mean_agrees,
    parameters,
    random_rbm,
    states,
)

# Either layer may be the smaller; more than eight units are split into high and low bits.
SHAPES = [(4, 3), (3, 4), (12, 11), (11, 12)]


def transposed(model: RBM) -> RBM:
    """Return the RBM with its layers exchanged."""
    return RBM(model.hidden_bias, model.visible_bias, model.weights.T)


@pytest.fixture(scope="module", params=SHAPES, ids=str)
def case(request):
    model = random_rbm(*request.param, seed=sum(request.param), scale=0.6)
    return model, enumerate_states(model)


def test_the_two_references_agree() -> None:
    model = random_rbm(6, 4)
    log_z, found = enumerate_hidden_states(model)
    both = enumerate_states(model)
    assert log_z == pytest.approx(both.log_z, rel=1e-13)
    np.testing.assert_allclose(flat(found), flat(both.moments), rtol=1e-12)


@pytest.mark.parametrize("wide", ["hidden", "visible"])
def test_the_smaller_layer_is_summed_whichever_it_is(wide: str) -> None:
    """The other one has 40 units: its states cannot be listed."""
    model = random_rbm(4, 40, seed=1, scale=0.3)
    visible = states(4)
    field = model.hidden_bias + visible @ model.weights
    terms = visible @ model.visible_bias + np.logaddexp(0, field).sum(axis=1)
    expected = float(np.logaddexp.reduce(terms))
    found = log_partition_function(model if wide == "hidden" else transposed(model))
    assert found == pytest.approx(expected, rel=1e-13)


class TestAgainstEnumeration:
    def test_log_partition_function(self, case) -> None:
        model, expected = case
        found = log_partition_function(model)
        assert isinstance(found, float)
        assert found == pytest.approx(expected.log_z, rel=1e-13)

    def test_moments(self, case) -> None:
        model, expected = case
        found = exact_moments(model)
        assert isinstance(found, Moments)
        assert [m.shape for m in found] == [m.shape for m in expected.moments]
        np.testing.assert_allclose(flat(found), flat(expected.moments), rtol=1e-10, atol=1e-13)

    def test_samples(self, case) -> None:
        model, expected = case
        draws = sample_exact(model, 20_000, random_seed=1)
        assert draws.shape == (20_000, model.n_visible)
        assert frequencies_agree(draws, expected.probability)

    def test_wrong_twins_are_found(self) -> None:
        model = random_rbm(4, 3, seed=7, scale=0.6)
        wrong, expected = (
            RBM(*jax.tree.leaves(model)[:2], model.weights + 0.1),
            enumerate_states(model),
        )
        assert log_partition_function(wrong) != pytest.approx(expected.log_z, rel=1e-3)
        assert not np.allclose(flat(exact_moments(wrong)), flat(expected.moments), rtol=1e-3)
        draws = sample_exact(wrong, 20_000, random_seed=1)
        assert not frequencies_agree(draws, expected.probability)

    def test_bits_of_the_wrong_order_are_found(self, monkeypatch) -> None:
        model, right = random_rbm(12, 11, seed=23, scale=0.6), exact.bits_of
        monkeypatch.setattr(exact, "bits_of", lambda *a: right(*a)[..., ::-1])
        draws = sample_exact(model, 19_999, random_seed=1)  # compiled afresh
        assert not frequencies_agree(draws, enumerate_states(model).probability)


class TestWaysOfSumming:
    """All give the same sums: by products or by exponentials, on any number of processors."""

    model = random_rbm(13, 12, seed=6, scale=0.6)

    def test_by_exponentials(self, monkeypatch) -> None:
        log_z, moments = exact.log_z_and_moments(self.model)
        monkeypatch.setattr(exact, "decay_for", lambda model: state_sums._decay)
        slower = exact.log_z_and_moments(self.model)
        assert slower[0] == pytest.approx(log_z, rel=1e-14)
        np.testing.assert_allclose(flat(slower[1]), flat(moments), rtol=1e-11)

    def test_products_fail_where_they_are_not_used(self, monkeypatch) -> None:
        large = random_rbm(5, 9, seed=3, scale=300.0)
        right = log_partition_function(large)
        monkeypatch.setattr(exact, "decay_for", lambda model: state_sums._decay_by_products)
        with np.errstate(invalid="ignore"):
            assert log_partition_function(large) != pytest.approx(right, rel=1e-12)

    def test_any_number_of_processors(self, monkeypatch) -> None:
        log_z, moments = exact.log_z_and_moments(self.model)
        monkeypatch.setattr(state_sums, "count_processors", lambda: 7)
        again = exact.log_z_and_moments(self.model)
        assert again[0] == log_z
        np.testing.assert_array_equal(flat(again[1]), flat(moments))


class TestHardCases:
    @pytest.mark.parametrize(
        ("shape", "scale"), [((5, 4), 30.0), ((5, 4), 300.0), ((4, 5), 300.0), ((12, 11), 300.0)]
    )
    def test_large_weights(self, shape: tuple[int, int], scale: float) -> None:
        # A naive product of 1 + e^x overflows.
        model = random_rbm(*shape, seed=3, scale=scale)
        expected = enumerate_states(model)
        assert expected.log_z > 50
        assert log_partition_function(model) == pytest.approx(expected.log_z, rel=1e-12)
        np.testing.assert_allclose(flat(exact_moments(model)), flat(expected.moments), atol=1e-9)

    def test_a_naive_product_would_overflow(self) -> None:
        model = random_rbm(5, 4, seed=3, scale=300.0)
        field = model.visible_bias + states(4) @ model.weights.T
        with np.errstate(over="ignore"):
            assert np.isinf(np.log(np.prod(1 + np.exp(field), axis=1))).any()

    @pytest.mark.parametrize("n_visible", [512, 513, 1025])
    def test_long_products(self, n_visible: int) -> None:
        # Fields near zero, where every factor is close to 2 and 2^1025 is infinite.
        model = random_rbm(n_visible, 3, seed=4, scale=0.05)
        log_z, expected = enumerate_hidden_states(model)
        assert log_partition_function(model) == pytest.approx(log_z, rel=1e-13)
        assert log_partition_function(transposed(model)) == pytest.approx(log_z, rel=1e-13)
        np.testing.assert_allclose(flat(exact_moments(model)), flat(expected), rtol=1e-10)

    def test_samples_of_many_units(self) -> None:
        # Symmetric under the exchange of 0 and 1, so that all hidden states matter.
        weights = np.random.default_rng(5).normal(0.0, 0.1, (600, 3))
        model = RBM(-weights.sum(axis=1) / 2, -weights.sum(axis=0) / 2, weights)
        log_z, expected = enumerate_hidden_states(model)
        h = states(3)
        field = model.visible_bias + h @ weights.T
        share = np.exp(h @ model.hidden_bias + np.logaddexp(0, field).sum(axis=1) - log_z)
        assert share.min() > 0.01
        draws = sample_exact(model, 4000, random_seed=1)
        assert mean_agrees(draws, expected.visible, errors=5.5)
        contrast = weights @ np.array([1.0, -1.0, 0.5])
        mean, within = expit(field) @ contrast, (expit(field) * expit(-field)) @ contrast**2
        square = (draws @ contrast - share @ mean) ** 2
        assert mean_agrees(square, share @ (within + (mean - share @ mean) ** 2))
        assert not mean_agrees(square, share @ within)
        hidden = sample_exact(transposed(model), 20_000, random_seed=2)
        assert frequencies_agree(hidden, share)

    def test_no_weights(self) -> None:
        assert log_partition_function(rbm.uniform_reference(12, 11)) == pytest.approx(
            23 * np.log(2), rel=1e-13
        )
        found = exact_moments(rbm.uniform_reference(12, 11))
        np.testing.assert_allclose(found.visible, 0.5)
        np.testing.assert_allclose(found.products, 0.25)


class TestSinglePrecision:
    """Parameters in float32 are taken as exact; the sums are in double precision."""

    def test_sums(self) -> None:
        single = random_rbm(5, 4, dtype=np.float32)
        expected = enumerate_states(single)
        assert log_partition_function(single) == pytest.approx(expected.log_z, rel=1e-13)
        np.testing.assert_allclose(flat(exact_moments(single)), flat(expected.moments), rtol=1e-10)
        assert exact_moments(single).visible.dtype == np.float64

    @pytest.mark.parametrize("shape", [(4, 3), (3, 4)])
    def test_samples(self, shape: tuple[int, int]) -> None:
        single = random_rbm(*shape, dtype=np.float32)
        draws = sample_exact(single, 20_000, random_seed=1)
        assert frequencies_agree(draws, enumerate_states(single).probability)


class TestGradient:
    """Moments are the derivatives of log Z."""

    def numerical(self, model: RBM, h: float = 1e-5) -> np.ndarray:
        eta, shapes = parameters(model), [(model.n_visible,), (model.n_hidden,), None]
        shapes[2] = (model.n_visible, model.n_hidden)

        def log_z(vector: np.ndarray) -> float:
            parts = np.split(vector, np.cumsum([int(np.prod(s)) for s in shapes])[:-1])
            return log_partition_function(
                RBM(*(p.reshape(s) for p, s in zip(parts, shapes, strict=True)))
            )

        steps = h * np.eye(len(eta))
        return np.array([(log_z(eta + s) - log_z(eta - s)) / (2 * h) for s in steps])

    @pytest.mark.parametrize("shape", [(4, 3), (3, 4)])
    def test_finite_differences(self, shape: tuple[int, int]) -> None:
        model = random_rbm(*shape)
        gradient = self.numerical(model)
        np.testing.assert_allclose(flat(exact_moments(model)), gradient, atol=1e-8)
        assert np.abs(flat(exact_moments(transposed(model))) - gradient).max() > 1e-2


class TestSeeds:
    model = random_rbm(4, 3)

    def draws(self, seed: int | None) -> np.ndarray:
        return sample_exact(self.model, 20_000, random_seed=seed)

    def test_a_seed_is_a_result(self) -> None:
        first, again, other = (self.draws(seed) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()
        sequence = np.random.SeedSequence(1)
        np.testing.assert_array_equal(sample_exact(self.model, 20_000, sequence), first)

    def test_no_seed_is_another_result_each_time(self) -> None:
        assert (self.draws(None) != self.draws(None)).any()

    def test_draws_are_independent(self) -> None:
        number = index_of(self.draws(3))
        assert abs(np.corrcoef(number[1:], number[:-1])[0, 1]) < 5 / np.sqrt(20_000)


@pytest.mark.parametrize(
    "function", [log_partition_function, exact_moments, lambda model: sample_exact(model, 3)]
)
class TestTooManyUnits:
    def test_are_refused(self, function) -> None:
        model = rbm.uniform_reference(MAX_UNITS + 2, MAX_UNITS + 1)
        with pytest.raises(ValueError, match="too many for exact sums") as caught:
            function(model)
        assert f"has {MAX_UNITS + 1} units" in str(caught.value)
        assert f"expected at most {MAX_UNITS}" in str(caught.value)

    def test_in_the_larger_layer_are_not(self, function) -> None:
        function(rbm.uniform_reference(40, 4))


@pytest.mark.parametrize("setting", [True, False])
def test_the_precision_of_the_caller_does_not_matter(setting: bool) -> None:
    model = random_rbm(5, 3)
    with jax.enable_x64(setting):
        assert log_partition_function(model) == pytest.approx(
            enumerate_states(model).log_z, rel=1e-13
        )
        assert jax.config.jax_enable_x64 is setting


@pytest.mark.parametrize("name", rbm.__all__)
def test_public_names_are_what_the_documentation_says(name: str) -> None:
    # A function and the module that another one lives in must not share a name.
    assert callable(getattr(rbm, name))
    assert getattr(rbm, name).__doc__
