"""Inequality constraints on the variables of a model.

A constraint is a region ``C = {x : g_j(x) > 0 for all j}`` of the model's space, given by slacks
``g_j``. The prior mass of an order of exchangeable entries and of an interval is exact:

    P(x_1 < ... < x_k) = 1/k!,        P(l < x < u) = F(u) - F(l) for each entry.
"""

import math

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm

from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable

from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.jaxify import jaxify
from pymc_anneal.model.parents import random_parents
from pymc_anneal.model.prior_draws import has_exchangeable_entries
from pymc_anneal.model.variables import split_values

# Values of variables by name.
_Values: TypeAlias = Mapping[str, jax.Array]


class Constraint(Protocol):
    """A region of the model's space, given by inequalities.

    Any function that maps a dict of the model's variables to slacks, arrays that are positive
    inside of the region, may take its place.
    """

    def __call__(self, values: _Values) -> jax.Array:
        """Return the slacks of one position."""

    def log_prior_mass(self, compiled: CompiledModel) -> float | None:
        """Return the exact log of the prior mass; None if it is not known."""


@dataclass(frozen=True)
class Increasing:
    """The entries of a vector increase: ``x_1 < x_2 < x_3`` and so on.

    Parameters
    ----------
    name : str
        A variable with one axis.
    order : sequence of int, optional
        The entries from the smallest to the largest; those that are left out are free. Default:
        all of them, in their order.

    Examples
    --------
    >>> pymc_anneal.constraint_bayes_factor(idata, pymc_anneal.Increasing("mean"), model=model)
    """

    name: str
    order: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.order is not None:  # hashable, as an immutable object should be
            object.__setattr__(self, "order", tuple(self.order))

    def __call__(self, values: _Values) -> jax.Array:
        """Return the differences of neighbours, shape ``(k - 1,)``."""
        value = values[self.name]
        if jnp.ndim(value) != 1:
            raise ValueError(
                f"'{self.name}' has {jnp.ndim(value)} axes, and `Increasing` orders the entries of "
                "one: pass a function that returns differences."
            )
        if self.order is not None:
            self._check_order(self.order, len(value))
            value = value[np.asarray(self.order)]
        return jnp.diff(value)

    def _check_order(self, order: Sequence[int], size: int) -> None:
        """Raise `ValueError` unless all entries are there, and different: JAX takes others."""
        places = {i % size for i in order if -size <= i < size}
        if len(places) < len(order):
            raise ValueError(
                f"The order of '{self.name}' is {order}, expected different numbers from 0 to "
                f"{size - 1}."
            )

    def log_prior_mass(self, compiled: CompiledModel) -> float | None:
        """Return ``-log k!`` if the entries are exchangeable under the prior, else None."""
        rv = _free_variable(compiled, self.name)
        if rv is None or compiled.log_prior_mass != 0 or not has_exchangeable_entries(rv):
            return None
        size = rv.type.shape[0] if rv.ndim == 1 else None
        if self.order is not None and rv.ndim == 1:
            size = len(set(self.order))
        return None if size is None else -math.lgamma(size + 1)


@dataclass(frozen=True)
class Between:
    """All entries of a variable lie in an interval, ``lower < x < upper``.

    Parameters
    ----------
    name : str
        A variable.
    lower, upper : float
        Ends of the interval; infinite for a one-sided constraint.

    Examples
    --------
    >>> pymc_anneal.constraint_bayes_factor(
    ...     idata, pymc_anneal.Between("effect", lower=0), model=model
    ... )
    """

    name: str
    lower: float = -math.inf
    upper: float = math.inf

    def __post_init__(self) -> None:
        if not self.lower < self.upper or self.lower == -math.inf and self.upper == math.inf:
            raise ValueError(
                f"The interval of '{self.name}' goes from {self.lower} to {self.upper}, expected a "
                "lower end below the upper one, and one of them finite."
            )

    def __call__(self, values: _Values) -> jax.Array:
        """Return the distances to the finite ends."""
        value = jnp.ravel(values[self.name])
        sides = [value - self.lower] if math.isfinite(self.lower) else []
        sides += [self.upper - value] if math.isfinite(self.upper) else []
        return jnp.concatenate(sides)

    def log_prior_mass(self, compiled: CompiledModel) -> float | None:
        """Return the sum of the logs of ``F(u) - F(l)``; None if the prior has random parents."""
        rv = _free_variable(compiled, self.name)
        if rv is None or compiled.log_prior_mass != 0 or rv.owner.op.ndim_supp > 0:
            return None
        if random_parents(compiled.model, rv.owner.inputs):
            return None
        try:
            mass = self._cdf(compiled, rv, self.upper) - self._cdf(compiled, rv, self.lower)
        except NotImplementedError:
            return None
        # A small difference of two distribution functions has lost its digits.
        return float(np.log(mass).sum()) if (mass > _LEAST_MASS).all() else None

    def _cdf(self, compiled: CompiledModel, rv: Variable, at: float) -> np.ndarray:
        if math.isinf(at):
            return np.full(rv.type.shape, float(at > 0))
        graph = compiled.freeze([pm.math.exp(pm.logcdf(rv, np.full(rv.type.shape, at)))])[0]
        return np.asarray(graph.eval(mode=Mode("py", "fast_compile")))


# Prior mass of an entry below which the difference of distribution functions is not used.
_LEAST_MASS = 1e-6


def _free_variable(compiled: CompiledModel, name: str) -> Variable | None:
    """Return a free variable of known shape, None if it is a deterministic."""
    rv = next((rv for rv in compiled.model.free_RVs if rv.name == name), None)
    return None if rv is None or None in rv.type.shape else rv


def compile_slack(
    compiled: CompiledModel, constraint: Callable[[_Values], jax.Array]
) -> Callable[[jax.Array], jax.Array]:
    """Compile the slacks of a constraint as a JAX function of the unconstrained vector.

    Returns
    -------
    Callable
        From ``x`` of shape ``(d,)`` to slacks of shape ``(k,)``, positive inside of the region.

    Raises
    ------
    ValueError
        The constraint uses a variable that the model lacks, or returns no slack.
    TypeError
        It returns booleans.
    """
    model = compiled.model
    variables = [v for v in model.unobserved_RVs if v.name not in compiled._constrain.left_out]
    names = [v.name for v in variables]
    graph = jaxify(model.value_vars, compiled.freeze(model.replace_rvs_by_values(variables)))

    def slack(x: jax.Array) -> jax.Array:
        values = map(jnp.asarray, graph(*split_values(compiled.variables, x)))
        return jnp.ravel(jnp.asarray(constraint(dict(zip(names, values, strict=True)))))

    try:
        found = jax.eval_shape(slack, np.zeros(compiled.ndim))
    except KeyError as error:
        raise ValueError(
            f"The constraint uses variable {error}, which is not one of the model's: {names}."
        ) from error
    if found.dtype == bool:
        raise TypeError(
            "The constraint returns whether it holds, expected by how much: numbers that are "
            "positive inside of the region, `x - y` for `x > y`."
        )
    if found.shape[0] == 0:
        raise ValueError("The constraint returns no slack, expected at least one inequality.")
    return slack
