"""The container of a run, from its arrays.

Groups: ``posterior`` (equally weighted draws, resampled within each chain), ``sample_stats``
(``log_marginal_likelihood`` of each chain, and the ``particle`` that each draw copies),
``annealing`` (log weights of the particles, and the run by step), ``evidence`` (the estimate),
``ladder`` (the particles at some temperatures), ``observed_data``, ``constant_data``. All variables
are rectangular arrays of numbers; text is kept in attributes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import xarray as xr

from pymc_anneal._version import __version__
from pymc_anneal.annealing.block import Ladder
from pymc_anneal.annealing.step_statistics import Stats, discrepancies
from pymc_anneal.base.arviz_compat import Container, container
from pymc_anneal.base.storable import as_coordinate, find_unstorable, name_dimensions
from pymc_anneal.evidence.ais import (
    ais,
    bootstrap_interval,
    ess_from_log_sums,
    student_interval,
    widened,
)
from pymc_anneal.evidence.estimate import EvidenceEstimate
from pymc_anneal.evidence.heavy_tail import ais_with_tail
from pymc_anneal.evidence.verdict import Verdict

# Largest number of steps in the group ``annealing``; of longer runs evenly spaced steps are kept.
_MAX_ROWS = 1000


@dataclass(frozen=True)
class RunArrays:
    """Arrays of a finished run.

    Attributes
    ----------
    betas : ndarray, shape (K + 1,)
        Schedule; a decreasing one is a reverse run.
    log_weight : ndarray, shape (chains, particles)
        Log weights, in nats.
    position : ndarray, shape (chains, particles, d)
        Particles after the last step.
    stats : Stats
        Statistics by step, arrays of shape ``(K, chains)``.
    step_size : ndarray, shape (K,)
        Step sizes of the transition; NaN if it has none.
    verdict : Verdict
    scalars : mapping of str to float
        Further scalars of the group ``evidence``; they take precedence.
    attrs : mapping of str to str
        Further attributes of the group ``evidence``.
    ladder : Ladder
        Particles at some temperatures, arrays of shape
        ``(rungs, chains, particles)``.
    rungs : ndarray of int, shape (rungs,)
        Numbers of steps at these temperatures.
    log_reference : float
        Log normaliser of the reference, in nats.
    population_size : int
        Number of consecutive particles of a chain that were resampled together; 1 without
        resampling.
    """

    betas: np.ndarray
    log_weight: np.ndarray
    position: np.ndarray
    stats: Stats[np.ndarray]
    step_size: np.ndarray
    verdict: Verdict
    scalars: Mapping[str, float]
    attrs: Mapping[str, str]
    ladder: Ladder[np.ndarray]
    rungs: np.ndarray
    log_reference: float = 0.0
    population_size: int = 1

    @property
    def reverse(self) -> bool:
        """Whether the run went from the target to the reference."""
        return bool(self.betas[0] > self.betas[-1])

    def log_evidence_of(self, log_ratio: float) -> float:
        """Return the log normaliser of the target from a log mean weight, in nats.

        Forward runs estimate the ratio of target to reference, reverse runs that of reference to
        target.
        """
        return self.log_reference - log_ratio if self.reverse else self.log_reference + log_ratio


def dataset(
    values: Mapping[str, np.ndarray],
    leading: Sequence[str],
    coords: Mapping[str, Any] | None = None,
    dims: Mapping[str, Sequence[str | None]] | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Build a dataset with the names of dimensions that ArviZ gives.

    Written out, because ``dict_to_dataset`` differs between the two ArviZ lines: that of 0.23 turns
    a scalar into an array and warns if there are more chains than draws; that of 1.x numbers the
    unnamed dimensions in another way and refuses coordinates whose length does not fit.

    Parameters
    ----------
    values : mapping of str to ndarray
        Variables by name; those whose name cannot be stored are left out.
    leading : sequence of str
        Leading dimensions of all variables.
    coords : mapping of str to array, optional
        Coordinates; those whose length does not fit are replaced by a range, labels that are no
        numbers, dates or strings by strings.
    dims : mapping of str to sequence of str, optional
        Names of the other dimensions of a variable. Default: ``x_dim_0``, ``x_dim_1``, ...
    attrs : mapping, optional
        Attributes of the dataset.
    """
    arrays = {name: np.asarray(value) for name, value in values.items()}
    shapes = {name: array.shape[len(leading) :] for name, array in arrays.items()}
    own = name_dimensions(shapes, dims or {}, leading)
    unstorable = find_unstorable(arrays, [*leading, *(d for named in own.values() for d in named)])
    variables = {k: ([*leading, *own[k]], v) for k, v in arrays.items() if k not in unstorable}
    sizes = {d: n for ds, v in variables.values() for d, n in zip(ds, v.shape, strict=True)}
    labels = {d: as_coordinate((coords or {}).get(d)) for d in sizes}
    index = {
        d: label if label is not None and len(label) == sizes[d] else np.arange(sizes[d])
        for d, label in labels.items()
    }
    return xr.Dataset(variables, coords=index, attrs=dict(attrs or {}))


def library_attrs() -> dict[str, str]:
    """Return the attributes that name this library; ArviZ's ``make_attrs`` would name ArviZ too."""
    return {
        "inference_library": "pymc_anneal",
        "inference_library_version": __version__,
    }


def annealing_dataset(run: RunArrays) -> xr.Dataset:
    """Return the group ``annealing``: log weights, and the run by step and chain."""
    steps, chains = run.stats.log_w.shape
    rows = np.unique(np.linspace(0, steps - 1, min(steps, _MAX_ROWS)).round().astype(int))
    values = {
        k: (("chain", "step"), np.asarray(v, dtype=float)[rows].T) for k, v in _by_step(run).items()
    }
    values["log_weight"] = (("chain", "particle"), run.log_weight)
    particle = np.arange(run.log_weight.shape[1])
    coords: dict[str, Any] = {
        "chain": np.arange(chains),
        "step": rows + 1,
        "particle": particle,
    }
    if run.population_size > 1:
        coords["population"] = ("particle", particle // run.population_size)
    return xr.Dataset(values, coords=coords)


def _by_step(run: RunArrays) -> dict[str, np.ndarray]:
    """Return the statistics by name, arrays of shape ``(K, chains)``."""
    stats, n = run.stats, run.log_weight.shape[1]
    # Weights are relative to the density at the first temperature.
    log_first: float | np.ndarray = run.log_reference
    if run.reverse:
        log_first = run.log_reference - (stats.log_w[-1] - np.log(n))
    with np.errstate(invalid="ignore", over="ignore"):
        fisher = np.maximum(stats.velocity_squared - stats.velocity**2, 0.0)
    barrier = np.cumsum(np.sqrt(discrepancies(stats, n * stats.log_w.shape[1])))
    shared = {"beta": run.betas[1:], "barrier": barrier, "step_size": run.step_size}
    return {
        "log_z": log_first + stats.log_w - np.log(n),
        "ess": ess_from_log_sums(stats.log_w, stats.log_w_squared),
        "accept_rate": stats.accept_rate,
        "nan_share": stats.nan / n,
        "fisher_information": fisher,
        "velocity": stats.velocity,
        **{k: np.broadcast_to(v[:, None], stats.log_w.shape) for k, v in shared.items()},
    }


def ladder_dataset(run: RunArrays) -> xr.Dataset:
    """Return the group ``ladder``: the particles at some temperatures."""
    by_particle = {
        "log_weight": run.ladder.log_weight,
        "log_ratio_up": run.ladder.log_ratio_up,
        "log_ratio_down": run.ladder.log_ratio_down,
        "velocity": run.ladder.velocity,
    }
    dims = ("rung", "chain", "particle")
    values: dict[str, Any] = {name: (dims, value) for name, value in by_particle.items()}
    values["beta"] = ("rung", run.betas[run.rungs])
    values["step"] = ("rung", run.rungs)
    sizes = run.ladder.log_weight.shape
    return xr.Dataset(
        values,
        coords={name: np.arange(n) for name, n in zip(dims, sizes, strict=True)},
        attrs={"log_reference": run.log_reference},
    )


def evidence_dataset(run: RunArrays) -> xr.Dataset:
    """Return the group ``evidence``: the estimate as scalars, the verdict as attributes."""
    estimate, k = ais_with_tail(run.log_weight, run.population_size)
    lower, upper = sorted(run.log_evidence_of(end) for end in _interval(run, estimate))
    discrepancy = discrepancies(run.stats, run.log_weight.size)
    scalars = {
        "log_evidence": run.log_evidence_of(estimate.log_evidence),
        "mcse": estimate.mcse,
        "interval_lower": lower,
        "interval_upper": upper,
        "ess": estimate.ess,
        "pareto_k": k,
        "barrier": float(np.sqrt(discrepancy).sum()),
        **run.scalars,
    }
    return xr.Dataset(
        {k: float(v) for k, v in _with_error_of_prior(scalars).items()},
        attrs={**run.attrs, **run.verdict.to_attrs(), "unit": "nats"},
    )


def _with_error_of_prior(scalars: Mapping[str, float]) -> dict[str, float]:
    """Add the error of the mass of a prior that a transform cuts, which all weights share."""
    error = scalars.get("log_prior_mass_mcse", 0.0)
    interval = scalars["interval_lower"], scalars["interval_upper"]
    lower, upper = widened(interval, scalars["log_evidence"], error)
    mcse = np.hypot(scalars["mcse"], error)
    return {**scalars, "mcse": mcse, "interval_lower": lower, "interval_upper": upper}


def _interval(run: RunArrays, estimate: EvidenceEstimate) -> tuple[float, float]:
    if run.population_size > 1:
        return student_interval(estimate, run.log_weight.size // run.population_size)
    # A fixed seed: the interval is a function of the weights.
    rng = np.random.default_rng(20130)
    lower, upper = bootstrap_interval(run.log_weight, rng=rng)
    narrow = ais(run.log_weight).mcse
    wider = estimate.mcse / narrow if narrow > 0 else 1.0
    centre = estimate.log_evidence
    return centre - wider * (centre - lower), centre + wider * (upper - centre)


def to_container(
    run: RunArrays,
    draws: Mapping[str, xr.Dataset],
    extra: Mapping[str, xr.Dataset],
    attrs: Mapping[str, Any],
    copied: np.ndarray | None = None,
) -> Container:
    """Assemble the container of a run.

    Parameters
    ----------
    run : RunArrays
    draws : mapping of str to Dataset
        Groups of draws, such as ``posterior``.
    extra : mapping of str to Dataset
        Further groups; empty ones are left out.
    attrs : mapping
        Attributes of all groups, beside the time.
    copied : ndarray of int, shape (chains, draws), optional
        Number of the particle of which each draw is a copy.

    Returns
    -------
    InferenceData (ArviZ 0.23) or DataTree (ArviZ 1)
    """
    per_chain = [run.log_evidence_of(ais(row).log_evidence) for row in run.log_weight]
    stats = xr.Dataset(
        {"log_marginal_likelihood": ("chain", np.array(per_chain))},
        coords={"chain": np.arange(len(per_chain))},
    )
    if copied is not None:
        stats["particle"] = (("chain", "draw"), copied)
        stats = stats.assign_coords(draw=np.arange(copied.shape[1]))
    groups = {
        **draws,
        "sample_stats": stats,
        "annealing": annealing_dataset(run),
        "evidence": evidence_dataset(run),
        **({"ladder": ladder_dataset(run)} if len(run.rungs) else {}),
        **{name: data for name, data in extra.items() if data.data_vars},
    }
    stamped = {"created_at": datetime.now(UTC).isoformat(), **attrs}
    return container({name: data.assign_attrs(stamped) for name, data in groups.items()})
