"""The mean of a density ratio over draws of one posterior and of the other.

Where the ratio ``r = f_1 / f_0`` has a tail that no draw of ``f_0`` has reached, its mean is too
low and its Pareto k does not know. Draws of ``f_1`` are there. Bennett's acceptance ratio of both
(`bennett.py`),

    Z_1 / Z_0 = mean_0[r / (s_0 + s_1 r Z_0 / Z_1)] / mean_1[1 / (s_0 + s_1 r Z_0 / Z_1)],

averages numbers that are bounded on either side.
"""

import numpy as np

from pymc_anneal.base.arviz_compat import draws_ess, draws_rhat
from pymc_anneal.evidence.bennett import bar
from pymc_anneal.evidence.diagnostics import weight_pareto_k
from pymc_anneal.evidence.heavy_tail import error_with_tail
from pymc_anneal.evidence.mean_ratio import MeanRatio


def bridged_ratio(log_ratio: np.ndarray, log_ratio_moved: np.ndarray) -> MeanRatio:
    """Estimate the log of the mean of a ratio, in nats.

    Parameters
    ----------
    log_ratio : ndarray, shape (chains, draws)
        ``log r`` at draws of the first posterior; -inf is a ratio of zero.
    log_ratio_moved : ndarray, shape (times, walkers)
        The same at an ensemble of walkers in the second one, at several times.
    """
    bridge = bar(log_ratio, log_ratio_moved, reverse_ess=float(log_ratio_moved.shape[1]))
    forward, reverse = bridge.forward_terms, bridge.reverse_terms
    error = bridge.mcse(_independent(reverse), draws_ess(forward))
    tail = max(weight_pareto_k(np.log(terms[terms > 0])) for terms in (forward, reverse))
    mcse = error_with_tail(error, np.log(forward[forward > 0]), tail)
    return MeanRatio(
        log_mean=bridge.log_evidence,
        mcse=mcse,
        ess=float(1 / np.expm1(mcse**2)),
        pareto_k=tail,
        rhat=max(draws_rhat(terms) if len(terms) > 1 else 1.0 for terms in (forward, reverse)),
    )


def _independent(terms: np.ndarray) -> float:
    """Return the effective number of terms, shape ``(times, walkers)``; walkers are independent."""
    by_walker = terms.mean(axis=0).var() / terms.shape[1]
    return float(terms.var() / by_walker) if by_walker > 0 else float(terms.size)
