"""Bennett's acceptance ratio: both directions of a path combined (Bennett 1976).

With ``a_i`` the log weights from the reference to the target and ``b_j`` those on trajectories that
began in the target, the bridge estimate of least variance (Meng & Wong 1996) is the solution of

    Z = mean_i[e^{a_i} / (s_F + s_R e^{a_i} / Z)] / mean_j[1 / (s_F + s_R e^{b_j} / Z)],

``s_F = N_F / (N_F + N_R) = 1 - s_R``.
"""

from typing import NamedTuple

import numpy as np

from scipy.optimize import brentq
from scipy.special import expit, logsumexp
from scipy.stats import norm

from pymc_anneal.base.arviz_compat import draws_ess
from pymc_anneal.evidence.ais import jackknife_error


class BridgeEstimate(NamedTuple):
    """An estimate of a log evidence from draws of both ends, in nats.

    Attributes
    ----------
    log_evidence : float
    forward_terms, reverse_terms : ndarray, shapes of the log weights
        ``e^a / (s_F Z + s_R e^a)`` and ``1 / (s_F + s_R e^b / Z)``, whose means agree; the error
        of the estimate is that of these two means.
    """

    log_evidence: float
    forward_terms: np.ndarray
    reverse_terms: np.ndarray

    def mcse(self, reverse_ess: float | None = None) -> float:
        """Monte Carlo standard error, by the delta method (Micaletto & Vehtari 2025).

        Parameters
        ----------
        reverse_ess
            Effective number of the reverse draws, if they are not independent.
        """
        f, r = self.forward_terms, self.reverse_terms
        n_reverse = r.size if reverse_ess is None else reverse_ess
        relative = f.var() / (f.size * f.mean() ** 2) + r.var() / (n_reverse * r.mean() ** 2)
        return float(np.sqrt(np.log1p(relative)))

    def interval(self, reverse_ess: float | None = None) -> tuple[float, float]:
        """95 % interval, normal on the log scale; ``reverse_ess`` as for :meth:`mcse`."""
        half_width = float(norm.ppf(0.975)) * self.mcse(reverse_ess)
        return self.log_evidence - half_width, self.log_evidence + half_width


def bar(
    log_forward: np.ndarray, log_reverse: np.ndarray, reverse_ess: float | None = None
) -> BridgeEstimate:
    """Combine log weights of both directions (Bennett 1976; Meng & Wong 1996).

    Parameters
    ----------
    log_forward : ndarray, any shape
        Log weights ``log f_1(x) - log f_0(x)`` of draws of the reference, or of forward runs.
    log_reverse : ndarray, any shape
        The same log ratio at draws of the target, or along reverse runs.
    reverse_ess
        Effective number of the reverse draws, if they are not independent: their share in the
        bridge. The estimate is consistent for any.

    Returns
    -------
    BridgeEstimate

    Raises
    ------
    ValueError
        A log weight is NaN or +inf, a reverse one -inf, or all forward ones are -inf.
    """
    a, b = np.asarray(log_forward, dtype=float), np.asarray(log_reverse, dtype=float)
    sound = np.isfinite(a).any() and (a < np.inf).all() and b.size and np.isfinite(b).all()
    if not sound:
        raise ValueError(
            "Expected forward log weights that are finite or -inf, not all -inf, and finite "
            f"reverse ones; found {a.size} of which {int(np.isfinite(a).sum())} are finite, and "
            f"{b.size} of which {int(np.isfinite(b).sum())} are."
        )
    n_reverse = b.size if reverse_ess is None else reverse_ess
    log_odds = np.log(n_reverse / a.size)  # log s_R / s_F

    def log_terms(log_z: float) -> tuple[np.ndarray, np.ndarray]:
        # log e^x / (1 + e^x) at x = a - log Z + log odds, and log 1 / (1 + e^x) at b.
        return -np.logaddexp(0, log_z - log_odds - a), -np.logaddexp(0, b - log_z + log_odds)

    def gap(log_z: float) -> float:
        forward, reverse = log_terms(log_z)
        log_ratio = logsumexp(forward) - np.log(a.size) - logsumexp(reverse) + np.log(b.size)
        return log_ratio - log_odds

    finite = np.concatenate([a[np.isfinite(a)], np.ravel(b)])
    low, high = finite.min() - 50 - abs(log_odds), finite.max() + 50 + abs(log_odds)
    log_z = brentq(gap, low, high, xtol=1e-12)
    share = n_reverse / (a.size + n_reverse)
    forward = expit(a - log_z + log_odds) / share
    return BridgeEstimate(float(log_z), forward, expit(log_z - b - log_odds) / (1 - share))


_GROUPS = 40


def disagreement(a: np.ndarray, b: np.ndarray) -> float:
    """Return by how many standard errors two directions violate the relation between them.

    Where both sample the same path ``E_F[s g(s)] = E_R[(1 - s) g(s)]``, ``s = 1/(1 + Z e^-w)``, for
    every bounded ``g`` (Crooks 1998). Bennett's ratio solves it for ``g = 1``; this is what is left
    of it for ``g(s) = s``, bounded on both sides whatever the tails of the weights, with its error
    by the jackknife over runs of neighbouring trajectories.

    Parameters
    ----------
    a, b : ndarray
        Log weights of forward runs, and of reverse runs in the same sense.
    """
    a, b = np.ravel(a), np.ravel(b)

    def violation(a: np.ndarray, b: np.ndarray) -> float:
        log_z = bar(a, b).log_evidence
        s, t = expit(a - log_z), expit(b - log_z)
        return float((s**2).mean() - (t * (1 - t)).mean())

    groups = min(_GROUPS, len(a), len(b))
    parts = zip(np.array_split(a, groups), np.array_split(b, groups), strict=True)
    ends = np.cumsum([[len(x), len(y)] for x, y in parts], axis=0)
    starts = np.vstack([[0, 0], ends[:-1]])
    left_out = [
        violation(np.delete(a, slice(i, k)), np.delete(b, slice(j, m)))
        for (i, j), (k, m) in zip(starts, ends, strict=True)
    ]
    error = jackknife_error(np.array(left_out))
    return violation(a, b) / error if error > 0 else 0.0


def both_directions(a: np.ndarray, b: np.ndarray) -> tuple[BridgeEstimate, float]:
    """Combine both directions by Bennett's acceptance ratio.

    Parameters
    ----------
    a, b : ndarray, shapes (chains, particles)
        Log weights of forward runs, and of reverse runs in the same sense. Neighbours among the
        reverse ones began at neighbouring draws: their autocorrelation tells how many they are
        worth.

    Returns
    -------
    BridgeEstimate, float
        The estimate, and the effective number of the reverse runs.
    """
    ess = min(draws_ess(bar(a, b).reverse_terms), float(b.size))
    return bar(a, b, ess), ess
