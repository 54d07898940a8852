"""From a finished run to the container that users keep, and back to the estimate.

Groups: ``posterior`` (equally weighted draws, resampled within each chain), ``sample_stats``
(``log_marginal_likelihood`` of each chain), ``annealing`` (log weights of the particles, and the
run by step), ``evidence`` (the estimate), ``observed_data``, ``constant_data``. All variables are
rectangular numbers; words are attributes.
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
from pymc_anneal.base.arviz_compat import container
from pymc_anneal.evidence.ais import ais, bootstrap_interval, population_interval, population_means
from pymc_anneal.evidence.diagnostics import Verdict, weight_pareto_k
from pymc_anneal.evidence.estimate import EvidenceEstimate

_MAX_ROWS = 1000


@dataclass(frozen=True)
class Run:
    """A finished run, as arrays.

    Attributes
    ----------
    betas : ndarray, shape (K + 1,)
        Schedule of the last round.
    log_weight : ndarray, shape (chains, particles)
        Log weights of all rounds, each scaled by its round's share in the estimate.
    round : ndarray of int, shape (particles,)
        The round that a particle belongs to, from 1.
    position : ndarray, shape (chains, particles, d)
    stats : Stats
        Last round by step, arrays of shape ``(K, chains)``.
    stats_particles : int
        Particles of the last round in each chain.
    step_size : ndarray, shape (K,)
        Step sizes of the transition; NaN where it has none.
    verdict : Verdict
    numbers : mapping of str to float
        Further scalars for ``evidence``.
    words : mapping of str to str
        Attributes for ``evidence``.
    ladder : Ladder
        Particles of the last round at its rungs, arrays of shape ``(rungs, chains, particles)``.
    rungs : ndarray of int, shape (rungs,)
        Numbers of steps at the rungs.
    log_reference : float
        Log normaliser of the reference, in nats.
    population_size : int
        Particles, neighbours in a chain, that share ancestors; 1 where none were resampled.
    """

    betas: np.ndarray
    log_weight: np.ndarray
    round: np.ndarray
    position: np.ndarray
    stats: Stats
    stats_particles: int
    step_size: np.ndarray
    verdict: Verdict
    numbers: Mapping[str, float]
    words: Mapping[str, str]
    ladder: Ladder
    rungs: np.ndarray
    log_reference: float = 0.0
    population_size: int = 1

    def log_evidence_of(self, log_ratio: Any) -> Any:
        """Return the log normaliser that a log ratio of normalisers means.

        Forward runs estimate target over reference, reverse runs reference over target.
        """
        reverse = self.betas[0] > self.betas[-1]
        return self.log_reference - log_ratio if reverse else self.log_reference + log_ratio


def dataset(
    values: Mapping[str, np.ndarray],
    leading: Sequence[str],
    coords: Mapping[str, Any] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Build a dataset as ArviZ does: leading dimensions, then the model's, then ``x_dim_0``."""
    coords, dims = coords or {}, dims or {}
    variables = {}
    for name, value in values.items():
        value = np.asarray(value)
        own = list(dims.get(name) or [])
        extra = value.ndim - len(leading)
        own = [own[i] if i < len(own) and own[i] else f"{name}_dim_{i}" for i in range(extra)]
        variables[name] = ([*leading, *own], value)
    sizes = {d: n for ds, v in variables.values() for d, n in zip(ds, v.shape, strict=True)}
    index = {
        d: coords[d] if d in coords and len(coords[d]) == n else np.arange(n)
        for d, n in sizes.items()
    }
    return xr.Dataset(variables, coords=index, attrs=dict(attrs or {}))


def library_attrs() -> dict[str, str]:
    """Return the attributes that name this library, as ArviZ has them."""
    return {
        "inference_library": "pymc_anneal",
        "inference_library_version": __version__,
    }


def annealing_dataset(run: Run) -> xr.Dataset:
    """Return the group ``annealing``: log weights, and the last round by step and chain."""
    steps, chains = run.stats.log_w.shape
    rows = np.unique(np.linspace(0, steps - 1, min(steps, _MAX_ROWS)).round().astype(int))
    n = run.stats_particles
    # Weights are relative to the density at the first temperature.
    log_first = run.log_reference
    if run.betas[0] > run.betas[-1]:
        log_first = run.log_reference - (run.stats.log_w[-1] - np.log(n))
    with np.errstate(invalid="ignore", over="ignore"):
        relative_ess = np.exp(2 * run.stats.log_w - run.stats.log_w_squared)
        fisher = np.maximum(run.stats.velocity_squared - run.stats.velocity**2, 0.0)
    barrier = np.cumsum(np.sqrt(discrepancies(run.stats, n * chains)))
    shared = {"beta": run.betas[1:], "barrier": barrier, "step_size": run.step_size}
    by_step = {
        "log_z": log_first + run.stats.log_w - np.log(n),
        "ess": np.nan_to_num(relative_ess),
        "accept_rate": run.stats.accept_rate,
        "fisher_information": fisher,
        "velocity": run.stats.velocity,
    }
    by_step |= {k: np.broadcast_to(v[:, None], (steps, chains)) for k, v in shared.items()}
    values = {
        k: (("chain", "step"), np.asarray(v, dtype=float)[rows].T) for k, v in by_step.items()
    }
    values["log_weight"] = (("chain", "particle"), run.log_weight)
    particle = np.arange(run.log_weight.shape[1])
    coords = {"chain": np.arange(chains), "step": rows + 1, "particle": particle}
    labels = {"round": ("particle", run.round)}
    if run.population_size > 1:
        labels["population"] = ("particle", particle // run.population_size)
    return xr.Dataset(values, coords={**coords, **labels})


def ladder_dataset(run: Run) -> xr.Dataset:
    """Return the group ``ladder``: the particles at some temperatures of the last round."""
    values: dict[str, Any] = {
        field: (("rung", "chain", "particle"), value)
        for field, value in run.ladder._asdict().items()
    }
    values["beta"] = ("rung", run.betas[run.rungs])
    values["step"] = ("rung", run.rungs)
    sizes = run.ladder.log_weight.shape
    return xr.Dataset(
        values,
        coords={
            name: np.arange(n) for name, n in zip(("rung", "chain", "particle"), sizes, strict=True)
        },
        attrs={"log_reference": run.log_reference},
    )


def evidence_dataset(run: Run) -> xr.Dataset:
    """Return the group ``evidence``: the estimate as scalars."""
    estimate = ais(run.log_weight, run.round, run.population_size)
    lower, upper = sorted(run.log_evidence_of(end) for end in _interval(run, estimate))
    chains = run.log_weight.shape[0]
    discrepancy = discrepancies(run.stats, run.stats_particles * chains)
    numbers = {
        "log_evidence": run.log_evidence_of(estimate.log_evidence),
        "mcse": estimate.mcse,
        "interval_lower": lower,
        "interval_upper": upper,
        "ess": estimate.ess,
        "pareto_k": weight_pareto_k(population_means(run.log_weight, run.population_size)),
        "barrier": float(np.sqrt(discrepancy).sum()),
        **run.numbers,
    }
    return xr.Dataset(
        {k: float(v) for k, v in numbers.items()},
        attrs={**run.words, "verdict": str(run.verdict), "unit": "nats"},
    )


def _interval(run: Run, estimate: EvidenceEstimate) -> tuple[float, float]:
    if run.population_size > 1:
        return population_interval(estimate, run.log_weight.size // run.population_size)
    # A fixed seed: the interval is a function of the weights.
    rng = np.random.default_rng(20130)
    return bootstrap_interval(run.log_weight, strata=run.round, rng=rng)


def to_container(
    run: Run,
    draws: Mapping[str, xr.Dataset],
    extra: Mapping[str, xr.Dataset],
    attrs: Mapping[str, Any],
) -> Any:
    """Assemble the container of a run: InferenceData on ArviZ 0.23, DataTree on ArviZ 1."""
    per_chain = np.array([run.log_evidence_of(ais(row).log_evidence) for row in run.log_weight])
    stats = xr.Dataset(
        {"log_marginal_likelihood": ("chain", per_chain)},
        coords={"chain": np.arange(len(per_chain))},
    )
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
