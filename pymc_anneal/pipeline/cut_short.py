"""What a run that ended early has kept, in one line."""

import numpy as np

from pymc_anneal.pipeline.rounds import ForwardStages, misses_target
from pymc_anneal.pipeline.settings import Settings


def describe_interruption(forward: ForwardStages, reverse_stopped: bool) -> str:
    """Say what is kept of an interrupted run; empty if it was not interrupted.

    Parameters
    ----------
    forward
        The forward stages; the last round is the one in which the run was stopped.
    reverse_stopped
        Whether the reverse run was stopped.
    """
    last, number = forward.last, len(forward.rounds)
    if not last.interrupted:
        return "the forward run is complete and kept" if reverse_stopped else ""
    if last.particles == last.planned:
        return f"in round {number + 1}, and all of {_earlier(number)} is kept"
    kept = f"{last.particles} of {last.planned} particles are kept"
    return kept if number == 1 else f"in round {number}, {kept} and all of {_earlier(number - 1)}"


def _earlier(rounds: int) -> str:
    return "round 1" if rounds == 1 else f"rounds 1 to {rounds}"


def explain_time_limit(settings: Settings, forward: ForwardStages) -> str:
    """Say that ``max_minutes`` ended the run, and what is kept; empty if it did not."""
    last, number = forward.last, len(forward.rounds)
    if settings.fixed_steps is not None or last.interrupted or np.isinf(settings.max_minutes):
        return ""
    could_go_on = number < settings.max_rounds or _plan_was_cut(settings, forward)
    if not (could_go_on and misses_target(settings, last)):
        return ""
    return (
        f"`max_minutes` = {settings.max_minutes:g} ended the run before its error reached the "
        f"target; all {forward.log_weight.size} particles of {_earlier(number)} are kept."
    )


def _plan_was_cut(settings: Settings, forward: ForwardStages) -> bool:
    """Whether the plan expected to miss the target: only the limit makes it do so."""
    return forward.plan is not None and forward.plan.predicted_mcse > settings.target_mcse
