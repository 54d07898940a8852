"""The values that discrete random variables can take, where they are few and known beforehand.

They are known where they follow from constants: ``Bernoulli``, ``Categorical`` (and with it
``OrderedLogistic``) from the shape of its probabilities, ``Binomial``, ``BetaBinomial``,
``DiscreteUniform`` and ``HyperGeometric`` where the parameters that bound them do not depend on
other random variables. Everything else counts as unbounded: its density is -inf outside.
"""

from collections.abc import Callable

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

Bounds = tuple[tuple[int, int], ...]


def _hypergeometric(good, bad, n):
    return pt.maximum(0, n - bad), pt.minimum(good, n)


# From the parameters of the distribution to its smallest and largest value.
_BOUNDS: dict[type, Callable] = {
    BernoulliRV: lambda p: (0, 1),
    BinomialRV: lambda n, p: (0, n),
    BetaBinomialRV: lambda n, a, b: (0, n),
    CategoricalRV: lambda p: (0, p.shape[-1] - 1),
    DiscreteUniformRV: lambda low, high: (low, high),
    HyperGeometricRV: _hypergeometric,
}


def finite_support(rv: Variable, shape: tuple[int, ...]) -> Bounds | None:
    """Return the smallest and largest value of every entry of a discrete variable.

    Parameters
    ----------
    rv
        A free variable of a model.
    shape
        Its shape.

    Returns
    -------
    tuple of (int, int), or None
        For each entry of the flattened variable; None where they are not known.
    """
    bounds = _BOUNDS.get(type(rv.owner.op))
    if bounds is None:
        return None
    graphs = [pt.as_tensor_variable(b) for b in bounds(*rv.owner.op.dist_params(rv.owner))]
    # The number of categories is a shape, which no random variable decides.
    if not isinstance(rv.owner.op, CategoricalRV) and any(_is_random(graph) for graph in graphs):
        return None
    function = pytensor.function([], graphs, mode=Mode("py", "fast_compile"))
    low, high = (np.broadcast_to(b, shape).ravel().astype(int).tolist() for b in function())
    return tuple(zip(low, high, strict=True))


def _is_random(graph: Variable) -> bool:
    return any(isinstance(a.type, RandomType) for a in ancestors([graph]))
