"""Checks of a transition that the user has given: coordinates, parameters, whole numbers."""

from collections.abc import Mapping

import numpy as np

from pymc_anneal.base.contracts import Parameter, Transition
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.variables import FreeVariable
from pymc_anneal.transitions.on_coordinates import BlockTransition

# Shares that a kernel may have, and whether each may be 1.
_SHARES: Mapping[str, bool] = {
    "momentum_persistence": False,
    "jitter": True,
    "target_accept": False,
}


def check_transition(kernel: Transition, compiled: CompiledModel, names: list[str]) -> None:
    """Raise unless a kernel moves coordinates of the model, with parameters that make sense.

    Raises
    ------
    TypeError
        A discrete variable is not moved, or as real numbers; or a kernel moves no blocks.
    ValueError
        There is no kernel, coordinates are repeated or not of the model, or a parameter of a kernel
        is out of its range.
    """
    if not kernel.parts:
        raise ValueError(f"`transition` is a {type(kernel).__name__} of no kernels: pass some.")
    for part in kernel.parts if compiled.ndim else ():  # a point null has none to move
        _check_part(part, compiled.ndim)
    for variable in compiled.discrete:
        _check_moves(kernel, variable, names)


def _check_part(part: Transition, ndim: int) -> None:
    moved = part.moved_coordinates
    moved = range(ndim) if moved is None else moved
    wrong = [j for j in moved if not 0 <= j < ndim]
    if wrong or not moved or len(set(moved)) < len(moved):
        raise ValueError(
            f"Transition {part.name} moves the coordinates {list(moved)}, expected different ones, "
            f"at least one, of those of the model: 0 to {ndim - 1}."
        )
    inner = part.kernel if isinstance(part, BlockTransition) else part
    if inner is not part and not inner.restrictable:
        raise TypeError(
            f"A BlockTransition cannot hold a {type(inner).__name__}: expected a kernel that moves "
            "all coordinates of a block of particles, HMC(...), MALA(...) and the like."
        )
    for name, value in part.tuning.parameters.items():
        expected = _fault(name, value, len(moved))
        if value is not None and expected:
            raise ValueError(f"`{name}` of {part.name} is {value}, expected {expected}.")
    for name, closed in _SHARES.items():
        value = getattr(inner, name, 0.5)
        if not (0 <= value < 1 or (closed and value == 1)):
            end = "1" if closed else "below 1"
            raise ValueError(
                f"`{name}` of {part.name} is {value}, expected a number from 0 to {end}."
            )


def _fault(name: str, value: Parameter, width: int) -> str:
    """Return what was expected of a parameter for so many coordinates; "" if it is so."""
    array = np.asarray(value)
    if name == "n_steps":
        whole = array.ndim == 0 and np.issubdtype(array.dtype, np.integer) and array >= 1
        return "" if whole else "a positive whole number"
    finite = np.issubdtype(array.dtype, np.number) and np.isfinite(array).all()
    if name == "step_size":
        return "" if finite and array.ndim == 0 and array > 0 else "a positive number"
    spread = np.diagonal(array) if array.ndim == 2 else array
    if finite and (spread > 0).all() and array.shape in ((), (width,), (width, width)):
        return ""
    return (
        f"a positive number, {width} of them, or a lower triangular matrix of shape "
        f"({width}, {width}) with a positive diagonal"
    )


def _check_moves(kernel: Transition, variable: FreeVariable, names: list[str]) -> None:
    """Raise unless every coordinate of a discrete variable is moved, as whole numbers."""
    own = set(range(variable.start, variable.stop))
    real = [part for part in kernel.parts if _moves_as_real(part, own)]
    moved = {j for part in kernel.parts for j in part.moved_coordinates or ()}
    if not real and own <= moved:
        return
    name, fault = (
        (real[0].name, "moves real numbers") if real else (kernel.name, "does not move it")
    )
    raise TypeError(
        f"Variable '{variable.name}' is discrete, and transition {name} {fault}. Name the "
        f"transition (one of {names}) to have the discrete variables moved "
        "beside it, or pass default_transition(kernel, model=model)."
    )


def _moves_as_real(part: Transition, coordinates: set[int]) -> bool:
    """Whether a kernel would move some of the coordinates off the whole numbers."""
    if part.moves_integers:
        return False
    moved = part.moved_coordinates
    return moved is None or not coordinates.isdisjoint(moved)
