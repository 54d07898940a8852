"""Properties of a model that matter for the interpretation of a result."""

from collections.abc import Callable
from typing import TypeVar

import pymc as pm

from pymc_anneal.model.missing_values import ObservedPartRV
from pymc_anneal.model.variables import HUGE

IN_UNIT_SCALE = (
    "Draws of the prior overflow in the model's own coordinates: hierarchical variables are those "
    "of unit scale, in which none does."
)

_Found = TypeVar("_Found")


def list_notes(
    model: pm.Model, log_mass: float, log_mass_mcse: float, overflows: bool
) -> list[str]:
    """Return properties of a model that matter for the interpretation of a result.

    `log_mass` is the log of the prior mass on the space onto which the transforms map, in nats.
    """
    notes = []
    # A model that is made of functions has its likelihood as a potential; see `Target`.
    likelihood = getattr(model, "likelihood_potential", None)
    potentials = [p.name for p in model.potentials if p.name != likelihood]
    if potentials:
        names = ", ".join(f"'{name}'" for name in potentials)
        notes.append(
            f"Potential {names} is tempered with the likelihood; the evidence is the integral of "
            "prior x likelihood x potential."
        )
    parts = [f"'{rv.name}'" for rv in model.observed_RVs if isinstance(rv.owner.op, ObservedPartRV)]
    if parts:
        notes.append(
            f"What is missing beside {', '.join(parts)} is integrated out exactly, and drawn given "
            "the other variables."
        )
    if overflows:
        notes.append(
            f"The prior reaches beyond 1e308. Where a variable is beyond {HUGE:g} and the log "
            "likelihood is not a number, the likelihood counts as zero."
        )
    if log_mass != 0:
        notes.append(
            "A transform maps onto a part of the prior's support. The prior is normalised on "
            f"that part, whose log mass is {log_mass:.6g}"
            f"{f' +- {log_mass_mcse:.2g}, counted in the error' if log_mass_mcse else ''}."
        )
    return notes


def or_noted(find: Callable[[], _Found], fallbacks: list[str], note: str) -> _Found | None:
    """Return what is found in the graph or program of a model; None if it cannot be.

    Then the note, a sentence with ``{}`` in the place of the error, is added to the fallbacks.
    """
    try:
        return find()
    except Exception as error:  # Of any class: what PyMC, PyTensor and JAX make of a model.
        fallbacks.append(note.format(first_line(error)))
        return None


def first_line(error: Exception) -> str:
    """Return the class of an error and the first line of its message."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
