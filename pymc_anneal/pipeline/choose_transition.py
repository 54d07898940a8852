"""Which kernels move the variables of a model that has discrete ones.

The continuous variables are moved by a kernel of their own, given the discrete ones; then those of
few values by Gibbs sweeps, and the other whole numbers by random walks. Coordinates with supports
of about the same size share a Gibbs kernel, which evaluates as many values for each of them as the
largest support has.
"""

from collections.abc import Callable
from typing import Any

import pymc as pm

from pymc_anneal.base.arguments import resolve
from pymc_anneal.base.contracts import Transition
from pymc_anneal.model.compile import CompiledModel, as_compiled
from pymc_anneal.model.graphs import Variable
from pymc_anneal.transitions.blackjax import BlackJAXKernel
from pymc_anneal.transitions.composition import Composition, parts_of
from pymc_anneal.transitions.discrete_walk import DiscreteRandomWalk
from pymc_anneal.transitions.generalized_hmc import GeneralizedHMC
from pymc_anneal.transitions.gibbs import Gibbs
from pymc_anneal.transitions.hmc import HMC
from pymc_anneal.transitions.mala import MALA
from pymc_anneal.transitions.on_coordinates import BlockTransition
from pymc_anneal.transitions.random_walk import RandomWalkMetropolis

TRANSITIONS: dict[str, Callable[[], Transition]] = {
    "hmc": HMC,
    "generalized_hmc": GeneralizedHMC,
    "mala": MALA,
    "random_walk": RandomWalkMetropolis,
}


# Above it a sweep of all values costs more than the random walk that finds its way among them.
_MAX_VALUES = 32


def default_transition(
    continuous: str | Transition = "hmc", *, model: pm.Model | CompiledModel | None = None
) -> Transition:
    """Return a transition for a model with discrete variables.

    :func:`sample_ais` does this by itself for a transition that is named; this is for settings of
    your own.

    Parameters
    ----------
    continuous
        What moves the continuous variables: "hmc", "generalized_hmc", "mala", "random_walk",
        or a kernel. Its ``scale`` is that of the continuous coordinates.
    model
        The model, or the result of :func:`compile_model`. Default: the model on the context stack.

    Returns
    -------
    Transition
        A :class:`Composition`; ``continuous`` itself where no variable is discrete; without it
        where all are.

    Raises
    ------
    TypeError
        ``continuous`` cannot be one of several kernels.

    Examples
    --------
    >>> kernel = pymc_anneal.default_transition(pymc_anneal.HMC(n_steps=10), model=model)
    >>> pymc_anneal.sample_ais(model=model, transition=kernel)
    """
    compiled = as_compiled(model)
    kernel: Any = resolve(continuous, TRANSITIONS, "continuous", Transition)
    if not compiled.discrete:
        return kernel
    if isinstance(kernel, BlackJAXKernel | Composition | BlockTransition):
        raise TypeError(
            f"`continuous` is a {type(kernel).__name__}, expected a kernel that moves all "
            f"coordinates of a block of particles: one of {sorted(TRANSITIONS)}, or HMC(...), "
            "MALA(...) and the like."
        )
    rest = _coordinates(v for v in compiled.variables if not v.discrete)
    parts: list[Any] = [BlockTransition(kernel, rest)] if rest else []
    parts += _gibbs(compiled.discrete)
    walked = _coordinates(v for v in compiled.discrete if not _is_small(v))
    parts += [DiscreteRandomWalk(walked)] if walked else []
    return parts[0] if len(parts) == 1 else Composition(parts)


def transition_for(transition: str | Transition, compiled: CompiledModel) -> Transition:
    """Return the transition of a run, as :func:`sample_ais` takes it.

    Raises
    ------
    TypeError
        An object that does not move the discrete variables, or moves them as real numbers.
    ValueError
        An unknown name.
    """
    kernel = resolve(transition, TRANSITIONS, "transition", Transition)
    if isinstance(transition, str):
        return default_transition(kernel, model=compiled)
    for variable in compiled.discrete:
        own = set(range(variable.start, variable.stop))
        wrong = [part for part in parts_of(kernel) if _moves_as_real(part, own)]
        moved = {j for part in parts_of(kernel) for j in getattr(part, "coordinates", ())}
        if wrong or not own <= moved:
            name = getattr((wrong or [kernel])[0], "name", type((wrong or [kernel])[0]).__name__)
            fault = "moves real numbers" if wrong else "does not move it"
            raise TypeError(
                f"Variable '{variable.name}' is discrete, and transition {name} {fault}. Name the "
                f"transition (one of {sorted(TRANSITIONS)}) to have the discrete variables moved "
                "beside it, or pass default_transition(kernel, model=model)."
            )
    return kernel


def _moves_as_real(part: Transition, coordinates: set[int]) -> bool:
    """Whether a kernel would move some coordinates off the whole numbers.

    One that does not say which it moves is taken to move all.
    """
    moved = getattr(part, "coordinates", None)
    if moved is None:
        return True
    return isinstance(part, BlockTransition) and not coordinates.isdisjoint(moved)


def _is_small(variable: Variable) -> bool:
    support = variable.support
    return support is not None and all(high - low < _MAX_VALUES for low, high in support)


def _gibbs(variables: tuple[Variable, ...]) -> list[Gibbs]:
    """Return Gibbs kernels for the variables of few values, by the size of the support."""
    groups: dict[int, list[tuple[int, tuple[int, int]]]] = {}
    for variable in filter(_is_small, variables):
        for j, (low, high) in enumerate(variable.support or (), start=variable.start):
            groups.setdefault((high - low).bit_length(), []).append((j, (low, high)))
    return [
        Gibbs([j for j, _ in group], [bounds for _, bounds in group])
        for _, group in sorted(groups.items())
    ]


def _coordinates(variables) -> list[int]:
    return [j for v in variables for j in range(v.start, v.stop)]
