"""The log likelihood of data under an RBM, with the error of its partition function.

For rows ``v_i`` and the unnormalised log density ``log f``,

    l = mean_i log f(v_i) - log Z,

so that the errors of ``log Z`` carry over with the opposite sign: forward runs, whose ``log Z`` is
too low on average, give an upper bound on ``l``, and reverse runs a lower one, the conservative of
the two (Burda, Grosse & Salakhutdinov 2015).
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from numpy.typing import ArrayLike
from scipy.stats import norm

from pymc_anneal.base.arviz_compat import Container, required_group
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.rbm.model import check_rows
from pymc_anneal.rbm.parameters import stored_rbm
from pymc_anneal.results.log_evidence import log_evidence

_BOUNDS = "lower", "upper"


@dataclass(frozen=True, eq=False)
class LogLikelihood:
    """The mean log likelihood of data under an RBM; everything in nats per row.

    Attributes
    ----------
    log_likelihood : float
        Mean over the rows.
    mcse : float
        Monte Carlo standard error of ``log Z``, the same for all rows.
    standard_error : float
        Standard error of the mean over the rows, as a sample of all possible data; NaN for one row.
    interval : tuple of float
        95 % interval from the error of ``log Z`` alone. After runs in both directions: the interval
        that contains both bounds with 1.96 of their standard errors.
    bounds : tuple of float, or None
        Stochastic bounds, if runs were made in both directions: by the reverse runs, below the
        truth in expectation, and by the forward runs, above it.
    by_row : ndarray, shape (n,)
        Log likelihood of each row.
    verdict : Verdict
        Whether to trust ``log Z``.
    """

    log_likelihood: float
    mcse: float
    standard_error: float
    interval: tuple[float, float]
    bounds: tuple[float, float] | None
    by_row: np.ndarray
    verdict: Verdict

    def __repr__(self) -> str:
        """Return a summary of a few lines."""
        low, high = self.interval
        # The error of a log Z that missed something means nothing.
        if self.verdict.status == "do not trust":
            found = f"{self.log_likelihood:.2f} nats per row, error not known"
        else:
            found = (
                f"{self.log_likelihood:.3f} +- {self.mcse:.2g} nats per row "
                f"(95 % interval {low:.3f} to {high:.3f})"
            )
        bounds = (
            ""
            if self.bounds is None
            else f"bounds {self.bounds[0]:.3f} (reverse runs) and {self.bounds[1]:.3f} (forward)\n"
        )
        return (
            f"log likelihood {found}\n"
            f"{bounds}{self.by_row.size} rows, standard error of their mean "
            f"{self.standard_error:.2g}\n"
            f"verdict: {self.verdict}"
        )


def log_likelihood(data: ArrayLike, result: Container) -> LogLikelihood:
    """Compute the log likelihood of data under an RBM whose partition function was estimated.

    Parameters
    ----------
    data : array_like, shape (n, n_visible)
        Binary values, or probabilities in [0, 1].
    result : InferenceData or DataTree
        Result of :func:`sample_ais`, which holds the parameters of the RBM.

    Returns
    -------
    LogLikelihood
        In nats per row.

    Raises
    ------
    ValueError
        `result` is of another function, or `data` lie outside [0, 1] or have another number of
        units.

    References
    ----------
    Burda, Grosse & Salakhutdinov (2015), Accurate and conservative estimates of MRF log-likelihood
    using reverse annealing. Salakhutdinov & Murray (2008), On the quantitative analysis of deep
    belief networks.

    Examples
    --------
    >>> result = rbm.sample_ais(model, reverse_from=train)
    >>> rbm.log_likelihood(test, result)
    """
    model = stored_rbm(result)
    evidence, found = required_group(result, "evidence", "rbm.sample_ais"), log_evidence(result)
    by_row = model.log_likelihood(check_rows(data, model.n_visible), found.log_evidence)
    mean, n = float(by_row.mean()), by_row.size

    def likelihood_at(log_z: float) -> float:
        return mean + found.log_evidence - log_z

    low, high = found.interval if found.bounds is None else _interval_of_bounds(evidence)
    bounds = found.bounds and (likelihood_at(found.bounds[1]), likelihood_at(found.bounds[0]))
    return LogLikelihood(
        log_likelihood=mean,
        mcse=found.mcse,
        standard_error=float(by_row.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan"),
        interval=(likelihood_at(high), likelihood_at(low)),
        bounds=bounds,
        by_row=by_row,
        verdict=found.verdict,
    )


def _interval_of_bounds(evidence: xr.Dataset) -> tuple[float, float]:
    """Return the interval of log Z that contains both bounds with their errors."""
    z = float(norm.ppf(0.975))
    pairs = [[float(evidence[f"{name}_bound{end}"]) for end in ("", "_mcse")] for name in _BOUNDS]
    return min(x - z * mcse for x, mcse in pairs), max(x + z * mcse for x, mcse in pairs)
