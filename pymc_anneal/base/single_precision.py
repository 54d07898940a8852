"""Functions of 64-bit numbers, computed with 32-bit numbers.

A gradient that only moves particles does not have to be exact: trajectories of Hamiltonian Monte
Carlo are reversible and preserve volume whatever the force, and a Langevin proposal has a density
whatever the drift. The acceptance step, with log densities of 64 bits, makes both exact. Half the
bits take half the time on processors, and a small part of it on graphics cards.

The operations of a function are found by :func:`jax.make_jaxpr` and repeated, one after the other,
with arrays of ``float32`` in the place of those of ``float64``.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jax.extend import core

# Parameters of operations that hold a program to be carried out in their place.
_INLINED = ("jaxpr", "call_jaxpr")
# Operations with a program that they carry out themselves, several times or not at all.
_CONTROL = ("scan", "while", "cond", "custom_linear_solve")


def in_single_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes with 32-bit numbers what another computes with 64 bits.

    Parameters
    ----------
    function : callable
        JAX function of pytrees of arrays. Operations that call the host keep their types.

    Returns
    -------
    callable
        Floating-point results are ``float32``; they are NaN or infinite where numbers are too
        large or too small for it.
    """

    def single(*arguments: Any) -> Any:
        closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        found = _repeat(closed.jaxpr, closed.consts, jax.tree.leaves(arguments))
        return jax.tree.unflatten(jax.tree.structure(shapes), found)

    return single


def read_through(
    jaxpr: Any,
    consts: Sequence[Any],
    args: Sequence[Any],
    line: Callable[[Any, list[Any]], Sequence[Any]],
) -> list[Any]:
    """Return the outputs of a program whose lines, with their inputs, a function carries out."""
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def read(v: Any) -> Any:
        return v.val if isinstance(v, core.Literal) else values[v]

    for eqn in jaxpr.eqns:
        found = line(eqn, [read(v) for v in eqn.invars])
        values.update(zip(eqn.outvars, found, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _repeat(program: core.Jaxpr, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    """Carry out a program with 32-bit numbers."""
    return [_rounded(x) for x in read_through(program, constants, arguments, _carry_out)]


def _carry_out(operation: Any, given: list[Any]) -> Sequence[Any]:
    """Carry out one operation with 32-bit numbers."""
    inputs = [_rounded(x) for x in given]
    primitive, parameters = operation.primitive, operation.params
    if "callback" in primitive.name:
        wanted = [variable.aval.dtype for variable in operation.invars]
        exact = [jnp.asarray(x, dtype) for x, dtype in zip(inputs, wanted, strict=True)]
        return [_rounded(x) for x in primitive.bind(*exact, **parameters)]
    inlined = [p for name, p in parameters.items() if name in _INLINED and _is_program(p)]
    if inlined and primitive.name not in _CONTROL:
        return _repeat(*_parts(inlined[0]), inputs)
    own = {name: _convert(value) for name, value in parameters.items()}
    found = primitive.bind(*inputs, **own)
    results: Sequence[Any] = found if primitive.multiple_results else [found]
    return results


def _is_program(parameter: Any) -> bool:
    return hasattr(parameter, "eqns") or hasattr(parameter, "jaxpr")


def _parts(program: Any) -> tuple[core.Jaxpr, Sequence[Any]]:
    """Return the operations and the constants of a program."""
    closed = hasattr(program, "consts")
    return (program.jaxpr, program.consts) if closed else (program, ())


def _convert(parameter: Any) -> Any:
    """Return a parameter of an operation on 32-bit numbers."""
    if _is_program(parameter):
        program, constants = _parts(parameter)
        inputs = [
            jax.ShapeDtypeStruct(a.shape, _narrowed(a.dtype))  # type: ignore[no-untyped-call]
            for a in parameter.in_avals
        ]
        return jax.make_jaxpr(lambda *x: _repeat(program, constants, x))(*inputs)
    if isinstance(parameter, tuple):
        parts = [_convert(part) for part in parameter]
        return type(parameter)(*parts) if hasattr(parameter, "_fields") else tuple(parts)
    return _narrowed(parameter) if isinstance(parameter, np.dtype) else parameter


def _narrowed(dtype: Any) -> Any:
    return np.dtype(np.float32) if dtype == np.float64 else dtype


def _rounded(value: Any) -> Any:
    """Return an array of 64-bit numbers with 32 bits; anything else as it is."""
    if isinstance(value, float):
        return np.float32(value)
    if getattr(value, "dtype", None) != np.float64:
        return value
    return value.astype(np.float32)
