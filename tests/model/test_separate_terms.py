"""Terms of log densities and the coordinates on which they depend."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.model import separate_terms as module
from pymc_anneal.model.checked_entries import checked_entry_by_entry
from pymc_anneal.model.dependence import dependences, flat_program
from pymc_anneal.model.separate_terms import separate_terms


def masks_of(function, d: int = 4) -> np.ndarray:
    with jax.enable_x64(True):
        program = flat_program(function, np.zeros(d))
        (output,) = program.jaxpr.outvars
        mask = dependences(program, range(d))[output]
    return np.zeros((*output.aval.shape, d), bool) if mask is None else mask


def rows(*each: str) -> np.ndarray:
    return np.array([[digit == "1" for digit in row] for row in each])


def test_an_entry_out_of_range_is_impossible() -> None:
    """PyMC makes the whole array -inf, of which this entry is as much in the sum."""
    value, scale = pt.vector("value", shape=(3,)), pt.vector("scale", shape=(3,))
    log_density = pm.logp(pm.Normal.dist(0, scale, shape=3), value)
    inputs, (found,) = checked_entry_by_entry([value, scale], [log_density])
    normal, places = stats.norm(0, [1, 1, 2]), np.array([0.5, 1.0, 2.0])
    at = pytensor.function(inputs, found)(places, np.array([1.0, -1.0, 2.0]))
    expected = np.where([True, False, True], normal.logpdf(places), -np.inf)
    np.testing.assert_allclose(at, expected, rtol=1e-12)


MATRIX = np.array([[1.0, 0.0, 2.0, 1.0], [0.0, 3.0, 0.0, 0.0]])


class TestDependence:
    @pytest.mark.parametrize(
        ("function", "expected"),
        [
            (lambda x: jnp.exp(x) + 1, rows("1000", "0100", "0010", "0001")),
            (lambda x: x[1:] * x[:-1], rows("1100", "0110", "0011")),
            (lambda x: x[np.array([3, 0, 3])], rows("0001", "1000", "0001")),
            (lambda x: x.reshape(2, 2).sum(axis=1), rows("1100", "0011")),
            (lambda x: x.reshape(2, 2).T.ravel()[::-1], rows("0001", "0100", "0010", "1000")),
            (lambda x: jnp.where(x[0] > 0, x[1:3], 0.0), rows("1100", "1010")),
            (lambda x: jnp.pad(x[2:], (1, 0)), rows("0000", "0010", "0001")),
            (lambda x: jnp.stack([x[:2], x[2:]])[1], rows("0010", "0001")),
            (lambda x: MATRIX @ x, rows("1111", "1111")),
            (lambda x: x.reshape(2, 2) @ np.ones(2), rows("1100", "0011")),
            (lambda x: jnp.outer(x[:2], x[2:]).ravel(), rows("1010", "1001", "0110", "0101")),
            (lambda x: jnp.arange(5.0)[x[:2].astype(int)], rows("1000", "0100")),
            (lambda x: jnp.asarray(MATRIX)[x[:2].astype(int)].sum(axis=1), rows("1000", "0100")),
            (lambda x: x[:2][x[2:].astype(int)], rows("1110", "1101")),
            (
                lambda x: jax.vmap(lambda row, i: row[i])(x.reshape(2, 2), x[2:].astype(int)),
                rows("1110", "0011"),
            ),
            (lambda x: jnp.cumsum(x)[:1], rows("1111")),  # no rule: on everything
            (lambda x: jax.nn.logsumexp(x.reshape(2, 2), axis=0), rows("1010", "0101")),
            (lambda x: jnp.sort(x[:2]), rows("1100", "1100")),
            (lambda x: x[0] * x[1:][x[3].astype(int)], rows("1111")[0]),
        ],
    )
    def test_rules(self, function, expected: np.ndarray) -> None:
        np.testing.assert_array_equal(masks_of(function), expected)


def checkerboard() -> pm.Model:
    with pm.Model() as model:
        up = pm.Bernoulli("up", 0.5, shape=(3, 3))
        s = 2 * up - 1
        pm.Potential("e", 0.4 * ((s[1:] * s[:-1]).sum() + (s[:, 1:] * s[:, :-1]).sum()) + s.sum())
    return model


def occupancy() -> pm.Model:
    with pm.Model(coords={"animal": range(7)}) as model:
        share, p = pm.Beta("share", 1, 1), pm.Beta("p", 1, 1)
        z = pm.Bernoulli("z", share, dims="animal")
        pm.Binomial("y", 5, p * z, observed=[1, 0, 2, 0, 0, 1, 0], dims="animal")
    return model


def chain(length: int = 6) -> pm.Model:
    with pm.Model() as model:
        stay = pm.Beta("stay", 8, 2)
        p = pt.stack([pt.stack([stay, 1 - stay]), pt.stack([1 - stay, stay])])
        states = [pm.Categorical("s0", p=[0.5, 0.5])]
        for t in range(1, length):
            states.append(pm.Categorical(f"s{t}", p=p[states[-1]]))
        table = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
        pm.Categorical("y", p=pt.as_tensor(table)[pt.stack(states)], observed=np.arange(length) % 3)
    return model


def sites() -> pm.Model:
    with pm.Model() as model:
        mean, p = pm.Gamma("mean", 2, 0.1), pm.Beta("p", 1, 1)
        n = pm.Poisson("n", mean, shape=6)
        pm.Binomial("y", n[:, None], p, observed=np.arange(12).reshape(6, 2) % 3)
    return model


class TestClasses:
    @pytest.mark.quick_cases("checkerboard-colours0", "occupancy-colours1")
    @pytest.mark.parametrize(
        ("build", "colours"),
        [
            (checkerboard, [0, 1, 0, 1, 0, 1, 0, 1, 0]),
            (occupancy, [0] * 7),
            (chain, [0, 1, 0, 1, 0, 1]),
            (sites, [0] * 6),
        ],
    )
    def test_of_models(self, build, colours: list[int]) -> None:
        found = separate_terms(pma.compile_model(build()))
        assert found is not None
        np.testing.assert_array_equal(found.colour, colours)

    def test_of_a_model_in_a_long_loop(self) -> None:
        found = separate_terms(pma.compile_model(chain(10)))
        assert found is not None
        np.testing.assert_array_equal(found.colour, [0, 1] * 5)

    def test_a_regression_has_none(self) -> None:
        with pm.Model() as model:
            on = pm.Bernoulli("on", 0.5, shape=6)
            pm.Normal("y", pt.dot(np.eye(8)[:, :6] + 1, on), 1.0, observed=np.zeros(8))
        assert separate_terms(pma.compile_model(model)) is None

    def test_few_coordinates_are_not_analysed(self, monkeypatch) -> None:
        monkeypatch.setattr(module, "_analyse", lambda *args: pytest.fail("it was"))
        with pm.Model() as model:
            pm.Bernoulli("on", 0.5, shape=5)
        assert separate_terms(pma.compile_model(model)) is None

    def test_wrong_classes_are_seen(self, monkeypatch) -> None:
        def wrong(depends: np.ndarray) -> np.ndarray:
            return np.arange(depends.shape[1]) // 5

        monkeypatch.setattr(module, "colour_apart", wrong)
        assert separate_terms(pma.compile_model(checkerboard())) is None

    def test_wrong_terms_are_seen(self, monkeypatch) -> None:
        right = module._raw_terms

        def wrong(graph, variables, x):
            log_prior, log_likelihood = right(graph, variables, x)
            return log_prior, 1.01 * log_likelihood

        monkeypatch.setattr(module, "_raw_terms", wrong)
        assert separate_terms(pma.compile_model(checkerboard())) is None


def test_a_program_that_cannot_be_read_is_said(monkeypatch) -> None:
    def fail(*args):
        raise KeyError("odd primitive")

    monkeypatch.setattr(module, "dependences", fail)
    compiled = pma.compile_model(checkerboard())
    assert separate_terms(compiled) is None
    assert compiled.fallbacks == [
        "Discrete variables are moved one after the other: KeyError: 'odd primitive'."
    ]


def test_terms_are_found_once() -> None:
    compiled = pma.compile_model(sites())
    assert separate_terms(compiled) is separate_terms(compiled)


def test_terms_add_up_and_their_pickle_is_the_same_function() -> None:
    import cloudpickle

    compiled = pma.compile_model(occupancy())
    found = separate_terms(compiled)
    copies = [cloudpickle.loads(cloudpickle.dumps(found)) for _ in range(2)]
    assert copies[0] == copies[1]
    with jax.enable_x64(True):
        x = jnp.asarray(compiled.sample_prior(np.random.SeedSequence(3), 4))
        own = jax.jit(jax.vmap(compiled.log_terms))(x)
        for terms in (jax.jit(partial(f.evaluate))(x) for f in (found, copies[0])):
            np.testing.assert_allclose(terms.log_prior.sum(axis=1), own.log_prior)
            np.testing.assert_allclose(terms.log_likelihood.sum(axis=1), own.log_likelihood)
