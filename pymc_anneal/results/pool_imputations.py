"""The Bayes factor of data with missing values, from those of imputed data sets.

With missing values ``u`` drawn from ``p(u | y, b)``, given the observed ones under model ``b``,

    E[ p(y, u | a) / p(y, u | b) ] = p(y | a) / p(y | b):

the mean Bayes factor over imputations made under the second model is that of the observed data.
Their spread is the error, the noise of each of them included:

    MCSE(log BF) = sqrt(log(1 + s^2 / (m BF^2))),    interval by Student's t with m - 1 degrees.
"""

from collections.abc import Sequence

import numpy as np

from scipy.special import logsumexp
from scipy.stats import t as student_t

from pymc_anneal.evidence.ais import effective_sample_size
from pymc_anneal.evidence.verdict import combined_verdict, verdict_from
from pymc_anneal.results.bayes_factor import LogBayesFactor

# Effective number of imputations below which the spread of a few says nothing.
_LEAST_ESS = 5.0


def pool_imputations(factors: Sequence[LogBayesFactor]) -> LogBayesFactor:
    """Pool the Bayes factors of two models over imputed data sets.

    Parameters
    ----------
    factors : sequence of LogBayesFactor
        One for each imputed data set, of the same two models in the same order. The result is
        exact, within its error, if the missing values were drawn under the second model; under
        another model it is the average Bayes factor of its imputations.

    Returns
    -------
    LogBayesFactor
        The log of the mean Bayes factor, in nats, with the variance between imputations.

    Raises
    ------
    ValueError
        There are fewer than two, or they are of different models.

    See Also
    --------
    log_bayes_factor : The Bayes factor of one data set.

    References
    ----------
    Meng & Wong (1996), Simulating ratios of normalizing constants via a simple identity, eq. 2.1.

    Examples
    --------
    >>> pymc_anneal.pool_imputations(
    ...     [pymc_anneal.log_bayes_factor(a, b) for a, b in runs_of_imputations]
    ... )
    """
    models = {factor.models for factor in factors}
    if len(factors) < 2 or len(models) != 1:
        raise ValueError(
            f"`factors` has {len(factors)} Bayes factors of {len(models)} pairs of models, "
            "expected two or more of the same two models."
        )
    value = np.array([factor.log_bayes_factor for factor in factors])
    m, pooled = len(value), float(logsumexp(value) - np.log(len(value)))
    relative = np.exp(value - pooled)
    mcse = float(np.sqrt(np.log1p(relative.var(ddof=1) / m)))
    half = float(student_t.ppf(0.975, m - 1)) * mcse
    ess = effective_sample_size(value)
    shortfalls = [] if ess >= _LEAST_ESS else [_few(ess)]
    verdicts = {f"imputation {i}": factor.verdict for i, factor in enumerate(factors)}
    verdicts["imputations"] = verdict_from([], shortfalls, "more draws needed")
    return LogBayesFactor(
        pooled,
        mcse,
        (pooled - half, pooled + half),
        combined_verdict(verdicts),
        evaluations=sum(factor.evaluations for factor in factors),
        models=next(iter(models)),
    )


def _few(ess: float) -> str:
    return (
        f"the Bayes factors amount to {ess:.1f} even ones (below {_LEAST_ESS:.0f}): impute more "
        "data sets, or leave the missing values in the model"
    )
