"""Several estimators of the evidence from one run.

The run records its particles, with their running weights ``W``, at some temperatures ``beta_t``,
``t = 0..T``, the rungs. With ``E_t`` the weighted mean over the particles of a rung:

- **stepping stone** (Xie et al. 2011), forward and backward,

      log Z = sum_t log E_t[f_{t+1} / f_t],      log Z = - sum_t log E_{t+1}[f_t / f_{t+1}];

- **thermodynamic integration** with the second-order correction of Friel, Hurn & Wyse (2014),

      log Z = sum_t h_t (E_t[v] + E_{t+1}[v]) / 2 - h_t^2 (Var_{t+1}[v] - Var_t[v]) / 12,

  whose size is taken for the error of discretisation; it begins at the first rung above the
  reference, under which ``v`` need not have a mean, and steps there by a stepping stone;
- **MBAR** (Shirts & Chodera 2008), for paths on which ``log f_beta`` is linear in ``beta``: the
  particles of all rungs are taken as one sample of their mixture and weighted for each end.

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

from pymc_anneal.bridge import bridge_evidence
from pymc_anneal.compat import group, has_group
from pymc_anneal.estimators import jackknife_error
from pymc_anneal.model import CompiledModel
from pymc_anneal.results import log_evidence

__all__ = ["compare_estimators", "mbar", "stepping_stone", "thermodynamic_integration"]

_GROUPS = 40
_MAX_DISAGREEMENT = 4.0
_MAX_MBAR_RUNGS = 16
_MAX_ITERATIONS = 500
_TOLERANCE = 1e-8


class Rungs(NamedTuple):
    """Particles at the rungs of a run.

    Attributes
    ----------
    beta : ndarray, shape (T + 1,)
    log_weight, up, down, velocity : ndarray, shape (T + 1, n)
        As in :class:`~pymc_anneal.engine.Ladder`.
    """

    beta: np.ndarray
    log_weight: np.ndarray
    up: np.ndarray
    down: np.ndarray
    velocity: np.ndarray

    def kept(self, particles: np.ndarray) -> "Rungs":
        """Return some of the particles."""
        return Rungs(self.beta, *(v[:, particles] for v in self[1:]))


def stepping_stone(rungs: Rungs, backward: bool = False) -> float:
    """Estimate ``log Z_T - log Z_0`` by stepping stones, in nats."""
    if not backward:
        return float(_log_means(rungs.log_weight[:-1], rungs.up[:-1]).sum())
    # Seen from above, what the likelihood forbids does not exist.
    return _log_mass(rungs) - float(_log_means(rungs.log_weight[1:], -rungs.down[1:]).sum())


def thermodynamic_integration(rungs: Rungs) -> tuple[float, float]:
    """Estimate ``log Z_T - log Z_0`` by thermodynamic integration.

    Returns
    -------
    estimate, correction : float
        In nats; the second-order correction is part of the estimate.
    """
    first = _log_means(rungs.log_weight[:1], rungs.up[:1])[0]
    log_weight, v = rungs.log_weight[1:], rungs.velocity[1:]
    share = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
    v = np.where(share > 0, v, 0.0)  # -inf where a particle has no weight
    mean = (share * v).sum(axis=1)
    variance = (share * (v - mean[:, None]) ** 2).sum(axis=1)
    h = np.diff(rungs.beta[1:])
    correction = -float((h**2 * np.diff(variance)).sum()) / 12
    trapezoid = float((h * (mean[1:] + mean[:-1])).sum()) / 2
    return float(first) + trapezoid + correction, correction


def _log_means(log_weight: np.ndarray, log_ratio: np.ndarray) -> np.ndarray:
    """Log of the weighted mean ratio at each rung; a particle of no weight has no say."""
    ratio = np.where(np.isfinite(log_weight), log_ratio, -np.inf)
    return logsumexp(log_weight + ratio, axis=1) - logsumexp(log_weight, axis=1)


def _log_mass(rungs: Rungs) -> float:
    """Log share of the reference on which the likelihood is not zero."""
    alive = np.where(np.isfinite(rungs.velocity[:1]), 0.0, -np.inf)
    return float(_log_means(rungs.log_weight[:1], alive)[0])


def mbar(rungs: Rungs) -> float:
    """Estimate ``log Z_T - log Z_0`` from the mixture of all rungs, for a path linear in beta.

    Solves ``Z_i = sum_tn c_tn e^{beta_i V_tn} / sum_k N_k e^{beta_k V_tn} / Z_k`` for all rungs
    ``i``, ``c_tn`` the weights within a rung times its effective sample size ``N_t``.
    """
    keep = np.unique(
        np.linspace(0, len(rungs.beta) - 1, min(len(rungs.beta), _MAX_MBAR_RUNGS)).round()
    ).astype(int)
    beta, log_weight, v = rungs.beta[keep], rungs.log_weight[keep], rungs.velocity[keep]
    share = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
    count = 1 / (share**2).sum(axis=1)
    # Relative to the stepping stones' answer all numbers are of order one.
    steps = _log_means(log_weight[:-1], np.diff(beta)[:, None] * v[:-1])
    log_guess = np.concatenate([[0.0], np.cumsum(steps)])
    with np.errstate(invalid="ignore"):
        energy = beta[:, None] * v.ravel()
    energy[beta == 0] = 0.0  # also where the likelihood is zero
    energy -= log_guess[:, None]
    density = np.exp(energy - energy.max(axis=0))
    weight, ratio = (share * count[:, None]).ravel(), np.ones(len(beta))
    for _ in range(_MAX_ITERATIONS):
        new = density @ (weight / ((count / ratio) @ density))
        new /= new[0]
        moved, ratio = np.abs(np.log(new / ratio)).max(), new
        if moved < _TOLERANCE:
            break
    return float(log_guess[-1] + np.log(ratio[-1]))


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
    found = np.where(np.isfinite(rungs.up[:-1]), rungs.up[:-1], 0.0)
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
