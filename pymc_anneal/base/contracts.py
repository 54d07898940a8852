"""Contracts between the parts, and the records that pass between them.

Symbols: ``x`` a position, ``f_beta`` the unnormalised density of the path at inverse temperature
``beta``, ``v_beta = d/dbeta log f_beta`` its velocity. All functions work on blocks of ``n``
particles at once; everything logarithmic is in nats.
"""

from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

PyTree = Any


# A number or an array of one; a kernel's parameter may also be None, "to be tuned".
Scalar = Any


Parameter = Any


class LogTerms(NamedTuple):
    """The two parts of a log posterior, never added up before they are needed.

    Attributes
    ----------
    log_prior : Array
        Log prior density in the unconstrained space.
    log_likelihood : Array
        Log likelihood ``V``, potentials included.
    """

    log_prior: jax.Array
    log_likelihood: jax.Array

    @property
    def log_posterior(self) -> jax.Array:
        """Their sum, the log posterior density up to the evidence."""
        return self.log_prior + self.log_likelihood


class Path(Protocol):
    """A family of unnormalised densities from the reference (0) to the target (1).

    A path is a JAX pytree. ``terms`` is what costs time and does not depend on ``beta``; it is
    evaluated once per position and serves every ``beta``.
    """

    def evaluate(self, position: PyTree) -> PyTree:
        """Return the terms, leaves of shape ``(n, ...)``, at ``n`` positions."""

    def log_density(self, terms: PyTree, beta: Scalar) -> jax.Array:
        """Return ``log f_beta``, shape ``(n,)``."""

    def log_ratio(self, terms: PyTree, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``log f_stop - log f_start``, shape ``(n,)``, free of cancellation."""

    def velocity(self, terms: PyTree, beta: Scalar) -> jax.Array:
        """Return ``v_beta``, shape ``(n,)``."""


class KernelState(NamedTuple):
    """What a transition maps to itself.

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
    """What a transition reports.

    Attributes
    ----------
    accept_rate : Array, shape (n,)
        Acceptance probability, averaged over the proposals of the step.
    nan : Array of bool, shape (n,)
        The log density was NaN at a proposal that was otherwise sound.
    nan_position : Array, shape (n, d)
        Where; meaningful where ``nan`` is true.
    """

    accept_rate: jax.Array
    nan: jax.Array
    nan_position: PyTree


class Transition(Protocol):
    """A Markov kernel that leaves ``f_beta`` invariant; a JAX pytree of its parameters.

    One that is not reversible also has a method ``reversal()``, which returns the transition of
    the reversed chain: reverse runs take it.
    """

    def init(self, key: jax.Array, position: PyTree) -> PyTree:
        """Draw the auxiliary variables for ``n`` particles."""

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Move ``n`` particles once."""

    def at(self, beta: Scalar) -> "Transition":
        """Return the kernel with the parameters it has at ``beta``."""


def reversal_of(transition: Transition) -> Transition:
    """Return the transition run backwards; one without a method ``reversal`` is its own."""
    return transition.reversal() if hasattr(transition, "reversal") else transition


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

    def __reduce__(self) -> tuple:
        return NanDensityError, (self.position,)


def gradient(path: Path, position: jax.Array, beta: Scalar) -> jax.Array:
    """Return the gradient of ``log f_beta``, shape ``(n, d)``.

    Particles do not interact, so the gradient of the sum is the gradient of each.
    """
    return jax.grad(lambda x: path.log_density(path.evaluate(x), beta).sum())(position)
