"""Degrees of polynomials, read off the program that computes them.

The degree of an array is the largest one of its entries as polynomials in some of the inputs, with
coefficients that depend on the others:

    deg(a + b) = max(deg a, deg b),    deg(a b) = deg a + deg b,    deg(A^-1 b) = deg b.

It may be too large, never too small: what no rule covers has none, `NOT_POLYNOMIAL`, and so has
what decides a choice or a place by these inputs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from jax.extend import core

NOT_POLYNOMIAL = np.inf

# Entries are moved, added up, chosen or kept: every input counts. What chooses has no degree if it
# depends on the variables, since conditions and places are no real numbers.
_LINEAR = frozenset(
    """
    add add_any broadcast_in_dim concatenate convert_element_type copy copy_p cumsum dynamic_slice
    dynamic_update_slice expand_dims gather neg pad reduce_sum reshape rev scatter scatter-add
    select_n slice split squeeze stack stop_gradient sub transpose
    """.split()
)
_PRODUCTS = frozenset(["mul", "dot_general", "conv_general_dilated"])
# Linear in one input, by its place, if the other does not depend on the variables.
_LINEAR_IN = {"div": 0, "triangular_solve": 1}


def degrees(program: Any, inputs: Mapping[int, float]) -> Callable[[Any], float]:
    """Return the degree of each variable of a flat program, as a function.

    Those of inputs are given by their place; others are 0.
    """
    jaxpr = program.jaxpr
    found = dict[Any, float]({v: inputs.get(i, 0.0) for i, v in enumerate(jaxpr.invars)})
    constants = dict(zip(jaxpr.constvars, program.consts, strict=True))

    def degree(v: Any) -> float:
        return 0.0 if isinstance(v, core.Literal) else found.get(v, 0.0)

    for eqn in jaxpr.eqns:
        own = [degree(v) for v in eqn.invars]
        value = _degree_of(eqn, own, constants) if any(own) else 0.0
        found.update(dict.fromkeys(eqn.outvars, value))
    return degree


def _degree_of(eqn: Any, own: Sequence[float], constants: Mapping[Any, Any]) -> float:
    name = eqn.primitive.name
    if not jnp.issubdtype(eqn.outvars[0].aval.dtype, jnp.floating):
        return NOT_POLYNOMIAL
    if name in _LINEAR:
        return max(own)
    if name in _PRODUCTS:
        return sum(own)
    if name in _LINEAR_IN:
        place = _LINEAR_IN[name]
        return NOT_POLYNOMIAL if own[1 - place] else own[place]
    power = _power(eqn, constants)
    return NOT_POLYNOMIAL if power is None else power * own[0]


def _power(eqn: Any, constants: Mapping[Any, Any]) -> float | None:
    """Return the whole number to which an operation raises its first input; None if to none."""
    name = eqn.primitive.name
    if name == "square":
        return 2
    if name == "integer_pow":
        power = eqn.params["y"]
        return power if power >= 0 else None
    if name != "pow":
        return None
    v = eqn.invars[1]
    value = np.asarray(v.val if isinstance(v, core.Literal) else constants.get(v, np.nan))
    whole = (value == np.floor(value)).all() and (value >= 0).all()
    return float(value.max(initial=0)) if whole else None
