"""`robustness`: the Bayes factor of an effect against its null, over scales of its prior.

With a scale ``r`` that only the prior of the effect ``b`` depends on, the null ``b = 0`` does not
know ``r``. From draws of the posterior at ``r_0``, with the Savage-Dickey ratio for the null there,

    log BF(r) = log E[p_r(b) / p_r0(b)] + log p_r0(0) - log p_r0(0 | y)

(Dickey 1971; Gelman & Meng 1998). Both means are over the same draws: the first over all of them,
the second over their second half. With ratios ``u`` and ``s`` of mean 1, the variances of

    u / 2  over the first half,        u / 2 - s  over the second,

by their effective sample sizes, add up to that of the log. Where the posterior at ``r`` is too far
from the draws, another run is made at a scale among those that remain.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd
import pymc as pm

from scipy.stats import norm

from pymc_anneal.base.arviz_compat import Container, draws_ess
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed, seed_sequence
from pymc_anneal.evidence.combined_verdict import combined_verdict
from pymc_anneal.evidence.mean_ratio import mean_ratio
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.family import ModelFamily
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.posthoc.prior_change import PriorChange, change_data
from pymc_anneal.posthoc.savage_dickey import Densities, densities_at
from pymc_anneal.results.robustness import Robustness
from pymc_anneal.sampling.run_arguments import CallArguments
from pymc_anneal.sampling.sample_ais import sample_ais
from pymc_anneal.sampling.several_runs import check_several_runs, unless_interrupted

_REMEDY = "the posterior at this scale is too far from the draws; allow more `max_runs`"


@double_precision
def robustness(
    idata: Container,
    effects: Mapping[str, str],
    scales: Sequence[float] | np.ndarray | Mapping[str, Any],
    *,
    model: pm.Model | CompiledModel | None = None,
    max_runs: int = 3,
    random_seed: RandomSeed = None,
    **settings: Unpack[CallArguments],
) -> Robustness:
    """Compute the Bayes factors of effects against their nulls, over scales of their priors.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais` or :func:`pymc.sample` with all free variables.
    effects : dict of str to str
        Free variables whose null is zero (all entries of an array), and for each the ``pm.Data``
        that is the scale of its prior, and of no other.
    scales : sequence of float, or dict of str to sequence of float
        Values of the scale, for all effects or by effect.
    model : pymc.Model or CompiledModel, optional
        The model of the draws. Default: the model on the context stack.
    max_runs : int
        Largest number of further runs for an effect, at scales whose posterior is too far from the
        draws; 0: none, and such scales are not trusted.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        Seed of the further runs.
    **settings
        Arguments of :func:`sample_ais` for the further runs.

    Returns
    -------
    Robustness
        Its text is one row for each effect; ``table`` has a row for each scale. Log Bayes factors
        are in nats, positive for the effect, with errors that know that both of their parts come
        from the same draws.

    Raises
    ------
    ValueError
        A name is unknown, a scale is not a positive number, or the scale changes the prior of
        another variable too; or as for :func:`savage_dickey`.
    TypeError
        An argument belongs to a single run, as a checkpoint.

    See Also
    --------
    plot_robustness : The curves.
    prior_sensitivity : Other families of priors.

    References
    ----------
    Dickey (1971), The weighted likelihood ratio, linear hypotheses on normal location parameters.
    Gelman & Meng (1998), Simulating normalizing constants, eq. 3. Rouder et al. (2009), Bayesian t
    tests for accepting and rejecting the null hypothesis.

    Examples
    --------
    >>> pymc_anneal.robustness(idata, {"delta": "r"}, [0.35, 0.5, 0.71, 1.0, 1.41], model=model)
    """
    check_several_runs("robustness", settings)
    compiled = as_compiled(model)
    if not isinstance(effects, Mapping) or not effects:
        raise ValueError(
            f"`effects` is {effects!r}, expected a dict from variables to the pm.Data that are "
            "their prior scales."
        )
    seeds = seed_sequence(random_seed).spawn(len(effects))
    settings = {"progressbar": False, **settings, "warnings": False}
    tables = {
        effect: _curve(idata, compiled, effect, data, _of(scales, effect), max_runs, seed, settings)
        for (effect, data), seed in zip(effects.items(), seeds, strict=True)
    }
    own = {effect: float(compiled.constant_data()[data]) for effect, data in effects.items()}
    return Robustness(pd.concat(tables, names=["variable", "prior"]), own)


def _of(scales: Any, effect: str) -> list[float]:
    """Return the scales of an effect."""
    found = scales.get(effect, ()) if isinstance(scales, Mapping) else scales
    values = np.ravel(np.asarray(found, dtype=float))
    if not len(values) or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(f"The scales of '{effect}' are {found}, expected positive numbers.")
    return sorted(map(float, set(values)))


def _curve(
    idata: Container,
    compiled: CompiledModel,
    effect: str,
    data: str,
    scales: list[float],
    max_runs: int,
    seed: np.random.SeedSequence,
    settings: CallArguments,
) -> pd.DataFrame:
    """Return a row for each scale, from draws at one scale and from further runs."""
    _check_scale(compiled, effect, data)
    rows = _reweighted(idata, compiled, effect, data, scales)
    family = ModelFamily(compiled, (data,))
    for own in seed.spawn(max_runs):
        left = [scale for scale in scales if rows[scale]["verdict"] != "trust"]
        if not left:
            break
        member = family.member({data: left[len(left) // 2]})
        run = unless_interrupted(sample_ais(member, random_seed=own, **settings))
        found = _reweighted(run, member, effect, data, left)
        rows |= {scale: min(rows[scale], found[scale], key=_doubt) for scale in left}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("prior")


def _doubt(row: Mapping[str, Any]) -> tuple[bool, float]:
    """Sort trusted rows, those of the smallest errors first, before the others."""
    return row["verdict"] != "trust", row["log_bayes_factor_mcse"]


def _check_scale(compiled: CompiledModel, effect: str, data: str) -> None:
    free, known = sorted(v.name for v in compiled.variables), sorted(compiled.constant_data())
    if effect not in free or data not in known:
        raise ValueError(
            f"`effects` has '{effect}' with the scale '{data}', expected a free variable, one of "
            f"{free}, with a pm.Data, one of {known}."
        )
    if np.ndim(compiled.constant_data()[data]):
        raise ValueError(f"The scale '{data}' is an array, expected a pm.Data that is a number.")


def _reweighted(
    idata: Container, compiled: CompiledModel, effect: str, data: str, scales: list[float]
) -> dict[float, dict[str, Any]]:
    """Return a row for each scale from the draws at the scale of a model."""
    null = densities_at(idata, compiled, {effect: 0.0}, np.random.SeedSequence(0))
    values = compiled.constrain(null.draws.reshape(-1, compiled.ndim))
    at = float(compiled.constant_data()[data])
    rows = {}
    for scale in scales:
        change = change_data(compiled, data, scale)
        _check_change(change, effect, data)
        change.check_support(data)
        log_ratio = change.log_ratio(values).reshape(null.draws.shape[:2])
        rows[scale] = {**_row(null, log_ratio), "draws_at": at}
    return rows


def _check_change(change: PriorChange, effect: str, data: str) -> None:
    others = sorted(set(change.changed) - {effect})
    if others or not change.changed:
        also = f"that of {others}" if others else "no prior"
        raise ValueError(
            f"'{data}' has to be the scale of the prior of '{effect}' and of no other variable: it "
            f"changes {also}. The null would change with it; give each effect a pm.Data of its own."
        )


def _row(null: Densities, log_ratio: np.ndarray) -> dict[str, Any]:
    """Return the log Bayes factor at a scale by ratios of priors, shape ``(chains, n)``."""
    ratio = mean_ratio(log_ratio)
    value = ratio.log_mean + null.prior.log_mean - null.posterior.density.log_mean
    tail = np.sqrt(max(ratio.mcse**2 - _variance(_relative(log_ratio)), 0.0))
    mcse = float(np.sqrt(_joint_variance(log_ratio, null.posterior.log_ratio)))
    mcse = float(np.hypot(np.hypot(mcse, tail), null.prior.mcse))
    half = float(norm.ppf(0.975)) * mcse
    verdict = combined_verdict({"null": null.verdict, "scale": ratio.verdict(_REMEDY)})
    return {
        "log_bayes_factor": value,
        "log_bayes_factor_mcse": mcse,
        "log_bayes_factor_lower": value - half,
        "log_bayes_factor_upper": value + half,
        "verdict": str(verdict),
    }


def _joint_variance(log_ratio: np.ndarray, log_density: np.ndarray) -> float:
    """Return the variance of the difference of two log means, the second over the second half."""
    u, s = 0.5 * _relative(log_ratio), _relative(log_density)
    split = u.shape[1] - s.shape[1]
    return _variance(u[:, :split]) + _variance(u[:, split:] - s)


def _relative(log_ratio: np.ndarray) -> np.ndarray:
    """Return ratios divided by their mean."""
    ratio = np.exp(log_ratio - log_ratio.max())
    return np.asarray(ratio / ratio.mean())


def _variance(x: np.ndarray) -> float:
    """Return the variance of the mean of draws, shape ``(chains, n)``."""
    return 0.0 if np.ptp(x) < 1e-12 else float(x.var() / draws_ess(x))
