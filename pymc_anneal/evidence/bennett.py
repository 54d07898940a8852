"""Bennett's acceptance ratio: both directions of a path combined (Bennett 1976).

With ``a_i`` the log weights from the reference to the target and ``b_j`` the log weights on
trajectories that start in the target, the bridge estimate of least variance (Meng & Wong 1996) is
the solution of

    Z = mean_i[e^{a_i} / (s_F + s_R e^{a_i} / Z)] / mean_j[1 / (s_F + s_R e^{b_j} / Z)],

``s_F = N_F / (N_F + N_R) = 1 - s_R``. Both log weights are in the forward sense, target over
reference.
"""

from typing import NamedTuple

import numpy as np

from scipy.optimize import brentq
from scipy.special import expit, logsumexp
from scipy.stats import kstwobign, norm

from pymc_anneal.base.arviz_compat import draws_ess
from pymc_anneal.evidence.ais import JACKKNIFE_GROUPS, jackknife_error


class BridgeEstimate(NamedTuple):
    """An estimate of a log evidence from draws of both ends, in nats.

    Attributes
    ----------
    log_evidence : float
    forward_terms, reverse_terms : ndarray, shapes of the log weights
        ``e^a / (s_F Z + s_R e^a)`` and ``1 / (s_F + s_R e^b / Z)``, whose means agree; the error
        of the estimate is that of these two means.
    reverse_ess : float
        Effective number of reverse draws that the bridge was built with.
    """

    log_evidence: float
    forward_terms: np.ndarray
    reverse_terms: np.ndarray
    reverse_ess: float

    def mcse(self, reverse_ess: float | None = None, forward_ess: float | None = None) -> float:
        """Return the Monte Carlo standard error, by the delta method (Micaletto & Vehtari 2025).

        Parameters
        ----------
        reverse_ess, forward_ess : float, optional
            Effective numbers of draws. Default: that of the bridge, and the number of forward ones.
        """
        f, r = (terms / terms.max() for terms in (self.forward_terms, self.reverse_terms))
        n_reverse = self.reverse_ess if reverse_ess is None else reverse_ess
        n_forward = f.size if forward_ess is None else forward_ess
        relative = f.var() / (n_forward * f.mean() ** 2) + r.var() / (n_reverse * r.mean() ** 2)
        return float(np.sqrt(np.log1p(relative)))

    def interval(self, reverse_ess: float | None = None) -> tuple[float, float]:
        """Return the 95 % interval, normal on the log scale; ``reverse_ess`` as in :meth:`mcse`."""
        half_width = float(norm.ppf(0.975)) * self.mcse(reverse_ess)
        return self.log_evidence - half_width, self.log_evidence + half_width


def bar(
    log_forward: np.ndarray, log_reverse: np.ndarray, reverse_ess: float | None = None
) -> BridgeEstimate:
    """Combine log weights of both directions by Bennett's acceptance ratio.

    Parameters
    ----------
    log_forward : ndarray, any shape
        Log weights ``log f_1(x) - log f_0(x)`` of draws of the reference, or of forward runs.
    log_reverse : ndarray, any shape
        The same log ratio at draws of the target, or along reverse runs.
    reverse_ess : float, optional
        Effective number of reverse draws, if they are not independent; it sets their share in the
        bridge. The estimate is consistent for any share.

    Raises
    ------
    ValueError
        A log weight is NaN or +inf, a reverse one is -inf, or all forward ones are -inf.

    References
    ----------
    Bennett (1976), Efficient estimation of free energy differences from Monte Carlo data. Meng &
    Wong (1996), Simulating ratios of normalizing constants via a simple identity.
    """
    a, b = np.asarray(log_forward, dtype=float), np.asarray(log_reverse, dtype=float)
    _check_weights(a, b)
    n_reverse = float(b.size if reverse_ess is None else reverse_ess)
    log_odds = np.log(n_reverse / a.size)  # log s_R / s_F

    def gap(log_z: float) -> float:
        # log e^x / (1 + e^x) at x = a - log Z + log odds, and log 1 / (1 + e^x) at b.
        forward = -np.logaddexp(0, log_z - log_odds - a)
        reverse = -np.logaddexp(0, b - log_z + log_odds)
        log_ratio = logsumexp(forward) - np.log(a.size) - logsumexp(reverse) + np.log(b.size)
        return float(log_ratio - log_odds)

    finite = np.concatenate([a[np.isfinite(a)], np.ravel(b)])
    low, high = finite.min() - 50 - abs(log_odds), finite.max() + 50 + abs(log_odds)
    log_z = float(brentq(gap, low, high, xtol=1e-12))
    share = n_reverse / (a.size + n_reverse)
    return BridgeEstimate(
        log_evidence=log_z,
        forward_terms=expit(a - log_z + log_odds) / share,
        reverse_terms=expit(log_z - b - log_odds) / (1 - share),
        reverse_ess=n_reverse,
    )


def _check_weights(a: np.ndarray, b: np.ndarray) -> None:
    """Raise if no finite root of Bennett's equation exists."""
    valid = np.isfinite(a).any() and (a < np.inf).all() and b.size and np.isfinite(b).all()
    if not valid:
        raise ValueError(
            "Expected forward log weights that are finite or -inf, not all -inf, and finite "
            f"reverse ones; found {a.size} of which {int(np.isfinite(a).sum())} are finite, and "
            f"{b.size} of which {int(np.isfinite(b).sum())} are."
        )


def disagreement(log_forward: np.ndarray, log_reverse: np.ndarray) -> float:
    """Test whether two directions belong to the same path, as a score in standard errors.

    If both sample the same path, ``E_F[s g(s)] = E_R[(1 - s) g(s)]``, ``s = 1/(1 + Z e^-w)``, for
    every bounded ``g`` (Crooks 1998). Bennett's ratio solves it for ``g = 1``. The score is the
    violation for ``g(s) = s``, which is bounded on both sides whatever the tails of the weights,
    divided by its jackknife error over groups of consecutive trajectories.

    Parameters
    ----------
    log_forward, log_reverse : ndarray, any shapes
        Log weights of forward runs, and of reverse runs in the forward sense.

    Returns
    -------
    float
        About standard normal if the directions agree; 0 if the error is 0.
    """
    a, b = np.ravel(log_forward), np.ravel(log_reverse)

    def violation(a: np.ndarray, b: np.ndarray) -> float:
        log_z = bar(a, b).log_evidence
        s, t = expit(a - log_z), expit(b - log_z)
        return float((s**2).mean() - (t * (1 - t)).mean())

    groups = min(JACKKNIFE_GROUPS, len(a), len(b))
    parts = zip(np.array_split(a, groups), np.array_split(b, groups), strict=True)
    ends = np.cumsum([[len(x), len(y)] for x, y in parts], axis=0)
    starts = np.vstack([[0, 0], ends[:-1]])
    left_out = [
        violation(np.delete(a, slice(i, k)), np.delete(b, slice(j, m)))
        for (i, j), (k, m) in zip(starts, ends, strict=True)
    ]
    error = jackknife_error(np.array(left_out))
    return violation(a, b) / error if error > 0 else 0.0


def reweighting_p_value(
    log_forward: np.ndarray,
    log_reverse: np.ndarray,
    reverse_ess: float | None = None,
    forward_ess: float | None = None,
) -> float:
    """Test whether the weights turn the log weights of forward runs into those of reverse runs.

    If both directions sample the same path, the log weights ``b`` of reverse runs have the
    distribution of ``a`` under the weights ``e^a`` (Crooks 1998). Unlike :func:`disagreement`,
    which solves for ``Z``, the comparison sees a part of the target that no forward run has
    reached, or from which no reverse run starts: the bulk of one sample then lies outside of the
    other. The share of the weight beyond the largest weight of a sample, which is about the share
    of that weight itself, counts as no difference. Nor do parts of the reference that no reverse
    run reaches, which hold next to nothing of the target.

    Parameters
    ----------
    log_forward, log_reverse : ndarray, any shapes
        Log weights of forward runs, and of reverse runs in the forward sense.
    reverse_ess, forward_ess : float, optional
        Effective numbers of runs. Default: their numbers.

    Returns
    -------
    float
        p-value of a Kolmogorov-Smirnov test with effective sample sizes.
    """
    a, b = np.ravel(log_forward), np.ravel(log_reverse)
    forward = _WeightedSample.of(a, a, (forward_ess or a.size) / a.size)
    reverse = _WeightedSample.of(b, np.zeros(b.shape), (reverse_ess or b.size) / b.size)
    return _ks_p_value(forward, reverse)


class _WeightedSample(NamedTuple):
    """Values, their normalised weights, and their effective number."""

    values: np.ndarray
    weights: np.ndarray
    size: float

    @classmethod
    def of(cls, values: np.ndarray, log_weight: np.ndarray, share: float) -> "_WeightedSample":
        weights = np.exp(log_weight - logsumexp(log_weight))
        # The largest weight counts twice: the tail beyond it has not been seen.
        return cls(values, weights, share / float((weights**2).sum() + weights.max() ** 2))


def _ks_p_value(first: _WeightedSample, second: _WeightedSample) -> float:
    """Return the asymptotic p-value of a two-sample Kolmogorov-Smirnov test with weights."""
    values = np.concatenate([first.values, second.values])
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    difference = np.cumsum(np.concatenate([first.weights, -second.weights])[order])
    last_of_ties = np.append(ordered[1:] != ordered[:-1], True)
    unseen = first.weights.max() + second.weights.max()
    distance = max(0.0, np.abs(difference[last_of_ties]).max() - unseen)
    size = first.size * second.size / (first.size + second.size)
    return float(kstwobign.sf(distance * np.sqrt(size)))


def both_directions(log_forward: np.ndarray, log_reverse: np.ndarray) -> BridgeEstimate:
    """Combine both directions by Bennett's acceptance ratio, with autocorrelated reverse runs.

    Parameters
    ----------
    log_forward, log_reverse : ndarray, shapes (chains, particles)
        Log weights of forward runs, and of reverse runs in the forward sense. Consecutive reverse
        runs started at consecutive draws of a chain: their autocorrelation gives their effective
        number.
    """
    terms = bar(log_forward, log_reverse).reverse_terms
    # ArviZ knows no effective number of fewer than four draws: NaN, which `fmin` leaves out.
    return bar(log_forward, log_reverse, float(np.fmin(draws_ess(terms), log_reverse.size)))
