"""The result of a run: from the results of its stages to a container.

Draws of the posterior are resampled to equal weights within each chain; scalars and texts about the
run go to the group ``evidence``, statistics by step to ``annealing``.
"""

import warnings

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from pymc_anneal.annealing.resampling import equal_weights
from pymc_anneal.annealing.step_statistics import discrepancies
from pymc_anneal.base.caller import levels_to_caller
from pymc_anneal.base.meter import to_json
from pymc_anneal.base.seeds import describe_seed
from pymc_anneal.evidence.agreement import Estimate
from pymc_anneal.evidence.ais import ais
from pymc_anneal.evidence.diagnostics import assess, log_weight_variance
from pymc_anneal.evidence.heavy_tail import ais_with_tail, estimate_with_tail
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.evidence.witness import Witness, to_text
from pymc_anneal.execution.blocks import AnnealedRun
from pymc_anneal.pipeline.rejected_nan import RejectedNan
from pymc_anneal.pipeline.run import Stages
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.target import RunCandidate
from pymc_anneal.pipeline.trial import trial_estimates
from pymc_anneal.results.container import RunArrays, annealing_dataset, library_attrs, to_container
from pymc_anneal.schedules.named import FromPilot, Schedule


def build_result(session: Session, stages: Stages, seconds: float) -> Any:
    """Return the container of a run.

    Raises
    ------
    ValueError
        All weights of a chain are zero, or one is infinite.
    """
    session = replace(session, target=stages.target)
    _check_weights(stages.forward.run.log_weight)
    run = _run_arrays(session, stages, seconds)
    drawn = draw_posterior(session, run.position, run.log_weight, run.population_size)
    # The same seed draws the numbers of the particles.
    number = np.broadcast_to(
        np.arange(run.log_weight.shape[1])[:, None], (*run.log_weight.shape, 1)
    )
    copied = draw_posterior(session, number, run.log_weight, run.population_size)[:, :, 0]
    end = "posterior" if run.betas[-1] == 1 else "prior"
    posterior = _try_group(f"draws of the {end}", lambda: {end: session.target.posterior(drawn)})
    extra = _try_group(
        "data and further groups", lambda: session.target.extra_groups(drawn, session.seeds.prior)
    )
    if stages.modes is not None:
        extra["modes"] = stages.modes
    if stages.reverse:
        extra["reverse_annealing"] = annealing_dataset(_reverse_arrays(run, stages.reverse.run))
    attrs = library_attrs() | {"sampling_time": seconds}
    return to_container(run, posterior, extra, attrs, copied)


def _try_group(name: str, build: Callable[[], dict[str, xr.Dataset]]) -> dict[str, xr.Dataset]:
    """Build groups of the result; if that fails, warn and leave them out."""
    try:
        return build()
    except Exception as error:  # Of any class: the run is finished, and its evidence is kept.
        warnings.warn(
            f"The {name} are left out of the result ({type(error).__name__}: {error}). The "
            "evidence is not affected.",
            stacklevel=levels_to_caller(),
        )
        return {}


def draw_posterior(
    session: Session, position: np.ndarray, log_weight: np.ndarray, population_size: int
) -> np.ndarray:
    """Resample weighted particles to draws of equal weight, shape ``(chains, draws, d)``."""
    rng = np.random.default_rng(session.seeds.draws)
    # Particles that share ancestors stay neighbours, so that ArviZ's ESS, which is based on
    # autocorrelation, accounts for them.
    together = population_size > 1
    return equal_weights(position, log_weight, session.settings.draws, rng, together=together)


def _check_weights(log_weight: np.ndarray) -> None:
    if np.isposinf(log_weight).any():
        raise ValueError(
            "The log likelihood is +inf at a particle: the likelihood is not a density there."
        )
    if not np.isfinite(log_weight).any(axis=1).all():
        raise ValueError(
            "All weights of a chain are zero: no particle reached a point of non-zero "
            "likelihood. Take more draws or a prior nearer to the data."
        )


def _run_arrays(session: Session, stages: Stages, seconds: float) -> RunArrays:
    forward, last = stages.forward, stages.forward.run
    return RunArrays(
        betas=last.betas,
        log_weight=forward.run.log_weight,
        position=last.position,
        stats=last.stats,
        step_size=forward.transition.step_sizes(last.betas[1:]),
        verdict=_verdict(session, stages),
        scalars=_scalars(session, stages, seconds),
        attrs=_attrs(session, stages),
        ladder=last.ladder,
        rungs=last.rungs,
        log_reference=session.target.log_reference,
        population_size=last.population_size,
    )


def _verdict(session: Session, stages: Stages) -> Verdict:
    forward, reverse, last = stages.forward, stages.reverse, stages.forward.run
    estimate, _ = ais_with_tail(forward.run.log_weight, last.population_size)
    nan = RejectedNan.of(session, forward)
    verdict = assess(
        forward.run.log_weight,
        target_mcse=session.settings.target_mcse,
        steps=last.steps,
        seconds=last.seconds,
        earlier=_other_estimates(stages),
        interruption=describe_interruption(last, stages.interrupted),
        mcse=reverse.mcse if reverse else estimate.mcse,
        doubts=(*stages.doubts, *nan.doubts, *(reverse.doubts if reverse else ())),
        population_size=last.population_size,
    )
    limits = [stages.limits] if stages.limits and verdict.trusted else []
    return verdict._replace(reasons=(*verdict.reasons, *limits, *nan.remarks))


def _other_estimates(stages: Stages) -> list[Estimate]:
    """Return the estimates of pilots, fits and trials that have an error to go by."""
    forward = stages.forward
    lineage = replace(forward.candidate, pilot=forward.pilot).lineage
    pilots = {id(m.pilot): (m.reference, m.pilot) for m in lineage if m.pilot is not None}
    # A mixture that is known to miss a part of the posterior has no say.
    partial = [m.fitted for m in lineage if m.objection]
    mixtures = {id(f): f for f in (*(m.fitted for m in lineage), stages.audited) if f is not None}
    fits = [f.log_ratio_draws for f in mixtures.values() if not any(f is p for p in partial)]
    found = [
        *(
            Estimate(f"the pilot from the {name}", pilot.log_z, pilot.log_z_mcse)
            for name, pilot in pilots.values()
        ),
        *(estimate_with_tail("importance sampling with a mixture", weights) for weights in fits),
        *(
            Estimate("levels", w.log_evidence, w.mcse)
            for w in stages.witnesses
            if w.kind == "levels"
        ),
        *trial_estimates(forward.trials),
    ]
    return [e for e in found if np.isfinite(e.log_evidence) and np.isfinite(e.mcse)]


def _reverse_arrays(forward: RunArrays, run: AnnealedRun) -> RunArrays:
    """Return a reverse run as arrays; its weights are relative to the posterior."""
    return replace(
        forward,
        betas=run.betas,
        log_weight=run.log_weight,
        position=run.position,
        stats=run.stats,
        step_size=forward.step_size[::-1],
    )


def _scalars(session: Session, stages: Stages, seconds: float) -> dict[str, float]:
    forward, reverse, last = stages.forward, stages.reverse, stages.forward.run
    pilot, plan = forward.pilot, forward.plan
    return {
        "steps": last.steps,
        "particles": forward.run.log_weight.size,
        "evaluations": session.meter.evaluations,
        "log_weight_variance": log_weight_variance(last.log_weight),
        "perfect_mixing_variance": float(discrepancies(last.stats, last.particles).sum()),
        "planned_mcse": plan.predicted_mcse if plan else np.nan,
        "pilot_log_evidence": pilot.log_z if pilot else np.nan,
        **RejectedNan.of(session, forward).scalars,
        **session.target.scalars,
        "seconds": seconds,
        **(reverse.scalars if reverse else {}),
    }


def _attrs(session: Session, stages: Stages) -> dict[str, str]:
    forward, reverse = stages.forward, stages.reverse
    rejected = "; ".join(c.rejected_because for c in stages.choices if c.rejected_because)
    stopped = describe_interruption(forward.run, stages.interrupted)
    return {
        "path": type(forward.candidate.path).__name__,
        "schedule": _schedule_name(session.settings.schedule),
        "transition": forward.transition.name,
        "reference": forward.candidate.reference,
        "reference_costs": _list_costs(stages.reference_choice.compared),
        "path_costs": _list_costs(stages.path_choice.compared),
        "path_rejected_because": rejected,
        "random_seed": describe_seed(session.seeds.root),
        "trials": "; ".join(_describe(trial) for trial in forward.trials),
        "witnesses": to_text(_witnesses(stages)),
        "stages": to_json(session.meter.stages),
        **session.target.attrs,
        "notes": " ".join(filter(None, _notes(session, stages))),
        **({"reverse_start": reverse.start} if reverse else {}),
        **({"interruption": stopped} if stopped else {}),
    }


def _witnesses(stages: Stages) -> list[Witness]:
    """Return what looked for parts of the posterior that the run may have missed."""
    found, hearing, mixture = list[Witness](), stages.hearing, stages.audited
    if hearing is not None:
        found.append(Witness("held-out particles", hearing.hole.witnesses, hearing.rough_log_z))
    found += stages.witnesses
    if mixture is not None:
        own = estimate_with_tail("", mixture.log_ratio_draws)
        name = "mode" if mixture.modes == 1 else "modes"
        known = np.isfinite(own.mcse) and not stages.reference_choice.rejected_because
        figures = (own.log_evidence, own.mcse) if known else ()
        found.append(Witness(name, mixture.modes, *figures))
    return found


def describe_interruption(run: AnnealedRun, reverse_stopped: bool) -> str:
    """Say what is kept of an interrupted run; empty if it was not interrupted."""
    if run.interrupted:
        return (
            f"{run.particles} of {run.planned} particles are kept, those that were finished early: "
            "a biased set if the time that a particle takes depends on where it is"
        )
    return "the forward run is complete and kept" if reverse_stopped else ""


def _notes(session: Session, stages: Stages) -> list[str]:
    """Return the notes on the model, the plan and the upper bound; "" where there is none."""
    plan = stages.forward.plan
    upper = stages.reverse.note if stages.reverse else ""
    return [session.target.attrs.get("notes", ""), plan.note if plan else "", upper]


def _describe(trial: AnnealedRun) -> str:
    found = ais(trial.log_weight)
    return (
        f"{trial.steps} steps, {trial.particles} particles, "
        f"{found.log_evidence:.4f} +- {found.mcse:.2g}"
    )


def _list_costs(candidates: Mapping[str, RunCandidate]) -> str:
    return ", ".join(f"{name} {candidate.cost:.4g}" for name, candidate in candidates.items())


def _schedule_name(schedule: Schedule) -> str:
    if isinstance(schedule, FromPilot):
        return schedule.name
    return "array" if isinstance(schedule, np.ndarray) else getattr(schedule, "__name__", "custom")
