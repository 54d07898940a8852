"""The posterior density of some coordinates at a point, from draws.

With the unnormalised posterior ``q(b, r)``, the coordinates of interest ``b``, all others ``r``, a
function ``g`` and any density ``w``, the shear ``r + g(b_0) - g(b)`` has volume one, so that

    p(b_0 | y) = E[v],    v = w(b) q(b_0, r + g(b_0) - g(b)) / q(b, r),

over the posterior, for every ``w`` and ``g`` (importance weighted marginal density estimation;
Chen 1994, eq. 2.3, with ``g = 0``). ``g`` is a regression of ``r`` on ``b`` (`shear.py`): for a
normal posterior and a linear one the ratio of the ``q`` then depends on ``b`` alone. ``w`` is a
`Window`. Both come from one half of the draws, the mean from the other.

Where moved draws leave a ridge, ``v`` has a tail that no draw shows, and the mean is too low. The
witness is the distribution of ``b``: with the weights ``v`` it is ``w``,

    E[v; b in B] = p(b_0 | y) w(B)    for every B,

and where draws from afar do not count, it is narrower. Of several ``w`` and ``g``, those with the
smallest error among the ones without such a deviation are taken. A deviation where nearly all draws
under ``w`` count is no tail: the draws are not of this posterior.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pymc_anneal.base.arviz_compat import draws_ess
from pymc_anneal.evidence.ais import effective_sample_size
from pymc_anneal.evidence.diagnostics import MAX_PARETO_K, weight_pareto_k
from pymc_anneal.evidence.heavy_tail import error_with_tail
from pymc_anneal.evidence.mean_ratio import MeanRatio, mean_ratio
from pymc_anneal.evidence.posterior_density import LogDensity
from pymc_anneal.evidence.verdict import Verdict, verdict_from
from pymc_anneal.posthoc.shear import Shear, count_terms
from pymc_anneal.posthoc.window import Window
from pymc_anneal.results.bayes_factor import LogBayesFactor

# Places of w between the mean of the draws and the point, and widths in standard deviations.
_PLACES, _WIDTHS = (0.0, 0.25, 0.5, 1.0), (1.0, 0.8, 0.6, 0.4, 0.2, 0.1)
# Widths at the point up to which a shear is fitted to the draws under w alone, and draws of a
# regression for each of its terms.
_LOCAL, _PER_TERM = 0.4, 20
# Errors by which one of two moments of b may be off: once in 1,000; and in the choice, where
# another one may serve.
_ERRORS, _ERRORS_OF_CHOICES = 3.5, 2.0
# Share of the draws under w that count where no tail is missing, and their least effective number.
_MOST, _FEWEST = 0.5, 2.0


# What to do about a ratio that is not trusted.
REMEDY = "compare two models instead, each with its own run"


class PointDensity(NamedTuple):
    """The log posterior density at a point, in nats.

    Attributes
    ----------
    density : MeanRatio
        With respect to the unconstrained coordinates.
    deviation : float
        How far the draws that count are from where they have to be, in errors.
    log_ratio : ndarray, shape (chains, n - n // 2)
        What `density` averages, at the second half of the draws.
    """

    density: MeanRatio
    deviation: float
    log_ratio: np.ndarray

    def verdict(self, remedy: str) -> Verdict:
        """Return whether to trust the density; `remedy` says what to do if one should not."""
        if self.deviation <= _ERRORS:
            return self.density.verdict(remedy)
        doubt = (
            "draws of a part of the posterior do not count for the density at the point (their "
            f"weights are off by {self.deviation:.1f} errors): {remedy}"
        )
        return verdict_from([doubt], [])


def posterior_density_at(
    draws: np.ndarray, log_density: LogDensity, coordinates: np.ndarray, value: np.ndarray
) -> PointDensity:
    """Estimate the log posterior density of some coordinates at a point.

    Parameters
    ----------
    draws : ndarray, shape (chains, n, d)
        Posterior draws in the unconstrained space.
    log_density : Callable
        Log of the unnormalised posterior, from shape ``(m, d)`` to shape ``(m,)``.
    coordinates : ndarray of int, shape (k,)
        Indices of the coordinates.
    value : ndarray, shape (k,)
        The point.

    Raises
    ------
    ValueError
        A coordinate is constant among the draws, or the density at the point is zero.

    References
    ----------
    Chen (1994), Importance-weighted marginal Bayesian posterior density estimation.
    """
    chains, n, d = draws.shape
    first, second = (part.reshape(-1, d) for part in (draws[:, : n // 2], draws[:, n // 2 :]))
    window, shear = _choose(first, log_density, coordinates, value)
    b = second[:, coordinates]
    log_ratio = log_density(shear.move(second, value)) - log_density(second)
    log_ratio = (window.log_density(b) + log_ratio).reshape(chains, -1)
    deviation = _deviation(window, b.reshape(chains, -1, len(value)), log_ratio)
    return PointDensity(mean_ratio(log_ratio), deviation, log_ratio)


class _Offer(NamedTuple):
    """A window and a shear with their log ratios at draws, and their relative error."""

    window: Window
    shear: Shear
    log_ratio: np.ndarray
    error: float

    @property
    def counts_most(self) -> bool:
        """Whether most draws in the window count."""
        return bool(self.error**-2 > _MOST * np.isfinite(self.log_ratio).sum())


def _choose(
    x: np.ndarray, log_density: LogDensity, coordinates: np.ndarray, value: np.ndarray
) -> tuple[Window, Shear]:
    """Return the window and the shear with the smallest error from draws, shape ``(n, d)``."""
    b = x[:, coordinates]
    if (np.ptp(b, axis=0) == 0).any():
        raise ValueError("A coordinate of the null is the same in all draws: the chains are stuck.")
    offers = sorted(_offers(x, log_density, coordinates, value), key=lambda o: o.error)
    chosen, least = offers[0], np.inf
    for offer in (o for o in offers if np.isfinite(o.error)):
        deviation = _deviation(offer.window, b[None], offer.log_ratio[None])
        if deviation < least:
            chosen, least = offer, deviation
        if deviation <= _ERRORS_OF_CHOICES:
            break
        if offer.counts_most:
            return offer.window, offer.shear
    return chosen.window, chosen.shear


def _offers(
    x: np.ndarray, log_density: LogDensity, coordinates: np.ndarray, value: np.ndarray
) -> Iterator[_Offer]:
    """Yield windows and shears for draws, shape ``(n, d)``."""
    b, at_x = x[:, coordinates], log_density(x)

    def with_ratios(weight: np.ndarray) -> list[tuple[Shear, np.ndarray]]:
        shears = _shears(x, coordinates, weight)
        return [(s, np.asarray(log_density(s.move(x, value)) - at_x)) for s in shears]

    everywhere = with_ratios(np.ones(len(x)))
    for place in _PLACES:
        for width in _WIDTHS:
            window = Window.between(b, value, place, width)
            log_w, found = window.log_density(b), everywhere
            if place == 1.0 and width <= _LOCAL and (log_w > -np.inf).any():
                found = [*everywhere, *with_ratios(np.exp(log_w - log_w.max()))]
            for shear, log_ratio in found:
                each = log_w + log_ratio
                yield _Offer(window, shear, each, _relative_error(each))


def _shears(x: np.ndarray, coordinates: np.ndarray, weight: np.ndarray) -> Iterator[Shear]:
    """Yield the shears for whose regression there are enough draws, a straight one first."""
    for degree in (1, 2):
        enough = count_terms(len(coordinates), degree) * _PER_TERM <= (weight > 0).sum()
        if enough or (degree == 1 and weight.all()):
            yield Shear.fit(x, coordinates, degree, weight)


def _relative_error(log_ratio: np.ndarray) -> float:
    """Return the relative error of a mean with its tail; infinite if the tail is too heavy."""
    if not np.isfinite(log_ratio).any():
        return np.inf
    effective = effective_sample_size(log_ratio)
    if effective < _FEWEST:
        return np.inf
    k = weight_pareto_k(log_ratio)
    return np.inf if k > MAX_PARETO_K else error_with_tail(effective**-0.5, log_ratio, k)


def _deviation(window: Window, b: np.ndarray, log_ratio: np.ndarray) -> float:
    """Return by how many errors weighted draws deviate from a window, the worse of two moments.

    Parameters
    ----------
    window
    b : ndarray, shape (chains, n, k)
    log_ratio : ndarray, shape (chains, n)
        Logs of their weights.
    """
    weight = np.exp(log_ratio - log_ratio.max())
    return max(_errors(weight * moment) for moment in window.deviations(b))


def _errors(values: np.ndarray) -> float:
    """Return the mean of values of chains, which should be zero, in its errors."""
    if np.ptp(values) == 0:
        return 0.0
    error = values.std() / np.sqrt(draws_ess(values))
    return float(abs(values.mean()) / error)


def ratio_of_densities(
    prior: MeanRatio, posterior: MeanRatio, verdict: Verdict, models: tuple[str, str]
) -> LogBayesFactor:
    """Return the Savage-Dickey ratio of two densities at a null, with the names of both models."""
    value = prior.log_mean - posterior.log_mean
    mcse = float(np.hypot(prior.mcse, posterior.mcse))
    half = posterior.interval[1] - posterior.log_mean
    half = float(np.hypot(half, prior.interval[1] - prior.log_mean))
    return LogBayesFactor(value, mcse, (value - half, value + half), verdict, models=models)
