"""Gibbs sampling of variables with few values (Geman & Geman 1984).

One coordinate after the other is drawn from its exact conditional distribution under ``f_beta``,

    P(x_j = v | rest) = f_beta(v, rest) / sum_u f_beta(u, rest),    v, u over the support of x_j,

at the cost of one density for each value other than the current one. The draw is from the
conditional, not a Metropolis move to another value: near ``beta = 0`` the latter would change a
binary variable nearly always, and a sweep would lead from ``x`` to its complement and back, which
have the same density in models of interest (Ising).

A sweep in a fixed order is not reversible; its reversal is the sweep in the opposite order.

Coordinates that no term of the density joins are drawn at once, at the cost of one (`by_class.py`).

Sweeps mix slowly if variables are strongly coupled: a block of aligned spins, or the labels of a
whole cluster, would have to pass through improbable states.
"""

import operator

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import KernelState, Path, PyTree, Scalar, StepInfo
from pymc_anneal.transitions.by_class import (
    Separate,
    can_move_by_class,
    classes_of,
    log_density_of_members,
    number_of_classes,
    replaced,
)
from pymc_anneal.transitions.metropolis import (
    Sweep,
    cycled,
    flag_nan,
    outside_support,
    sweep,
    with_coordinate,
)

# Values of a coordinate evaluated at a time: memory grows with their number.
_BATCH = 8


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Gibbs(Sweep):
    """Exact conditional draws of integer coordinates with finite support.

    Parameters
    ----------
    coordinates : sequence of int
        Coordinates of the position that move, in this order.
    support : sequence of (int, int)
        Smallest and largest value of each of them; a particle with another one stays.
    backward : bool
        Whether to sweep in the opposite order.
    separate : Separate, optional
        Terms of the density, with classes of coordinates that are drawn at once along geometric
        paths from the prior; :func:`default_transition` finds them.

    Raises
    ------
    ValueError
        The two sequences differ in length, or a support is empty.
    """

    coordinates: Sequence[int] = field(metadata={"static": True})
    support: Sequence[tuple[int, int]] = field(metadata={"static": True})
    backward: bool = field(default=False, metadata={"static": True})
    separate: Separate | None = field(default=None, metadata={"static": True}, repr=False)

    def __post_init__(self) -> None:
        # Tuples of numbers, which JAX can hash.
        object.__setattr__(self, "coordinates", tuple(map(operator.index, self.coordinates)))
        support = tuple((int(low), int(high)) for low, high in self.support)
        object.__setattr__(self, "support", support)
        if len(self.support) != len(self.coordinates):
            raise ValueError(
                f"`support` has {len(self.support)} entries for {len(self.coordinates)} "
                "coordinates; expected a pair (smallest, largest) for each."
            )
        for j, (low, high) in zip(self.coordinates, self.support, strict=True):
            if high < low:
                raise ValueError(f"The support of coordinate {j} is empty: {low} to {high}.")

    @property
    def _others(self) -> int:
        """Number of other values to evaluate: those of the largest support, in whole batches."""
        others = max([1, *(high - low for low, high in self.support)])
        return others if others <= _BATCH else -(-others // _BATCH) * _BATCH

    def cost(self, betas: np.ndarray) -> np.ndarray:
        """Return a density for each coordinate and other value, shape ``(K,)``."""
        turns = len(self.coordinates)
        if self.separate is not None:
            turns = 1 + number_of_classes(self.separate, self.coordinates)
        return np.broadcast_to(turns * self._others, np.shape(betas))

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Sweep once; the acceptance rate is the probability to take another value."""
        if self.separate is not None and can_move_by_class(path, state):
            return self._step_by_class(self.separate, key, state, path, beta)
        coordinates = jnp.asarray(self.coordinates)
        low = jnp.asarray([low for low, _ in self.support])
        size = jnp.asarray([high - low + 1 for low, high in self.support])
        shift = jnp.arange(1 + self._others)[:, None]

        def move(key: jax.Array, state: KernelState, i: jax.Array) -> tuple[KernelState, StepInfo]:
            j = coordinates[i]
            # The support in cyclic order from the current value, whose density is known.
            values = cycled(state.position[:, j], low[i], size[i], shift)
            others = _map_batches(
                lambda v: path.evaluate(with_coordinate(state.position, j, v)), values[1:]
            )
            terms = jax.tree.map(
                lambda old, new: jnp.concatenate([old[None], new]), state.terms, others
            )
            log_density = jax.vmap(lambda t: path.log_density(t, beta))(terms)
            outside = (shift >= size[i]) | jax.vmap(lambda t: outside_support(path, t))(terms)
            nan = flag_nan(log_density, terms) & ~outside
            logits = jnp.where(outside | nan, -jnp.inf, log_density)
            # If every value has density zero the first is taken: the particle stays.
            choice = jnp.argmax(logits + jax.random.gumbel(key, logits.shape), axis=0)
            particle = jnp.arange(len(choice))
            new = KernelState(
                with_coordinate(state.position, j, values[choice, particle]),
                jax.tree.map(lambda leaf: leaf[choice, particle], terms),
                state.auxiliary,
            )
            where = with_coordinate(state.position, j, values[jnp.argmax(nan, axis=0), particle])
            return new, StepInfo(_change_probability(logits), nan.any(axis=0), where)

        return sweep(move, key, state, len(self.coordinates), len(self.coordinates), self.backward)

    def _step_by_class(
        self, separate: Separate, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Sweep once, class by class."""
        classes = classes_of(separate, self.coordinates, state.position.shape[1])
        bounds = jnp.asarray(self.support)
        lows, sizes = bounds[:, 0], bounds[:, 1] - bounds[:, 0] + 1
        columns = jnp.asarray(self.coordinates)
        shift = jnp.arange(1 + self._others)
        count = len(classes.member)

        def move(key: jax.Array, state: KernelState, i: jax.Array) -> tuple[KernelState, StepInfo]:
            member, present, terms, place = (part[i] for part in classes)
            low, size = lows[member], sizes[member]
            start = state.position[:, columns[member]]

            def shifted(by: jax.Array) -> jax.Array:
                return replaced(state.position, place, cycled(start, low, size, by))

            def density(by: jax.Array) -> tuple[jax.Array, jax.Array]:
                return log_density_of_members(separate, path, shifted(by), terms, beta)

            log_density, outside = _map_batches(density, shift)
            outside |= (shift[:, None] >= size)[:, None]
            nan = jnp.isnan(log_density) & ~outside & present
            logits = jnp.where(outside | nan, -jnp.inf, log_density)
            choice = jnp.argmax(logits + jax.random.gumbel(key, logits.shape), axis=0)
            moves = (present * _change_probability(logits)).sum(axis=1) / present.sum()
            bad = nan.any(axis=2)
            where = shifted(jnp.argmax(bad, axis=0)[:, None])
            return state._replace(position=shifted(choice)), StepInfo(moves, bad.any(axis=0), where)

        state, info = sweep(move, key, state, count, count, self.backward)
        return state._replace(terms=path.evaluate(state.position)), info


def _map_batches(function: Callable[[jax.Array], PyTree], values: jax.Array) -> PyTree:
    """Map a function over values, a batch at a time to save memory."""
    few = len(values) <= _BATCH
    return jax.vmap(function)(values) if few else jax.lax.map(function, values, batch_size=_BATCH)


def _change_probability(logits: jax.Array) -> jax.Array:
    """Return the probability of a value other than the first, shape ``(n,)``."""
    share = jax.nn.softmax(logits, axis=0)[0]
    return 1 - jnp.where(jnp.isnan(share), 1.0, share)
