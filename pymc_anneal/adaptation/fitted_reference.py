"""A mixture fitted to particles of the target, and what it costs to start there.

The discrepancy of the whole path in one step, ``D = log(E_r[u^2] / E_r[u]^2)`` with ``u = f / r``,
is estimated from both ends: from draws of the reference, and as ``log(E_f[u] / E_r[u])`` from the
particles, which see what the draws miss. The larger one counts.
"""

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from scipy.special import expit, logsumexp

from pymc_anneal.adaptation.mode_mixture import ModeMixture
from pymc_anneal.paths.geometric import ReferencePath
from pymc_anneal.paths.mixed_draws import Sampler, mixed_draws

# Intervals of the profile of a path that is short enough to be measured without moves.
_INTERVALS = 8
# Share of a mode among the particles, relative to its share in the evidence, below which the
# particles have not met it.
_MET = 0.25
# Shares of the evidence in modes that no particle has met, above which search and run may cost so
# many times as much as the run from the prior, which would pass these modes by as well, and above
# the larger share would not be trusted.
_PRICE_OF_UNMET = ((1e-3, 4.0), (0.05, 100.0))
# Parts of the draws, of whose estimates a heavy weight moves one.
_PARTS = 5
# Probability that a mode holds less than it is said to hold at least.
_UNLIKELY = 1e-4
# Factor by which the median of the estimates may be too high with this probability: three of five
# are, each with at most the inverse of the factor.
_LOG_FACTOR = np.log(comb(_PARTS, _PARTS // 2 + 1) / _UNLIKELY) / (_PARTS // 2 + 1)
# Effective draws of a mode below which its share by importance sampling says nothing: with fewer
# its own error alone is a quarter of it.
LEAST_ESS = 16.0


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
        Number of modes; each has two components of the reference, the first ones.
    evaluations : int
        Evaluations of gradient or density.
    membership : ndarray, shape (m, modes)
        Share that each mode has in the reference at its draws.
    particle_share : ndarray, shape (modes,)
        Share of the particles in each mode.
    complete : bool
        Whether the search ended by itself, and not for its evaluations while it went on finding
        modes.
    unresolved : bool
        Whether the posterior is far above the reference where a climb has led to no peak.
    climbs : int
        Climbs from draws of the prior that looked for modes, at least.
    effort : float
        Share that this search took of the usual one.
    """

    path: ReferencePath
    log_ratio_draws: np.ndarray
    log_ratio_particles: np.ndarray
    modes: int
    evaluations: int
    membership: np.ndarray
    particle_share: np.ndarray
    complete: bool = True
    unresolved: bool = False
    climbs: int = 0
    effort: float = 1.0

    @property
    def log_z(self) -> float:
        """Importance sampling estimate of the log evidence, in nats; for comparison only."""
        return log_mean(self.log_ratio_draws)

    @cached_property
    def typical_log_z(self) -> float:
        """The log evidence that no single draw decides, in nats: a median of means.

        Lugosi & Mendelson (2019, section 2.1). Where the weights have heavy tails it is low, and
        the mean is low too or far too high.
        """
        typical = float(_median_of_means(self.log_ratio_draws))
        return typical if typical > -np.inf else self.log_z

    def least_share(self, log_evidence: float = -np.inf) -> np.ndarray:
        """Return the share that each mode has in the evidence at least, whatever its weights.

        Of all other modes the log evidence by another estimate may be given; the larger one counts.

        An unbiased estimate that is not negative exceeds ``a`` times its mean with a probability of
        at most ``1 / a`` (Markov), the median of five such estimates with at most ``10 / a^3``.
        """
        with np.errstate(divide="ignore", invalid="ignore"):  # modes without a draw, or with all
            log_mode = self.log_ratio_draws[:, None] + np.log(self.membership)
            log_rest = self.log_z + np.log1p(-np.minimum(self.share, 1.0))
            log_least = _median_of_means(log_mode) - _LOG_FACTOR
            least = expit(log_least - np.maximum(log_rest, log_evidence))
        return np.asarray(np.nan_to_num(least, nan=0.0))

    @property
    def discrepancy(self) -> float:
        """``D`` of the whole path, the larger of the estimates from both ends."""
        return discrepancy_of(self.log_ratio_draws, self.log_ratio_particles)

    @property
    def log_reference_mass(self) -> float:
        """Log share of the draws of non-zero density."""
        share = np.isfinite(self.log_ratio_draws).mean()
        return float(np.log(share)) if share else -np.inf

    @property
    def centres(self) -> np.ndarray:
        """Centre of each mode, shape ``(modes, d)``."""
        return mixture_of(self.path).mean[: self.modes]

    @property
    def share(self) -> np.ndarray:
        """Share of the evidence that each mode holds, shape ``(modes,)``."""
        return np.asarray(normalised(self.log_ratio_draws) @ self.membership)

    def met_share_of(self, log_evidence: float) -> float:
        """Return the rest of `unmet_share_of`, at least a tenth of one draw."""
        return max(1.0 - self.unmet_share_of(log_evidence), 0.1 / len(self.log_ratio_draws))

    def unmet_share_of(self, log_evidence: float) -> float:
        """Return the share of the evidence in modes that no particle has met, or far too few.

        Parameters
        ----------
        log_evidence
            A rough estimate of the log evidence, in nats, or NaN: the mixture may know a small part
            of the posterior.
        """
        weight = normalised(self.log_ratio_draws)[:, None] * self.membership
        share = weight.sum(axis=0)
        known = share**2 >= LEAST_ESS * np.square(weight).sum(axis=0)
        share = np.where(known, share, self.least_share())
        unmet = min(float(share[self.particle_share < _MET * share].sum()), 1.0)
        if unmet == 0:
            return 0.0
        return unmet * min(1.0, float(np.exp(self.log_z - np.fmax(log_evidence, self.log_z))))

    def price(self, log_evidence: float = np.nan) -> float:
        """Return how many times the cost of the run from the prior this reference is worth.

        The log evidence is a rough estimate, as for `unmet_share_of`.
        """
        unmet = self.unmet_share_of(log_evidence)
        return max((price for share, price in _PRICE_OF_UNMET if unmet > share), default=1.0)

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


def discrepancy_of(log_ratio_draws: np.ndarray, log_ratio_particles: np.ndarray) -> float:
    """Return ``D`` of one step from a reference, the larger of the estimates from both ends."""
    log_z = log_mean(log_ratio_draws)
    if log_z == -np.inf:  # No draw is where the target is.
        return np.inf
    from_draws = log_mean(2 * log_ratio_draws) - 2 * log_z
    return max(from_draws, log_mean(log_ratio_particles) - log_z, 0.0)


def draw_start(path: ReferencePath, draw_prior: Sampler) -> Sampler:
    """Return the sampler of the reference of a path, its share of the prior included."""
    share = float(path.prior_share)
    samplers = [draw_prior, path.reference.sample]

    def draw(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        return mixed_draws(seed, draws, np.array([share, 1 - share]), samplers)

    return draw


def mixture_of(path: ReferencePath) -> ModeMixture:
    """Return the mixture from which a path starts."""
    assert isinstance(path.reference, ModeMixture)
    return path.reference


def membership(path: ReferencePath, position: np.ndarray, modes: int) -> np.ndarray:
    """Return the share that each mode has in a mixture at positions, shape ``(n, modes)``.

    Each mode has two components, the first ones.
    """
    log_each = mixture_of(path).evaluate_components(position)[: 2 * modes]
    log_mode = np.logaddexp(log_each[::2], log_each[1::2])
    # Beyond 1e154 deviations all densities are zero, and the first mode is as good as another.
    log_mode[0, np.isneginf(log_mode).all(axis=0)] = 0.0
    share: np.ndarray = np.exp(log_mode - logsumexp(log_mode, axis=0)).T
    return share


def log_mean(log_u: np.ndarray) -> float:
    """Return the log of the mean of numbers given by their logs."""
    return float(logsumexp(log_u) - np.log(len(log_u)))


def _median_of_means(log_u: np.ndarray) -> np.ndarray:
    """Return the median of the logs of means of parts of rows, shape ``(n, ...)`` to ``(...)``."""
    parts = [log_u[i::_PARTS] for i in range(_PARTS)]
    means = [np.logaddexp.reduce(u, axis=0) - np.log(len(u)) for u in parts]
    return np.asarray(np.median(means, axis=0))


def normalised(log_weight: np.ndarray) -> np.ndarray:
    """Return weights that sum to one, shape ``(n,)``; zeros if all of them are zero."""
    if log_weight.max() == -np.inf:
        return np.zeros(len(log_weight))
    weight = np.exp(log_weight - log_weight.max())
    return np.asarray(weight / weight.sum())


def _reweighted_variance(log_u: np.ndarray, beta: float) -> float:
    """Return the variance of ``log_u`` at ``beta``, from draws at 0."""
    weight = normalised(beta * log_u)
    # Those of no weight may be at -1e300, whose square overflows.
    weight, log_u = weight[weight > 0], log_u[weight > 0]
    return float(weight @ np.square(log_u - weight @ log_u))
