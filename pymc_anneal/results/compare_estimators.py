"""Comparison of several estimators of the evidence from one run (`evidence/ladder.py`).

The estimators use the same particles at different temperatures, so agreement shows that the weights
and the moves are consistent. Errors are from the jackknife over groups of particles, whose
trajectories are independent whatever the mixing; it gives the error of differences as well.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr

from scipy.special import logsumexp

from pymc_anneal.annealing.block import Ladder
from pymc_anneal.base.arviz_compat import Container, required_group
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.evidence.ais import JACKKNIFE_GROUPS, jackknife_error
from pymc_anneal.evidence.bridge_sampling import bridge_evidence
from pymc_anneal.evidence.diagnostics import MAX_DISAGREEMENT, MAX_PARETO_K, weight_pareto_k
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.ladder import mbar, stepping_stone, thermodynamic_integration
from pymc_anneal.evidence.verdict import Verdict, verdict_from
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.results.compare_models import read_evidences
from pymc_anneal.results.log_evidence import log_evidence

# Log evidence of a ladder, relative to the reference.
Estimator: TypeAlias = Callable[[Ladder[np.ndarray]], float]


@double_precision
def compare_estimators(
    idata: Container,
    *,
    model: pm.Model | CompiledModel | None = None,
    others: Mapping[str, Container | LogEvidence] | None = None,
    random_seed: Any = None,
) -> pd.DataFrame:
    """Estimate the log evidence of one run in several ways.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`.
    model : pymc.Model or CompiledModel, optional
        The model; if given, :func:`bridge_evidence` of the posterior draws is added.
    others : dict, optional
        Further estimates by name, independent of the run: results of :func:`nested_evidence`, of
        other runs of :func:`sample_ais`, or :class:`LogEvidence` records.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        Seed of the bridge.

    Returns
    -------
    pandas.DataFrame
        One row for each estimator: ``log_evidence``, ``mcse``, the error of ``discretisation``
        (thermodynamic integration only), the ``difference`` from annealed importance sampling with
        its error ``difference_mcse``, all in nats; and whether the two agree within four errors,
        ``agrees``. Of a run in both directions the first row combines them; estimators that use the
        particles on the way up are compared with these alone. The error of the backward stepping
        stones is infinite if their ratios have a Pareto k above 0.7, as in runs of a step or two.
        ``attrs["verdict"]`` is the verdict as text.

    Raises
    ------
    ValueError
        It is not a result of :func:`sample_ais`; or a further estimate has the name of another row,
        or is of other data.

    See Also
    --------
    nested_evidence : An estimate that shares nothing with the run.
    calibrate : Runs on simulated data.

    Examples
    --------
    >>> pymc_anneal.compare_estimators(pymc_anneal.sample_ais(model=model))
    """
    group = required_group(idata, "ladder", "pymc_anneal.sample_ais")
    rows = {"ais": _first_row(idata), **_ladder_rows(group)}
    if model is not None:
        bridge = bridge_evidence(idata, model=model, random_seed=random_seed)
        rows["bridge"] = _independent_row(rows["ais"], bridge)
    rows |= _further_rows(idata, others or {}, rows)
    table = pd.DataFrame.from_dict(rows, orient="index", columns=_Row._fields)
    allowed = MAX_DISAGREEMENT * table["difference_mcse"] + table["discretisation"]
    table["agrees"] = table["difference"].abs() <= allowed + 1e-9
    table.index.name = "estimator"
    table.attrs["verdict"] = str(_verdict(table))
    return table


class _Row(NamedTuple):
    """Row of the table, in nats."""

    log_evidence: float
    mcse: float
    discretisation: float = 0.0
    difference: float = 0.0
    difference_mcse: float = 0.0


def _first_row(idata: Container) -> _Row:
    found = log_evidence(idata)
    return _Row(found.log_evidence, found.mcse)


def _ladder_rows(group: xr.Dataset) -> dict[str, _Row]:
    """Return the rows of the estimators that use the group ``ladder``."""
    beta, ladder = group["beta"].values, _ladder(group)
    log_reference = float(group.attrs["log_reference"])
    ais, ais_left_out = _ais(ladder), _leave_out(_ais, ladder)
    rows = {}
    for name, estimator in _estimators(beta, ladder).items():
        value, left_out = estimator(ladder), _leave_out(estimator, ladder)
        rows[name] = _Row(
            log_evidence=log_reference + value,
            mcse=jackknife_error(left_out),
            difference=value - ais,
            difference_mcse=jackknife_error(left_out - ais_left_out),
        )
    correction = abs(thermodynamic_integration(beta, ladder)[1])
    integration, backward = rows["thermodynamic_integration"], rows["stepping_stone_backward"]
    if _tail_of_the_way_back(ladder) > MAX_PARETO_K:
        backward = backward._replace(mcse=np.inf, difference_mcse=np.inf)
    return rows | {
        "thermodynamic_integration": integration._replace(discretisation=correction),
        "stepping_stone_backward": backward,
    }


def _tail_of_the_way_back(ladder: Ladder[np.ndarray]) -> float:
    """Return the largest Pareto k of the ratios of densities to those of the temperature before.

    A large step to a lower temperature, where the density is wider, has ratios without a variance.
    Particles of zero weight are excluded.
    """
    alive = np.isfinite(ladder.log_weight)
    zero = np.full_like(ladder.log_weight, -np.inf)
    ratios = np.subtract(ladder.log_weight, ladder.log_ratio_down, out=zero, where=alive)
    return max(weight_pareto_k(ratio) for ratio in ratios[1:])


def _further_rows(
    idata: Container, others: Mapping[str, Container | LogEvidence], rows: Mapping[str, _Row]
) -> dict[str, _Row]:
    """Return the rows of estimates that are not of the run."""
    taken = sorted(set(others) & set(rows))
    if taken:
        raise ValueError(
            f"`others` has the names {taken}, which are rows of the table: rename them."
        )
    # Raises if the data differ.
    evidences = read_evidences({"ais": idata, **others})
    return {name: _independent_row(rows["ais"], evidences[name]) for name in others}


def _independent_row(first: _Row, found: LogEvidence) -> _Row:
    """Return the row of an estimate whose error is independent of that of the first row."""
    difference = found.log_evidence - first.log_evidence
    error = float(np.hypot(found.mcse, first.mcse))
    return _Row(found.log_evidence, found.mcse, 0.0, difference, error)


def _ladder(group: xr.Dataset) -> Ladder[np.ndarray]:
    """Return the group ``ladder`` as arrays of shape ``(T + 1, n)``, without the positions."""
    size = group.sizes["rung"]
    log_weight, up, down, velocity = (
        group[name].values.reshape(size, -1)
        for name in ("log_weight", "log_ratio_up", "log_ratio_down", "velocity")
    )
    position = np.zeros((*log_weight.shape, 0))
    return Ladder(log_weight, up, down, velocity, position)


def _ais(ladder: Ladder[np.ndarray]) -> float:
    return float(logsumexp(ladder.log_weight[-1]) - np.log(ladder.log_weight.shape[1]))


def _estimators(beta: np.ndarray, ladder: Ladder[np.ndarray]) -> dict[str, Estimator]:
    """Return the estimators that are valid for the path of the run, by name."""
    known: dict[str, Estimator] = {
        "stepping_stone_forward": stepping_stone,
        "stepping_stone_backward": partial(stepping_stone, backward=True),
        "thermodynamic_integration": lambda part: thermodynamic_integration(beta, part)[0],
    }
    return known | ({"mbar": partial(mbar, beta)} if _is_linear(beta, ladder) else {})


def _is_linear(beta: np.ndarray, ladder: Ladder[np.ndarray]) -> bool:
    """Return whether the log density is linear in beta, as on geometric paths."""
    h = np.diff(beta)[:, None]
    expected = h * np.where(np.isfinite(ladder.velocity[:-1]), ladder.velocity[:-1], 0.0)
    found = np.where(np.isfinite(ladder.log_ratio_up[:-1]), ladder.log_ratio_up[:-1], 0.0)
    return bool(np.allclose(found, expected, rtol=1e-6, atol=1e-9))


def _leave_out(estimator: Estimator, ladder: Ladder[np.ndarray]) -> np.ndarray:
    """Return the estimates without one group of particles each, shape ``(groups,)``."""
    n = ladder.log_weight.shape[1]
    label = np.arange(n) % min(n, JACKKNIFE_GROUPS)
    parts = (Ladder(*(v[:, label != g] for v in ladder)) for g in range(label.max() + 1))
    return np.array([estimator(part) for part in parts])


def _verdict(table: pd.DataFrame) -> Verdict:
    apart = table.index[~table["agrees"]].tolist()
    if not apart:
        return Verdict("trust", ("all estimators agree within their errors",))
    doubt = (
        f"{', '.join(apart)} differ from the first by more than their errors allow: the weights "
        "and the moves are inconsistent; take more steps"
    )
    return verdict_from([doubt], [])
