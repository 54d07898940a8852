"""Multilevel splitting (`evidence/levels.py`) beside a survey: a second look at the posterior.

It needs no gradient, no smoothness and no temperature. Its draws join those of the survey to which
a mixture is fitted, which weighs what only one of the two has found.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from pymc_anneal.adaptation.fitted_reference import normalised
from pymc_anneal.adaptation.flat_likelihood import is_mostly_flat
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.annealing.resampling import systematic
from pymc_anneal.base.batches import COSTLY_BATCH
from pymc_anneal.base.seeds import spawned
from pymc_anneal.evidence.held_out import find_hole
from pymc_anneal.evidence.levels import Levels, Terms, predict_evaluations, split
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.derivatives import SMOOTH
from pymc_anneal.model.jumps import likelihood_has_jumps
from pymc_anneal.model.parents import count_data, likelihood_is_constant
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.pipeline.hear_witnesses import Draws, LogRatio
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.target import PilotedRun

# Draws of the prior, of which the better ones are kept: with no more than are kept, 2 of 3 runs
# missed a peak that 1 in 2,000 draws meets. The fit weighs what they find, so that few are enough.
_DRAWS, _KEPT = 16_384, 256
# Of a density that takes little time, as many draws as fit into a second, and so many coordinates
# and data: of ten runs with 16,384, one missed 70 % of the evidence, which 1 in 5,000 draws meets.
_DRAW_SECONDS, _MOST_DRAWS, _MOST_NUMBERS = 1.0, 2**20, 2**23
# Draws that are evaluated together: a million in a quarter of a second, and in two by 128.
_LARGE_BATCH = 4096
# Evaluations beyond the draws, and seconds, that levels may be predicted to take unless they are
# asked for, and the multiple of the prediction at which they end.
_MOST, _SECONDS, _SLACK = 300_000, 5.0, 2.0


def split_levels(session: Session, compiled: CompiledModel, surveyed: PilotedRun) -> Levels | None:
    """Split levels from draws of the prior, in the coordinates of a survey.

    By default where no climbs look for modes, since the density has no second derivatives, or where
    they may not show one, since it jumps or is flat; and where it is predicted to take seconds.
    """
    audit = session.settings.audit
    if audit == "off" or (audit == "auto" and _leads_on(session, compiled, surveyed)):
        return None
    # Kept in the checkpoint: a resumed run would measure another time for an evaluation.
    split = partial(_split, session, compiled, surveyed)
    return session.meter.run("Levels", partial(session.log.stage, "Levels", split))


def _leads_on(session: Session, compiled: CompiledModel, surveyed: PilotedRun) -> bool:
    """Whether climbs by the likelihood may show its modes."""
    if compiled.derivatives.order < SMOOTH or likelihood_has_jumps(compiled):
        return False
    count = len(surveyed.pilot.position)
    size = COSTLY_BATCH if compiled.costly else count  # as for the fit, whose programs these are
    target = TargetDensity(GeometricPath(compiled.log_terms), size)
    draws = surveyed.draw_reference(spawned(session.seeds.levels, 2), count)
    flat = is_mostly_flat(target, draws, compiled)
    session.meter.add("Levels", target.evaluations, 0.0)
    return not flat or likelihood_is_constant(compiled)


def _split(session: Session, compiled: CompiledModel, surveyed: PilotedRun) -> Levels | None:
    """Split levels, unless they are predicted to take too long and were not asked for."""
    small, large = (COSTLY_BATCH, COSTLY_BATCH) if compiled.costly else (_KEPT // 2, _LARGE_BATCH)
    target = TargetDensity(GeometricPath(compiled.log_terms), small)

    def evaluate(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        target.size = large if len(position) >= large else small
        terms = target.evaluate(position)
        return np.asarray(terms.log_prior), np.asarray(terms.log_likelihood)

    # Of the fastest calls, so that the result does not depend on where they are made.
    seconds = sum(calls.fastest for calls in compiled.calls)
    numbers = compiled.evaluations * (compiled.ndim + count_data(compiled))
    draws, most = _number_of_draws(seconds, numbers), np.inf
    if session.settings.audit == "auto":
        if draws * seconds >= _SECONDS:  # no need to predict the rest
            return None
        predicted = _predict_evaluations(evaluate, surveyed, draws)
        beyond = compiled.evaluations * (predicted - draws)
        if not (beyond < _MOST and predicted * seconds < _SECONDS):
            return None
        most = _SLACK * predicted
    seed_draws, seed_moves = session.seeds.levels.spawn(2)
    with session.display.busy("Levels", "halving the prior mass by likelihood"):
        start = surveyed.draw_reference(seed_draws, draws)
        return split(evaluate, start, seed_moves, _KEPT, most)


def _number_of_draws(seconds: float, numbers: int) -> int:
    """Return the draws of the prior for evaluations of so many seconds, of so many numbers each."""
    most = min(_DRAW_SECONDS / max(seconds, 1e-9), _MOST_DRAWS, _MOST_NUMBERS / numbers)
    return int(_DRAWS * 2 ** np.floor(np.log2(max(most / _DRAWS, 1.0))))


def _predict_evaluations(evaluate: Terms, surveyed: PilotedRun, draws: int) -> float:
    """Predict what levels take: the posterior lies at the information that it gains."""
    pilot = surveyed.pilot
    _, log_likelihood = evaluate(pilot.position)
    information = float(np.median(log_likelihood)) - pilot.rough_log_z
    return predict_evaluations(draws, _KEPT, pilot.position.shape[1], information)


class DrawsByLevels(NamedTuple):
    """Draws of the posterior, shape ``(n, d)``, and the draw of the prior each descends from."""

    position: np.ndarray
    family: np.ndarray

    def miss(self, log_ratio: LogRatio, draws: Draws, level: float) -> str:
        """Say what they have found of a posterior and other draws have not; "" if nothing."""
        hole = find_hole(log_ratio(self.position), self.family, *draws)
        if hole.p_value >= level:
            return ""
        at_most = f"at most {hole.mass:.2g} of the posterior could be"
        return f"{hole.share:.2g} of the draws by levels lie where {at_most}"


def draws_of(
    levels: Levels | None, number: int, seed: np.random.SeedSequence
) -> DrawsByLevels | None:
    """Return so many draws of the posterior by levels; None if there are none."""
    if levels is None or not levels.complete:
        return None
    index = systematic(np.random.default_rng(seed), normalised(levels.log_weight), number)
    return DrawsByLevels(levels.position[index], levels.family[index])
