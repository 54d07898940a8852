"""The arrays that a log density sums, read off its program, and the terms that they hold."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jax.extend import core

from pymc_anneal.model.dependence import Mask
from pymc_anneal.model.late_choice import replay_late

# Relative error of a sum of terms: PyMC computes those of Bernoulli variables with 32 bits.
_TOLERANCE = 1e-6


class Summand(NamedTuple):
    """An array that is summed, the factors that its sum is multiplied by, and its output."""

    variable: Any
    factors: tuple[Any, ...]
    output: int


def find_summands(program: Any) -> tuple[Summand, ...]:
    """Return the arrays that the outputs of a flat program, all of them scalars, are sums of."""
    made = {v: eqn for eqn in program.jaxpr.eqns for v in eqn.outvars}
    found = list[Summand]()
    for number, output in enumerate(program.jaxpr.outvars):
        _collect(output, (), number, made, found)
    return tuple(found)


def _collect(
    variable: Any, factors: tuple[Any, ...], output: int, made: dict[Any, Any], out: list[Summand]
) -> None:
    """Follow sums, and products of a number with a number, back to the arrays that are summed.

    A factor has to be a number of which the coordinates are known not to change it: a literal.
    """
    eqn: Any = None if isinstance(variable, core.Literal) else made.get(variable)
    name = "" if eqn is None else eqn.primitive.name
    if name in ("add", "sub") and all(v.aval.shape == () for v in eqn.invars):
        sign = ((), ()) if name == "add" else ((), (-1.0,))
        for v, own in zip(eqn.invars, sign, strict=True):
            _collect(v, (*factors, *own), output, made, out)
        return
    if name == "mul" and variable.aval.shape == ():
        known = [isinstance(v, core.Literal) for v in eqn.invars]
        if any(known):
            factor, other = eqn.invars if known[0] else reversed(eqn.invars)
            _collect(other, (*factors, float(factor.val)), output, made, out)
            return
    if name == "neg" and variable.aval.shape == ():
        _collect(eqn.invars[0], (*factors, -1.0), output, made, out)
        return
    linear = name in ("convert_element_type", "reshape", "squeeze", "copy")
    if linear or (name == "reduce_sum" and variable.aval.shape == ()):
        _collect(eqn.invars[0], factors, output, made, out)
        return
    out.append(Summand(variable, factors, output))


def summed_arrays(
    program: Any,
    summands: Sequence[Summand],
    masks: Mapping[Any, Mask] | None = None,
    forms: Mapping[str, Callable[..., Any]] | None = None,
) -> Callable[..., list[jax.Array]]:
    """Return the JAX function from the inputs of a program to some of its summands, flattened.

    With `masks` of coordinates that have many values, choices by them are made late
    (`late_choice.py`), and `forms` are functions to take in place of primitives, by their names.
    """
    outputs = [s.variable for s in summands]
    cut = program.replace(jaxpr=program.jaxpr.replace(outvars=outputs))

    def evaluate(*inputs: jax.Array) -> list[jax.Array]:
        if masks is None:
            found = core.jaxpr_as_fun(cut)(*inputs)
        else:
            found = replay_late(cut, inputs, masks, forms or {})
        return [
            np.prod(s.factors) * jnp.asarray(value, jnp.float64).ravel()
            for s, value in zip(summands, found, strict=True)
        ]

    return evaluate


def rows_of(summand: Summand, masks: dict[Any, Mask], count: int) -> np.ndarray:
    """Return on which of ``count`` coordinates each term of an array depends, one row each."""
    mask = None if isinstance(summand.variable, core.Literal) else masks[summand.variable]
    size = size_of(summand.variable)
    return np.zeros((size, count), bool) if mask is None else mask.reshape(size, count)


def size_of(variable: Any) -> int:
    """Return the number of entries of an array."""
    return int(np.prod(variable.aval.shape))


def colour_apart(depends: np.ndarray) -> np.ndarray:
    """Colour coordinates so that no term, a row, depends on two of one colour: greedily."""
    several = depends[depends.sum(axis=1) > 1].astype(float)
    joined = several.T @ several > 0
    colour = np.full(depends.shape[1], -1)
    for j in range(len(colour)):
        taken = set(colour[joined[j]].tolist())
        colour[j] = next(c for c in range(len(colour)) if c not in taken)
    return colour


def is_close(found: jax.Array, wanted: jax.Array, scale: Any = None) -> bool:
    """Whether sums agree wherever those wanted are finite, relative to a scale if not to them."""
    finite = np.isfinite(wanted)
    size = np.abs(np.where(finite, wanted if scale is None else scale, 0.0))
    difference = np.abs(np.where(finite, found, 0.0) - np.where(finite, wanted, 0.0))
    return bool((difference <= _TOLERANCE * (1 + size)).all())
