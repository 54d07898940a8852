"""Check that the log density and the draws of a reference belong together.

An error of a reference's constant, or draws of another density, shift the evidence without a trace
in the weights. With a normal density ``q`` fitted to some draws of the reference ``r``, Bennett's
acceptance ratio estimates ``log int r`` from further draws of ``r`` and draws of ``q``: it has to
be zero within its error, and the two sets of draws have to agree with one ratio ``r / q``.
"""

import jax
import jax.numpy as jnp
import numpy as np

from scipy.stats import iqr

from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.evidence.bennett import BridgeEstimate, bar, disagreement
from pymc_anneal.paths.references import GaussianReference, Reference

# Draws to fit q, and draws of r and of q to compare them.
_DRAWS = 1000
# Largest error in standard errors: a false alarm in 10^8 checks if the errors are normal. In 420
# checks of correct references, heavy tails and two modes among them, the largest was 3.2.
_MAX_ERRORS = 6.0
# Effective number of draws that both densities share, below which nothing can be said: r may have
# many dimensions, or several modes.
_MIN_OVERLAP = 50.0
# Largest number of dimensions in which a normal density fitted to the draws overlaps with theirs.
_MAX_DIMENSIONS = 150
# Largest distance from the median, in standard deviations, that counts in the correlations of q.
_CLIP = 3.0
# Smallest variance of q in any direction, in units of the coordinates' variances.
_RIDGE = 1e-9


@double_precision
def check_agreement(reference: Reference, ndim: int) -> None:
    """Raise if the log density of a reference is not the normalised density of its draws.

    Raises
    ------
    ValueError
        Draws or log densities have the wrong shape or are not finite, or do not belong together.
    """
    seed_fit, seed_test, seed_normal = np.random.SeedSequence(20131).spawn(3)
    draws = [_draw(reference, seed, ndim) for seed in (seed_fit, seed_test)]
    name, log_r = type(reference).__name__, [_evaluate(reference, x) for x in draws]
    if not all(np.isfinite(v).all() for v in log_r):
        raise ValueError(
            f"`reference`: the log density of {name} is not finite at some of its own draws."
        )
    if not 0 < ndim <= _MAX_DIMENSIONS:
        return
    q = _fit_normal(draws[0])
    points = q.sample(seed_normal, _DRAWS)
    forward = _evaluate(reference, points) - _evaluate(q, points)
    backward = log_r[1] - _evaluate(q, draws[1])
    if np.isnan(forward).any():
        raise ValueError(f"`reference`: the log density of {name} is NaN near its draws.")
    if np.isfinite(forward).any():
        _compare(name, forward, backward)


def _compare(name: str, forward: np.ndarray, backward: np.ndarray) -> None:
    """Raise if ``log r - log q`` at draws of ``q`` and of ``r`` is no ratio of two densities."""
    found = bar(forward, backward)
    if _overlap(found) < _MIN_OVERLAP:
        return
    error = found.mcse()
    if abs(found.log_evidence) > _MAX_ERRORS * error:
        raise ValueError(
            f"`reference`: the density of {name} integrates to {np.exp(found.log_evidence):.4g} by "
            f"its own draws (log {found.log_evidence:.3g} +- {error:.2g}), expected 1. Its log "
            "density must include the normalising constant, and its draws must follow it."
        )
    if abs(disagreement(forward, backward)) > _MAX_ERRORS:
        raise ValueError(
            f"`reference`: the draws of {name} do not follow its log density. Check that both use "
            "the same scale."
        )


def _overlap(found: BridgeEstimate) -> float:
    """Return the effective number of draws that could be of either density."""
    share = 0.5 * np.concatenate([found.forward_terms, 2 - found.reverse_terms])
    return float(4 * (share * (1 - share)).sum())


def _draw(reference: Reference, seed: np.random.SeedSequence, ndim: int) -> np.ndarray:
    draws = np.asarray(reference.sample(seed, _DRAWS), dtype=float)
    if draws.shape != (_DRAWS, ndim):
        raise ValueError(
            f"`reference`: {_DRAWS} draws of {type(reference).__name__} have shape {draws.shape}, "
            f"expected {(_DRAWS, ndim)}: the model has {ndim} coordinates in unconstrained space."
        )
    if not np.isfinite(draws).all():
        raise ValueError(f"`reference`: draws of {type(reference).__name__} are not finite.")
    return draws


def _evaluate(reference: Reference, position: np.ndarray) -> np.ndarray:
    try:
        log_density = np.asarray(jax.jit(reference.log_density)(jnp.asarray(position)))
    except jax.errors.JAXTypeError as error:
        raise TypeError(
            f"`reference`: JAX cannot trace the log density of {type(reference).__name__}, which "
            "has to be written in jax.numpy."
        ) from error
    if log_density.shape != (len(position),):
        raise ValueError(
            f"`reference`: the log density of {type(reference).__name__} at positions of shape "
            f"{position.shape} has shape {log_density.shape}, expected {(len(position),)}."
        )
    return log_density


def _fit_normal(draws: np.ndarray) -> GaussianReference:
    """Fit a normal density to the bulk of draws, whatever their tails."""
    median, spread = np.median(draws, axis=0), iqr(draws, axis=0, scale="normal")
    if not (spread > 0).all():
        raise ValueError("`reference`: its draws do not vary in some coordinate.")
    z = np.clip((draws - median) / spread, -_CLIP, _CLIP)
    covariance = np.atleast_2d(np.cov(z.T)) + _RIDGE * np.eye(len(median))
    return GaussianReference(median, spread[:, None] * np.linalg.cholesky(covariance))
