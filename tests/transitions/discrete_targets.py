"""A discrete target with zero likelihoods and NaN, for Gibbs sweeps and random walks."""

import jax
import jax.numpy as jnp
import numpy as np

import pymc_anneal as pma

from pymc_anneal.base.contracts import KernelState, LogTerms, StepInfo, Transition
from tests.cases import compiled_take, start


def ending_terms(x: jax.Array) -> LogTerms:
    """``x_0`` in {0, 1, 2}: zero likelihood at 1, and NaN at 2 if ``x_1`` is 1."""
    inside = (x[0] >= 0) & (x[0] <= 2) & (x[1] >= 0) & (x[1] <= 1)
    bad = jnp.where((x[0] == 2) & (x[1] == 1), jnp.nan, 0.0)
    log_likelihood = jnp.where(x[0] == 1, -jnp.inf, bad)
    # Outside the prior's support the likelihood may have any value.
    log_likelihood = jnp.where(inside, log_likelihood, jnp.nan)
    return LogTerms(jnp.where(inside, -jnp.log(6.0), -jnp.inf), log_likelihood)


def move_ending(kernel: Transition) -> tuple[KernelState, StepInfo]:
    """Move 400 particles from ``x_0 = 0``; in the second half of them ``x_1`` is 1."""
    path = pma.GeometricPath(ending_terms)
    position = np.zeros((400, 2))
    position[200:, 1] = 1.0
    state = start(path, kernel, jax.random.key(0), position)
    return compiled_take(kernel, jax.random.key(1), state, path, jnp.asarray(1.0))


def check_ending(new: KernelState, info: StepInfo) -> None:
    """The value of zero likelihood is never taken, and NaN is reported with its position."""
    assert set(np.unique(new.position[:200, 0])) == {0.0, 2.0}
    assert not info.nan[:200].any()
    assert info.nan[200:].any()
    np.testing.assert_array_equal(
        info.nan_position[info.nan > 0], [[2.0, 1.0]] * int((info.nan > 0).sum())
    )
