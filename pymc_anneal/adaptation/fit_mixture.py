"""Fit of a mixture of references to particles of the target, and what it would cost to start there.

Each mode among the particles (`modes.py`) gets two components at the place and scale of its
particles, a normal one and a Student-t one with heavier tails. The weights come from importance
sampling with the mixture itself (Cappe, Douc, Guillin, Marin & Robert 2008, eq. 14): with
``W_i ~ f(x_i) / r(x_i)`` at draws of ``r``,

    w_j <- sum_i W_i w_j r_j(x_i) / r(x_i),

bounded below, so that no component is given up.

The discrepancy of the whole path in one step, ``D = log(E_r[u^2] / E_r[u]^2)`` with ``u = f / r``,
is estimated from both ends: from draws of the reference, and as ``log(E_f[u] / E_r[u])`` from the
particles, which see what the draws miss. The larger one counts.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from scipy.special import logsumexp

from pymc_anneal.adaptation.fit_reference import locate
from pymc_anneal.adaptation.modes import group_by_mode
from pymc_anneal.adaptation.particles import Slopes, gradient_array
from pymc_anneal.adaptation.peaks import MAX_DIMENSIONS, climb, draw_near_centres
from pymc_anneal.base.contracts import LogTerms, check_not_nan
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.paths.geometric import GeometricPath, ReferencePath
from pymc_anneal.paths.mixture_reference import MixtureReference, Sampler, mixed_draws
from pymc_anneal.paths.references import GaussianReference, Reference, StudentTReference

# Share of the prior in a reference.
_PRIOR_SHARE = 0.05
# Shares of the normal and the Student-t component of a mode before the weights are fitted, and the
# tails of the latter.
_SHARES, _DEGREES_OF_FREEDOM = np.array([0.8, 0.2]), 5.0
# Draws of the mixture for its weights, and as many to measure it, for each particle of the survey:
# a mode of 5 % has to have enough of them for a weight. They take no gradients.
_DRAWS_PER_PARTICLE = 4
# Log ratio of target to mixture, in nats, above which there may be a peak that the mixture misses;
# at the mode of a skewed density it is about 1. Number of peaks, and share of each before the fit.
_LEAST_PEAK, _MAX_PEAKS, _PEAK_SHARE = 2.0, 3, 0.1
# Largest number of draws of the search, which are kept in memory.
_MAX_SEARCH = 100_000
# Smallest weight of a component, as a share of what it had before the weights were fitted.
_LEAST_SHARE = 0.2
# Iterations of the weights; the first one makes most of the change.
_ITERATIONS = 5
# Modes with components of their own, the largest ones; smaller ones count to the last of these.
_MAX_MODES = 8
# Intervals of the profile of a path that is short enough to be measured without moves.
_INTERVALS = 8


@dataclass(frozen=True)
class FittedReference:
    """A reference fitted to particles, and the ratios ``u = f / r`` at both ends of its path.

    Attributes
    ----------
    path : ReferencePath
        The path from the reference, which has a share of the prior, to the target.
    log_ratio_draws, log_ratio_particles : ndarray, shapes (m,) and (n,)
        ``log f - log r`` at draws of the reference and at the particles.
    modes : int
        Number of modes among the particles.
    evaluations : int
        Evaluations of gradient or density.
    """

    path: ReferencePath
    log_ratio_draws: np.ndarray
    log_ratio_particles: np.ndarray
    modes: int
    evaluations: int

    @property
    def log_z(self) -> float:
        """Importance sampling estimate of the log evidence, in nats; for comparison only."""
        return _log_mean(self.log_ratio_draws)

    @property
    def discrepancy(self) -> float:
        """``D`` of the whole path, the larger of the estimates from both ends."""
        from_draws = _log_mean(2 * self.log_ratio_draws) - 2 * self.log_z
        return max(from_draws, _log_mean(self.log_ratio_particles) - self.log_z, 0.0)

    @property
    def log_reference_mass(self) -> float:
        """Log share of the draws of non-zero density."""
        return float(np.log(np.isfinite(self.log_ratio_draws).mean()))

    def profile(self) -> tuple[np.ndarray, np.ndarray]:
        """Return temperatures and the ``D`` of the steps between them, from reweighted draws.

        Returns
        -------
        betas : ndarray, shape (m + 1,)
        discrepancy : ndarray, shape (m,)
            In one step ``D``, in many small ones about the same ``sum D``: the variance of a
            normal log ratio. Scaled to the discrepancy of the whole path.
        """
        betas = np.linspace(0, 1, _INTERVALS + 1)
        log_u = self.log_ratio_draws[np.isfinite(self.log_ratio_draws)]
        middle = 0.5 * (betas[1:] + betas[:-1])
        speed = np.array([_reweighted_variance(log_u, beta) for beta in middle])
        # Constant where it is too small to tell.
        share = (speed + 1e-9) / (speed + 1e-9).sum()
        return betas, self.discrepancy * share / _INTERVALS


def draw_start(path: ReferencePath, draw_prior: Sampler) -> Sampler:
    """Return the sampler of the reference of a path, its share of the prior included."""
    share = float(path.prior_share)
    samplers = [draw_prior, path.reference.sample]

    def draw(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        return mixed_draws(seed, draws, np.array([share, 1 - share]), samplers)

    return draw


@double_precision
def fit_mixture(
    path: GeometricPath,
    position: np.ndarray,
    draw_prior: Sampler,
    seed: np.random.SeedSequence,
    search: int = 0,
    slopes: Slopes = gradient_array,
) -> FittedReference:
    """Fit a mixture to particles of the target.

    Parameters
    ----------
    path
        The path from the prior; its end is the target.
    position : ndarray, shape (n, d)
        Particles of the target, equally weighted.
    draw_prior
        Draws from the prior.
    seed
        Source of randomness.
    search
        Evaluations of the density for the search for peaks that no particle has met.
    slopes
        Gradients of the density at particles; NaN where there are none.

    Returns
    -------
    FittedReference
    """
    seed_fit, seed_search = seed.spawn(2)
    target = _Target(path, len(position))
    label = group_by_mode(target.log_density, position).clip(max=_MAX_MODES - 1)
    slope = slopes(path, position, 1.0)
    target.evaluations += len(position)
    mixture = _one_for_each_mode(position, slope, label)
    found = _fit(target, mixture, position, draw_prior, seed_fit)
    if search and position.shape[1] <= MAX_DIMENSIONS:
        found = _add_peaks(target, mixture, found, position, draw_prior, seed_search, search)
    return replace(found, evaluations=target.evaluations)


def _add_peaks(
    target: "_Target",
    mixture: MixtureReference,
    found: FittedReference,
    position: np.ndarray,
    draw_prior: Sampler,
    seed: np.random.SeedSequence,
    search: int,
) -> FittedReference:
    """Search for peaks, and fit again with components for those that the mixture misses."""
    seed_draws, *seeds = seed.spawn(1 + _MAX_PEAKS)
    normal = [c for c in mixture.components if isinstance(c, GaussianReference)]
    near = draw_near_centres(normal, min(search, _MAX_SEARCH), seed_draws)
    terms = target.evaluate(near)
    for own in seeds:
        height = _log_ratio(found.path, near, terms, target) - found.log_z
        if not height.max() > _LEAST_PEAK:
            break
        peak = climb(target.path, near[height.argmax()])
        if peak is None:
            break
        mixture = _with_peak(mixture, peak)
        found = _fit(target, mixture, position, draw_prior, own)
    return found


def _with_peak(mixture: MixtureReference, peak: GaussianReference) -> MixtureReference:
    """Return a mixture with two components at a peak, of small weight."""
    return MixtureReference(
        np.concatenate([(1 - _PEAK_SHARE) * mixture.weight, _PEAK_SHARE * _SHARES]),
        (*mixture.components, *_pair(peak)),
    )


def _pair(normal: GaussianReference) -> tuple[Reference, Reference]:
    """Return the components of a mode: a normal density, and one with heavier tails beside it."""
    return normal, StudentTReference(normal.mean, normal.scale, _DEGREES_OF_FREEDOM)


def _fit(
    target: "_Target",
    mixture: MixtureReference,
    position: np.ndarray,
    draw_prior: Sampler,
    seed: np.random.SeedSequence,
) -> FittedReference:
    """Fit the weights of a mixture, and measure it."""
    seed_fit, seed_check = seed.spawn(2)
    start = ReferencePath(target.path.log_terms, mixture, _PRIOR_SHARE)
    count = _DRAWS_PER_PARTICLE * len(position)
    draws = draw_start(start, draw_prior)(seed_fit, count)
    found = replace(start, reference=_pad(_fit_weights(start, draws, target)))
    checked = draw_start(found, draw_prior)(seed_check, count)
    return FittedReference(
        path=found,
        log_ratio_draws=_log_ratio(found, checked, target.evaluate(checked), target),
        log_ratio_particles=_log_ratio(found, position, target.evaluate(position), target),
        modes=len(mixture.components) // 2,
        evaluations=target.evaluations,
    )


@dataclass
class _Target:
    """Densities of the target in batches of one size, for which they are compiled once."""

    path: GeometricPath
    size: int
    evaluations: int = 0

    def evaluate(self, position: np.ndarray) -> LogTerms:
        """Return log prior and log likelihood, shape ``(n,)``, at ``(n, d)`` positions."""
        self.evaluations += len(position)
        batches = [_evaluate(self.path, batch) for batch in _batches(position, self.size)]
        joined: LogTerms = jax.tree.map(lambda *b: jnp.concatenate(b)[: len(position)], *batches)
        check_not_nan(joined.log_posterior, position)
        return joined

    def log_density(self, position: np.ndarray) -> np.ndarray:
        """Return the log density of the target, shape ``(n,)``, at ``(n, d)`` positions."""
        return np.asarray(self.evaluate(position).log_posterior)

    def log_components(self, reference: Reference, position: np.ndarray) -> np.ndarray:
        """Return the weighted log densities of a mixture's components, shape ``(J, n)``."""
        batches = [_log_components(reference, batch) for batch in _batches(position, self.size)]
        return np.concatenate(batches, axis=1)[:, : len(position)]


def _batches(position: np.ndarray, size: int) -> list[np.ndarray]:
    """Cut positions into batches, the last one filled up with its last row."""
    padded = np.pad(position, ((0, -len(position) % size), (0, 0)), mode="edge")
    return np.split(padded, len(padded) // size)


@jax.jit
def _evaluate(path: GeometricPath, position: np.ndarray) -> LogTerms:
    return path.evaluate(jnp.asarray(position))


@jax.jit
def _log_components(reference: MixtureReference, position: np.ndarray) -> jax.Array:
    return reference.log_components(jnp.asarray(position))


def _one_for_each_mode(
    position: np.ndarray, slope: np.ndarray, label: np.ndarray
) -> MixtureReference:
    """Return a normal and a Student-t component for each mode, weighted by its particles."""
    components: list[Reference] = []
    weight: list[float] = []
    for mode in range(label.max() + 1):
        own = label == mode
        components += _pair(GaussianReference(*locate(position[own], slope[own])))
        weight += list(own.mean() * _SHARES)
    return MixtureReference(np.array(weight), tuple(components))


def _pad(mixture: MixtureReference) -> MixtureReference:
    """Fill a mixture up with components of weight zero: the next fit may find another number.

    Programs are compiled for a number of components, which is doubled from one mode on.
    """
    modes = len(mixture.components) // 2
    missing = 2 ** int(np.ceil(np.log2(modes))) - modes
    return MixtureReference(
        np.concatenate([np.asarray(mixture.weight), np.zeros(2 * missing)]),
        (*mixture.components, *mixture.components[:2] * missing),
    )


def _fit_weights(path: ReferencePath, draws: np.ndarray, target: _Target) -> MixtureReference:
    """Return the reference of a path with weights fitted to its draws, shape ``(m, d)``."""
    reference = path.reference
    assert isinstance(reference, MixtureReference)
    first = np.asarray(reference.weight)
    log_each = target.log_components(reference, draws) - np.log(first)[:, None]
    terms = target.evaluate(draws)
    log_prior, log_target = np.asarray(terms.log_prior), np.asarray(terms.log_posterior)
    importance = _normalised(log_target - _defended(path, log_each, log_prior, first))
    weight = first
    for _ in range(_ITERATIONS):
        log_mixture = _defended(path, log_each, log_prior, weight)
        share = np.exp(log_each + np.log(weight)[:, None] - log_mixture)
        weight = np.maximum(share @ importance, _LEAST_SHARE * first)
        weight = weight / weight.sum()
    return replace(reference, weight=weight)


def _defended(
    path: ReferencePath, log_each: np.ndarray, log_prior: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Return the log density of a mixture with its share of the prior, shape ``(n,)``.

    ``log_each``, shape ``(J, n)``, are the log densities of the components without weights.
    """
    share = float(path.prior_share)
    fitted = logsumexp(log_each + np.log(weight)[:, None], axis=0)
    return np.asarray(np.logaddexp(np.log(share) + log_prior, np.log1p(-share) + fitted))


def _log_ratio(
    path: ReferencePath, position: np.ndarray, terms: LogTerms, target: _Target
) -> np.ndarray:
    """Return ``log f - log r``, shape ``(n,)``, with the terms of the target there."""
    log_each = target.log_components(path.reference, position)
    log_reference = _defended(path, log_each, np.asarray(terms.log_prior), np.ones(len(log_each)))
    log_ratio: np.ndarray = np.asarray(terms.log_posterior) - log_reference
    return log_ratio


def _log_mean(log_u: np.ndarray) -> float:
    return float(logsumexp(log_u) - np.log(len(log_u)))


def _normalised(log_weight: np.ndarray) -> np.ndarray:
    weight = np.exp(log_weight - log_weight.max())
    return np.asarray(weight / weight.sum())


def _reweighted_variance(log_u: np.ndarray, beta: float) -> float:
    """Return the variance of ``log_u`` at ``beta``, from draws at 0."""
    weight = _normalised(beta * log_u)
    return float(weight @ np.square(log_u - weight @ log_u))
