"""How the evidence depends on the prior, from one set of posterior draws.

For another prior ``p'`` of the same likelihood,

    Z' / Z = E[ p'(x) / p(x) ]    over the posterior of ``p``,

an average that needs no evaluation of the likelihood. Its error follows from the ratios; their
Pareto k says where the new posterior is too far from the draws (Gelman & Meng 1998, section 2). It
does not where no draw has reached the tail of the ratios. So where these are uneven and the new
prior goes beyond them, draws are moved on to the new posterior (`moved_to_prior.py`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm

from scipy.special import softmax

from pymc_anneal.base.arviz_compat import Container, required_group
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.evidence.combined_verdict import combined_verdict
from pymc_anneal.evidence.draws_audit import judge_draws
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.mean_ratio import MeanRatio, mean_ratio
from pymc_anneal.evidence.posterior_density import grouped_draws, terms_at
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.posthoc.moved_to_prior import move_to_prior, obstacle_to_moves
from pymc_anneal.posthoc.prior_change import PriorChange, change_data, change_distribution
from pymc_anneal.results.compare_models import log_bayes_factor

# Draws of a new prior that look for modes, how many of them have to have weight, and the share of
# the new posterior that may escape the draws. In 1,000 draws a mode with a fifth of it shows where
# the prior is a hundred times wider than the modes.
_PRIOR_DRAWS, _LEAST_ESS, _LARGEST_SHARE = 1000, 4.0, 0.05
_REMEDY = "the new posterior is too far from the draws; run sample_ais with this prior"


@double_precision
def prior_sensitivity(
    idata: Container,
    priors: Mapping[str, Any],
    *,
    model: pm.Model | CompiledModel | None = None,
    against: Container | LogEvidence | None = None,
) -> pd.DataFrame:
    """Estimate how the log evidence changes with the prior, without another run.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais` or :func:`pymc.sample` with all free variables.
    priors : dict of str to distribution, dict or array
        Other priors by variable: a distribution such as ``pm.HalfNormal.dist(2)``, or a dict of
        labels and distributions. Or values of a ``pm.Data`` on which the prior depends, along the
        first axis of an array. The parameters of a distribution may be variables of the model.
    model : pymc.Model or CompiledModel, optional
        The model of the draws. Default: the model on the context stack.
    against : InferenceData, DataTree or LogEvidence, optional
        Another model of the same data, for columns with the log Bayes factor against it. `idata`
        has to be a result of :func:`sample_ais` then.

    Returns
    -------
    pandas.DataFrame
        Indexed by ``variable`` and ``prior``, a label or value: ``log_ratio``, the log evidence
        with this prior minus that with the model's, its ``mcse`` and 95 % interval ``lower`` and
        ``upper``, the effective sample size ``ess`` and ``pareto_k`` of the ratios, or of the terms
        of a bridge where draws were moved on to the new posterior, and the ``verdict`` as text.
        With `against` also ``log_bayes_factor`` with ``_mcse``, ``_lower`` and ``_upper``.
        Everything logarithmic is in nats.

    Raises
    ------
    ValueError
        A name is neither a free variable nor a ``pm.Data`` of the model, a value has another
        shape, a new prior has mass where the model's prior has none, or the draws are not of this
        model.
    TypeError
        A new prior is not a distribution.
    NotImplementedError
        A transform restricts the prior to a part of its support.

    See Also
    --------
    plot_prior_sensitivity : The table as a figure.
    power_posterior : Sensitivity to the weight of the data.

    References
    ----------
    Gelman & Meng (1998), Simulating normalizing constants, eq. 3. Goodman & Weare (2010), Ensemble
    samplers with affine invariance.

    Examples
    --------
    >>> grid = {s: pymc.HalfNormal.dist(s) for s in (0.5, 1, 2, 4)}
    >>> pymc_anneal.prior_sensitivity(idata, {"tau": grid}, model=model)
    """
    compiled = as_compiled(model)
    _check_unrestricted(compiled)
    draws = grouped_draws(idata, compiled)
    values, chains = compiled.constrain(draws.reshape(-1, compiled.ndim)), len(draws)
    of_draws = judge_draws(idata, compiled, draws, np.random.SeedSequence(0))
    rows = {}
    for name, label, change in _changes(compiled, priors):
        change.check_support(name)
        log_ratio = change.log_ratio(values).reshape(chains, -1)
        ratio, verdicts = _estimate(compiled, change, draws, log_ratio)
        rows[name, label] = _row(ratio, {**of_draws, **verdicts})
    table = pd.DataFrame(
        list(rows.values()),
        index=pd.MultiIndex.from_tuples(list(rows), names=["variable", "prior"]),
    )
    return table if against is None else _against(table, idata, against)


def _check_unrestricted(compiled: CompiledModel) -> None:
    if compiled.log_prior_mass != 0:
        raise NotImplementedError(
            "A transform maps onto a part of the prior's support, whose mass changes with the "
            "prior. Run sample_ais with each prior."
        )


def _changes(
    compiled: CompiledModel, priors: Mapping[str, Any]
) -> Iterator[tuple[str, Any, PriorChange]]:
    """Yield the name, the label and the change of each new prior."""
    free = {rv.name for rv in compiled.model.free_RVs}
    data = set(compiled.constant_data())
    for name, wanted in priors.items():
        if name in free:
            grid = wanted if isinstance(wanted, Mapping) else _labelled(wanted)
            for label, dist in grid.items():
                yield name, label, change_distribution(compiled, name, dist)
        elif name in data:
            for label, value in _labelled(wanted).items():
                yield name, label, change_data(compiled, name, value)
        else:
            raise ValueError(
                f"'{name}' is neither a free variable {sorted(free)} nor a pm.Data {sorted(data)} "
                "of the model."
            )


def _labelled(wanted: Any) -> dict[Any, Any]:
    """Label the entries of a grid: by their values if they are numbers, otherwise by place."""
    if not isinstance(wanted, Sequence | np.ndarray):
        return {"new": wanted}
    if all(np.ndim(value) == 0 and isinstance(value, int | float | np.number) for value in wanted):
        return {float(value): value for value in wanted}
    return dict(enumerate(wanted))


def _estimate(
    compiled: CompiledModel, change: PriorChange, draws: np.ndarray, log_ratio: np.ndarray
) -> tuple[MeanRatio, dict[str, Verdict]]:
    """Return the mean ratio, by further draws if these may not have reached its tail."""
    found, doubt, highest = mean_ratio(log_ratio), "", float(log_ratio.max())
    unseen = change.share_above(highest)
    if unseen and found.pareto_k > -np.inf:
        obstacle = obstacle_to_moves(compiled, log_ratio.size)
        if obstacle:
            doubt = f"draws cannot be moved to where it has {unseen:.0%} of its mass: {obstacle}"
        else:
            moved = move_to_prior(compiled, change, draws, log_ratio, np.random.SeedSequence(0))
            found, doubt, highest = moved
    if unseen and not doubt:
        doubt = _doubt_by_prior(compiled, change, highest)
    verdicts = {"ratios": found.verdict(_REMEDY)}
    if doubt:
        verdicts["new prior"] = Verdict("do not trust", (f"{doubt}; {_REMEDY}",))
    return found, verdicts


def _doubt_by_prior(compiled: CompiledModel, change: PriorChange, highest: float) -> str:
    """Say which share of the new posterior has higher ratios than all draws; "" if it is small.

    Draws of the new prior, weighted by the likelihood, tell it where enough of them have weight: a
    mode that the old prior suppressed is met by none of the others.
    """
    if compiled.calls:
        return ""
    values = change.draw(_PRIOR_DRAWS)
    log_likelihood = np.asarray(terms_at(compiled, compiled.unconstrain(values)).log_likelihood)
    weight = softmax(np.nan_to_num(log_likelihood, nan=-np.inf))
    share = float(weight[change.log_ratio(values) > highest].sum())
    # Both are NaN where the likelihood is zero at all of them, which tells nothing.
    if share > _LARGEST_SHARE and 1 / np.square(weight).sum() > _LEAST_ESS:
        return f"{share:.0%} of its posterior lies where the ratio of the priors is above all draws"
    return ""


def _row(ratio: MeanRatio, verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    lower, upper = ratio.interval
    verdict = combined_verdict(verdicts) if len(verdicts) > 1 else verdicts["ratios"]
    return {
        "log_ratio": ratio.log_mean,
        "mcse": ratio.mcse,
        "lower": lower,
        "upper": upper,
        "ess": ratio.ess,
        "pareto_k": ratio.pareto_k,
        "verdict": str(verdict),
    }


def _against(table: pd.DataFrame, idata: Container, other: Container | LogEvidence) -> pd.DataFrame:
    """Add the log Bayes factors of the model with each prior against another model."""
    required_group(idata, "evidence", "pymc_anneal.sample_ais")
    own = log_bayes_factor(idata, other)
    low, high = own.interval
    value = own.log_bayes_factor + table["log_ratio"]
    below = np.hypot(own.log_bayes_factor - low, table["log_ratio"] - table["lower"])
    above = np.hypot(high - own.log_bayes_factor, table["upper"] - table["log_ratio"])
    return table.assign(
        log_bayes_factor=value,
        log_bayes_factor_mcse=np.hypot(own.mcse, table["mcse"]),
        log_bayes_factor_lower=value - below,
        log_bayes_factor_upper=value + above,
    )
