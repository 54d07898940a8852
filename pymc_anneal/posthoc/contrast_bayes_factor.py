"""Bayes factor of a null on a contrast, by the Savage-Dickey ratio.

For a linear function ``c = a'x + c_0`` of the unconstrained parameters, the map

    y = (c, x without x_j),    |dy/dx| = |a_j|,

of constant volume makes the contrast a coordinate, whose density at the null is estimated as in
`savage_dickey`, under the posterior and, unless it is normal, under the prior as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pymc as pm

from pytensor.tensor.random.basic import NormalRV
from scipy.stats import norm

from pymc_anneal.base.arviz_compat import Container
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed, seed_sequence
from pymc_anneal.evidence.combined_verdict import combined_verdict
from pymc_anneal.evidence.draws_audit import judge_draws
from pymc_anneal.evidence.mean_ratio import MeanRatio
from pymc_anneal.evidence.posterior_density import (
    LogDensity,
    grouped_draws,
    log_posterior,
    terms_at,
)
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.parents import random_parents
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.posthoc.density_at_point import REMEDY, posterior_density_at, ratio_of_densities
from pymc_anneal.posthoc.null_point import shape_of
from pymc_anneal.results.bayes_factor import LogBayesFactor

# From the values of all variables, shapes (n, ...), to the contrast, shape (n,).
Contrast = Callable[[Mapping[str, np.ndarray]], np.ndarray]

# Prior draws for the density of a contrast that is not normal: four chains of as many.
_PRIOR_DRAWS = 5_000
# Largest difference of a contrast from a linear function, relative to its spread.
_ROUNDING = 1e-6


@double_precision
def contrast_bayes_factor(
    idata: Container,
    contrast: str | Contrast,
    value: float = 0.0,
    *,
    model: pm.Model | CompiledModel | None = None,
    random_seed: RandomSeed = None,
) -> LogBayesFactor:
    """Compute the log Bayes factor of a model against a null on a contrast.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais` or :func:`pymc.sample` with all free variables.
    contrast : str or callable
        Name of a deterministic variable that is a number; or a function of the variables by name,
        arrays with draws along the first axis, to an array of shape ``(n,)``. It has to be linear
        in the unconstrained parameters: differences, sums and means of real variables, log ratios
        of positive ones.
    value : float
        The contrast under the null.
    model : pymc.Model or CompiledModel, optional
        The model of the draws. Default: the model on the context stack.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        Seed of the prior draws, which are needed unless the contrast is of independent normal
        variables.

    Returns
    -------
    LogBayesFactor
        ``log p(c_0) - log p(c_0 | y)`` in nats, positive if the model is favoured over the null.
        Under the null the parameters have their prior given that the contrast has this value.

    Raises
    ------
    ValueError
        The contrast has another shape, is constant, or is not linear; or the draws are not of this
        model.
    NotImplementedError
        The model has discrete variables or a prior without a normalised density.

    See Also
    --------
    savage_dickey : Values of the parameters themselves.
    constraint_bayes_factor : Orders and signs.

    References
    ----------
    Dickey (1971), The weighted likelihood ratio, linear hypotheses on normal location parameters.

    Examples
    --------
    >>> pymc_anneal.contrast_bayes_factor(idata, lambda v: v["a"] - v["b"], model=model)
    """
    compiled = as_compiled(model)
    compiled.require_normalised("The Savage-Dickey ratio")
    draws = grouped_draws(idata, compiled)
    linear = _linear(compiled, contrast, draws)
    prior, prior_verdict = _prior_density(compiled, linear, value, seed_sequence(random_seed))
    posterior = posterior_density_at(
        linear.to_coordinates(draws),
        linear.density_of(log_posterior(compiled)),
        np.array([linear.pivot]),
        np.array([value]),
    )
    of_draws = judge_draws(idata, compiled, draws, np.random.SeedSequence(0))
    verdicts = {**of_draws, "prior": prior_verdict, "posterior": posterior.verdict(REMEDY)}
    name = contrast if isinstance(contrast, str) else "contrast"
    models = ("the model", f"the null ({name} = {value:g})")
    return ratio_of_densities(prior, posterior.density, combined_verdict(verdicts), models)


@dataclass(frozen=True)
class _Linear:
    """A linear function of the unconstrained parameters, in the place of one of them.

    Attributes
    ----------
    slope : ndarray, shape (d,)
    start : float
        Its value where all parameters are zero.
    """

    slope: np.ndarray
    start: float

    @property
    def pivot(self) -> int:
        """The parameter that gives its place to the contrast."""
        return int(np.abs(self.slope).argmax())

    def to_coordinates(self, x: np.ndarray) -> np.ndarray:
        """Return positions, shape ``(..., d)``, with the contrast in the place of a parameter."""
        y = x.copy()
        y[..., self.pivot] = self.start + x @ self.slope
        return y

    def density_of(self, log_density: LogDensity) -> LogDensity:
        """Return a log density of parameters as one of the new coordinates, up to a constant."""
        own = self.slope[self.pivot]

        def evaluate(y: np.ndarray) -> np.ndarray:
            x = y.copy()
            others = y @ self.slope - own * y[:, self.pivot]
            x[:, self.pivot] = (y[:, self.pivot] - self.start - others) / own
            return log_density(x)

        return evaluate


def _linear(compiled: CompiledModel, contrast: str | Contrast, draws: np.ndarray) -> _Linear:
    """Return a contrast as a linear function, or raise if it is none at the draws."""
    flat = draws.reshape(-1, compiled.ndim)
    base = np.concatenate([np.zeros((1, compiled.ndim)), np.eye(compiled.ndim)])
    at_base, found = _evaluate(compiled, contrast, base), _evaluate(compiled, contrast, flat)
    linear = _Linear(at_base[1:] - at_base[0], float(at_base[0]))
    spread = np.ptp(found)
    if spread == 0 or not np.any(linear.slope):
        raise ValueError("The contrast is the same at all draws: it depends on no parameter.")
    if not np.abs(linear.start + flat @ linear.slope - found).max() <= _ROUNDING * spread:
        raise ValueError(
            "The contrast is not linear in the unconstrained parameters. Take differences of real "
            "variables or log ratios of positive ones, or compare two models instead."
        )
    return linear


def _evaluate(
    compiled: CompiledModel, contrast: str | Contrast, position: np.ndarray
) -> np.ndarray:
    values = compiled.constrain(position)
    if isinstance(contrast, str) and contrast not in values:
        raise ValueError(
            f"`contrast` is '{contrast}', expected a variable of the model, one of "
            f"{sorted(values)}, or a function of them."
        )
    found = values[contrast] if isinstance(contrast, str) else contrast(values)
    array = np.asarray(found, dtype=float)
    if array.shape != (len(position),):
        raise ValueError(
            f"The contrast of {len(position)} draws has shape {array.shape}, expected a number for "
            "each: the draws are along the first axis."
        )
    return array


def _prior_density(
    compiled: CompiledModel, linear: _Linear, value: float, seed: np.random.SeedSequence
) -> tuple[MeanRatio, Verdict]:
    """Return the log prior density of the contrast, exact if it is normal, and its verdict."""
    moments = _normal_moments(compiled, linear)
    if moments is not None:
        exact = float(norm.logpdf(value, *moments))
        return MeanRatio.exact(exact), Verdict("trust")
    draws = compiled.sample_prior(seed, 4 * _PRIOR_DRAWS).reshape(4, _PRIOR_DRAWS, -1)
    found = posterior_density_at(
        linear.to_coordinates(draws),
        linear.density_of(lambda x: np.asarray(terms_at(compiled, x).log_prior)),
        np.array([linear.pivot]),
        np.array([value]),
    )
    return found.density, found.verdict(REMEDY)


def _normal_moments(compiled: CompiledModel, linear: _Linear) -> tuple[float, float] | None:
    """Return mean and standard deviation of a contrast of independent normal variables."""
    if compiled.log_prior_mass != 0:  # a transform cuts off a part of the prior
        return None
    mean, variance, model = linear.start, 0.0, compiled.model
    for variable in compiled.variables:
        slope = linear.slope[variable.start : variable.stop]
        if not slope.any():
            continue
        rv = model[variable.name]
        inputs = rv.owner.inputs
        if not isinstance(rv.owner.op, NormalRV) or random_parents(model, inputs):
            return None
        mu, sigma = (g.eval() for g in compiled.freeze(rv.owner.op.dist_params(rv.owner)))
        shape = shape_of(compiled, variable.name)
        mean += float(slope @ np.broadcast_to(mu, shape).ravel())
        variance += float(slope**2 @ np.broadcast_to(sigma, shape).ravel() ** 2)
    return mean, float(np.sqrt(variance))
