"""The mean of a density ratio over posterior draws, with an error that accounts for their ESS.

    R = E[r],    RSE^2 = Var(r) / (n_eff R^2),    MCSE(log R) = sqrt(log(1 + RSE^2)),

with the effective sample size ``n_eff`` of the draws for the mean of ``r``. The ratio may have a
heavy tail: its Pareto k is the guard.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scipy.special import logsumexp
from scipy.stats import norm

from pymc_anneal.base.arviz_compat import draws_ess, draws_rhat
from pymc_anneal.evidence.diagnostics import MAX_PARETO_K, MIN_ESS, weight_pareto_k
from pymc_anneal.evidence.heavy_tail import error_with_tail
from pymc_anneal.evidence.verdict import Verdict, verdict_from

# R-hat above which chains have not converged: between 1.01, which Vehtari et al. (2021) recommend
# for every quantity of interest, and the older 1.1.
MAX_RHAT = 1.05

# Ratios that differ by less than this are equal up to rounding.
_ROUNDING = 1e-12


class MeanRatio(NamedTuple):
    """The log of a mean ratio, in nats.

    Attributes
    ----------
    log_mean : float
    mcse : float
        Monte Carlo standard error, with what a heavy tail leaves out (`heavy_tail.py`).
    ess : float
        Effective sample size: independent draws of even ratios that have the same error.
    pareto_k : float
        Tail shape of the ratios.
    rhat : float
        R-hat of the ratios; 1 if they are all equal.
    """

    log_mean: float
    mcse: float
    ess: float
    pareto_k: float
    rhat: float

    @classmethod
    def exact(cls, log_mean: float) -> "MeanRatio":
        """Return a log mean that is known without draws."""
        return cls(log_mean, 0.0, np.inf, -np.inf, 1.0)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval."""
        half = float(norm.ppf(0.975)) * self.mcse
        return self.log_mean - half, self.log_mean + half

    def verdict(self, remedy: str) -> Verdict:
        """Return whether to trust the mean; `remedy` says what to do if one should not."""
        doubts: list[str] = []
        if self.pareto_k > MAX_PARETO_K:
            doubts.append(
                f"Pareto k of the ratios is {self.pareto_k:.2f} (above {MAX_PARETO_K}): {remedy}"
            )
        if not self.rhat < MAX_RHAT:
            doubts.append(f"R-hat of the ratios is {self.rhat:.3f}: the chains have not converged")
        return verdict_from(doubts, self._shortfalls(), "more draws needed")

    def _shortfalls(self) -> Sequence[str]:
        if self.ess >= MIN_ESS:
            return []
        return [f"the ratios amount to {self.ess:.0f} independent draws (below {MIN_ESS:.0f})"]


def mean_ratio(log_ratio: np.ndarray) -> MeanRatio:
    """Estimate the log of the mean of a ratio.

    Parameters
    ----------
    log_ratio : ndarray, shape (chains, draws)
        Log ratios at draws; -inf is a ratio of zero.

    Raises
    ------
    ValueError
        A ratio is NaN or infinite, or all of them are zero.
    """
    _check(log_ratio)
    ratio = np.exp(log_ratio - log_ratio.max())
    log_mean = float(logsumexp(log_ratio) - np.log(log_ratio.size))
    if np.ptp(ratio) < _ROUNDING:
        return MeanRatio(log_mean, 0.0, float(ratio.size), -np.inf, 1.0)
    relative_variance = ratio.var() / ratio.mean() ** 2
    rse_squared = relative_variance / draws_ess(ratio)
    tail = weight_pareto_k(log_ratio)
    return MeanRatio(
        log_mean=log_mean,
        mcse=error_with_tail(float(np.sqrt(np.log1p(rse_squared))), log_ratio, tail),
        ess=float(draws_ess(ratio) / (1 + relative_variance)),
        pareto_k=tail,
        rhat=draws_rhat(ratio) if len(ratio) > 1 else 1.0,
    )


def _check(log_ratio: np.ndarray) -> None:
    if np.isnan(log_ratio).any() or np.isposinf(log_ratio).any():
        raise ValueError("A ratio of densities at a posterior draw is NaN or infinite.")
    if np.isneginf(log_ratio).all():
        raise ValueError("The ratio of densities is zero at all posterior draws.")
