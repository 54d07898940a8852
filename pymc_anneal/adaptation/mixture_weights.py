"""Weights of a mixture of densities, fitted to a target by importance sampling.

With ``W_i ~ f(x_i) / r(x_i)`` at draws of the mixture ``r = sum_j w_j r_j`` and its share of the
prior (Cappe, Douc, Guillin, Marin & Robert 2008, eq. 14),

    w_j <- sum_i W_i w_j r_j(x_i) / r(x_i),

bounded below, so that no component is given up.
"""

from dataclasses import replace

import numpy as np

from pymc_anneal.adaptation.fitted_reference import mixture_of, normalised
from pymc_anneal.adaptation.mode_mixture import ModeMixture
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.paths.geometric import ReferencePath

# Iterations of the weights; the first one makes most of the change.
_ITERATIONS = 5


def fit_weights(
    path: ReferencePath, draws: np.ndarray, target: TargetDensity, least: np.ndarray
) -> ModeMixture:
    """Fit the weights of the reference of a path to draws of it.

    Parameters
    ----------
    path
        The path from the mixture.
    draws : ndarray, shape (m, d)
        Draws of the mixture, its share of the prior included.
    least : ndarray, shape (J,)
        Lower bounds on the weights, before they are made to sum to one.
    """
    mixture = mixture_of(path)
    first = mixture.weight
    log_each = mixture.evaluate_components(draws) - np.log(first)[:, None]
    terms = target.evaluate_draws(draws)
    log_prior, log_target = np.asarray(terms.log_prior), np.asarray(terms.log_posterior)
    log_weight = log_target - _defended(path, log_each, log_prior, first)
    if not np.isfinite(log_weight).any():  # No draw is in the support: nothing is known.
        return mixture
    importance = normalised(log_weight)
    weight = first
    for _ in range(_ITERATIONS):
        log_mixture = _defended(path, log_each, log_prior, weight)
        share = np.exp(log_each + np.log(weight)[:, None] - log_mixture)
        weight = np.maximum(share @ importance, least)
        weight = weight / weight.sum()
    return replace(mixture, weight=weight)


def _defended(
    path: ReferencePath, log_each: np.ndarray, log_prior: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Return the log density of a mixture with its share of the prior, shape ``(n,)``.

    ``log_each``, shape ``(J, n)``, are the log densities of the components without weights.
    """
    share = float(path.prior_share)
    # A third of the time of SciPy's `logsumexp`, which took a third of the fit of nine modes.
    fitted = np.logaddexp.reduce(log_each + np.log(weight)[:, None], axis=0)
    return np.asarray(np.logaddexp(np.log(share) + log_prior, np.log1p(-share) + fitted))


def log_ratio(path: ReferencePath, position: np.ndarray, terms: LogTerms) -> np.ndarray:
    """Return ``log f - log r``, shape ``(n,)``, with the terms of the target there."""
    log_each = mixture_of(path).evaluate_components(position)
    log_reference = _defended(path, log_each, np.asarray(terms.log_prior), np.ones(len(log_each)))
    difference: np.ndarray = np.asarray(terms.log_posterior) - log_reference
    return difference
