"""The result of nested sampling: from its runs to a container."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from pymc_anneal.annealing.resampling import resample
from pymc_anneal.base.arviz_compat import Container, container
from pymc_anneal.nested.nested_sampling import NestedEstimate, NestedRun
from pymc_anneal.nested.problem import NestedProblem
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.results.container import library_attrs


def build_nested_result(
    problem: NestedProblem,
    runs: Sequence[NestedRun],
    estimate: NestedEstimate,
    sampler: str,
    draws: int,
    rng: np.random.Generator,
    seconds: float,
) -> Container:
    """Return the container of the runs of a nested sampler.

    Parameters
    ----------
    problem
        The model.
    runs, estimate
        The runs, each of which becomes a chain, and their log evidence.
    sampler
        Its name.
    draws
        Posterior draws of each chain.
    rng
        Resamples them.
    seconds
        Time of the runs.
    """
    target = ModelTarget(problem.compiled)
    groups = {
        "posterior": target.posterior(_draw_posterior(runs, draws, rng)),
        "sample_stats": _by_run(runs),
        "evidence": _evidence(problem, runs, estimate, target),
        **target.data_groups(),
    }
    attrs = library_attrs() | {"sampling_time": seconds, "sampler": sampler}
    return container({name: g.assign_attrs(attrs) for name, g in groups.items() if g.data_vars})


def _draw_posterior(runs: Sequence[NestedRun], draws: int, rng: np.random.Generator) -> np.ndarray:
    """Resample the points of each run to draws of equal weight, shape ``(runs, draws, d)``."""
    return np.stack([run.position[resample(run.log_weight, draws, rng)] for run in runs])


def _by_run(runs: Sequence[NestedRun]) -> xr.Dataset:
    values = {
        "log_marginal_likelihood": [run.log_evidence for run in runs],
        "log_marginal_likelihood_mcse": [run.mcse for run in runs],
        "evaluations": [run.evaluations for run in runs],
    }
    coords = {"chain": np.arange(len(runs))}
    return xr.Dataset({k: ("chain", np.array(v)) for k, v in values.items()}, coords=coords)


def _evidence(
    problem: NestedProblem,
    runs: Sequence[NestedRun],
    estimate: NestedEstimate,
    target: ModelTarget,
) -> xr.Dataset:
    lower, upper = estimate.interval
    scalars = {
        "log_evidence": estimate.log_evidence,
        "mcse": estimate.mcse,
        "interval_lower": lower,
        "interval_upper": upper,
        "ess": estimate.ess,
        "pareto_k": np.nan,
        "barrier": np.nan,
        "information": float(np.mean([run.information for run in runs])),
        "evaluations": float(sum(run.evaluations for run in runs)),
        **target.scalars,
    }
    notes = " ".join(note for note in (target.attrs["notes"], problem.remark) if note)
    attrs = {**target.attrs, "notes": notes, **estimate.verdict.to_attrs(), "unit": "nats"}
    return xr.Dataset(scalars, attrs=attrs)
