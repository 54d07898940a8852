"""The annealing step.

For ``k = 1..K``, with ``T_beta`` the transition,

    log w <- log w + log f_{beta_k}(x) - log f_{beta_{k-1}}(x),    then    x ~ T_{beta_k}(. | x)

(Neal 2001, eq. 3-5). If the schedule decreases, from the target to the reference, the order is
that of the reversed trajectory: move at ``beta_{k-1}``, then the same increment, whose sign follows
from the schedule (Grosse, Ghahramani & Adams 2015). The statistics of a step are reduced to a few
sums per chain within the step, so memory is ``O(N d)`` for any number of steps.
"""

from functools import partial
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.annealing.block import Carry, Ladder
from pymc_anneal.annealing.resampling import resample_populations
from pymc_anneal.annealing.step_statistics import Stats, reduce_step
from pymc_anneal.base.contracts import KernelState, Path, Scalar, StepInfo, Transition
from pymc_anneal.base.programs import forgettable

# Largest number of steps in one compiled call; the number taken is set at run time.
CHUNK = 512


class StepResult(NamedTuple):
    """Particles after one step, and the increments of their weights.

    Attributes
    ----------
    state : KernelState
        Leaves of shape (n, ...).
    log_weight : Array, shape (n,)
        Running log weights after the step.
    log_u : Array, shape (n,)
        Log ratio of the densities at the new and the old temperature.
    velocity : Array, shape (n,)
        Derivative of ``log f_beta`` in ``beta`` at the new temperature.
    info : StepInfo
        Diagnostics of the transition.
    """

    state: KernelState
    log_weight: jax.Array
    log_u: jax.Array
    velocity: jax.Array
    info: StepInfo


class _Step(Protocol):
    """Take one step from temperature ``start`` to temperature ``stop``."""

    def __call__(
        self,
        path: Path,
        transition: Transition,
        carry: Carry,
        key: jax.Array,
        start: Scalar,
        stop: Scalar,
    ) -> StepResult: ...


@forgettable
@partial(jax.jit, static_argnames="chains")
def start_carry(
    path: Path, transition: Transition, key: jax.Array, position: np.ndarray, chains: int
) -> tuple[Carry, jax.Array]:
    """Create the state of the loop from positions of shape ``(chains * m, d)``.

    Returns
    -------
    Carry
    Array, shape (chains * m,)
        Log density of the target.
    """
    x = jnp.asarray(position)
    state = KernelState(x, path.evaluate(x), transition.init(key, x))
    empty = jnp.zeros((CHUNK, chains))
    carry = Carry(
        state=state,
        log_weight=jnp.zeros(len(x)),
        stats=Stats(*[empty] * len(Stats._fields)),
        nan_position=jnp.zeros(x.shape[1:], x.dtype),
    )
    return carry, path.log_density(state.terms, jnp.asarray(1.0))


@forgettable
@partial(jax.jit, static_argnames=("chains", "backward", "resampling"), donate_argnames="carry")
def advance(
    path: Path,
    transition: Transition,
    carry: Carry,
    key: jax.Array,
    betas: np.ndarray,
    first: int,
    size: int,
    threshold: float,
    *,
    chains: int,
    backward: bool,
    resampling: bool,
) -> Carry:
    """Take several steps.

    Parameters
    ----------
    path, transition, carry
        Path, kernel and state; the memory of the state is reused.
    key : Array
        Key of the block.
    betas : ndarray, shape (CHUNK + 1,)
        Temperatures before the first step and after each step; the rest is ignored.
    first : int
        Index of the first step in the schedule.
    size : int
        Number of steps, at most CHUNK.
    threshold : float
        Effective sample size, as a share of a chain's particles, below which they are resampled.
    chains : int
        Number of chains.
    backward : bool
        Whether the schedule decreases.
    resampling : bool
        Whether particles are resampled.

    Returns
    -------
    Carry
        The first ``size`` rows of its statistics are those of the steps.
    """
    step: _Step = _step_backward if backward else _step_forward
    if resampling:
        step = partial(_step_resampling, chains=chains, threshold=threshold)

    def body(i: jax.Array, carry: Carry) -> Carry:
        step_key = jax.random.fold_in(key, first + i)
        result = step(path, transition, carry, step_key, betas[i], betas[i + 1])
        return _update_carry(carry, result, i, chains)

    final: Carry = jax.lax.fori_loop(0, size, body, carry)
    return final


def _update_carry(carry: Carry, result: StepResult, row: jax.Array, chains: int) -> Carry:
    sums = reduce_step(carry.log_weight, result.log_u, result.velocity, result.info, chains)
    return Carry(
        state=result.state,
        log_weight=result.log_weight,
        stats=Stats(*(s.at[row].set(r) for s, r in zip(carry.stats, sums, strict=True))),
        nan_position=_latest_nan(result.info, carry.nan_position),
    )


def _step_forward(
    path: Path, transition: Transition, carry: Carry, key: jax.Array, start: Scalar, stop: Scalar
) -> StepResult:
    """Update the weights, then move at the new temperature."""
    terms = carry.state.terms
    log_u, velocity = path.log_ratio(terms, start, stop), path.velocity(terms, stop)
    state, info = transition.step(key, carry.state, path, stop)
    return StepResult(state, carry.log_weight + log_u, log_u, velocity, info)


def _step_resampling(
    path: Path,
    transition: Transition,
    carry: Carry,
    key: jax.Array,
    start: Scalar,
    stop: Scalar,
    *,
    chains: int,
    threshold: Scalar,
) -> StepResult:
    """Update the weights, resample chains whose weights are uneven, then move."""
    key_resample, key_move = jax.random.split(key)
    terms = carry.state.terms
    log_u, velocity = path.log_ratio(terms, start, stop), path.velocity(terms, stop)
    state, log_weight = resample_populations(
        key_resample, carry.state, carry.log_weight + log_u, chains, threshold
    )
    state, info = transition.step(key_move, state, path, stop)
    return StepResult(state, log_weight, log_u, velocity, info)


def _step_backward(
    path: Path, transition: Transition, carry: Carry, key: jax.Array, start: Scalar, stop: Scalar
) -> StepResult:
    """Move at the old temperature with the reversed kernel, then update the weights."""
    state, info = transition.step(key, carry.state, path, start)
    terms = state.terms
    log_u = path.log_ratio(terms, start, stop)
    return StepResult(state, carry.log_weight + log_u, log_u, path.velocity(terms, stop), info)


def _latest_nan(info: StepInfo, present: jax.Array) -> jax.Array:
    """Return the first proposal of this step with a NaN density, or else the present one."""
    # The condition is nearly always false, which spares the gather over all particles.
    latest: jax.Array = jax.lax.cond(
        info.nan.any(),
        lambda: info.nan_position[jnp.argmax(info.nan)],
        lambda: present,
    )
    return latest


@forgettable
@partial(jax.jit, static_argnames="record_positions")
def record_rung(
    path: Path, carry: Carry, betas: np.ndarray, record_positions: bool
) -> Ladder[jax.Array]:
    """Record the particles at one rung, arrays of shape ``(n,)``, positions ``(n, d or 0)``.

    The three temperatures ``betas`` are those of the previous rung, this one, and the next one.
    """
    terms, position = carry.state.terms, carry.state.position
    return Ladder(
        log_weight=carry.log_weight,
        log_ratio_up=path.log_ratio(terms, betas[1], betas[2]),
        log_ratio_down=path.log_ratio(terms, betas[0], betas[1]),
        velocity=path.velocity(terms, betas[1]),
        position=position if record_positions else position[:, :0],
    )
