"""What the Metropolis-Hastings kernels share.

Proposals are made in coordinates ``z`` in which the density is of about unit scale, ``x = S z``.
``S`` is the ``scale`` of a kernel: a scalar, a vector of shape ``(d,)`` (one factor for each
coordinate), or a lower triangular matrix of shape ``(d, d)``.
"""

from dataclasses import replace
from typing import Any, Self

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import KernelState, Path, Scalar, StepInfo

# As in PyMC and Stan: an energy error above this is a divergence of the integrator.
_DIVERGENCE = 1000.0


class Memoryless:
    """What kernels have in common that keep nothing between steps and ignore ``beta``."""

    def init(self, key: jax.Array, position: jax.Array) -> tuple[()]:
        """Return no auxiliary variables."""
        return ()

    def at(self, beta: Scalar) -> Self:
        """Return the kernel itself: its parameters do not depend on ``beta``."""
        return self


class Sweep(Memoryless):
    """What kernels have in common that move one coordinate after the other.

    They are dataclasses with a field ``backward``.
    """

    def reversal(self) -> Self:
        """Return the sweep in the opposite order."""
        kernel: Any = self
        return replace(kernel, backward=not kernel.backward)


def scaled(scale: jax.Array, z: jax.Array) -> jax.Array:
    """Return ``S z`` for every row of ``z``, shape ``(n, d)``."""
    return z @ scale.T if jnp.ndim(scale) == 2 else z * scale


def scaled_transpose(scale: jax.Array, g: jax.Array) -> jax.Array:
    """Return ``S' g`` for every row of ``g``, shape ``(n, d)``: a gradient with respect to z."""
    return g @ scale if jnp.ndim(scale) == 2 else g * scale


def accept_reject(
    key: jax.Array, log_accept: jax.Array, proposal: KernelState, current: KernelState
) -> tuple[KernelState, jax.Array]:
    """Accept or reject.

    Parameters
    ----------
    key
        Randomness.
    log_accept : Array, shape (n,)
        Log acceptance ratio; NaN rejects.
    proposal, current : KernelState
        ``n`` particles.

    Returns
    -------
    KernelState, Array of shape (n,)
        What was selected, and the acceptance probabilities.
    """
    probability = jnp.where(jnp.isnan(log_accept), 0.0, jnp.exp(jnp.minimum(log_accept, 0.0)))
    accepted = jax.random.uniform(key, probability.shape) < probability

    def pick(new, old):
        return jnp.where(accepted.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return jax.tree.map(pick, proposal, current), probability


def nan_without_divergence(
    path: Path, beta: Scalar, proposal: KernelState, energy_gain: jax.Array
) -> jax.Array:
    """Whether a proposal's density is NaN though the proposal did not come from a divergence.

    Parameters
    ----------
    path, beta
        The density.
    proposal
        The proposed state.
    energy_gain : Array, shape (n,)
        Kinetic energy gained on the way, 0 for a random walk.

    Returns
    -------
    Array of bool, shape (n,)
    """
    finite = jnp.isfinite(proposal.position).all(axis=-1) & (energy_gain < _DIVERGENCE)
    return jnp.isnan(path.log_density(proposal.terms, beta)) & finite


def merge_info(total: StepInfo, info: StepInfo, weight: float | jax.Array) -> StepInfo:
    """Add one of several proposals of a step to the step's report."""
    return StepInfo(
        accept_rate=total.accept_rate + weight * info.accept_rate,
        nan=total.nan | info.nan,
        nan_position=jnp.where(info.nan[:, None], info.nan_position, total.nan_position),
    )


def empty_info(position: jax.Array) -> StepInfo:
    """Return the report of no proposal at all."""
    n = position.shape[0]
    return StepInfo(jnp.zeros(n), jnp.zeros(n, dtype=bool), jnp.zeros_like(position))


def repeat(move, key: jax.Array, state: KernelState, n_steps) -> tuple[KernelState, StepInfo]:
    """Apply ``move(key, state) -> (state, info)`` several times."""

    def body(i, carry):
        state, total = carry
        state, info = move(jax.random.fold_in(key, i), state)
        return state, merge_info(total, info, 1 / n_steps)

    return jax.lax.fori_loop(0, n_steps, body, (state, empty_info(state.position)))


def sweep(
    move, key: jax.Array, state: KernelState, n_moves, count: int, backward: bool
) -> tuple[KernelState, StepInfo]:
    """Apply ``move(key, state, i) -> (state, info)`` for ``i`` through ``count`` coordinates.

    Parameters
    ----------
    move
        A move of the i-th coordinate.
    key, state
        Where to begin.
    n_moves
        Number of moves, a multiple of ``count``; it may be traced.
    count
        Number of coordinates.
    backward
        Whether to go through them from the last to the first.

    Returns
    -------
    KernelState, StepInfo
    """

    def body(i, carry):
        state, total = carry
        at = count - 1 - i % count if backward else i % count
        state, info = move(jax.random.fold_in(key, i), state, at)
        return state, merge_info(total, info, 1 / n_moves)

    return jax.lax.fori_loop(0, n_moves, body, (state, empty_info(state.position)))


def with_coordinate(position: jax.Array, coordinate, values: jax.Array) -> jax.Array:
    """Return positions, shape ``(n, d)``, with one coordinate, which may be traced, replaced."""
    return jnp.where(jnp.arange(position.shape[1]) == coordinate, values[:, None], position)


def outside_support(path: Path, terms) -> jax.Array:
    """Whether positions lie outside the reference's support, shape ``(n,)``.

    A discrete proposal steps over its edge; the other terms may be anything there, also NaN.
    """
    return jnp.isneginf(path.log_density(terms, 0.0))


def proposals(rung: int) -> int:
    """Return the number of proposals of a rung: about 1.4 times that of the rung below."""
    return max(rung + 1, round(2 ** (rung / 2)))
