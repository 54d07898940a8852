"""Random-walk Metropolis on whole numbers, one coordinate after the other.

    x_j' = x_j + sign(z) ceil(|z|),    z ~ N(0, (step_size scale_j)^2),

which is symmetric and never stays in place; accepted with the ratio of the densities. Values
outside the prior's support have density zero and are rejected. ``n_steps`` sweeps make a
transition. As for :class:`Gibbs`, the reversal of a sweep is the sweep in the opposite order.
"""

import operator

from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import KernelState, Parameter, Path, Scalar, StepInfo, Tuning
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
    accept_reject,
    flag_nan,
    normal_and_uniform,
    outside_support,
    sweep,
    with_coordinate,
)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DiscreteRandomWalk(Sweep):
    """Random walk of integer coordinates, with or without bounds.

    Parameters
    ----------
    coordinates : sequence of int
        Coordinates of the position that move, in this order.
    step_size : float, optional
        Standard deviation of the walk before it is rounded up, in units of ``scale``; None: set
        by the pilot.
    n_steps : int, optional
        Sweeps per transition; None: set by the pilot.
    scale : float or Array of shape (len(coordinates),), optional
        Spread of each coordinate; None: set by the pilot.
    target_accept : float
        Mean acceptance probability to which the pilot sets ``step_size``; 0.44 is optimal in one
        dimension (Gelman, Roberts & Gilks 1996).
    backward : bool
        Whether to sweep in the opposite order.
    separate : Separate, optional
        As for :class:`Gibbs`.
    """

    coordinates: Sequence[int] = field(metadata={"static": True})
    step_size: Parameter = None
    n_steps: Parameter = None
    scale: Parameter = None
    target_accept: float = field(default=0.44, metadata={"static": True})
    backward: bool = field(default=False, metadata={"static": True})
    separate: Separate | None = field(default=None, metadata={"static": True}, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "coordinates", tuple(map(operator.index, self.coordinates)))

    @property
    def tuning(self) -> Tuning:
        """Step size, number of sweeps and scale, as in one dimension."""
        return Tuning(
            {"step_size": self.step_size, "n_steps": self.n_steps, "scale": self.scale},
            target_accept=self.target_accept,
            one_at_a_time=True,
        )

    def cost(self, betas: np.ndarray) -> np.ndarray:
        """Return a density for each coordinate and sweep, shape ``(K,)``."""
        turns = len(self.coordinates)
        if self.separate is not None:
            turns = 2 * number_of_classes(self.separate, self.coordinates)
        return np.broadcast_to(np.asarray(self.n_steps) * turns, np.shape(betas))

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Make ``n_steps`` sweeps."""
        count = len(self.coordinates)
        coordinates = jnp.asarray(self.coordinates)
        width = self.step_size * jnp.broadcast_to(jnp.asarray(self.scale), (count,))
        if self.separate is not None and can_move_by_class(path, state):
            return self._step_by_class(self.separate, key, state, path, beta, width)

        def move(key: jax.Array, state: KernelState, i: jax.Array) -> tuple[KernelState, StepInfo]:
            start = state.position[:, coordinates[i]]
            noise, uniform = normal_and_uniform(key, start[:, None], 1)
            z = width[i] * noise[:, 0]
            end = start + _whole(z)
            position = with_coordinate(state.position, coordinates[i], end)
            proposal = KernelState(position, path.evaluate(position), state.auxiliary)
            outside = outside_support(path, proposal.terms)
            log_density = path.log_density(proposal.terms, beta)
            change = jnp.where(outside, -jnp.inf, log_density)
            change -= path.log_density(state.terms, beta)
            new, accept = accept_reject(uniform[:, 0], change, proposal, state)
            nan = flag_nan(log_density, proposal.terms) & ~outside
            return new, StepInfo(accept, nan, position)

        return sweep(move, key, state, self.n_steps * count, count, self.backward)

    def _step_by_class(
        self,
        separate: Separate,
        key: jax.Array,
        state: KernelState,
        path: Path,
        beta: Scalar,
        width: jax.Array,
    ) -> tuple[KernelState, StepInfo]:
        """Make ``n_steps`` sweeps, class by class."""
        classes = classes_of(separate, self.coordinates, state.position.shape[1])
        columns, count = jnp.asarray(self.coordinates), len(classes.member)

        def move(key: jax.Array, state: KernelState, i: jax.Array) -> tuple[KernelState, StepInfo]:
            member, present, terms, place = (part[i] for part in classes)
            start = state.position[:, columns[member]]
            noise, uniform = normal_and_uniform(key, start, len(member))
            z = width[member] * noise
            end = start + _whole(z)
            proposal = replaced(state.position, place, end)
            old, _ = log_density_of_members(separate, path, state.position, terms, beta)
            new, outside = log_density_of_members(separate, path, proposal, terms, beta)
            change = jnp.where(outside, -jnp.inf, new) - old
            accept = jnp.where(jnp.isnan(change), 0.0, jnp.exp(jnp.minimum(change, 0.0)))
            position = replaced(state.position, place, jnp.where(uniform < accept, end, start))
            nan = (jnp.isnan(new) & ~outside & present).any(axis=1)
            rate = (present * accept).sum(axis=1) / present.sum()
            return state._replace(position=position), StepInfo(rate, nan, proposal)

        state, info = sweep(move, key, state, self.n_steps * count, count, self.backward)
        return state._replace(terms=path.evaluate(state.position)), info


def _whole(z: jax.Array) -> jax.Array:
    """Return the next whole numbers away from zero."""
    return jnp.sign(z) * jnp.ceil(jnp.abs(z))
