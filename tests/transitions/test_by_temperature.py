"""Parameters by temperature: interpolation, and the costs and step sizes that follow from them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.transitions.by_temperature import TunedTransition
from tests.cases import BETAS

KERNEL = TunedTransition(
    jnp.asarray(BETAS[1:]),
    pma.HMC(step_size=jnp.array([0.2, 0.8]), n_steps=jnp.array([3, 7]), scale=jnp.ones((2, 4))),
)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize(
    ("beta", "step_size", "n_steps"),
    [(0.0, 0.2, 3), (0.4, 0.2, 3), (0.55, 0.35, 3), (0.7, 0.5, 3), (1.0, 0.8, 7)],
)
def test_interpolation(beta: float, step_size: float, n_steps: int) -> None:
    at = KERNEL.at(jnp.asarray(beta))
    assert float(at.step_size) == pytest.approx(step_size, rel=1e-6)
    assert int(at.n_steps) == n_steps
    assert at.scale.shape == (4,)


def test_cost_and_step_size_are_those_of_the_kernel_at_each_temperature() -> None:
    betas = np.linspace(0, 1, 41)
    kernels = [KERNEL.at(jnp.asarray(b)) for b in betas]
    np.testing.assert_array_equal(KERNEL.cost(betas), [2 * int(k.n_steps) + 1 for k in kernels])
    sizes = [float(k.step_size) for k in kernels]
    np.testing.assert_allclose(KERNEL.step_sizes(betas), sizes, rtol=1e-6)


def test_cost_of_a_composition() -> None:
    # One part costs the same at every temperature, the other does not.
    gibbs, betas = pma.Gibbs([4], [(0, 3)]), np.array([0.0, 0.5, 1.0])
    both = TunedTransition(KERNEL.betas, pma.Composition([gibbs, KERNEL.kernel]))
    np.testing.assert_array_equal(both.cost(betas), 3 + KERNEL.cost(betas))


def test_one_temperature() -> None:
    kernels = pma.HMC(step_size=jnp.array([0.3]), n_steps=jnp.array([2]), scale=jnp.ones(1))
    single = TunedTransition(jnp.array([1.0]), kernels)
    for beta in (0.0, 0.5, 1.0):
        assert float(single.at(jnp.asarray(beta)).step_size) == pytest.approx(0.3, rel=1e-6)


def test_the_reversal_keeps_the_parameters() -> None:
    kernels = pma.GeneralizedHMC(
        step_size=jnp.array([0.3, 0.5]),
        n_steps=jnp.array([2, 4]),
        scale=jnp.ones((2, 1)),
        momentum_persistence=jnp.array([0.8, 0.8]),
    )
    tuned = TunedTransition(KERNEL.betas, kernels)
    at = tuned.reversal().at(jnp.asarray(1.0))
    assert float(at.forward.step_size) == pytest.approx(0.5)
    np.testing.assert_array_equal(tuned.reversal().cost(BETAS), tuned.cost(BETAS))
