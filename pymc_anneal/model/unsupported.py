"""Models that cannot be annealed, or not from elsewhere than the prior: refused by name."""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.distributions.continuous import FlatRV, HalfFlatRV
from pymc.distributions.distribution import PartialObservedRV
from pymc.distributions.multivariate import DirichletMultinomialRV
from pymc.distributions.simulator import SimulatorRV
from pymc.distributions.transforms import CircularTransform
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import MultinomialRV


def check_supported(model: pm.Model) -> None:
    """Raise for what cannot be annealed, by name."""
    for rv in model.free_RVs:
        op = rv.owner.op
        if isinstance(op, FlatRV | HalfFlatRV):
            raise ValueError(
                f"Variable '{rv.name}' has the improper prior pm.{op._print_name[0]}: the "
                "marginal likelihood is not defined. Give it a proper prior, for example a "
                "wide pm.Normal or pm.HalfNormal."
            )
        if isinstance(op, PartialObservedRV):
            raise NotImplementedError(
                f"Variable '{rv.name}' holds missing values of a multivariate variable. PyMC "
                "assigns their joint density to the observed part, so the prior of the missing "
                "part is not available. Model the missing entries as a variable of their own."
            )
        if isinstance(op, MultinomialRV | DirichletMultinomialRV):
            raise NotImplementedError(
                f"Variable '{rv.name}' holds counts with a fixed sum, of which none can change "
                "alone, as the transitions of discrete variables do. Write it as a pm.Categorical "
                "for each of the things counted, or sum it out of the model."
            )
        if np.dtype(rv.type.dtype).kind not in "fiub":
            raise NotImplementedError(
                f"Variable '{rv.name}' is of type {rv.type.dtype}; expected real or whole numbers."
            )
    for rv in model.observed_RVs:
        if isinstance(rv.owner.op, MinibatchRandomVariable) or _has_minibatch(rv):
            raise NotImplementedError(
                f"Observed variable '{rv.name}' is a minibatch or has a `total_size`: its "
                "likelihood is random or rescaled, and the evidence needs the likelihood of "
                "all the data. Pass the whole data."
            )
        if isinstance(rv.owner.op, SimulatorRV):
            raise NotImplementedError(
                f"Observed variable '{rv.name}' is a pm.Simulator, which has no likelihood to "
                "anneal. pm.sample_smc serves such models."
            )


def unnormalised(rv: pt.TensorVariable, transform: Any) -> str | None:
    """Say why the density of a variable does not integrate to one, None where it does."""
    name = type(rv.owner.op).__name__
    if isinstance(transform, CircularTransform):
        return "its circular transform repeats the density over the line (pass `transform=None`)"
    if name == "CARRV":
        return "PyMC's density of pm.CAR lacks its constant"
    if "LKJ" in name and int(pm.__version__.split(".")[0]) < 6:
        return f"PyMC {pm.__version__}'s density of the LKJ distribution lacks its constant"
    return None


def _has_minibatch(rv) -> bool:
    return any(type(a.owner.op).__name__ == "MinibatchOp" for a in ancestors([rv]) if a.owner)
