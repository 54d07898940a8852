"""Bayes factor of a point null inside a model, by the Savage-Dickey ratio.

For a model with parameters ``(b, r)`` and the null ``b = b_0`` with prior ``p(r | b_0)`` for the
rest (the prior of ``r`` itself if the two are independent),

    log BF = log p(b_0) - log p(b_0 | y),

positive if the data favour the model over the null (Dickey 1971). Neither density is smoothed: that
of the prior is known, that of the posterior is a mean over draws (`posthoc/density_at_point.py`).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pymc as pm

from scipy.special import logsumexp

from pymc_anneal.base.arviz_compat import Container
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed, seed_sequence, spawned
from pymc_anneal.evidence.combined_verdict import combined_verdict
from pymc_anneal.evidence.diagnostics import MAX_PARETO_K
from pymc_anneal.evidence.draws_audit import judge_draws
from pymc_anneal.evidence.mean_ratio import MeanRatio, mean_ratio
from pymc_anneal.evidence.posterior_density import grouped_draws, log_posterior
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.posthoc.density_at_point import (
    REMEDY,
    PointDensity,
    posterior_density_at,
    ratio_of_densities,
)
from pymc_anneal.posthoc.edge import Edge, edge_density, find_edge
from pymc_anneal.posthoc.null_point import (
    NullPoint,
    check_prior_is_known,
    locate_null,
    log_prior_at,
)
from pymc_anneal.results.bayes_factor import LogBayesFactor

# Prior draws of the parents of the null's variables: an error of 0.5 % for ratios that vary by
# 100 %. Of densities that are infinite as the mean of 1 / tau is, none of 2,500 samples passes for
# finite by its Pareto k; of samples of 10,000, one in a hundred did.
_PRIOR_DRAWS = 40_000

# Distance from the point, in posterior standard deviations, at which the prior density has to be
# the same up to this difference in nats.
_NEAR, _LARGEST_JUMP = 1e-6, 1e-2


@double_precision
def savage_dickey(
    idata: Container,
    null: Mapping[str, Any],
    *,
    model: pm.Model | CompiledModel | None = None,
    random_seed: RandomSeed = None,
) -> LogBayesFactor:
    """Compute the log Bayes factor of a model against a point null, from posterior draws.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais` or :func:`pymc.sample` with all free variables.
    null : dict of str to float or array
        Values of free variables under the null, in the model's space; a number stands for all
        entries, NaN in an array leaves an entry free. The edge of the support of one variable that
        is a number (a standard deviation of zero, the end of a uniform prior) is approached from
        the inside, if its prior density there is neither zero nor infinite.
    model : pymc.Model or CompiledModel, optional
        The model of the draws. Default: the model on the context stack.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        Seed of the prior draws, which are needed if the prior of the null's variables has random
        parents.

    Returns
    -------
    LogBayesFactor
        ``log p(b_0) - log p(b_0 | y)`` in nats, positive if the model is favoured over the null.
        The parameters that both share have the same prior in both models, conditional on ``b_0``.

    Raises
    ------
    ValueError
        A variable or a value of the null is not valid; the prior density is zero, infinite or not
        continuous at the point; or the draws are not of this model.
    NotImplementedError
        The model has discrete variables or a prior without a normalised density, variables of the
        null depend on each other, or a transform cuts off a part of their prior.

    See Also
    --------
    constraint_bayes_factor : Orders, signs and intervals.
    prior_sensitivity : The same question under other priors.

    References
    ----------
    Dickey (1971), The weighted likelihood ratio, linear hypotheses on normal location parameters.
    Chen (1994), Importance-weighted marginal Bayesian posterior density estimation.

    Examples
    --------
    >>> pymc_anneal.savage_dickey(idata, {"effect": 0}, model=model)
    """
    compiled = as_compiled(model)
    edge = find_edge(compiled, null)
    if edge is not None:
        found = densities_at_edge(idata, compiled, edge, seed_sequence(random_seed))
    else:
        found = densities_at(idata, compiled, null, seed_sequence(random_seed))
    return found.factor(describe_null(null))


class Densities(NamedTuple):
    """The densities of prior and posterior at a null, and whether to trust their ratio.

    Attributes
    ----------
    prior : MeanRatio
    posterior : PointDensity
    verdict : Verdict
    draws : ndarray, shape (chains, n, d)
        The draws, unconstrained.
    """

    prior: MeanRatio
    posterior: PointDensity
    verdict: Verdict
    draws: np.ndarray

    def factor(self, null: str) -> LogBayesFactor:
        """Return the Bayes factor of the model against a null in words."""
        models = ("the model", f"the null ({null})")
        return ratio_of_densities(self.prior, self.posterior.density, self.verdict, models)


def densities_at(
    idata: Container,
    compiled: CompiledModel,
    null: Mapping[str, Any],
    seed: np.random.SeedSequence,
) -> Densities:
    """Return the densities at a null; arguments and errors as of `savage_dickey`."""
    compiled.require_normalised("The Savage-Dickey ratio")
    point = locate_null(compiled, null)
    check_prior_is_known(compiled, null)
    draws = grouped_draws(idata, compiled)
    prior = _prior_density(compiled, point, seed, draws)
    posterior = posterior_density_at(draws, log_posterior(compiled), point.coordinates, point.value)
    return _judged(idata, compiled, prior, posterior, draws, seed)


def _judged(
    idata: Container,
    compiled: CompiledModel,
    prior: MeanRatio,
    posterior: PointDensity,
    draws: np.ndarray,
    seed: np.random.SeedSequence,
) -> Densities:
    """Return densities with the verdict on the draws and on the ratio."""
    of_draws = judge_draws(idata, compiled, draws, spawned(seed, 0))
    verdict = combined_verdict({**of_draws, "ratio": posterior.verdict(REMEDY)})
    return Densities(prior, posterior, verdict, draws)


def densities_at_edge(
    idata: Container, compiled: CompiledModel, edge: Edge, seed: np.random.SeedSequence
) -> Densities:
    """Return the densities of prior and posterior at an edge, with respect to the variable."""
    compiled.require_normalised("The Savage-Dickey ratio")
    check_prior_is_known(compiled, [edge.name])
    draws = grouped_draws(idata, compiled)
    posterior = edge_density(edge, draws, log_posterior(compiled))
    spread = float(np.std(compiled.constrain(draws.reshape(-1, compiled.ndim))[edge.name]))
    near, farther = (_prior_near_edge(compiled, edge, k * _NEAR * spread) for k in (1, 2))
    if not abs(near - farther) < _LARGEST_JUMP:
        raise ValueError(
            f"The prior density of '{edge.name}' is zero or infinite at the edge {edge.value:g} of "
            "its support: the ratio needs one. Compare two models instead."
        )
    return _judged(idata, compiled, MeanRatio.exact(near), posterior, draws, seed)


def _prior_near_edge(compiled: CompiledModel, edge: Edge, distance: float) -> float:
    """Return the log prior density of the variable at a distance from its edge, in nats."""
    x = compiled.sample_prior(np.random.SeedSequence(0), 1)
    x[:, edge.coordinate] = edge.at(distance)
    fixed = {edge.name: np.array(True)}
    point = NullPoint(np.array([edge.coordinate]), x[0, [edge.coordinate]], fixed)
    value = log_prior_at(compiled, point, np.random.SeedSequence(0), 1)
    return float(value[0] - edge.log_jacobian(x)[0])


def describe_null(null: Mapping[str, Any]) -> str:
    """Return a null in words: "effect = 0"."""
    return ", ".join(f"{name} = {np.array2string(np.asarray(v))}" for name, v in null.items())


def _prior_density(
    compiled: CompiledModel, point: NullPoint, seed: np.random.SeedSequence, draws: np.ndarray
) -> MeanRatio:
    """Return the log prior density at the point, in nats, and raise if it is not continuous."""
    values = log_prior_at(compiled, point, seed, _PRIOR_DRAWS)
    if not np.isfinite(values).any() or np.isposinf(values).any():
        raise ValueError("The prior density at the null is zero or infinite: the ratio needs one.")
    found = mean_ratio(values[None])
    if found.pareto_k > MAX_PARETO_K:
        raise ValueError(
            "The prior density at the null is infinite, or too uneven to be averaged over its "
            f"parents (Pareto k {found.pareto_k:.2f}). Compare two models instead."
        )
    _check_continuous(compiled, point, seed, draws, values)
    return found


def _check_continuous(
    compiled: CompiledModel,
    point: NullPoint,
    seed: np.random.SeedSequence,
    draws: np.ndarray,
    values: np.ndarray,
) -> None:
    """Raise if the prior density, the mean of ``values`` at the point, jumps there.

    Given some parents it may be narrow, and change a lot within a step, where it is next to zero.
    """
    step = _NEAR * draws.reshape(-1, draws.shape[-1]).std(axis=0)[point.coordinates]
    for sign in (-1, 1):
        near = NullPoint(point.coordinates, point.value + sign * step, point.fixed)
        there = log_prior_at(compiled, near, seed, _PRIOR_DRAWS)
        if not abs(logsumexp(there) - logsumexp(values)) < _LARGEST_JUMP:
            raise ValueError(
                "The prior density jumps at the null: the Savage-Dickey ratio is not defined "
                "there. Compare two models instead."
            )
