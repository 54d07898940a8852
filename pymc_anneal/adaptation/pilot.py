"""The pilot: a short adaptive run that measures the path and tunes the transition.

From draws of the reference, beta rises so that each step has the discrepancy

    D = log( sum W u^2 * sum W / (sum W u)^2 ) = 1/4,    u = f_{beta'} / f_beta,

that is, a fixed conditional effective sample size (Zhou, Johansen & Aston 2016). The step is found
by bisection in log scale and may be as small as floating point allows. After each step the
particles are resampled and moved (`particles.py`), and the moves tune the kernel (`tuning.py`).

A survey is a pilot with larger steps and fewer moves (`Effort`): its particles are good enough to
fit a reference to, its measurements too rough to plan by.

No particle of the pilot enters the estimate.
"""

import warnings

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from scipy.special import logsumexp

from pymc_anneal.adaptation.flat_likelihood import check_not_flat
from pymc_anneal.adaptation.infinite_evidence import check_finite_evidence
from pymc_anneal.adaptation.particles import DISCREPANCY, ParticleSystem
from pymc_anneal.adaptation.support import MOST, Guide, Sampler, find_inside, take_first_step
from pymc_anneal.adaptation.tuning import Tuner, by_temperature, needs_pilot
from pymc_anneal.annealing.resampling import systematic
from pymc_anneal.base.caller import levels_to_caller
from pymc_anneal.base.contracts import Path, Transition, rejected_nan
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.meter import AbandonedError
from pymc_anneal.base.progress import PilotProgress
from pymc_anneal.base.seeds import keys_of

# Temperatures after which prior and likelihood are taken to be too far apart to anneal.
_MAX_TEMPERATURES = 2000
# Evaluations of one transition that are worth a warning, and those of a model without hope: at 100
# steps and 1000 particles the run would take 9e9 evaluations. A half-space takes up to 26,000.
_SLOW, _TOO_SLOW = 30_000, 90_000
_REASONS = (
    "The density has scales that differ by orders of magnitude. Common reasons: a likelihood that "
    "is unbounded (a standard deviation that may go to zero, as of a mixture component with one "
    "observation), for which the evidence may be infinite; a bounded variable without a transform "
    "(pm.LogitNormal, pm.Interpolated, mixtures); a potential of minus infinity amid the "
    "prior; shape parameters far below one; or a prior that is far too wide. Bound "
    "standard deviations away from zero, pass `transform=`, or reparametrise."
)


class Effort(NamedTuple):
    """How thorough a pilot is.

    Attributes
    ----------
    discrepancy : float
        ``D`` of a step.
    moves, first_moves : int
        Pairs of moves at a temperature, and at the first one, where nothing is known yet.
    """

    discrepancy: float
    moves: int
    first_moves: int


# A pair of moves at the current effort level and one at each of its neighbours.
MEASURE = Effort(discrepancy=DISCREPANCY, moves=3, first_moves=7)
# An effective sample size of exp(-1) = 37 %; ten to a hundred times fewer evaluations.
SURVEY = Effort(discrepancy=1.0, moves=1, first_moves=3)
# In between: enough to choose between two paths and to start a trial.
COMPARE = Effort(discrepancy=0.5, moves=2, first_moves=3)


@dataclass(frozen=True)
class Pilot:
    """Results of the pilot.

    Attributes
    ----------
    betas : ndarray, shape (m + 1,)
        Temperatures from 0 to 1.
    discrepancy : ndarray, shape (m,)
        ``D`` of each step among the particles of non-zero likelihood.
    log_reference_mass : float
        Log share of the draws of the reference that have non-zero likelihood.
    inside, drawn : int
        Number of these, and of all draws that were looked at.
    transition : Transition
        The tuned transition.
    tau : ndarray, shape (m,)
        Integrated autocorrelation time of the velocity under the transition at ``betas[1:]``.
    cost : ndarray, shape (m,)
        Evaluations of gradient or density of the transition at ``betas[1:]``.
    accept_rate : ndarray, shape (m,)
    log_z : float
        Sequential Monte Carlo estimate of the log evidence, in nats; for comparison only.
    position : ndarray, shape (n, d)
        Particles at ``beta = 1``.
    ancestor : ndarray of int, shape (n,)
        The draw of the reference from which each of them descends.
    rough_log_z : float
        Log evidence of a survey, good to a few nats.
    evaluations : int
        Evaluations of gradient or density of the whole pilot.
    seen : int
        Draws of the reference that the first step saw.
    nan_share : float
        Share of the draws of the reference at which a NaN counts as zero likelihood.
    """

    betas: np.ndarray
    discrepancy: np.ndarray
    log_reference_mass: float
    transition: Transition
    tau: np.ndarray
    cost: np.ndarray
    accept_rate: np.ndarray
    log_z: float
    position: np.ndarray = field(repr=False)
    ancestor: np.ndarray = field(repr=False)
    rough_log_z: float = np.nan
    evaluations: int = 0
    nan_share: float = 0.0
    inside: int = 0
    drawn: int = 0
    seen: int = 0

    @property
    def barrier(self) -> float:
        """Length of the path, ``Lambda = sum sqrt(D)``."""
        return float(np.sqrt(self.discrepancy).sum())

    def has_step_size(self, transition: Transition) -> bool:
        """Whether moves of a transition by gradients are accepted half as often as wanted."""
        wanted = [p.tuning.target_accept for p in transition.parts if p.tuning.uses_gradient]
        return not wanted or bool(self.accept_rate[-1] >= max(wanted) / 2)

    @property
    def log_z_mcse(self) -> float:
        """Rough standard error of ``log_z``: increments of the steps, inflated by the mixing.

        NaN if no particles were moved.
        """
        if not len(self.position):
            return np.nan
        particles = np.full(len(self.tau), len(self.position))
        particles[0] = max(self.seen, particles[0])
        increments = np.expm1(self.discrepancy) * np.maximum(self.tau, 1.0)
        return float(np.sqrt((increments / particles).sum()))

    @property
    def families(self) -> float:
        """Effective number of draws of the reference behind ``log_z``: of ancestors, at most.

        Moves that lag leave fewer, but one at least.
        """
        share = np.unique(self.ancestor, return_counts=True)[1] / len(self.ancestor)
        return float(1 / np.clip(self.log_z_mcse**2, np.square(share).sum(), 1.0))


def pooled(pilots: Sequence[Pilot], rng: np.random.Generator) -> Pilot:
    """Return a pilot with particles of several independent ones along a path.

    Each has a share in proportion to its estimate of ``Z``, whose mean is that of the pool. The
    measurements, and the evaluations, are those of the pilot with the largest one.
    """
    log_z = np.array([p.log_z for p in pilots])
    best, n = pilots[int(log_z.argmax())], len(pilots[0].position)
    chosen = systematic(rng, np.repeat(np.exp(log_z - log_z.max()), n), n)
    most = 1 + max(int(p.ancestor.max()) for p in pilots)
    ancestor = np.concatenate([p.ancestor + i * most for i, p in enumerate(pilots)])
    return replace(
        best,
        position=np.concatenate([p.position for p in pilots])[chosen],
        ancestor=ancestor[chosen],
        log_z=float(logsumexp(log_z) - np.log(len(pilots))),
    )


class PilotTooLongError(AbandonedError):
    """The pilot needs more evaluations than it was allowed."""


@double_precision
def run_pilot(
    path: Path,
    transition: Transition,
    position: np.ndarray,
    seed: np.random.SeedSequence,
    report: Callable[[PilotProgress], None] = lambda progress: None,
    max_evaluations: float = np.inf,
    effort: Effort = MEASURE,
    draw: Sampler | None = None,
    max_draws: float = MOST,
    refuse_flat: bool = False,
    refuse_infinite: bool = False,
    guide: Guide | None = None,
    first_draws: int = 0,
) -> Pilot:
    """Measure the path and tune the transition.

    Parameters
    ----------
    transition
        A kernel; its parameters that are None are tuned. One without such parameters is
        used as it is.
    position : ndarray, shape (n, d)
        Draws of the reference.
    report
        Called before and after each temperature; may raise to end the pilot.
    max_evaluations
        Largest number of evaluations of gradient or density.
    effort
        Size of the steps and number of moves.
    draw
        Further draws of the reference, if the likelihood is zero at nearly all of `position`.
    max_draws
        Draws after which none follow.
    refuse_flat
        Whether to raise if the transition takes gradients and the likelihood has none.
    guide
        What leads to where the likelihood is not zero, if further draws do not suffice.
    refuse_infinite
        Whether to raise if the evidence is infinite; it takes second derivatives.
    first_draws
        Draws of the reference for the first step along a geometric path, if `position` suffices to
        find where the likelihood is not zero.

    Raises
    ------
    NanDensityError
        The log density is NaN at a draw or at a proposal that is not a divergence.
    ValueError
        The likelihood is zero at every draw, or infinite at one; or one move takes more
        evaluations than any run can afford.
    PilotTooLongError
        More than ``max_evaluations`` were needed.
    FlatLikelihoodError
        It is to be refused, and the likelihood has flat steps.
    InfiniteEvidenceError
        It is to be refused, and the evidence is infinite.
    """
    seed_numpy, seed_jax, seed_draws = seed.spawn(3)
    rng, keys = np.random.default_rng(seed_numpy), keys_of(seed_jax)
    particles = ParticleSystem.create(path, transition, next(keys), position)
    start = find_inside(path, particles.state, draw, seed_draws, max_draws, guide)
    if start.drawn > len(position):
        particles = ParticleSystem.create(path, transition, next(keys), start.position)
    if refuse_flat:
        edged = start.log_mass < 0
        check_not_flat(path, transition, start.position, particles.state.terms, edged)
    rejected = rejected_nan(particles.state.terms)
    of_reference, leap = start.position, None
    if draw and start.drawn == len(position) and first_draws >= 2 * len(position):
        further = draw, seed_draws, first_draws
        start, leap = take_first_step(path, position, *further, effort.discrepancy)
        particles = ParticleSystem.create(path, transition, next(keys), start.position)
    betas, discrepancy, tuners = [0.0], list[float](), list[Tuner]()
    # The first step sees the share of the particles inside, where the draws have another one.
    log_z = 0.0 if leap else start.log_mass - start.log_share
    seen = start.drawn if leap else len(position)
    evaluations, warned = start.drawn - len(position), False
    first = particles.evaluations(particles.tuner.candidates(effort.first_moves))
    report(PilotProgress(0.0, 0.0, particles.tuner.cost, 1.0, 0, first))
    while betas[-1] < 1:
        beta, step = leap or particles.next_beta(path, betas[-1], effort.discrepancy)
        leap = None
        log_z += step.log_mean
        moves = effort.first_moves if len(betas) == 1 else effort.moves
        candidates = particles.tuner.candidates(moves)
        particles = particles.resample(path, beta, step.log_u, rng)
        particles = particles.move_and_tune(path, beta, next(keys), candidates).keep_best()
        tuner = particles.tuner
        evaluations += particles.evaluations(candidates)
        betas.append(beta)
        discrepancy.append(step.discrepancy)
        tuners.append(tuner)
        ahead = particles.evaluations(tuner.candidates(effort.moves)) if beta < 1 else 0
        report(PilotProgress(beta, log_z, tuner.cost, tuner.accept_rate, evaluations, ahead))
        _check_length(betas, evaluations, max_evaluations)
        if refuse_infinite and (beta == 1 or tuner.cost > _SLOW) and not warned:
            check_finite_evidence(path, of_reference, np.asarray(particles.state.position))
        if needs_pilot(transition):
            warned = _check_cost(beta, tuner.cost, warned)
    return Pilot(
        betas=np.array(betas),
        discrepancy=np.array(discrepancy),
        log_reference_mass=start.log_mass,
        transition=by_temperature(betas[1:], tuners),
        tau=np.array([t.tau for t in tuners]),
        cost=np.array([t.cost for t in tuners]),
        accept_rate=np.array([t.accept_rate for t in tuners]),
        log_z=log_z,
        position=np.asarray(particles.state.position),
        ancestor=start.family[particles.ancestor],
        evaluations=evaluations,
        nan_share=0.0 if rejected is None else float(rejected.mean()),
        inside=start.inside,
        drawn=start.drawn,
        seen=seen,
    )


def _check_cost(beta: float, cost: int, warned: bool) -> bool:
    """Warn once of a transition that is very long, and raise if there is no hope."""
    message = f"One move takes {cost} evaluations of the gradient or density at beta = {beta:.3g}."
    if cost > _TOO_SLOW:
        raise ValueError(f"{message} A run would not end. {_REASONS}")
    if cost > _SLOW and not warned:
        warnings.warn(f"{message} The run will be slow. {_REASONS}", stacklevel=levels_to_caller())
    return warned or cost > _SLOW


def _check_length(betas: list[float], evaluations: int, max_evaluations: float) -> None:
    if evaluations > max_evaluations:
        raise PilotTooLongError(
            f"the pilot took more than {max_evaluations:.3g} evaluations, at beta = "
            f"{betas[-1]:.4g}",
            evaluations,
        )
    if len(betas) > _MAX_TEMPERATURES:
        raise ValueError(
            f"The pilot took {_MAX_TEMPERATURES} temperatures to reach beta = {betas[-1]:.3g}. "
            "Prior and likelihood are too far apart to anneal between them: use a prior "
            "nearer to the data, or check the likelihood's scale."
        )
