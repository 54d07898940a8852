"""Proposals of bridge sampling, and the log ratios of posterior and proposal at draws of both."""

import jax
import numpy as np

from scipy.linalg import solve_triangular
from scipy.stats import norm

from pymc_anneal.adaptation.fitted_reference import FittedReference, draw_start
from pymc_anneal.base.contracts import check_not_nan
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.programs import forgettable
from pymc_anneal.evidence.posterior_density import LogDensity
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.paths.geometric import ReferencePath, ReferenceTerms

# Root of some forty rounding errors, relative to a standard deviation.
_ROUNDING = 1e-7


def from_mixture(
    compiled: CompiledModel,
    fitted: FittedReference,
    draws: np.ndarray,
    seed: np.random.SeedSequence,
) -> tuple[np.ndarray, np.ndarray]:
    """Return log ratios of posterior and mixture at draws of both, ``(n,)`` and by chain."""
    flat = draws.reshape(-1, draws.shape[2])
    proposed = draw_start(fitted.path, compiled.sample_prior)(seed, len(flat))
    forward, reverse = (_mixture_ratio(fitted.path, x) for x in (proposed, flat))
    return forward, reverse.reshape(draws.shape[:2])


@double_precision
def _mixture_ratio(path: ReferencePath, x: np.ndarray) -> np.ndarray:
    terms = _evaluate(path, x)
    check_not_nan(terms.log_target, x)
    return np.asarray(terms.log_target - terms.log_reference)


@forgettable
@jax.jit
def _evaluate(path: ReferencePath, x: jax.Array) -> ReferenceTerms:
    return path.evaluate(x)


def from_normal(
    log_density: LogDensity,
    first: np.ndarray,
    second: np.ndarray,
    rng: np.random.Generator,
    symmetric: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return log ratios of posterior and normal proposal at draws of both.

    ``first``, to which the proposal is fitted, and ``second`` have shape ``(chains, draws, d)``.
    """
    ndim = first.shape[2]
    centre, root = mean_and_root(first.reshape(-1, ndim))
    log_target = _warped(log_density, centre, root, symmetric=symmetric)
    z = solve_triangular(root, (second - centre).reshape(-1, ndim).T, lower=True).T
    proposed = rng.standard_normal(z.shape)
    log_reverse = _log_ratio(log_target, z).reshape(second.shape[:2])
    return _log_ratio(log_target, proposed), log_reverse


def mean_and_root(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and Cholesky factor of the covariance of draws of shape ``(n, d)``."""
    covariance = np.atleast_2d(np.cov(x.T))
    try:
        root = np.linalg.cholesky(covariance)
        # Rounding lets some libraries find a root of a singular matrix.
        if (np.diag(root) <= _ROUNDING * np.sqrt(np.diag(covariance))).any():
            raise np.linalg.LinAlgError
        return x.mean(axis=0), root
    except np.linalg.LinAlgError:
        constant = np.flatnonzero(np.ptp(x, axis=0) == 0)
        raise ValueError(
            f"The covariance of the posterior draws is singular (constant coordinates: "
            f"{constant.tolist()}): take more draws, or check that the chains moved."
        ) from None


def _warped(
    log_density: LogDensity, centre: np.ndarray, root: np.ndarray, symmetric: bool
) -> LogDensity:
    """Return the log density of ``z``, ``x = m + L z``; symmetric: averaged over ``z`` and ``-z``.

    ``centre`` has shape ``(d,)`` and ``root`` shape ``(d, d)``.
    """
    log_volume = float(np.log(np.diag(root)).sum())

    def warped(z: np.ndarray) -> np.ndarray:
        step = z @ root.T
        value = log_density(centre + step)
        if symmetric:
            value = np.logaddexp(value, log_density(centre - step)) - np.log(2)
        return value + log_volume

    return warped


def _log_ratio(log_target: LogDensity, z: np.ndarray) -> np.ndarray:
    """Return the log ratio of target and proposal at ``z`` of shape ``(n, d)``, shape ``(n,)``."""
    ratio: np.ndarray = log_target(z) - norm.logpdf(z).sum(axis=1)
    return ratio
