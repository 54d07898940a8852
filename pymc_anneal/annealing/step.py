"""The annealing step.

For ``k = 1..K``, with ``T_beta`` the transition,

    log w <- log w + log f_{beta_k}(x) - log f_{beta_{k-1}}(x),    then    x ~ T_{beta_k}(. | x)

(Neal 2001, eq. 3-5). Where the schedule decreases, from the target to the reference, the order is
that of the reversed trajectory: move at ``beta_k``, then the same increment with the other sign
(Grosse, Ghahramani & Adams 2015). A step's statistics are reduced to a few sums for each chain as
they arise, so memory is ``O(N d)`` for any number of steps.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from pymc_anneal.annealing.block import Carry, Ladder
from pymc_anneal.annealing.resampling import resample_populations
from pymc_anneal.annealing.step_statistics import Stats, reduce_step
from pymc_anneal.base.contracts import KernelState, Path, StepInfo, Transition

# Steps compiled into one call; the number really taken is set at run time.
CHUNK = 512


@jax.jit
def record_ladder(path: Path, carry: Carry, betas) -> Ladder:
    terms = carry.state.terms
    return Ladder(
        log_weight=carry.log_weight,
        log_ratio_up=path.log_ratio(terms, betas[1], betas[2]),
        log_ratio_down=path.log_ratio(terms, betas[0], betas[1]),
        velocity=path.velocity(terms, betas[1]),
    )


@partial(jax.jit, static_argnames="chains")
def start_carry(path: Path, transition: Transition, key, position, chains: int) -> Carry:
    position = jnp.asarray(position)
    state = KernelState(position, path.evaluate(position), transition.init(key, position))
    empty = jnp.zeros((CHUNK, chains))
    return Carry(
        state=state,
        log_weight=jnp.zeros(len(position)),
        stats=Stats(*[empty] * len(Stats._fields)),
        nan_position=jnp.zeros(position.shape[1:], position.dtype),
    )


@partial(jax.jit, static_argnames=("chains", "backward", "resampling"), donate_argnames="carry")
def advance(
    path: Path,
    transition: Transition,
    carry: Carry,
    key,
    betas,
    first,
    size,
    threshold,
    *,
    chains,
    backward,
    resampling,
) -> Carry:
    """Take ``size`` steps, of which the first has index ``first`` in the schedule."""
    step: Callable = _step_backward if backward else _step
    if resampling:
        step = partial(_step_resampling, chains=chains, threshold=threshold)

    def body(i, carry: Carry) -> Carry:
        moved = step(path, transition, carry, jax.random.fold_in(key, first + i), *betas_at(i))
        row = reduce_step(carry.log_weight, moved.log_u, moved.velocity, moved.info, chains)
        return Carry(
            state=moved.state,
            log_weight=moved.log_weight,
            stats=Stats(*(s.at[i].set(r) for s, r in zip(carry.stats, row, strict=True))),
            nan_position=_first_nan(moved.info, carry.nan_position),
        )

    def betas_at(i):
        return betas[i], betas[i + 1]

    return jax.lax.fori_loop(0, size, body, carry)


class _Moved(NamedTuple):
    state: KernelState
    log_weight: jax.Array
    log_u: jax.Array
    velocity: jax.Array
    info: StepInfo


def _step(path: Path, transition: Transition, carry: Carry, key, start, stop) -> _Moved:
    """Weigh, then move at the new temperature."""
    terms = carry.state.terms
    log_u, velocity = path.log_ratio(terms, start, stop), path.velocity(terms, stop)
    state, info = transition.step(key, carry.state, path, stop)
    return _Moved(state, carry.log_weight + log_u, log_u, velocity, info)


def _step_resampling(
    path: Path, transition: Transition, carry: Carry, key, start, stop, *, chains, threshold
) -> _Moved:
    """Weigh, resample where the weights have become uneven, then move."""
    key_resample, key_move = jax.random.split(key)
    terms = carry.state.terms
    log_u, velocity = path.log_ratio(terms, start, stop), path.velocity(terms, stop)
    state, log_weight = resample_populations(
        key_resample, carry.state, carry.log_weight + log_u, chains, threshold
    )
    state, info = transition.step(key_move, state, path, stop)
    return _Moved(state, log_weight, log_u, velocity, info)


def _step_backward(path: Path, transition: Transition, carry: Carry, key, start, stop) -> _Moved:
    """Move at the old temperature, then weigh; the kernel is the reversal of the forward one."""
    state, info = transition.step(key, carry.state, path, start)
    terms = state.terms
    log_u = path.log_ratio(terms, start, stop)
    return _Moved(state, carry.log_weight + log_u, log_u, path.velocity(terms, stop), info)


def _first_nan(info: StepInfo, present: jax.Array) -> jax.Array:
    # Nearly always false: the cond spares the gather over all particles.
    return jax.lax.cond(
        info.nan.any(),
        lambda: info.nan_position[jnp.argmax(info.nan)],
        lambda: present,
    )
