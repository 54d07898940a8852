"""Checks of a model: which models cannot be annealed, and which priors are not normalised."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.data import MinibatchOp
from pymc.distributions.censored import CensoredRV
from pymc.distributions.continuous import FlatRV, HalfFlatRV
from pymc.distributions.distribution import DiracDeltaRV, SymbolicRandomVariable
from pymc.distributions.multivariate import DirichletMultinomialRV
from pymc.distributions.simulator import SimulatorRV
from pymc.distributions.transforms import CircularTransform
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.graph.basic import Variable
from pytensor.graph.op import Op
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import MultinomialRV
from pytensor.tensor.random.op import RandomVariable

from pymc_anneal.model.spatial import check_connected


class _Unsupported(NamedTuple):
    """Ops that a model must not contain, and the error that says why."""

    ops: tuple[type, ...]
    error: type[Exception]
    reason: str
    remedy: str


_IMPROPER = "the marginal likelihood is not defined"
_PROPER = (
    "Give it a proper prior, for example a wide pm.Normal or pm.HalfNormal; Bayes factors that do "
    "not depend on the width: fractional_evidence, intrinsic_bayes_factor"
)

_FREE = (
    _Unsupported((FlatRV,), ValueError, f"has the improper prior pm.Flat: {_IMPROPER}", _PROPER),
    _Unsupported(
        (HalfFlatRV,), ValueError, f"has the improper prior pm.HalfFlat: {_IMPROPER}", _PROPER
    ),
    _Unsupported(
        (MultinomialRV, DirichletMultinomialRV),
        NotImplementedError,
        "holds counts with a fixed sum: transitions of discrete variables change one coordinate "
        "at a time, and no count can change alone",
        "Write each counted item as a pm.Categorical, or sum the variable out of the model",
    ),
)

_ATOMS = _Unsupported(
    (CensoredRV, DiracDeltaRV),
    NotImplementedError,
    "has a prior with both a density and point masses (pm.Censored, a hurdle, pm.DiracDelta in a "
    "mixture): a transition that moves through real numbers never meets the points",
    "Separate the cases by a discrete variable and pm.math.switch, or compare the models of each "
    "case",
)

_MINIBATCH = _Unsupported(
    (MinibatchRandomVariable, MinibatchOp),
    NotImplementedError,
    "is a minibatch or has a `total_size`: its likelihood is random or rescaled, and the evidence "
    "needs the likelihood of all data",
    "Pass the whole data",
)

_RANDOM = _Unsupported(
    (RandomVariable, SymbolicRandomVariable),
    ValueError,
    "depends on a random variable that is not part of the model",
    "Declare that variable in the model, with a name, in place of `.dist()`",
)

_OBSERVED = (
    _MINIBATCH,
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
        A free variable has an improper prior, or a potential or the parameters of a variable
        depend on a random variable that is not part of the model.
    NotImplementedError
        A free variable holds counts with a fixed sum or values that are not numbers, or has a prior
        with point masses and a density; an observed variable or a potential is a minibatch or a
        simulator.
    """
    for rv in model.free_RVs:
        _check_ops(f"Variable '{rv.name}'", [rv.owner.op], _FREE)
        if np.dtype(rv.type.dtype).kind not in "fiub":
            raise NotImplementedError(
                f"Variable '{rv.name}' is of type {rv.type.dtype}, expected real numbers or "
                "integers."
            )
        table = [_MINIBATCH, _ATOMS] if rv.type.dtype.startswith("float") else [_MINIBATCH]
        _check_ops(f"Variable '{rv.name}'", _own_ops(rv, model), table)
        check_connected(rv)
    for rv in model.observed_RVs:
        name = f"Observed variable '{rv.name}'"
        _check_ops(name, [rv.owner.op, *_minibatches(rv)], _OBSERVED)
    for potential in model.potentials:
        ops = _own_ops(potential, model)
        _check_ops(f"Potential '{potential.name}'", ops, [_MINIBATCH, _RANDOM])


def _check_ops(name: str, ops: Sequence[Op], table: Iterable[_Unsupported]) -> None:
    for row in table:
        if any(isinstance(op, row.ops) for op in ops):
            raise row.error(f"{name} {row.reason}. {row.remedy}.")


def find_random_parameter(model: pm.Model) -> str:
    """Name the variable whose log density depends on a random variable that is not in the model."""
    for rv in model.basic_RVs:
        try:
            model.logp(vars=[rv])
        except ValueError:
            return f"The log density of variable '{rv.name}' {_RANDOM.reason}. {_RANDOM.remedy}."
    return f"The log density {_RANDOM.reason}. {_RANDOM.remedy}."


def _own_ops(variable: Variable, model: pm.Model) -> list[Op]:
    """Return the Ops of a variable and of its ancestors up to other variables of the model."""
    others = {rv for rv in model.basic_RVs if rv is not variable}
    own = (a for a in ancestors([variable], blockers=others) if a not in others)
    return [a.owner.op for a in own if a.owner]


def _minibatches(rv: pt.TensorVariable) -> list[Op]:
    """Return the minibatches on which a variable depends."""
    ops = [a.owner.op for a in ancestors([rv]) if a.owner]
    return [op for op in ops if isinstance(op, MinibatchOp)]


def explain_unnormalised(rv: pt.TensorVariable, transform: Any) -> str | None:
    """Explain why the density of a variable does not integrate to one; None if it does."""
    op = rv.owner.op
    if isinstance(transform, CircularTransform):
        return "its circular transform repeats the density over the line (pass `transform=None`)"
    if "LKJ" in type(op).__name__ and int(pm.__version__.split(".")[0]) < 6:
        return f"PyMC {pm.__version__}'s density of the LKJ distribution lacks its constant"
    return None
