"""Choice of the transition, with kernels for discrete variables where a model has them.

The continuous variables are moved by a kernel of their own, given the discrete ones; then those of
few values by Gibbs sweeps, and the other whole numbers by random walks. Where there are not too
many, one or two of few values change together with the continuous ones besides. A model of which a
part has no gradient moves by a random walk unless another kernel is given. Coordinates with
supports of about the same size share a Gibbs kernel, which evaluates as many values for each of
them as the largest support has.
"""

import warnings

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Literal, TypeAlias

import pymc as pm

from pymc_anneal.adaptation.flat_likelihood import FlatLikelihoodError
from pymc_anneal.base.arguments import resolve
from pymc_anneal.base.caller import levels_to_caller
from pymc_anneal.base.contracts import Transition
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.derivatives import NO_GRADIENT, SMOOTH, Derivatives
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.model.separate_terms import SeparateTerms, separate_terms
from pymc_anneal.model.variables import FreeVariable
from pymc_anneal.pipeline.check_transition import check_transition
from pymc_anneal.transitions.composition import Composition
from pymc_anneal.transitions.discrete_walk import DiscreteRandomWalk
from pymc_anneal.transitions.gibbs import Gibbs
from pymc_anneal.transitions.hmc import HMC
from pymc_anneal.transitions.joint_flip import JointFlip
from pymc_anneal.transitions.on_coordinates import BlockTransition
from pymc_anneal.transitions.random_walk import RandomWalkMetropolis

TransitionName: TypeAlias = Literal["auto", "hmc", "random_walk"]
TRANSITIONS: Mapping[str, Callable[[], Transition]] = {
    "auto": HMC,
    "hmc": HMC,
    "random_walk": RandomWalkMetropolis,
}

# Largest support for Gibbs: above it a sweep of all values costs more than a random walk.
_MAX_VALUES = 32
# Entries of few values of which any two may change together: a pair of more is met too seldom.
_MAX_FLIPPED = 32
# Real coordinates that are drawn anew with them; a curvature of more takes longer than all else.
_MAX_REDRAWN = 16


def default_transition(
    continuous: TransitionName | Transition = "auto",
    *,
    model: pm.Model | CompiledModel | None = None,
) -> Transition:
    """Return the default transition of a model.

    :func:`sample_ais` makes it for a transition that is given by name; call this function to
    choose the settings of the continuous kernel.

    Parameters
    ----------
    continuous : {"auto", "hmc", "random_walk"} or Transition
        Kernel of the continuous variables; "auto": :class:`HMC`, or
        :class:`RandomWalkMetropolis` if a part of the model has no gradient. Its ``scale`` is that
        of the continuous coordinates.
    model : pymc.Model or CompiledModel, optional
        The model, or the result of :func:`compile_model`. Default: the model on the context stack.

    Returns
    -------
    Transition
        A :class:`Composition`; ``continuous`` itself if no variable is discrete; without it if
        all are.

    Raises
    ------
    TypeError
        ``continuous`` cannot move a block of coordinates.
    NotImplementedError
        ``continuous`` needs gradients, and a part of the model has none.

    Examples
    --------
    >>> kernel = pymc_anneal.default_transition(pymc_anneal.HMC(n_steps=10), model=model)
    >>> pymc_anneal.sample_ais(model=model, transition=kernel)
    """
    compiled = as_compiled(model)
    kernel = _continuous_kernel(continuous, compiled, "continuous")
    if not compiled.discrete:
        return kernel
    if not kernel.restrictable:
        raise TypeError(
            f"`continuous` is a {type(kernel).__name__}, expected a kernel that moves all "
            f"coordinates of a block of particles: one of {sorted(TRANSITIONS)}, or HMC(...), "
            "MALA(...) and the like."
        )
    rest = _coordinates(v for v in compiled.variables if not v.discrete)
    parts: list[Transition] = [BlockTransition(kernel, rest)] if rest else []
    separate = separate_terms(compiled)
    parts += _gibbs_kernels(compiled.discrete, separate)
    # Where terms join few entries, these move well by themselves, and curvatures take long to
    # compile: of a hidden chain of 20 variables, 30 of 84 CPU seconds.
    parts += _joint_flips(compiled, rest) if separate is None else []
    walking = _coordinates(v for v in compiled.discrete if not _has_few_values(v))
    parts += [DiscreteRandomWalk(walking, separate=separate)] if walking else []
    return parts[0] if len(parts) == 1 else Composition(parts)


def choose_transition(
    transition: TransitionName | Transition, compiled: CompiledModel
) -> Transition:
    """Return the transition of a run: by name, or a kernel that moves discrete variables too.

    Raises
    ------
    TypeError
        A kernel does not move the discrete variables, or moves them as real numbers.
    ValueError
        The name is unknown, or coordinates or parameters of a kernel make no sense.
    NotImplementedError
        The kernel needs gradients, and a part of the model has none.

    Warns
    -----
    UserWarning
        The transition is "auto", and for want of gradients it is a random walk.
    """
    kernel = _continuous_kernel(transition, compiled, "transition")
    if isinstance(transition, str):
        if transition == "auto" and _lacks_gradient(compiled):
            _warn_of_random_walk(compiled)
        return default_transition(kernel, model=compiled)
    check_transition(kernel, compiled, sorted(TRANSITIONS))
    return kernel


def walk_along_steps(
    compiled: CompiledModel, transition: Transition, error: FlatLikelihoodError
) -> tuple[CompiledModel, Transition]:
    """Return a model and a transition that walks along flat steps of its likelihood.

    The other coordinates move by gradients as before; where there are none, the model runs as one
    without gradients.
    """
    flat, reason = set(error.coordinates), str(error)
    if flat >= set(_coordinates(v for v in compiled.variables if not v.discrete)):
        note = f"{reason} The model runs as one without gradients."
        missing = Derivatives(NO_GRADIENT, reason)
        compiled = replace(compiled, derivatives=missing, notes=(*compiled.notes, note))
        return compiled, choose_transition("auto", compiled)
    names = [v.name for v in compiled.variables if not flat.isdisjoint(_coordinates([v]))]
    note = f"{reason} Random walks move {', '.join(map(repr, names))}; gradients move the others."
    parts = [block for part in transition.parts for block in _split(part, flat, compiled.ndim)]
    return replace(compiled, notes=(*compiled.notes, note)), Composition(parts)


def _split(part: Transition, flat: set[int], ndim: int) -> list[Transition]:
    """Return the kernel of coordinates with slopes, and the random walk of the others."""
    if not part.tuning.uses_gradient:
        return [part]
    moved = range(ndim) if part.moved_coordinates is None else part.moved_coordinates
    kernel = part.kernel if isinstance(part, BlockTransition) else part
    smooth, steps = [j for j in moved if j not in flat], [j for j in moved if j in flat]
    blocks = [BlockTransition(kernel, smooth)] if smooth else []
    return [*blocks, BlockTransition(RandomWalkMetropolis(), steps)] if steps else [part]


def _continuous_kernel(
    given: TransitionName | Transition, compiled: CompiledModel, name: str
) -> Transition:
    """Return the kernel of the continuous variables, and raise if it lacks gradients."""
    kernel = resolve(given, TRANSITIONS, name, Transition)
    if not _lacks_gradient(compiled):
        return kernel
    if isinstance(given, str) and given == "auto":
        return RandomWalkMetropolis()
    if any(part.tuning.uses_gradient for part in kernel.parts):
        compiled.derivatives.require(f"`{name}` {kernel.name}")
    return kernel


def _lacks_gradient(compiled: CompiledModel) -> bool:
    """Whether continuous variables have to move without gradients."""
    continuous = any(not variable.discrete for variable in compiled.variables)
    return continuous and compiled.derivatives.order == NO_GRADIENT


def _warn_of_random_walk(compiled: CompiledModel) -> None:
    start = "The model has no gradient"
    missing = next((note for note in compiled.notes if note.startswith(start)), "")
    if not missing:  # It has one, which is zero.
        return
    warnings.warn(
        f"{missing} Its continuous variables move by random-walk Metropolis, which takes many more "
        "evaluations than HMC in more than a few dimensions. A gradient of the Op (`pullback`, or "
        "`grad` before PyTensor 3), or jax.numpy in the functions of a `Target`, avoids it; "
        "`transition='random_walk'` takes it without this warning.",
        stacklevel=levels_to_caller(),
    )


def _has_few_values(variable: FreeVariable) -> bool:
    support = variable.support
    return support is not None and all(high - low < _MAX_VALUES for low, high in support)


def _gibbs_kernels(
    variables: tuple[FreeVariable, ...], separate: SeparateTerms | None
) -> list[Gibbs]:
    """Return Gibbs kernels for the variables of few values, by the size of the support."""
    groups: dict[int, list[tuple[int, tuple[int, int]]]] = {}
    for variable in filter(_has_few_values, variables):
        for j, (low, high) in enumerate(variable.support or (), start=variable.start):
            groups.setdefault((high - low).bit_length(), []).append((j, (low, high)))
    return [
        Gibbs([j for j, _ in group], [bounds for _, bounds in group], separate=separate)
        for _, group in sorted(groups.items())
    ]


def _joint_flips(compiled: CompiledModel, rest: list[int]) -> list[JointFlip]:
    """Return the kernel that changes two entries, or one with the continuous coordinates."""
    few = [
        (j, bounds)
        for variable in filter(_has_few_values, compiled.discrete)
        for j, bounds in enumerate(variable.support or (), start=variable.start)
        if bounds[1] > bounds[0]
    ]
    smooth = compiled.derivatives.order == SMOOTH
    redrawn = rest if smooth and len(rest) <= _MAX_REDRAWN else []
    if not few or len(few) > _MAX_FLIPPED or (len(few) == 1 and not redrawn):
        return []
    coordinates, support = zip(*few, strict=True)
    return [JointFlip(coordinates, support, redrawn)]


def _coordinates(variables: Iterable[FreeVariable]) -> list[int]:
    return [j for v in variables for j in range(v.start, v.stop)]
