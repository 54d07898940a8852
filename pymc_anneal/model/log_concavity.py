"""Log-concavity of likelihoods and posteriors, proved from the graph.

With an affine function ``a + b eta`` of the predictor, the log density of an observation is
concave in ``eta`` for

    a location  a + b eta        of normal, multivariate normal, Laplace, logistic, Gumbel and
                                 log-normal distributions,
    a scale     exp(a + b eta)   of normal, ... and of gamma, Weibull, exponential ones; a rate of
                                 Poisson counts,
    a share     1 / (1 + exp(-a - b eta))  or  Phi(a + b eta)    of Bernoulli, binomial, geometric
                                 and negative binomial ones

(McCullagh & Nelder 1989, Generalized linear models, sections 2.2 and 4.3; Pratt 1981). Operations
between the predictor and the parameter of the distribution are followed one by one; where one of
them has no rule, nothing is claimed.

The predictor may be several variables: a function that is concave in ``a + b eta`` is concave in
whatever this is an affine function of. With normal (also multivariate), Laplace and logistic
priors, of locations affine in other variables, the posterior is log-concave: it has one mode.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import Enum, auto
from typing import Any

import pymc as pm

from pymc.distributions import continuous
from pytensor import scalar as ps
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Apply, Constant, Variable, equal_computations
from pytensor.graph.traversal import io_toposort
from pytensor.tensor import subtensor
from pytensor.tensor.basic import Join, MakeVector
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.random import basic as distributions
from pytensor.tensor.shape import Reshape, SpecifyShape


class Form(Enum):
    """What a variable is as a function of the predictor."""

    FREE = auto()  # of it: no function of it
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
# What an operation makes of the form of its input at a place, the others being free of eta; sums
# and products at any place.
_RULES: dict[tuple[type, int], dict[Form, Form]] = {
    (ps.Cast, 0): _SAME,
    (ps.Identity, 0): _SAME,
    (ps.Second, 1): _SAME,  # in the shape of the first
    (ps.Neg, 0): _AFFINE,
    (ps.Add, 0): _AFFINE,
    (ps.Sub, 0): _AFFINE,
    (ps.Sub, 1): _AFFINE,
    (ps.Mul, 0): _AFFINE | _SCALED,
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
    distributions.MvNormalRV: (_LOCATION,),
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


# Prior densities that are concave in the variable and in a location that is affine in others.
_LOCATED = (
    distributions.NormalRV,
    distributions.MvNormalRV,
    distributions.LaplaceRV,
    distributions.LogisticRV,
)


def is_log_concave_model(model: pm.Model) -> bool:
    """Whether the posterior of a model is known to be log-concave, as its variables are.

    Parameters
    ----------
    model
        The model. Non-centred coordinates of its location-scale variables are affine in these.
    """
    free, transforms = model.free_RVs, model.rvs_to_transforms
    if not free or any(transforms[rv] is not None for rv in free):
        return False
    priors = all(_is_located(rv, [v for v in free if v is not rv]) for rv in free)
    return priors and all(_is_concave(term, free) for term in model.observed_RVs + model.potentials)


def _is_located(rv: Variable, others: Sequence[Variable]) -> bool:
    """Whether a variable has a concave log density about a location affine in others."""
    if not isinstance(rv.owner.op, _LOCATED):
        return False
    location, *rest = (_form_of(v, others) for v in rv.owner.op.dist_params(rv.owner))
    return location in (Form.FREE, Form.AFFINE) and all(form is Form.FREE for form in rest)


def _is_concave(term: Variable, latent: Sequence[Variable]) -> bool:
    """Whether the log density of a term is concave in variables, or does not depend on them."""
    return _form_of(term, latent) is Form.FREE or is_log_concave_in(term, *latent)


def is_log_concave_in(rv: Variable, *eta: Variable) -> bool:
    """Whether the log density of a random variable is known to be concave in its predictor.

    Parameters
    ----------
    rv
        The random variable.
    *eta
        Its predictor, on which one of its parameters depends: one variable or several.
    """
    operation: Any = None if rv.owner is None else rv.owner.op
    if type(operation) not in _CONCAVE:
        return False
    forms = [_form_of(v, eta) for v in operation.dist_params(rv.owner)]
    dependent = [i for i, form in enumerate(forms) if form is not Form.FREE]
    concave = _CONCAVE[type(operation)]
    if len(dependent) != 1 or dependent[0] >= len(concave):
        return False
    return forms[dependent[0]] in concave[dependent[0]]


def _form_of(variable: Variable, eta: Collection[Variable]) -> Form | None:
    """Return what a variable is as a function of the predictor; None if no rule says so."""
    forms: dict[Variable, Form | None] = dict.fromkeys(eta, Form.AFFINE)
    for node in io_toposort(eta, [variable]):
        dependent = [i for i, v in enumerate(node.inputs) if v in forms]
        if dependent:
            forms |= dict.fromkeys(node.outputs, _form_after(node, dependent, forms))
    return forms.get(variable, Form.FREE)


def _form_after(
    node: Apply, dependent: Sequence[int], forms: Mapping[Variable, Form | None]
) -> Form | None:
    """Return what an operation makes of its inputs, some of which depend on the predictor."""
    before = [forms[node.inputs[i]] for i in dependent]
    core = node.op.core_op if isinstance(node.op, Blockwise) else node.op
    if isinstance(core, Elemwise) and dependent == [1] and _is_odds(node, forms):
        return Form.LOGISTIC  # of a sum that is none by itself
    if any(form is None for form in before):
        return None
    if isinstance(core, _STRUCTURE):
        return before[0] if dependent[0] == 0 and len(dependent) == 1 else None
    if isinstance(core, Join | MakeVector):
        return before[0] if len(set(before)) == 1 else None
    if isinstance(core, Dot | Sum):
        return Form.AFFINE if before == [Form.AFFINE] else None
    if not isinstance(core, Elemwise):
        return None
    if len(dependent) > 1:
        return _form_of_several(type(core.scalar_op), set(before))
    return _form_of_one(node, dependent[0], before[0])


def _form_of_several(operation: type, forms: set[Form | None]) -> Form | None:
    """Return what sums, differences and products of inputs of the same form are."""
    if operation in (ps.Add, ps.Sub) and forms == {Form.AFFINE}:
        return Form.AFFINE
    if operation in (ps.Mul, ps.TrueDiv) and forms == {Form.LOG_AFFINE}:
        return Form.LOG_AFFINE
    return None


def _form_of_one(node: Apply, place: int, before: Form | None) -> Form | None:
    """Return what an operation by elements makes of the only input that is not free."""
    operation = type(node.op.scalar_op)
    if before is Form.ERFC and operation is ps.Mul and _is_half(node.inputs[1 - place]):
        return Form.PROBIT
    assert before is not None
    place = 0 if operation in (ps.Add, ps.Mul) else place  # of any number of inputs
    return _RULES.get((operation, place), {}).get(before)


def _is_odds(node: Apply, forms: Mapping[Variable, Form | None]) -> bool:
    """Whether a node is ``a / (a + b)`` with one ``a``, and ``b`` a scale: logistic in eta."""
    if not isinstance(node.op.scalar_op, ps.TrueDiv):
        return False
    above, below = node.inputs[0], node.inputs[1].owner
    if below is None or not isinstance(below.op, Elemwise):
        return False
    if not isinstance(below.op.scalar_op, ps.Add) or len(below.inputs) != 2:
        return False
    first, second = below.inputs
    return any(
        equal_computations([above], [one]) and forms.get(other) is Form.LOG_AFFINE
        for one, other in ((first, second), (second, first))
    )


def _is_half(variable: Variable) -> bool:
    """Whether a variable is the constant 1/2."""
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        variable = variable.owner.inputs[0]
    return isinstance(variable, Constant) and bool((variable.data == 0.5).all())
