"""Bridge sampling by a function: the bits of the call by model, exact values, errors."""

import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.evidence.given_density import checked_draws, given_density, stand_in
from pymc_anneal.results.container import dataset

RNG = np.random.default_rng(4)
DRAWS = RNG.normal([1.0, -2.0], [1.0, 0.5], size=(4, 250, 2))
NUMBERS = ("log_evidence", "mcse", "interval", "ess", "pareto_k")


def log_density(x):
    """Two normal densities times e^3."""
    z = (x - np.array([1.0, -2.0])) / np.array([1.0, 0.5])
    return 3.0 - 0.5 * (z**2).sum() - np.log(0.5 * 2 * np.pi)


def in_numpy(x) -> float:
    """The same; JAX cannot trace it."""
    return float(log_density(np.array(x, dtype=float)))


@pytest.fixture(scope="module")
def by_model():
    with pm.Model() as model:
        a = pm.Normal("a", 0.0, 1.0)
        b = pm.HalfNormal("b", 1.0)
        pm.Normal("y", a, b, observed=[0.3, 1.2, -0.4])
    compiled = pma.compile_model(model)
    root = np.array([[0.45, 0.0], [0.1, 0.3]])
    x = np.array([0.25, -0.2]) + RNG.normal(size=(4, 300, 2)) @ root.T
    values = compiled.constrain(x.reshape(-1, 2))
    draws = {name: values[name].reshape(4, 300) for name in ("a", "b")}
    return compiled, container({"posterior": dataset(draws, ("chain", "draw"))})


@pytest.mark.parametrize("method", ["normal", pytest.param("warp3", marks=pytest.mark.slow)])
def test_same_bits_as_by_model(by_model, method: str) -> None:
    compiled, idata = by_model
    values = {k: v.to_numpy() for k, v in idata["posterior"].data_vars.items()}
    flat = compiled.unconstrain({k: v.reshape(-1) for k, v in values.items()})
    same = {"method": method, "random_seed": 2, "warnings": False}

    def function(x):
        terms = compiled.log_terms(x)
        return terms.log_prior + terms.log_likelihood

    expected = pma.bridge_evidence(idata, model=compiled, **same)
    found = pma.bridge_evidence(flat.reshape(4, -1, 2), log_density=function, **same)
    assert [getattr(found, n) for n in NUMBERS] == [getattr(expected, n) for n in NUMBERS]
    other = pma.bridge_evidence(
        flat.reshape(4, -1, 2), log_density=lambda x: function(x) + 1e-12, **same
    )
    assert other.log_evidence != expected.log_evidence


@pytest.mark.parametrize("function", [log_density, pytest.param(in_numpy, marks=pytest.mark.slow)])
def test_exact_value(function) -> None:
    found = pma.bridge_evidence(DRAWS, log_density=function, random_seed=1)
    assert found.log_evidence == pytest.approx(3.0, abs=4 * found.mcse)
    assert found.mcse < 0.02
    assert found.verdict.trusted
    assert ("modes that the draws have missed were not looked for" in found.notes) == (
        function is in_numpy
    )


def test_a_mode_that_the_draws_missed_is_found() -> None:
    def two(x):
        far = jnp.where(jnp.arange(2) == 0, 6.0, 0.0)
        return jnp.logaddexp(log_density(x), log_density(x - far))

    found = pma.bridge_evidence(DRAWS, log_density=two, random_seed=1, warnings=False)
    assert not found.verdict.trusted
    assert "the chains missed it" in str(found.verdict)


def test_the_stand_in_is_the_given_density() -> None:
    compiled = stand_in(log_density, DRAWS)
    x = DRAWS[0, :5]
    terms = [compiled.log_terms(row) for row in x]
    total = [float(t.log_prior + t.log_likelihood) for t in terms]
    np.testing.assert_allclose(total, [in_numpy(row) for row in x], rtol=1e-12)
    np.testing.assert_allclose(given_density(in_numpy, 2)(x), given_density(log_density, 2)(x))


def test_without_derivatives_no_mode_is_looked_for() -> None:
    assert stand_in(log_density, DRAWS).notes == ()
    (note,) = stand_in(in_numpy, DRAWS).notes
    assert "modes that the draws have missed were not looked for" in note


@pytest.mark.parametrize(
    ("draws", "function", "error", "message"),
    [
        (DRAWS[0, 0], log_density, ValueError, r"shape \(chains, draws, d\), found \(2,\)"),
        ("draws", log_density, TypeError, "found a str"),
        (np.where(DRAWS > 3, np.nan, DRAWS), log_density, ValueError, "not finite"),
        (DRAWS[:, :5], log_density, ValueError, "half of the draws fit the proposal"),
        (DRAWS, lambda x: np.nan * in_numpy(x), ValueError, "`log_density` is nan at"),
        (DRAWS, lambda x: -jnp.inf, ValueError, "density of zero"),
        (DRAWS, lambda x: np.log(np.asarray(x)), ValueError, "expected a number"),
        (
            DRAWS[:, :, [0, 0]],
            log_density,
            ValueError,
            "covariance of the posterior draws",
        ),
    ],
)
def test_errors(draws, function, error, message: str) -> None:
    with pytest.raises(error, match=message), np.errstate(invalid="ignore"):
        pma.bridge_evidence(draws, log_density=function)


def test_a_model_and_a_density() -> None:
    with pytest.raises(TypeError, match="`model` or `log_density`, not both"):
        pma.bridge_evidence(DRAWS, model=pm.Model(), log_density=log_density)


def test_one_chain_may_leave_out_its_axis() -> None:
    assert checked_draws(DRAWS[0]).shape == (1, 250, 2)
