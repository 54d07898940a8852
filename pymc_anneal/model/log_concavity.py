"""Log-concavity of a likelihood as a function of its predictor, proved from the graph.

With an affine function ``a + b eta`` of the predictor, the log density of an observation is
concave in ``eta`` for

    a location  a + b eta        of normal, Laplace, logistic, Gumbel and log-normal distributions,
    a scale     exp(a + b eta)   of normal, ... and of gamma, Weibull, exponential ones; a rate of
                                 Poisson counts,
    a share     1 / (1 + exp(-a - b eta))  or  Phi(a + b eta)    of Bernoulli, binomial, geometric
                                 and negative binomial ones

(McCullagh & Nelder 1989, Generalized linear models, sections 2.2 and 4.3; Pratt 1981). Operations
between the predictor and the parameter of the distribution are followed one by one; where one of
them has no rule, nothing is claimed.
"""

from enum import Enum, auto

from pymc.distributions import continuous
from pytensor import scalar as ps
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Constant, Variable, equal_computations
from pytensor.graph.traversal import ancestors
from pytensor.tensor import subtensor
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random import basic as distributions
from pytensor.tensor.shape import Reshape, SpecifyShape


class Form(Enum):
    """What a variable is as a function of the predictor."""

    AFFINE = auto()
    LOG_AFFINE = auto()  # exp(a + b eta)
    LOGISTIC = auto()  # 1 / (1 + exp(-a - b eta))
    ERFC = auto()  # erfc(a + b eta)
    PROBIT = auto()  # Phi(a + b eta)


# Operations that choose or arrange entries of their first input; PyTensor 3 lacks one of them.
_INDEXING = ("Subtensor", "AdvancedSubtensor", "AdvancedSubtensor1")
_STRUCTURE = (
    DimShuffle,
    Reshape,
    SpecifyShape,
    ViewOp,
    *(getattr(subtensor, name) for name in _INDEXING if hasattr(subtensor, name)),
)
_SAME = {form: form for form in Form}
_AFFINE, _SCALED = {Form.AFFINE: Form.AFFINE}, {Form.LOG_AFFINE: Form.LOG_AFFINE}
# What an operation makes of the form of its input at a place, the others being free of eta.
_RULES: dict[tuple[type, int], dict[Form, Form]] = {
    (ps.Cast, 0): _SAME,
    (ps.Identity, 0): _SAME,
    (ps.Neg, 0): _AFFINE,
    (ps.Add, 0): _AFFINE,
    (ps.Add, 1): _AFFINE,
    (ps.Sub, 0): _AFFINE,
    (ps.Sub, 1): _AFFINE,
    (ps.Mul, 0): _AFFINE | _SCALED,
    (ps.Mul, 1): _AFFINE | _SCALED,
    (ps.TrueDiv, 0): _AFFINE | _SCALED,
    (ps.TrueDiv, 1): _SCALED,
    (ps.Reciprocal, 0): _SCALED,
    (ps.Sqr, 0): _SCALED,
    (ps.Sqrt, 0): _SCALED,
    (ps.Pow, 0): _SCALED,
    (ps.Exp, 0): {Form.AFFINE: Form.LOG_AFFINE},
    (ps.Log, 0): {Form.LOG_AFFINE: Form.AFFINE},
    (ps.Sigmoid, 0): {Form.AFFINE: Form.LOGISTIC},
    (ps.Erfc, 0): {Form.AFFINE: Form.ERFC},
}

_LOCATION, _SCALE = {Form.AFFINE}, {Form.LOG_AFFINE}
_SHARE, _RATE = {Form.LOGISTIC, Form.PROBIT}, {Form.LOG_AFFINE, Form.AFFINE}
# Forms of the parameters, by their places, in which a log density is concave.
_CONCAVE: dict[type, tuple[set[Form], ...]] = {
    distributions.NormalRV: (_LOCATION, _SCALE),
    distributions.LaplaceRV: (_LOCATION, _SCALE),
    distributions.LogNormalRV: (_LOCATION, _SCALE),
    distributions.LogisticRV: (_LOCATION,),
    distributions.GumbelRV: (_LOCATION,),
    distributions.ExponentialRV: (_SCALE,),
    distributions.GammaRV: (set(), _SCALE),
    distributions.InvGammaRV: (set(), _SCALE),
    continuous.WeibullBetaRV: (set(), _SCALE),
    distributions.PoissonRV: (_RATE,),
    distributions.BernoulliRV: (_SHARE,),
    distributions.BinomialRV: (set(), _SHARE),
    distributions.GeometricRV: (_SHARE,),
    distributions.NegBinomialRV: (set(), {Form.LOGISTIC}),
}


def is_log_concave_in(rv: Variable, eta: Variable) -> bool:
    """Whether the log density of a random variable is known to be concave in its predictor.

    Parameters
    ----------
    rv
        The random variable.
    eta
        Its predictor, on which one of its parameters depends.
    """
    parameters = rv.owner.op.dist_params(rv.owner)
    dependent = [i for i, v in enumerate(parameters) if eta in set(ancestors([v]))]
    concave = _CONCAVE.get(type(rv.owner.op), ())
    if len(dependent) != 1 or dependent[0] >= len(concave):
        return False
    return form_of(parameters[dependent[0]], eta) in concave[dependent[0]]


def form_of(variable: Variable, eta: Variable) -> Form | None:
    """Return what a variable is as a function of the predictor; None if no rule says so."""
    if variable is eta:
        return Form.AFFINE
    node = variable.owner
    if node is None:
        return None
    dependent = [i for i, v in enumerate(node.inputs) if eta in set(ancestors([v]))]
    if len(dependent) != 1:
        return None
    (place,) = dependent
    if isinstance(node.op, _STRUCTURE):
        return form_of(node.inputs[0], eta) if place == 0 else None
    if not isinstance(node.op, Elemwise):
        return None
    if _is_odds(variable, place, eta):
        return Form.LOGISTIC
    operation, before = type(node.op.scalar_op), form_of(node.inputs[place], eta)
    if before is Form.ERFC and operation is ps.Mul and _is_half(node.inputs[1 - place]):
        return Form.PROBIT
    return None if before is None else _RULES.get((operation, place), {}).get(before)


def _is_odds(variable: Variable, place: int, eta: Variable) -> bool:
    """Whether a variable is ``a / (a + b)`` with one ``a``, and ``b`` a scale: logistic in eta."""
    node = variable.owner
    if not isinstance(node.op.scalar_op, ps.TrueDiv) or place != 1:
        return False
    above, below = node.inputs[0], node.inputs[1].owner
    if below is None or not isinstance(below.op, Elemwise):
        return False
    if not isinstance(below.op.scalar_op, ps.Add) or len(below.inputs) != 2:
        return False
    first, second = below.inputs
    return any(
        equal_computations([above], [one]) and form_of(other, eta) is Form.LOG_AFFINE
        for one, other in ((first, second), (second, first))
    )


def _is_half(variable: Variable) -> bool:
    """Whether a variable is the constant 1/2."""
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        variable = variable.owner.inputs[0]
    return isinstance(variable, Constant) and bool((variable.data == 0.5).all())
