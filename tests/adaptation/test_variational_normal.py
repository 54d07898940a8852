"""Variational normal approximations: exact for normal densities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pymc_anneal.adaptation.variational_normal import fit_normal
from pymc_anneal.base.contracts import LogTerms

MEAN = np.array([3.0, -1.0, 0.5])
COVARIANCE = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])


def normal(x: jax.Array) -> LogTerms:
    away = x - MEAN
    return LogTerms(jnp.zeros(()), -0.5 * away @ np.linalg.inv(COVARIANCE) @ away)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
@pytest.mark.parametrize("seed", range(3))
def test_a_normal_density_is_found_from_a_few_draws(order: list[int], seed: int) -> None:
    """From elsewhere, and with a spread of their own: draws come with their opposites."""
    rng = np.random.default_rng(seed)
    with jax.enable_x64(True):
        found = fit_normal(normal, 2 + 3 * rng.normal(size=(20, 3)), np.array(order), rng)
    assert found is not None
    np.testing.assert_allclose(found.mean, MEAN[order], atol=2e-3)  # a ridge is added
    np.testing.assert_allclose(found.root, np.tril(found.root))
    np.testing.assert_allclose(
        found.root @ found.root.T, COVARIANCE[np.ix_(order, order)], rtol=1e-2, atol=1e-2
    )


def test_nowhere_finite() -> None:
    def nowhere(x: jax.Array) -> LogTerms:
        return LogTerms(jnp.zeros(()), jnp.log(-1.0 - x @ x))

    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        assert fit_normal(nowhere, rng.normal(size=(20, 3)), np.arange(3), rng) is None
