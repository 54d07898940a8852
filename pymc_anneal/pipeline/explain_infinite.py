"""An infinite evidence, in the words of the model (`adaptation/infinite_evidence.py`)."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pymc_anneal.adaptation.infinite_evidence import InfiniteEvidenceError
from pymc_anneal.pipeline.model_target import ModelTarget

# Values that are taken for zero and for infinity.
_ZERO, _INFINITY = 1e-4, 1e4


@contextmanager
def explaining_infinite(target: ModelTarget) -> Iterator[None]:
    """Turn an infinite evidence into an error that names the variable along which it diverges."""
    try:
        yield
    except InfiniteEvidenceError as error:
        raise ValueError(_explain(target, error)) from error


def _explain(target: ModelTarget, error: InfiniteEvidenceError) -> str:
    compiled, j = target.compiled, error.coordinate
    variable = next(v for v in compiled.variables if v.start <= j < v.stop)
    value = np.ravel(compiled.constrain(error.position[None])[variable.name][0])
    entry = value[min(j - variable.start, len(value) - 1)]
    which = f"'{variable.name}'" + (f" (entry {j - variable.start})" if len(value) > 1 else "")
    return (
        f"The evidence is infinite: as {which} goes to {_limit(entry)}, the posterior mass grows "
        f"by {max(error.slope, 0.0):.2g} nats for each unit of its unconstrained value, as far as "
        "floating-point numbers go. The data fit exactly there, so that their density has no "
        f"bound (all observations of a group equal, or on a line?). Bound {which} away from "
        "there, for example by a prior that vanishes faster (pm.InverseGamma), add the error of "
        "rounding to the likelihood, or leave the variable out."
    )


def _limit(value: float) -> str:
    if abs(value) < _ZERO:
        return "0"
    return "infinity" if abs(value) > _INFINITY else f"{value:.4g}"
