"""JAX's gradients are finite wherever the density is, and equal to PyTensor's."""

from collections.abc import Callable

import jax
import numpy as np
import pymc as pm
import pytensor
import pytest

from scipy import special

import pymc_anneal as pma

from pymc_anneal.model.rewrites import log1mexp
from tests.model.likelihoods import MENDED, OTHERS
from tests.model.models import PRIORS, build

# Draws at which gradients have to be finite, and draws at which they are compared.
N, COMPARED = 200, 12


def pytensor_gradient(compiled: pma.CompiledModel) -> Callable[[np.ndarray], np.ndarray]:
    model = compiled.model
    outputs = pytensor.grad(model.logp(), model.value_vars)
    function = pytensor.function(model.value_vars, outputs, mode="FAST_COMPILE")
    return lambda x: np.concatenate([np.ravel(g) for g in function(*compiled.split(x))])


def assert_finite_and_equal(model: pm.Model) -> None:
    compiled = pma.compile_model(model)
    draws = compiled.sample_prior(np.random.SeedSequence(41), N)
    with jax.enable_x64(True):
        function = jax.value_and_grad(lambda x: compiled.log_terms(x).log_posterior)
        value, gradient = map(np.asarray, jax.jit(jax.vmap(function))(draws))
    proper = np.isfinite(value)
    assert proper.mean() > 0.5
    assert not np.isnan(gradient[proper]).any()
    expected = pytensor_gradient(compiled)
    for i in np.flatnonzero(proper)[:COMPARED]:
        slope = expected(draws[i])
        if not np.isnan(slope).any():  # in PyTensor, far in the tail of a skew normal
            np.testing.assert_allclose(gradient[i], slope, rtol=1e-5, atol=1e-6)


# Relatives of others, whose density or truncation they share.
SLOW = ("ordered_probit", "truncated_normal", "truncated_below", "censored_weibull")


@pytest.mark.quick_cases("logarithm_of_a_half", "power_of_a_half", "truncated")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in MENDED]
)
def test_branches_that_are_not_taken_do_no_harm(name: str) -> None:
    with pm.Model() as model:
        MENDED[name]()
    assert_finite_and_equal(model)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Scan return signature will change:DeprecationWarning")
@pytest.mark.parametrize("name", OTHERS)
def test_likelihoods(name: str) -> None:
    with pm.Model() as model:
        OTHERS[name]()
    assert_finite_and_equal(model)


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIORS)
def test_priors(name: str) -> None:
    assert_finite_and_equal(build(name))


def test_log1mexp() -> None:
    x = -np.geomspace(1e-300, 800, 50)
    with jax.enable_x64(True):
        value, slope = jax.vmap(jax.value_and_grad(log1mexp))(x)
    np.testing.assert_allclose(value, np.log(-np.expm1(x)), rtol=1e-12, atol=1e-16)
    np.testing.assert_allclose(slope, -(special.exprel(-x) ** -1) / -x, rtol=1e-12)
