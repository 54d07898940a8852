"""Bounds of discrete random variables with finite support.

The bounds are known if they follow from constants: for ``Bernoulli`` always, for ``Categorical``
(and ``OrderedLogistic``) from the number of probabilities, for ``Binomial``, ``BetaBinomial``,
``DiscreteUniform`` and ``HyperGeometric`` if the parameters that bound the values do not depend on
other random variables. All other supports count as infinite; the density is zero outside of them.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytensor
import pytensor.tensor as pt

from pymc.distributions.discrete import DiscreteUniformRV
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import (
    BernoulliRV,
    BetaBinomialRV,
    BinomialRV,
    CategoricalRV,
    HyperGeometricRV,
)
from pytensor.tensor.random.type import RandomType

# Smallest and largest value of each entry of a flattened variable.
Bounds: TypeAlias = tuple[tuple[int, int], ...]

# Functions of the parameters of a distribution that return its smallest and largest value.
_BOUNDS: dict[type, Callable[..., tuple[Any, Any]]] = {
    BernoulliRV: lambda p: (0, 1),
    BinomialRV: lambda n, p: (0, n),
    BetaBinomialRV: lambda n, a, b: (0, n),
    CategoricalRV: lambda p: (0, p.shape[-1] - 1),
    DiscreteUniformRV: lambda low, high: (low, high),
    HyperGeometricRV: lambda good, bad, n: (pt.maximum(0, n - bad), pt.minimum(good, n)),
}


def find_finite_support(rv: Variable, shape: tuple[int, ...]) -> Bounds | None:
    """Find the smallest and largest value of every entry of a discrete variable; None: unknown."""
    op = rv.owner.op
    if type(op) not in _BOUNDS:
        return None
    bounds = _BOUNDS[type(op)](*op.dist_params(rv.owner))
    graphs = [pt.as_tensor_variable(b) for b in bounds]
    # The number of categories is a shape, which does not depend on random values.
    random = any(isinstance(a.type, RandomType) for a in ancestors(graphs))
    if random and not isinstance(op, CategoricalRV):
        return None
    function = pytensor.function([], graphs, mode=Mode("py", "fast_compile"))
    low, high = (np.broadcast_to(b, shape).ravel().astype(int).tolist() for b in function())
    return tuple(zip(low, high, strict=True))
