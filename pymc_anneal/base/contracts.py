"""Contracts between the parts, and the records that pass between them.

Symbols: ``x`` a position, ``f_beta`` the unnormalised density of the path at inverse temperature
``beta``, ``v_beta = d/dbeta log f_beta`` its velocity. All functions work on blocks of ``n``
particles at once; everything logarithmic is in nats.
"""

import math

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.batches import in_parts
from pymc_anneal.base.single_precision import in_single_precision

# A tree of arrays, whatever its shape: only the path or the kernel that made it knows.
PyTree: TypeAlias = Any
# A number or an array of shape (): NumPy's, JAX's or a tracer.
Scalar: TypeAlias = Any
# A kernel's parameter: a number, an array, a tracer, or None if the pilot is to tune it.
Parameter: TypeAlias = Any


# Nats by which a log prior is below that of other positions, or below the density that proposed
# this one, from where on the posterior is zero in floating point whatever the likelihood, 1e-434 of
# it: a likelihood that is not a number there counts as zero.
NEGLIGIBLE = 1000.0


class NanDensityError(ValueError):
    """The log density was NaN at a position where it should be a number or -inf.

    Attributes
    ----------
    position : ndarray, shape (d,)
        The first such position.
    """

    def __init__(self, position: np.ndarray):
        super().__init__(f"The log density is NaN at x = {position}.")
        self.position = position

    def __reduce__(self) -> tuple[type["NanDensityError"], tuple[np.ndarray]]:
        return NanDensityError, (self.position,)


def check_not_nan(log_density: jax.Array, position: PyTree) -> None:
    """Raise `NanDensityError` if a log density, shape ``(n,)``, is NaN at one of the positions."""
    nan = np.isnan(np.asarray(log_density))
    if nan.any():
        raise NanDensityError(np.asarray(position)[nan.argmax()])


class LogTerms(NamedTuple):
    """The two parts of a log posterior, never added up before they are needed.

    Attributes
    ----------
    log_prior : Array, shape () or (n,)
        Log prior density in the unconstrained space, in nats.
    log_likelihood : Array, shape () or (n,)
        Log likelihood ``V``, potentials included, in nats.
    """

    log_prior: jax.Array
    log_likelihood: jax.Array

    @property
    def log_posterior(self) -> jax.Array:
        """Their sum, the log posterior density up to the evidence."""
        return self.log_prior + self.log_likelihood


class ScreenedTerms(NamedTuple):
    """The parts of a log posterior whose likelihood is zero where it was NaN.

    Attributes
    ----------
    log_prior, log_likelihood : Array, shape () or (n,)
        As in `LogTerms`.
    rejected : Array of bool, shape () or (n,)
        Whether the log likelihood was NaN.
    """

    log_prior: jax.Array
    log_likelihood: jax.Array
    rejected: jax.Array

    @property
    def log_posterior(self) -> jax.Array:
        """The sum of both logs."""
        return self.log_prior + self.log_likelihood


def rejected_nan(terms: PyTree) -> jax.Array | None:
    """Return where a NaN counted as zero likelihood, shape ``(n,)``; None if NaN is an error.

    The terms of a path that is built on `ScreenedTerms` have a field ``rejected`` of their own.
    """
    return getattr(terms, "rejected", None)


class Path(Protocol):
    """A family of unnormalised densities from the reference (0) to the target (1).

    A path is a JAX pytree. Its ``terms`` are the costly part of the density, which does not depend
    on ``beta``: they are evaluated once per position and serve every ``beta``.
    """

    def evaluate(self, position: PyTree) -> PyTree:
        """Return the terms, leaves of shape ``(n, ...)``, at ``n`` positions."""

    def log_density(self, terms: PyTree, beta: Scalar) -> jax.Array:
        """Return ``log f_beta``, shape ``(n,)``."""

    def log_ratio(self, terms: PyTree, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``log f_stop - log f_start``, shape ``(n,)``, free of cancellation."""

    def velocity(self, terms: PyTree, beta: Scalar) -> jax.Array:
        """Return ``v_beta``, the derivative of ``log f_beta`` in ``beta``, shape ``(n,)``."""


def gradient(
    path: Path, position: jax.Array, beta: Scalar, single_precision: bool = False
) -> jax.Array:
    """Return the gradient of ``log f_beta``, shape ``(n, d)``.

    Particles do not interact, so the gradient of the sum is the gradient of each. With 32-bit
    numbers, it is zero where they are too small or too large for it.
    """

    def slope(path: Path, position: jax.Array, beta: Scalar) -> jax.Array:
        return log_density_and_gradient(path, position, beta)[1]

    if not single_precision:
        return slope(path, position, beta)
    rounded = in_single_precision(slope)(path, position, beta)
    return jnp.where(jnp.isfinite(rounded), rounded, 0.0).astype(position.dtype)


def log_density_and_gradient(
    path: Path, position: jax.Array, beta: Scalar
) -> tuple[jax.Array, jax.Array]:
    """Return ``log f_beta``, shape ``(n,)``, and its gradient, shape ``(n, d)``."""

    def total(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        log_density = path.log_density(path.evaluate(x), beta)
        return log_density.sum(), log_density

    def each(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        (_, log_density), slope = jax.value_and_grad(total, has_aux=True)(x)
        return log_density, slope

    density = getattr(path, "log_terms", None)
    found: tuple[jax.Array, jax.Array]
    found = each(position) if density is None else in_parts(each, position, density)
    return found


class KernelState(NamedTuple):
    """State of a transition.

    Attributes
    ----------
    position : pytree
        Leaves of shape ``(n, ...)``.
    terms : pytree
        ``path.evaluate(position)``.
    auxiliary : pytree
        The kernel's own variables (a momentum that persists), or ``()``.
    """

    position: PyTree
    terms: PyTree
    auxiliary: PyTree


class StepInfo(NamedTuple):
    """Diagnostics of one step of a transition.

    Attributes
    ----------
    accept_rate : Array, shape (n,)
        Acceptance probability, averaged over the proposals of the step.
    nan : Array of bool or share, shape (n,)
        Share of the proposals at which the log density was NaN, be it an error or counted as zero
        likelihood, and that did not come from a divergence.
    nan_position : Array, shape (n, d)
        One of these proposals; meaningful only if ``nan`` is not zero.
    """

    accept_rate: jax.Array
    nan: jax.Array
    nan_position: PyTree


@dataclass(frozen=True)
class Tuning:
    """The parameters that the pilot may set in a transition, and its targets.

    Attributes
    ----------
    parameters : mapping of str to number, array or None
        Those of ``"step_size"`` (in units of the scale), ``"n_steps"`` (a whole number, the effort
        of one transition) and ``"scale"`` (the spread of the particles) that the kernel has, with
        their values. The pilot sets those that are None.
    target_accept : float
        Mean acceptance probability to which ``step_size`` is set.
    max_stuck_share : float
        Largest share of particles that may reject nearly always. The neck of a funnel holds few
        particles, and a mean acceptance does not show them. Infinite: not checked.
    uses_gradient : bool
        Whether the log density is differentiable: gradients then help to set ``scale``.
    one_at_a_time : bool
        Whether coordinates move singly: one scale factor for each, and steps of one dimension.
    first_level : int
        Effort level at which the pilot begins, see `Transition.effort`.
    """

    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    target_accept: float = 0.0
    max_stuck_share: float = math.inf
    uses_gradient: bool = False
    one_at_a_time: bool = False
    first_level: int = 0

    @property
    def free(self) -> frozenset[str]:
        """Names of the parameters that the pilot sets."""
        return frozenset(name for name, value in self.parameters.items() if value is None)


class Transition(Protocol):
    """A Markov kernel that leaves ``f_beta`` invariant; a JAX pytree of its parameters.

    Derive kernels from this class. Only `step` has to be written; the defaults of the other
    methods describe a reversible kernel that has no parameters to tune and no auxiliary variables,
    moves all coordinates as real numbers, and costs one evaluation of the density. A kernel is a
    frozen dataclass registered by :func:`jax.tree_util.register_dataclass`.
    """

    @abstractmethod
    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Move ``n`` particles once."""

    def init(self, key: jax.Array, position: PyTree) -> PyTree:
        """Draw the auxiliary variables of ``n`` particles; by default there are none."""
        return ()

    def at(self, beta: Scalar) -> "Transition":
        """Return the kernel with its parameters at ``beta``; by default itself."""
        return self

    def reversal(self) -> "Transition":
        """Return the transition of the time-reversed chain; by default the kernel is reversible."""
        return self

    def cost(self, betas: np.ndarray) -> np.ndarray:
        """Return the evaluations of gradient or density that one transition takes per particle.

        Parameters
        ----------
        betas : ndarray, shape (K,)

        Returns
        -------
        ndarray of int, shape (K,)
            By default ones.
        """
        return np.ones(np.shape(betas), dtype=int)

    @property
    def name(self) -> str:
        """Name in results and messages; by default that of the class."""
        return type(self).__name__

    @property
    def moved_coordinates(self) -> Sequence[int] | None:
        """Coordinates that the kernel moves; by default None, all of them."""
        return None

    @property
    def moves_integers(self) -> bool:
        """Whether whole numbers stay whole numbers; by default no."""
        return False

    @property
    def restrictable(self) -> bool:
        """Whether `BlockTransition` may run the kernel; by default where it moves all."""
        return self.moved_coordinates is None

    @property
    def tuning(self) -> Tuning:
        """Parameters that the pilot may set; by default none."""
        return Tuning()

    def with_parameters(self, values: Mapping[str, Any]) -> Self:
        """Return the kernel with some of its parameters replaced; by default dataclass fields."""
        kernel: Any = self
        return cast(Self, replace(kernel, **values))

    def effort(self, level: int, step_limit: float) -> tuple[float, int]:
        """Return step size and number of steps of an effort level.

        Parameters
        ----------
        level
            0, 1, 2, ...; each takes about 1.2 to 1.4 times the evaluations of the one below.
        step_limit
            Largest step size that reaches the target acceptance.

        Returns
        -------
        float, int
            By default the limit, and about ``2^(level / 2)`` proposals.
        """
        return step_limit, max(level + 1, round(2 ** (level / 2)))

    def step_sizes(self, betas: np.ndarray) -> np.ndarray:
        """Return the step size at each temperature, shape ``(K,)``; NaN if there is none."""
        size = self.tuning.parameters.get("step_size")
        return np.broadcast_to(np.asarray(np.nan if size is None else size), np.shape(betas))

    @property
    def parts(self) -> "tuple[Transition, ...]":
        """Kernels that are tuned one by one; by default the kernel itself."""
        return (self,)

    def with_parts(self, parts: "Sequence[Transition]") -> "Transition":
        """Return the transition with its parts replaced."""
        (part,) = parts
        return part

    def step_by_part(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, list[StepInfo]]:
        """Move ``n`` particles once; return the diagnostics of every part."""
        state, info = self.step(key, state, path, beta)
        return state, [info]
