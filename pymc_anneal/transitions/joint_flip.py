"""Joint moves of one or two discrete coordinates and of the real ones that depend on them.

One or two coordinates ``S`` of few values take other ones, all with the same probability, and the
real coordinates ``z`` are drawn anew from a normal density a Newton step away (reversible jump with
proposals of second order: Green 1995; Brooks, Giudici & Roberts 2003, section 4):

    z' ~ N(z + A^-1 g, A^-1),    g, A = gradient and minus the curvature of log f_beta at (x_S', z).

The way back is proposed at ``(x_S, z')`` in the same manner, and the move accepted with

    f_beta(x') q(z | x_S, z') / (f_beta(x) q(z' | x_S', z)).

Where the density is normal given the discrete coordinates, this is the ratio of the masses of both
configurations: the sampler of the model from which ``z`` is integrated out. An indicator and its
coefficient then change together, and two indicators of predictors that matter only together do, of
which neither a change of one nor one at the present coefficients would be accepted. Where ``A`` is
not positive definite, forth or back, the particle stays.
"""

import operator

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import (
    KernelState,
    Parameter,
    Path,
    Scalar,
    StepInfo,
    Transition,
    Tuning,
    gradient,
)
from pymc_anneal.base.small_factors import factor, inverse_factor
from pymc_anneal.transitions.metropolis import (
    accept_reject,
    cycled,
    merge_columns,
    nan_without_divergence,
    outside_support,
    repeat,
)

# The pilot begins with four proposals.
_FIRST_LEVEL = 3


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class JointFlip(Transition):
    """Changes of one or two discrete coordinates, with real ones drawn anew given their values.

    Parameters
    ----------
    coordinates : sequence of int
        Discrete coordinates of the position.
    support : sequence of (int, int)
        Smallest and largest value of each of them, at least two values; others stay.
    redrawn : sequence of int
        Real coordinates that are drawn anew, in increasing order; by default none.
    n_steps : int, optional
        Proposals of a transition; None: set by the pilot.

    Raises
    ------
    ValueError
        There is no coordinate, the sequences differ in length, a coordinate has one value only, or
        a coordinate is both changed and drawn anew.

    References
    ----------
    Green (1995), Reversible jump Markov chain Monte Carlo computation and Bayesian model
    determination. Brooks, Giudici & Roberts (2003), Efficient construction of reversible jump
    Markov chain Monte Carlo proposal distributions, section 4.
    """

    coordinates: Sequence[int] = field(metadata={"static": True})
    support: Sequence[tuple[int, int]] = field(metadata={"static": True})
    redrawn: Sequence[int] = field(default=(), metadata={"static": True})
    n_steps: Parameter = None

    def __post_init__(self) -> None:
        # Tuples of numbers, which JAX can hash.
        object.__setattr__(self, "coordinates", tuple(map(operator.index, self.coordinates)))
        support = tuple((int(low), int(high)) for low, high in self.support)
        object.__setattr__(self, "support", support)
        object.__setattr__(self, "redrawn", tuple(sorted(map(operator.index, self.redrawn))))
        if not self.coordinates or len(self.support) != len(self.coordinates):
            raise ValueError(
                f"`support` has {len(self.support)} entries for {len(self.coordinates)} "
                "coordinates; expected a pair (smallest, largest) for each, and at least one."
            )
        for j, (low, high) in zip(self.coordinates, self.support, strict=True):
            if high <= low:
                raise ValueError(
                    f"Coordinate {j} has the support {low} to {high}; expected two values or more."
                )
        both = sorted(set(self.coordinates) & set(self.redrawn))
        if both:
            raise ValueError(f"Coordinates {both} are in `coordinates` and in `redrawn`.")

    @property
    def tuning(self) -> Tuning:
        """The number of proposals."""
        return Tuning({"n_steps": self.n_steps}, first_level=_FIRST_LEVEL)

    @property
    def moved_coordinates(self) -> Sequence[int]:
        """The coordinates, discrete and real."""
        return tuple(sorted((*self.coordinates, *self.redrawn)))

    @property
    def moves_integers(self) -> bool:
        """Yes, as whole numbers; the real ones as real numbers."""
        return True

    def cost(self, betas: np.ndarray) -> np.ndarray:
        """Return a density a proposal, and two gradients and curvatures, shape ``(K,)``."""
        width = len(self.redrawn)
        each = 1 + 2 * (1 + width) if width else 1
        return np.broadcast_to(np.asarray(self.n_steps) * each, np.shape(betas))

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Make ``n_steps`` proposals for each particle."""

        def move(key: jax.Array, state: KernelState) -> tuple[KernelState, StepInfo]:
            key_flip, key_draw, key_accept = jax.random.split(key, 3)
            flipped = self._flipped(key_flip, state.position)
            position, log_ways = self._redraw(key_draw, path, beta, state.position, flipped)
            proposal = KernelState(position, path.evaluate(position), state.auxiliary)
            outside = outside_support(path, proposal.terms)
            log_density = path.log_density(proposal.terms, beta)
            log_accept = jnp.where(outside, -jnp.inf, log_density) + log_ways
            log_accept -= path.log_density(state.terms, beta)
            uniform = jax.random.uniform(key_accept, log_accept.shape, log_accept.dtype)
            new, accept = accept_reject(uniform, log_accept, proposal, state)
            # A Newton step from a flat tail may end where numbers overflow.
            gain = jnp.full(len(position), np.inf if self.redrawn else 0.0)
            nan = nan_without_divergence(path, beta, proposal, gain) & ~outside
            return new, StepInfo(accept, nan, position)

        return repeat(move, key, state, self.n_steps)

    def _flipped(self, key: jax.Array, position: jax.Array) -> jax.Array:
        """Change one or two coordinates to other values, all of them equally probable."""
        count, n = len(self.coordinates), len(position)
        key_first, key_second, key_value = jax.random.split(key, 3)
        first = jax.random.randint(key_first, (n,), 0, count)
        # In half of the moves the first changes alone: the same one twice takes the last value.
        second = jax.random.randint(key_second, (n,), 0, 2 * count)
        second = jnp.where(second < count, second, first)
        uniform = jax.random.uniform(key_value, (2, n), position.dtype)
        coordinates = jnp.asarray(self.coordinates)
        low, size = jnp.asarray([(low, high - low + 1) for low, high in self.support]).T
        changed, columns = position, jnp.arange(position.shape[1])
        for index, u in zip((first, second), uniform, strict=True):
            here = columns == coordinates[index][:, None]
            shift = 1 + jnp.floor(u * (size[index] - 1))
            value = cycled((position * here).sum(axis=1), low[index], size[index], shift)
            changed = jnp.where(here, value[:, None], changed)
        return changed

    def _redraw(
        self, key: jax.Array, path: Path, beta: Scalar, position: jax.Array, flipped: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Draw the real coordinates anew; return positions and log q back - log q forth."""
        if not self.redrawn:
            return flipped, jnp.zeros(len(position))
        old = position[:, jnp.asarray(self.redrawn)]
        noise = jax.random.normal(key, old.shape, old.dtype)

        def propose(
            real: jax.Array, way: tuple[jax.Array, jax.Array]
        ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
            discrete, forth = way
            normal = _newton(path, beta, discrete, real, self.redrawn)
            point = jnp.where(forth, normal.at(noise), old)
            return point, (point, normal.log_density(point))

        # Forth and back in one loop: the compiler takes long for a curvature.
        ways = jnp.stack([flipped, position]), jnp.asarray([True, False])
        _, (points, log_q) = jax.lax.scan(propose, old, ways)
        return merge_columns(flipped, points[0], self.redrawn), log_q[1] - log_q[0]


class _Normal(NamedTuple):
    """Normal densities, one for each particle: means ``(n, k)``, factors of ``A = L L'``."""

    mean: jax.Array
    root: jax.Array
    inverse: jax.Array

    def at(self, noise: jax.Array) -> jax.Array:
        return self.mean + jnp.einsum("nji,nj->ni", self.inverse, noise)

    def log_density(self, point: jax.Array) -> jax.Array:
        """Return the log density up to ``-k/2 log(2 pi)``."""
        z = jnp.einsum("nji,nj->ni", self.root, point - self.mean)
        log_scale = jnp.log(jnp.diagonal(self.root, axis1=1, axis2=2)).sum(axis=1)
        return log_scale - 0.5 * (z**2).sum(axis=1)


def _newton(
    path: Path, beta: Scalar, discrete: jax.Array, real: jax.Array, redrawn: Sequence[int]
) -> _Normal:
    """Return the normal densities a Newton step away from positions; NaN where not definite."""

    def slope(real: jax.Array) -> jax.Array:
        whole = merge_columns(discrete, real, redrawn)
        return gradient(path, whole, beta)[:, jnp.asarray(redrawn)]

    def column(direction: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.jvp(slope, (real,), (jnp.broadcast_to(direction, real.shape),))

    slopes, second = jax.vmap(column, out_axes=(None, 2))(jnp.eye(real.shape[1], dtype=real.dtype))
    root = factor(-second)
    inverse = inverse_factor(root)
    step = jnp.einsum("nji,njk,nk->ni", inverse, inverse, slopes)
    return _Normal(real + step, root, inverse)
