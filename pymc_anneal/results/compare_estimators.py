"""Several estimators of the evidence from one run (`evidence/ladder.py`), in one table.

They use the same particles at different moments, so agreement says that weights and moves fit
together. Errors are from the jackknife over groups of particles, whose trajectories are independent
whatever the mixing; it gives the error of differences as well.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pymc as pm

from scipy.special import logsumexp

from pymc_anneal.base.arviz_compat import group, has_group
from pymc_anneal.evidence.ais import jackknife_error
from pymc_anneal.evidence.bridge_sampling import bridge_evidence
from pymc_anneal.evidence.ladder import Rungs, mbar, stepping_stone, thermodynamic_integration
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.results.log_evidence import log_evidence

_GROUPS = 40


_MAX_DISAGREEMENT = 4.0


def compare_estimators(
    idata: Any, *, model: pm.Model | CompiledModel | None = None, random_seed: Any = None
) -> pd.DataFrame:
    """Estimate the log evidence of one run in several ways.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`.
    model
        The model; if given, a bridge from a Gaussian to the posterior draws is added.
    random_seed
        Seed of the bridge.

    Returns
    -------
    pandas.DataFrame
        One row for each estimator: ``log_evidence``, ``mcse``, the error of ``discretisation``
        (thermodynamic integration only), the ``difference`` from the first row, annealed
        importance sampling or both directions combined, with its error ``difference_mcse``, all in
        nats; and whether they ``agree`` within four errors. ``attrs["verdict"]`` sums it up.

    Raises
    ------
    ValueError
        It is not a result of :func:`sample_ais`.

    Examples
    --------
    >>> pymc_anneal.compare_estimators(pymc_anneal.sample_ais(model=model))
    """
    rungs, log_reference = _rungs(idata)
    official = log_evidence(idata)
    ais, ais_left_out = _ais(rungs), _jackknife(_ais, rungs)
    rows = {"ais": _Row(official.log_evidence, official.mcse, 0.0, 0.0, 0.0)}
    for name, estimator in _estimators(rungs).items():
        value, left_out = estimator(rungs), _jackknife(estimator, rungs)
        rows[name] = _Row(
            log_evidence=log_reference + value,
            mcse=jackknife_error(left_out),
            discretisation=_discretisation(name, rungs),
            difference=value - ais,
            difference_mcse=jackknife_error(left_out - ais_left_out),
        )
    if model is not None:
        bridge = bridge_evidence(idata, model=model, random_seed=random_seed)
        difference = bridge.log_evidence - official.log_evidence
        error = float(np.hypot(bridge.mcse, official.mcse))
        rows["bridge"] = _Row(bridge.log_evidence, bridge.mcse, 0.0, difference, error)
    table = pd.DataFrame.from_dict(rows, orient="index", columns=_Row._fields)
    allowed = _MAX_DISAGREEMENT * table["difference_mcse"] + table["discretisation"]
    table["agrees"] = table["difference"].abs() <= allowed + 1e-9
    table.index.name = "estimator"
    table.attrs["verdict"] = _verdict(table)
    return table


class _Row(NamedTuple):
    log_evidence: float
    mcse: float
    discretisation: float
    difference: float
    difference_mcse: float


def _rungs(idata: Any) -> tuple[Rungs, float]:
    if not has_group(idata, "ladder"):
        raise ValueError(
            "Expected a result of pymc_anneal.sample_ais with a group 'ladder', found "
            f"{type(idata).__name__}."
        )
    ladder = group(idata, "ladder")
    names = ("log_weight", "log_ratio_up", "log_ratio_down", "velocity")
    flat = [ladder[n].values.reshape(ladder.sizes["rung"], -1) for n in names]
    return Rungs(ladder["beta"].values, *flat), float(ladder.attrs["log_reference"])


def _ais(rungs: Rungs) -> float:
    return float(logsumexp(rungs.log_weight[-1]) - np.log(rungs.log_weight.shape[1]))


def _estimators(rungs: Rungs) -> dict[str, Callable[[Rungs], float]]:
    known: dict[str, Callable[[Rungs], float]] = {
        "stepping_stone_forward": stepping_stone,
        "stepping_stone_backward": lambda r: stepping_stone(r, backward=True),
        "thermodynamic_integration": lambda r: thermodynamic_integration(r)[0],
    }
    return known | ({"mbar": mbar} if _is_linear(rungs) else {})


def _is_linear(rungs: Rungs) -> bool:
    """Whether the log density is linear in beta, as on geometric paths."""
    h = np.diff(rungs.beta)[:, None]
    expected = h * np.where(np.isfinite(rungs.velocity[:-1]), rungs.velocity[:-1], 0.0)
    found = np.where(np.isfinite(rungs.log_ratio_up[:-1]), rungs.log_ratio_up[:-1], 0.0)
    return bool(np.allclose(found, expected, rtol=1e-6, atol=1e-9))


def _discretisation(name: str, rungs: Rungs) -> float:
    integration = name == "thermodynamic_integration"
    return abs(thermodynamic_integration(rungs)[1]) if integration else 0.0


def _jackknife(estimator: Callable[[Rungs], float], rungs: Rungs) -> np.ndarray:
    """Values with one group of particles left out at a time."""
    n = rungs.log_weight.shape[1]
    label = np.arange(n) % min(n, _GROUPS)
    return np.array([estimator(rungs.kept(label != g)) for g in range(label.max() + 1)])


def _verdict(table: pd.DataFrame) -> str:
    apart = table.index[~table["agrees"]].tolist()
    if not apart:
        return "all estimators agree within their errors"
    return (
        f"{', '.join(apart)} differ from the first by more than their errors allow: weights and "
        "moves do not fit together; take more steps"
    )
