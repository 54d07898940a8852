"""The result of a run: from weights, end points and records to a container.

Draws of the posterior are resampled to equal weights within each chain; numbers and words about the
run go to the group ``evidence``, statistics by step to ``annealing``.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pymc as pm
import xarray as xr

from pymc_anneal._version import __version__
from pymc_anneal.annealing.resampling import equal_weights
from pymc_anneal.annealing.step_statistics import discrepancies
from pymc_anneal.base.contracts import Transition
from pymc_anneal.evidence.ais import ais
from pymc_anneal.evidence.diagnostics import Verdict, assess, log_weight_variance
from pymc_anneal.execution.blocks import AnnealedRun
from pymc_anneal.pipeline.choose_reference import Start
from pymc_anneal.pipeline.reverse import Reverse
from pymc_anneal.pipeline.rounds import Outcome
from pymc_anneal.pipeline.session import Session
from pymc_anneal.results.container import (
    Run,
    annealing_dataset,
    dataset,
    library_attrs,
    to_container,
)
from pymc_anneal.schedules.named import FromPilot
from pymc_anneal.transitions.by_temperature import TunedTransition


def assemble(
    begun: Start,
    outcome: Outcome,
    backward: Reverse | None,
    seconds: float,
    seed_draws: np.random.SeedSequence,
    seed_prior: np.random.SeedSequence,
) -> Any:
    """Return the container of a run.

    Parameters
    ----------
    begun, outcome, backward
        Start, forward run, and reverse run if there was one.
    seconds
        That it all took.
    seed_draws, seed_prior
        Of the resampling to draws of equal weight, and of prior draws if they are wanted.

    Returns
    -------
    InferenceData or DataTree

    Raises
    ------
    ValueError
        All weights of a chain are zero, or one is infinite.
    """
    session = begun.session
    _check_weights(outcome.log_weight)
    run = _run(begun, outcome, backward, seconds)
    rng = np.random.default_rng(seed_draws)
    # Relatives as neighbours: autocorrelation then tells ArviZ what the draws are worth.
    related = run.population_size > 1
    draws = session.options.draws
    drawn = equal_weights(run.position, run.log_weight, draws, rng, together=related)
    extra = _extra_groups(session, drawn, seed_prior)
    if backward:
        extra["reverse_annealing"] = annealing_dataset(_reverse_arrays(run, backward.run))
    attrs = library_attrs() | {"sampling_time": seconds}
    return to_container(run, {"posterior": _posterior(session, drawn)}, extra, attrs)


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


def _run(begun: Start, outcome: Outcome, backward: Reverse | None, seconds: float) -> Run:
    last = outcome.rounds[-1]
    numbers, words = _numbers(begun, outcome, seconds), _words(begun, outcome)
    if backward:
        numbers |= backward.numbers
        numbers["evaluations"] += backward.evaluations
        words |= {"reverse_start": backward.start}
    return Run(
        betas=last.betas,
        log_weight=outcome.log_weight,
        round=outcome.round,
        position=np.concatenate([r.position for r in outcome.rounds], axis=1),
        stats=last.stats,
        stats_particles=last.log_weight.shape[1],
        step_size=_step_sizes(outcome.transition, last.betas),
        verdict=_judged(begun, outcome, backward),
        numbers=numbers,
        words=words,
        ladder=last.ladder,
        rungs=last.rungs,
        population_size=last.population_size,
    )


def _judged(begun: Start, outcome: Outcome, backward: Reverse | None) -> Verdict:
    last = outcome.rounds[-1]
    pilots = [p for p in (outcome.pilot, *begun.earlier) if p is not None]
    return assess(
        outcome.log_weight,
        outcome.round,
        target_mcse=begun.session.options.target_mcse,
        steps=last.steps,
        pilots=[(p.log_z, p.log_z_mcse) for p in pilots],
        interrupted=last.interrupted or (backward is not None and backward.run.interrupted),
        mcse=backward.mcse if backward else None,
        doubts=backward.doubts if backward else (),
        population_size=last.population_size,
    )


def _reverse_arrays(forward: Run, run: AnnealedRun) -> Run:
    """Return a reverse run as arrays; its weights are relative to the posterior."""
    particles = run.log_weight.shape[1]
    return replace(
        forward,
        betas=run.betas,
        log_weight=run.log_weight,
        round=np.ones(particles, dtype=int),
        position=run.position,
        stats=run.stats,
        stats_particles=particles,
        step_size=forward.step_size[::-1],
    )


def _numbers(begun: Start, outcome: Outcome, seconds: float) -> dict[str, float]:
    last, plan, compiled = outcome.rounds[-1], outcome.plan, begun.session.compiled
    earlier = begun.evaluations + sum(pilot.evaluations for pilot in begun.earlier)
    predicted = discrepancies(last.stats, last.particles).sum()
    return {
        "steps": last.steps,
        "particles": outcome.log_weight.size,
        "rounds": len(outcome.rounds),
        "evaluations": earlier + outcome.evaluations,
        "log_weight_variance": log_weight_variance(last.log_weight),
        "perfect_mixing_variance": float(predicted),
        "planned_mcse": plan.predicted_mcse if plan else np.nan,
        "pilot_log_evidence": outcome.pilot.log_z if outcome.pilot else np.nan,
        "log_prior_mass": compiled.log_prior_mass,
        "log_prior_mass_mcse": compiled.log_prior_mass_mcse,
        "seconds": seconds,
    }


def _words(begun: Start, outcome: Outcome) -> dict[str, str]:
    session, options = begun.session, begun.session.options
    kernel = outcome.transition
    kernel = kernel.kernel if isinstance(kernel, TunedTransition) else kernel
    rounds = "; ".join(
        f"round {i}: {r.steps} steps, {r.particles} particles, {ais(r.log_weight).log_evidence:.4f}"
        f" +- {ais(r.log_weight, population_size=r.population_size).mcse:.2g}"
        for i, r in enumerate(outcome.rounds, start=1)
    )
    return {
        "path": type(session.path).__name__,
        "schedule": _schedule_name(options.schedule),
        "transition": getattr(kernel, "name", type(kernel).__name__),
        "reference": begun.name,
        "reference_costs": _listed(begun.costs),
        "path_costs": _listed(begun.path_costs),
        "path_refused": begun.refused,
        "rounds": rounds,
        "notes": " ".join(session.compiled.notes),
        "versions": f"pymc_anneal {__version__}, pymc {pm.__version__}, jax {jax.__version__}",
    }


def _listed(costs: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {cost:.4g}" for name, cost in costs.items())


def _schedule_name(schedule) -> str:
    if isinstance(schedule, FromPilot):
        return schedule.name
    return "array" if isinstance(schedule, np.ndarray) else getattr(schedule, "__name__", "custom")


def _step_sizes(transition: Transition, betas: np.ndarray) -> np.ndarray:
    """Step size of the transition at each temperature; NaN where it has none."""
    if not isinstance(transition, TunedTransition):
        return np.full(len(betas) - 1, float(getattr(transition, "step_size", None) or np.nan))
    size = getattr(transition.kernel, "step_size", None)
    sizes = np.asarray(np.nan if size is None else size)
    knots = np.asarray(transition.betas)
    return np.interp(betas[1:], knots, np.broadcast_to(sizes, len(knots)))


def _posterior(session: Session, drawn: np.ndarray) -> xr.Dataset:
    values = session.compiled.constrain(_flat(drawn))
    return _model_dataset(session, _by_chain(values, drawn.shape[:2]))


def _flat(drawn: np.ndarray) -> np.ndarray:
    """Merge chains and draws; -1 would be ambiguous where there are no dimensions."""
    chains, draws, ndim = drawn.shape
    return drawn.reshape(chains * draws, ndim)


def _by_chain(values: dict[str, np.ndarray], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {name: v.reshape(*shape, *v.shape[1:]) for name, v in values.items()}


def _model_dataset(session: Session, values, leading=("chain", "draw")) -> xr.Dataset:
    coords, dims = session.compiled.coords_and_dims()
    extra = session.options.idata_kwargs
    return dataset(
        values,
        leading,
        {**coords, **(extra.get("coords") or {})},
        {**dims, **(extra.get("dims") or {})},
    )


def _extra_groups(
    session: Session, drawn: np.ndarray, seed_prior: np.random.SeedSequence
) -> dict[str, xr.Dataset]:
    compiled, wanted = session.compiled, session.options.idata_kwargs
    groups = {
        "observed_data": _model_dataset(session, compiled.observed_data(), ()),
        "constant_data": _model_dataset(session, compiled.constant_data(), ()),
    }
    if wanted.get("log_likelihood"):
        flat = _flat(drawn)
        values = compiled.pointwise_log_likelihood(flat)
        groups["log_likelihood"] = _model_dataset(session, _by_chain(values, drawn.shape[:2]))
    if wanted.get("prior"):
        draws = compiled.sample_prior(seed_prior, drawn.shape[0] * drawn.shape[1])
        values = compiled.constrain(draws)
        groups["prior"] = _model_dataset(session, _by_chain(values, drawn.shape[:2]))
    return groups
