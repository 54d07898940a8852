"""Draws in the unconstrained space of variables whose constrained draws may underflow.

A gamma variable of shape ``a`` is below ``exp(-k / a)`` with a probability of about ``exp(-k)``:
for small shapes many draws are zero in floating point, and their logarithms are lost. Their
logarithm itself is drawn from

    log G(a) = log G(a + 1) + log(U) / a,    U uniform on (0, 1)

(Marsaglia & Tsang 2000, section 6), with ``log(U)`` minus an exponential variate. Beta, Dirichlet
and stick-breaking variables are ratios of gamma variables, and their log odds or log ratios
differences of such logarithms. The logarithm of a log-normal variable is a normal one: with a scale
of 300, values below 1e-308 and above 1e308 have 2 % of the mass.
"""

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.distributions.continuous import BetaClippedRV
from pymc.distributions.multivariate import StickBreakingWeightsRV
from pymc.logprob.transforms import LogOddsTransform, LogTransform, SimplexTransform
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.tensor.random.basic import (
    BetaRV,
    DirichletRV,
    GammaRV,
    InvGammaRV,
    LogNormalRV,
    normal,
)
from pytensor.tensor.random.op import RandomVariable

from pymc_anneal.model.location_scale_transform import is_standardised, standard_draw
from pymc_anneal.model.score_transforms import BetaScore, DirichletScore, GammaScore
from pymc_anneal.model.spatial import drawn_by_density

_Size: TypeAlias = tuple[int, ...] | None
_Value = TypeVar("_Value")


class LogGammaRV(GammaRV):  # type: ignore[misc]  # mypy does not see PyTensor
    """Logarithm of a gamma variable."""

    name = "log_gamma"

    @classmethod
    def rng_fn(
        cls, rng: np.random.Generator, shape: np.ndarray, scale: np.ndarray, size: _Size
    ) -> np.ndarray:
        """Draw ``log(scale) + log G(shape)``."""
        shape, scale = np.broadcast_arrays(shape, scale)
        draws: np.ndarray = np.log(scale) + _log_standard_gamma(rng, shape, size)
        return draws


class LogitBetaRV(BetaRV):  # type: ignore[misc]
    """Log odds of a beta variable."""

    name = "logit_beta"

    @classmethod
    def rng_fn(
        cls, rng: np.random.Generator, alpha: np.ndarray, beta: np.ndarray, size: _Size
    ) -> np.ndarray:
        """Draw ``log G(alpha) - log G(beta)``."""
        alpha, beta = np.broadcast_arrays(alpha, beta)
        draws: np.ndarray = _log_standard_gamma(rng, alpha, size)
        draws -= _log_standard_gamma(rng, beta, size)
        return draws


class LogDirichletRV(DirichletRV):  # type: ignore[misc]
    """Logarithms of the weights of a Dirichlet variable, up to a constant."""

    name = "log_dirichlet"

    @classmethod
    def rng_fn(cls, rng: np.random.Generator, alphas: np.ndarray, size: _Size) -> np.ndarray:
        """Draw ``log G(alpha_k)``, which normalise to the weights."""
        return _log_standard_gamma(rng, alphas, size and (*size, alphas.shape[-1]))


class StickLogOddsRV(DirichletRV):  # type: ignore[misc]
    """Log odds of the parts that are broken off a stick for a Dirichlet variable, and a zero."""

    name = "stick_log_odds"

    @classmethod
    def rng_fn(cls, rng: np.random.Generator, alphas: np.ndarray, size: _Size) -> np.ndarray:
        """Draw ``log G(alpha_k) - log G(sum of those after)``."""
        after = np.cumsum(alphas[..., ::-1], axis=-1)[..., ::-1][..., 1:]
        draws = _log_standard_gamma(rng, alphas, size and (*size, alphas.shape[-1]))
        draws[..., :-1] -= _log_standard_gamma(rng, after, draws[..., :-1].shape)
        draws[..., -1] = 0.0
        return draws


class LogStickBreakingRV(StickBreakingWeightsRV):  # type: ignore[misc]
    """Logarithms of stick-breaking weights."""

    name = "log_stick_breaking"

    @classmethod
    def rng_fn(
        cls, rng: np.random.Generator, alpha: np.ndarray, K: np.ndarray, size: _Size
    ) -> np.ndarray:
        """Draw the logarithms of the shares that are broken off, each of what the last left."""
        shape = (*(alpha.shape if size is None else size), int(np.squeeze(K)))
        # The share that is left follows Beta(alpha, 1): it is U^(1 / alpha).
        log_left = -rng.standard_exponential(shape) / np.asarray(alpha)[..., None]
        log_broken = np.log(-np.expm1(log_left))
        start = np.zeros((*shape[:-1], 1))
        rest = np.concatenate([start, np.cumsum(log_left, axis=-1)], axis=-1)
        draws: np.ndarray = rest + np.concatenate([log_broken, start], axis=-1)
        return draws


def _log_standard_gamma(rng: np.random.Generator, shape: np.ndarray, size: _Size) -> np.ndarray:
    """Draw logarithms of standard gamma variables.

    Raises
    ------
    ValueError
        A shape parameter is negative.
    """
    if np.any(shape < 0):
        raise ValueError("a shape parameter is negative")
    size = shape.shape if size is None else size
    with np.errstate(divide="ignore"):  # shape 0: minus infinity
        small = rng.standard_exponential(size) / shape
    draws: np.ndarray = np.log(rng.standard_gamma(shape + 1, size)) - small
    return draws


def _itself(draws: Variable, *_: Variable) -> Variable:
    return draws


def _centre(log_weights: Variable, *_: Variable) -> Variable:
    """Map log weights to the unconstrained values of the simplex transform."""
    mean = pt.mean(log_weights, axis=-1, keepdims=True)
    return (log_weights - mean)[..., :-1]


def _scores_of_sticks(log_odds: Variable, *inputs: Variable) -> Variable:
    return DirichletScore().of_log_odds(log_odds[..., :-1], *inputs)


class _Logarithm(NamedTuple):
    """A random variable that draws logarithms, and their map to the unconstrained space.

    It takes the place of a random variable of PyMC with the same inputs and shapes, which the map
    takes after the draws.
    """

    op: RandomVariable
    to_unconstrained: Callable[..., Variable]


# By random variable and transform.
_LOGARITHMS: dict[tuple[type, type], _Logarithm] = {
    (GammaRV, LogTransform): _Logarithm(LogGammaRV(), _itself),
    (GammaRV, GammaScore): _Logarithm(LogGammaRV(), GammaScore().of_logarithm),
    (InvGammaRV, LogTransform): _Logarithm(LogGammaRV(), lambda x, _, b: 2 * pt.log(b) - x),
    (LogNormalRV, LogTransform): _Logarithm(normal, _itself),
    (BetaRV, LogOddsTransform): _Logarithm(LogitBetaRV(), _itself),
    (BetaRV, BetaScore): _Logarithm(LogitBetaRV(), BetaScore().of_log_odds),
    (BetaClippedRV, LogOddsTransform): _Logarithm(LogitBetaRV(), _itself),
    (DirichletRV, SimplexTransform): _Logarithm(LogDirichletRV(), _centre),
    (DirichletRV, DirichletScore): _Logarithm(StickLogOddsRV(), _scores_of_sticks),
    (StickBreakingWeightsRV, SimplexTransform): _Logarithm(LogStickBreakingRV(), _centre),
}


class PriorDraws(NamedTuple, Generic[_Value]):
    """Draws of all free variables, or graphs of one draw, in the model's order.

    Attributes
    ----------
    unconstrained
        Values in the unconstrained space.
    draws
        Values in the model's space.
    returned
        `unconstrained` mapped back to the model's space.
    """

    unconstrained: list[_Value]
    draws: list[_Value]
    returned: list[_Value]


def free_given_data(
    model: pm.Model, changed: Mapping[Variable, Variable] | None = None
) -> list[Variable]:
    """Return draws of the free variables given the data, with others in the place of some."""
    data = {rv: model.rvs_to_values[rv].astype(rv.dtype) for rv in model.observed_RVs}
    found: list[Variable] = clone_replace(model.free_RVs, {**data, **(changed or {})})
    return found


def build_forward_graphs(model: pm.Model) -> PriorDraws[Variable]:
    """Return the graphs of a draw, with logarithms drawn where values may underflow.

    The graphs are copies: the model's own stay as they are.
    """
    # Parents come before their children: a child is built on the draws that replace its parents.
    fgraph = FunctionGraph(outputs=free_given_data(model), clone=False)
    unconstrained, returned = [], []
    for i, rv in enumerate(model.free_RVs):
        transform, draw = model.rvs_to_transforms[rv], fgraph.outputs[i]
        spatial = drawn_by_density(draw)
        if spatial is not None:
            fgraph.replace(draw, spatial, import_missing=True)
            draw = fgraph.outputs[i]
        inputs = draw.owner.inputs
        if transform is None:
            unconstrained.append(draw)
            returned.append(draw)
            continue
        found = _LOGARITHMS.get((type(draw.owner.op), type(transform)))
        if found:
            drawn = found.op.make_node(*inputs).outputs[1]
            unconstrained.append(found.to_unconstrained(drawn, *inputs[2:]))
        elif standardised := is_standardised(draw, transform):
            unconstrained.append(standard_draw(draw))
        else:
            unconstrained.append(transform.forward(draw, *inputs))
        returned.append(transform.backward(unconstrained[-1], *inputs))
        if found or standardised:
            fgraph.replace(draw, returned[-1], import_missing=True)
    return PriorDraws(unconstrained, list(fgraph.outputs), returned)
