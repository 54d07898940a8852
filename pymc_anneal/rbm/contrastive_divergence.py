"""Updates of contrastive divergence (Hinton 2002) and its persistent form (Tieleman 2008).

The gradient of the mean log likelihood is the difference of the moments of data and model,

    d/d(a, b, W) = E_data[(v, h, v h')] - E_model[(v, h, v h')].

CD-k estimates the second term from ``k`` Gibbs sweeps that start at the mini-batch, PCD from
particles that persist from one update to the next.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import Scalar
from pymc_anneal.rbm.model import RBM
from pymc_anneal.rbm.moments import batch_moments, run_gibbs
from pymc_anneal.rbm.state_sums import Moments

# A function of the fraction of the updates done, in [0, 1].
LearningRate = Callable[[Scalar], Scalar]


class UpdateRule(NamedTuple):
    """Settings of the updates; see :func:`~pymc_anneal.rbm.training.train`.

    ``batch_size`` is not used if the positive moments are given.
    """

    learning_rate: LearningRate
    updates: int
    momentum: float = 0.0
    weight_decay: float = 0.0
    gibbs_steps: int = 1
    persistent: bool = True
    batch_size: int = 1


class TrainingState(NamedTuple):
    """Parameters, their last update, and fantasy particles of shape ``(n, n_visible)``."""

    model: RBM
    velocity: RBM
    fantasy: jax.Array


@partial(jax.jit, static_argnames="rule")
def run_updates(
    state: TrainingState,
    source: jax.Array | Moments,
    key: jax.Array,
    first: int,
    count: int,
    rule: UpdateRule,
) -> TrainingState:
    """Make ``count`` updates, the first of which has index ``first``.

    ``source`` is the data, shape ``(n, n_visible)``, or the positive moments.
    """

    def update(i: jax.Array, state: TrainingState) -> TrainingState:
        return _update(state, source, jax.random.fold_in(key, first + i), first + i, rule)

    state = jax.lax.fori_loop(0, count, update, state)
    return state


def _update(
    state: TrainingState,
    source: jax.Array | Moments,
    key: jax.Array,
    number: jax.Array,
    rule: UpdateRule,
) -> TrainingState:
    key_batch, key_sweep = jax.random.split(key)
    model, start = state.model, state.fantasy
    if isinstance(source, Moments):
        positive = source
    else:
        batch = source[jax.random.randint(key_batch, (rule.batch_size,), 0, len(source))]
        positive = batch_moments(model, batch)
        start = state.fantasy if rule.persistent else batch
    fantasy = run_gibbs(model, key_sweep, start, rule.gibbs_steps)
    negative = batch_moments(model, fantasy)
    rate = rule.learning_rate(number / rule.updates)
    a, b, w = map(jnp.subtract, positive, negative)
    slope = RBM.from_jax(a, b, w - rule.weight_decay * model.weights)
    velocity = jax.tree.map(
        lambda v, s: (rule.momentum * v + rate * s).astype(v.dtype), state.velocity, slope
    )
    updated = jax.tree.map(jnp.add, model, velocity)
    return TrainingState(updated, velocity, fantasy if rule.persistent else state.fantasy)
