"""Posterior draws against the moments of posteriordb's draws, in joint Monte Carlo errors.

For the mean: (m - m') / sqrt(s^2 / n + e'^2), where n is the effective number of draws and e' the
error of posteriordb's mean. For the standard deviation, by the delta method with kurtosis k:
log(s / s') / sqrt((k - 1) / 4 (1 / n + e'^2 / s'^2)).
"""

import arviz as az
import numpy as np

from benchmarks.atlas import stored


def worst(posterior, name: str, ess: float) -> dict[str, tuple[str, float]]:
    """Return the parameters farthest off, and how far, for means and standard deviations.

    `ess` bounds the effective number of draws from above: that of the weights they come from.
    """
    scores: dict[str, list[tuple[str, float]]] = {"mean": [], "sd": []}
    for parameter, reference in stored.moments().get(name, {}).items():
        draws = draws_of(posterior, parameter)
        size = min(ess, float(az.ess(draws)))
        for moment, score in errors(draws.ravel(), size, reference).items():
            scores[moment].append((parameter, score))
    return {m: max(found, key=lambda s: abs(s[1])) for m, found in scores.items() if found}


def draws_of(posterior, parameter: str) -> np.ndarray:
    """Return the draws of one parameter of Stan, of shape (chains, draws)."""
    name, index = stored.parse(parameter)
    return np.asarray(posterior[name].values)[(slice(None), slice(None), *index)]


def errors(draws: np.ndarray, size: float, reference: stored.Moments) -> dict[str, float]:
    """Return the errors of mean and standard deviation, in joint errors."""
    mean, sd = draws.mean(), draws.std(ddof=1)
    kurtosis = np.mean((draws - mean) ** 4) / sd**4
    variance = 1 / size + (reference.mcse / reference.sd) ** 2
    return {
        "mean": float((mean - reference.mean) / np.hypot(sd / np.sqrt(size), reference.mcse)),
        "sd": float(np.log(sd / reference.sd) / np.sqrt((kurtosis - 1) / 4 * variance)),
    }
