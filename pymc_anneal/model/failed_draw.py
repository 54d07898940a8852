"""Why a draw from a prior fails: the variable, and the values of its parents.

NumPy names no variable ("high - low < 0"), and PyTensor a graph. The variables are drawn one after
another, each given draws of its parents, until one fails as the prior did.
"""

import numpy as np
import pymc as pm

from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.type import TensorType

from pymc_anneal.model.frozen_data import freeze_shared
from pymc_anneal.model.notes import first_line
from pymc_anneal.model.seeded_draws import call_seeded, compile_python

# Draws of the parents at which a variable is tried; they take two seconds.
_TRIED = 20_000


def explain_failed_draw(model: pm.Model, error: Exception) -> Exception:
    """Return an error that names the variable whose draws fail; the same one if none does.

    Parameters
    ----------
    model
    error
        The error that a draw of the whole prior raised.
    """
    for rv in model.free_RVs:
        try:
            found = _try_variable(model, rv)
        except Exception:  # Of any class: the first error is the one to show.
            continue
        if found is not None:
            return found
    return error


def _try_variable(model: pm.Model, rv: Variable) -> Exception | None:
    """Draw a variable given draws of its parents; return an error that explains a failure."""
    above = set(ancestors(rv.owner.inputs))
    parents = [parent for parent in model.free_RVs if parent in above]
    inputs = [parent.type() for parent in parents]
    parameters = [p for p in _parameters(rv) if isinstance(p.type, TensorType)]
    given = dict(zip(parents, inputs, strict=True))
    graphs = freeze_shared(clone_replace([rv, *parameters], given))
    draw = compile_python(inputs, graphs[:1])
    draw_parents = compile_python([], freeze_shared(parents))
    tried = _TRIED if parents else 1
    for state in np.random.SeedSequence(0).generate_state(tried, np.uint64):
        values = call_seeded(draw_parents, state) if parents else []
        try:
            call_seeded(draw, state, *values)
        except NotImplementedError as failure:
            return NotImplementedError(
                f"Variable '{rv.name}' has no forward draws, with which annealing starts "
                f"({first_line(failure)})."
            )
        except Exception as failure:  # Of any class: that of a distribution.
            found = compile_python(inputs, graphs[1:])(*values)
            return ValueError(_describe(rv, parents, values, found, first_line(failure)))
    return None


def _parameters(rv: Variable) -> list[Variable]:
    try:
        return list(rv.owner.op.dist_params(rv.owner))
    except Exception:  # Of any class: ops without a signature cannot tell.
        return []


def _describe(
    rv: Variable,
    parents: list[Variable],
    values: list[np.ndarray],
    parameters: list[np.ndarray],
    reason: str,
) -> str:
    given = ", ".join(f"'{p.name}' = {_short(v)}" for p, v in zip(parents, values, strict=True))
    words = ", ".join(map(_short, parameters))
    return (
        f"The prior of variable '{rv.name}' cannot be drawn with the parameters ({words}): "
        f"{reason}."
        + (f" These are its parameters for {given}." if given else "")
        + " They have to "
        "be valid for all values of its parents, or the prior is no density that integrates to "
        "one: restrict the parents (pm.Truncated), or bound the parameters (pm.math.minimum, "
        "pm.math.maximum)."
    )


def _short(value: np.ndarray) -> str:
    return np.array2string(np.asarray(value), precision=4, threshold=6, edgeitems=2)
