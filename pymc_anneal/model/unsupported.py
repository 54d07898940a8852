"""Checks of a model: which models cannot be annealed, and which priors are not normalised."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.data import MinibatchOp
from pymc.distributions.continuous import FlatRV, HalfFlatRV
from pymc.distributions.distribution import PartialObservedRV
from pymc.distributions.multivariate import CARRV, DirichletMultinomialRV
from pymc.distributions.simulator import SimulatorRV
from pymc.distributions.transforms import CircularTransform
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.graph.op import Op
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import MultinomialRV


class _Unsupported(NamedTuple):
    """Ops that a model must not contain, and the error that says why."""

    ops: tuple[type, ...]
    error: type[Exception]
    reason: str
    remedy: str


_IMPROPER = "the marginal likelihood is not defined"
_PROPER = "Give it a proper prior, for example a wide pm.Normal or pm.HalfNormal"

_FREE = (
    _Unsupported((FlatRV,), ValueError, f"has the improper prior pm.Flat: {_IMPROPER}", _PROPER),
    _Unsupported(
        (HalfFlatRV,), ValueError, f"has the improper prior pm.HalfFlat: {_IMPROPER}", _PROPER
    ),
    _Unsupported(
        (PartialObservedRV,),
        NotImplementedError,
        "holds missing values of a multivariate variable: PyMC assigns their joint density to the "
        "observed part, so the prior of the missing part is not available",
        "Model the missing entries as a separate variable",
    ),
    _Unsupported(
        (MultinomialRV, DirichletMultinomialRV),
        NotImplementedError,
        "holds counts with a fixed sum: transitions of discrete variables change one coordinate "
        "at a time, and no count can change alone",
        "Write each counted item as a pm.Categorical, or sum the variable out of the model",
    ),
)

_OBSERVED = (
    _Unsupported(
        (MinibatchRandomVariable, MinibatchOp),
        NotImplementedError,
        "is a minibatch or has a `total_size`: its likelihood is random or rescaled, and the "
        "evidence needs the likelihood of all data",
        "Pass the whole data",
    ),
    _Unsupported(
        (SimulatorRV,),
        NotImplementedError,
        "is a pm.Simulator, which has no likelihood to anneal",
        "Use pm.sample_smc for this model",
    ),
)


def check_supported(model: pm.Model) -> None:
    """Raise if a model cannot be annealed.

    Raises
    ------
    ValueError
        A free variable has an improper prior.
    NotImplementedError
        A free variable holds counts with a fixed sum, missing values of a multivariate variable,
        or values that are not numbers; an observed variable is a minibatch or a simulator.
    """
    for rv in model.free_RVs:
        _check_ops(f"Variable '{rv.name}'", [rv.owner.op], _FREE)
        if np.dtype(rv.type.dtype).kind not in "fiub":
            raise NotImplementedError(
                f"Variable '{rv.name}' is of type {rv.type.dtype}, expected real numbers or "
                "integers."
            )
    for rv in model.observed_RVs:
        name = f"Observed variable '{rv.name}'"
        _check_ops(name, [rv.owner.op, *_minibatches(rv)], _OBSERVED)


def _check_ops(name: str, ops: Sequence[Op], table: Iterable[_Unsupported]) -> None:
    for row in table:
        if any(isinstance(op, row.ops) for op in ops):
            raise row.error(f"{name} {row.reason}. {row.remedy}.")


def _minibatches(rv: pt.TensorVariable) -> list[Op]:
    """Return the minibatches on which a variable depends."""
    ops = [a.owner.op for a in ancestors([rv]) if a.owner]
    return [op for op in ops if isinstance(op, MinibatchOp)]


def explain_unnormalised(rv: pt.TensorVariable, transform: Any) -> str | None:
    """Explain why the density of a variable does not integrate to one; None if it does."""
    op = rv.owner.op
    if isinstance(transform, CircularTransform):
        return "its circular transform repeats the density over the line (pass `transform=None`)"
    if isinstance(op, CARRV):
        return "PyMC's density of pm.CAR lacks its constant"
    if "LKJ" in type(op).__name__ and int(pm.__version__.split(".")[0]) < 6:
        return f"PyMC {pm.__version__}'s density of the LKJ distribution lacks its constant"
    return None
