"""The prior as a map from the unit cube: the inverse of Rosenblatt's transformation.

Nested sampling explores the prior through coordinates that are uniform on (0, 1). With the free
variables in the order of the model, each given those before it,

    x_i = F_i^{-1}(u_i | x_1, ..., x_{i-1}),        u uniform on (0, 1)^d

has the prior as its distribution (Rosenblatt 1952). The inverse distribution functions ``F^{-1}``
are PyMC's (``pm.icdf``); multivariate normal variables are ``m + L F^{-1}(u)`` with ``S = L L'``,
and the weights of a Dirichlet variable are pieces of a stick, broken off in beta shares.

A map with the right distribution fulfils ``log |det dx/du| = -log p(x)``, which is checked.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

from pymc.distributions.multivariate import MvNormalRV
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import vectorize_graph
from pytensor.tensor.random.basic import DirichletRV

from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.unconstrained_draws import free_given_data
from pymc_anneal.model.variables import join_values

# Points at which the map is compared with the density, and the largest difference of the logs: far
# above the error of the differences, far below that of a wrong scale or a missing Jacobian.
_CHECKED, _TOLERANCE = 4, 1e-4

# Step of central differences, relative to the distance from the nearer end of the interval: the
# error is of the order of its square.
_STEP = 1e-4

# Smallest distance from 0 and 1: numbers nearer to 1 are rounded to it.
_EDGE = 2.0**-53


class PriorTransform:
    """The map from the unit cube to unconstrained values whose distribution is the prior.

    Parameters
    ----------
    compiled : CompiledModel
        Model of continuous variables with inverse distribution functions.

    Raises
    ------
    NotImplementedError
        A variable has no inverse distribution function, or its transform maps onto a part of its
        support.
    ValueError
        The map does not have the density of the prior.

    References
    ----------
    Rosenblatt (1952), Remarks on a multivariate transformation.
    """

    def __init__(self, compiled: CompiledModel):
        self._evaluate = _compile(compiled)
        check_density(self, compiled)

    def __call__(self, u: np.ndarray) -> np.ndarray:
        """Map points of the unit cube, shape ``(n, d)``, to unconstrained values ``(n, d)``.

        Values are infinite where a variable rounds to the end of its support.
        """
        with np.errstate(all="ignore"):
            return self._evaluate(np.clip(u, _EDGE, 1 - _EDGE))


def check_density(transform: Callable[[np.ndarray], np.ndarray], compiled: CompiledModel) -> None:
    """Raise `ValueError` unless a map of the unit cube has the density of a model's prior.

    The determinant of the map is found by central differences at points within the middle 80 % of
    every coordinate.

    Parameters
    ----------
    transform : Callable
        From shape ``(n, d)`` to shape ``(n, d)``.
    compiled : CompiledModel
    """
    u = np.random.default_rng(0).uniform(0.1, 0.9, (_CHECKED, compiled.ndim))
    found = np.array([_log_determinant(transform, row) for row in u])
    expected = -_log_prior(compiled, transform(u))
    wrong = ~(np.abs(found - expected) <= _TOLERANCE * (1 + compiled.ndim))
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(
            "The map from the unit cube to the variables does not have the density of the prior: "
            f"its log determinant is {found[i]:.6g}, and minus the log prior {expected[i]:.6g}, at "
            f"u = {np.array2string(u[i], precision=3, threshold=5)}. An inverse distribution "
            "function (icdf) of the model does not fit its logp; correct it, or use "
            "sampler='blackjax', which needs none."
        )


def _log_determinant(transform: Callable[[np.ndarray], np.ndarray], u: np.ndarray) -> float:
    """Return ``log |det dx/du|`` at a point of shape ``(d,)``."""
    step = np.diag(_STEP * np.minimum(u, 1 - u))
    rise = transform(u + step) - transform(u - step)
    return float(np.linalg.slogdet(rise / (2 * np.diag(step)[:, None]))[1])


@double_precision
def _log_prior(compiled: CompiledModel, x: np.ndarray) -> np.ndarray:
    return np.asarray(jax.vmap(compiled.log_terms)(jnp.asarray(x)).log_prior)


def _compile(compiled: CompiledModel) -> Callable[[np.ndarray], np.ndarray]:
    """Compile the map as a function of points of the unit cube, shape ``(n, d)``."""
    _require_whole_support(compiled)
    variables = compiled.variables
    inputs = [pt.tensor(f"{v.name}_u", dtype="float64", shape=v.shape) for v in variables]
    outputs = compiled.freeze(build_transform(compiled.model, inputs))
    batched = [pt.tensor(u.name, dtype="float64", shape=(None, *u.type.shape)) for u in inputs]
    graphs = vectorize_graph(list(outputs), replace=dict(zip(inputs, batched, strict=True)))
    # Python mode: the inverse functions are those of SciPy, and nothing is compiled for seconds.
    function = pytensor.function(batched, graphs, mode=Mode("py", "fast_compile"))

    def evaluate(u: np.ndarray) -> np.ndarray:
        rows = [u[:, v.start : v.stop].reshape(len(u), *v.shape) for v in variables]
        return join_values(function(*rows), len(u))

    return evaluate


def _require_whole_support(compiled: CompiledModel) -> None:
    """Raise if a transform maps onto a part of the support of its variable."""
    if compiled.log_prior_mass != 0:
        raise NotImplementedError(
            "A transform of the model maps onto a part of the support of its variable (such as "
            "`ordered`), for which there is no map from the unit cube. Use sampler='blackjax', "
            "which needs only draws of the prior, or sample_ais."
        )


def build_transform(model: pm.Model, u: Sequence[Variable]) -> list[Variable]:
    """Return the graphs of the unconstrained values of the free variables.

    Parameters
    ----------
    model : pymc.Model
    u : sequence of Variable
        Uniform variables, one for each free variable, with its shape in the unconstrained space.

    Raises
    ------
    NotImplementedError
        A variable has no inverse distribution function.
    """
    # Parents come before their children: a child is built on the values that replace its parents.
    fgraph = FunctionGraph(outputs=free_given_data(model), clone=False)
    unconstrained = []
    for i, rv in enumerate(model.free_RVs):
        draw, transform = fgraph.outputs[i], model.rvs_to_transforms[rv]
        inputs = draw.owner.inputs
        value = _quantile(rv.name, draw, u[i])
        unconstrained.append(value if transform is None else transform.forward(value, *inputs))
        fgraph.replace(draw, value.astype(draw.dtype), import_missing=True)
    return unconstrained


def _quantile(name: str, draw: Variable, u: Variable) -> Variable:
    """Return the value of a variable, given its parents, at uniform coordinates."""
    for op, build in _MULTIVARIATE.items():
        if isinstance(draw.owner.op, op):
            return build(draw, u)
    try:
        value = pm.icdf(draw, u, warn_rvs=False)
    except NotImplementedError as error:
        raise NotImplementedError(
            f"Variable '{name}' has no inverse distribution function in PyMC "
            f"({type(draw.owner.op).__name__}), which maps the unit cube to the prior. Use "
            "sampler='blackjax', which needs only draws of the prior, or sample_ais."
        ) from error
    # PyMC gives shapes of broadcast parameters only at run time.
    return pt.specify_shape(value, draw.type.shape)


def _standard_normal_quantile(u: Variable) -> Variable:
    return pm.icdf(pm.Normal.dist(np.float64(0.0), np.float64(1.0)), u)


def _normal_vector(draw: Variable, u: Variable) -> Variable:
    """Return ``m + L z``, with ``z`` standard normal and ``S = L L'``."""
    mean, covariance = draw.owner.op.dist_params(draw.owner)
    factor = pt.linalg.cholesky(covariance)
    return mean + (factor @ _standard_normal_quantile(u)[..., None])[..., 0]


def _dirichlet_weights(draw: Variable, u: Variable) -> Variable:
    """Return weights whose shares of the rest are ``Beta(a_k, a_{k+1} + ... + a_K)``."""
    [a] = draw.owner.op.dist_params(draw.owner)
    later = pt.cumsum(a[..., ::-1], axis=-1)[..., ::-1]
    share = pm.icdf(pm.Beta.dist(a[..., :-1], later[..., 1:]), u)
    whole = pt.ones_like(share[..., :1])
    rest = pt.concatenate([whole, pt.cumprod(1 - share, axis=-1)], axis=-1)
    return rest * pt.concatenate([share, whole], axis=-1)


_MULTIVARIATE: dict[type, Callable[[Variable, Variable], Variable]] = {
    MvNormalRV: _normal_vector,
    DirichletRV: _dirichlet_weights,
}
