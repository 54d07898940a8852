"""Tuning of a transition at ``beta = 1``, from particles of the posterior."""

from dataclasses import replace
from functools import partial

import numpy as np

from pymc_anneal.adaptation.particles import ParticleSystem
from pymc_anneal.adaptation.pilot import Pilot
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.adaptation.tuning import Tuner, by_temperature
from pymc_anneal.base.batches import COSTLY_BATCH
from pymc_anneal.base.contracts import Path, Transition
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import keys_of
from pymc_anneal.paths.geometric import GeometricPath

# Rounds of tuning, with three pairs of moves each: the step size is found from a guess.
ROUNDS, _PAIRS = 4, 3


@double_precision
def tune_at_target(
    survey: Pilot,
    path: Path,
    transition: Transition,
    position: np.ndarray,
    seed: np.random.SeedSequence,
    rounds: int = ROUNDS,
) -> Pilot:
    """Move the particles of a survey that were mapped to other coordinates, and tune there.

    The path ends at the posterior in these coordinates, in which the positions ``(n, d)`` are. What
    the survey measured along its own path stays, but for the end of it; its evaluations are counted
    too. A round of tuning moves every particle six times.
    """
    seed_numpy, seed_jax = seed.spawn(2)
    rng, keys = np.random.default_rng(seed_numpy), keys_of(seed_jax)
    particles = ParticleSystem.create(path, transition, next(keys), position)
    evaluations, even = survey.evaluations, np.zeros(len(position))
    for _ in range(rounds):
        particles = particles.resample(path, 1.0, even, rng)
        candidates = particles.tuner.candidates(_PAIRS)
        particles = particles.move_and_tune(path, 1.0, next(keys), candidates).keep_best()
        evaluations += particles.evaluations(candidates)
    moved = np.asarray(particles.state.position)
    family = survey.ancestor[particles.ancestor]
    spent = replace(survey, evaluations=evaluations, ancestor=family)
    return _at_target(spent, particles.tuner, moved)


@double_precision
def rescale_at_target(
    survey: Pilot, path: GeometricPath, transition: Transition, position: np.ndarray
) -> Pilot:
    """Set the scale of a transition to the spread of particles, for runs of a step or two.

    Such runs need no tuned moves. Its parameters that are None take their shortest moves.
    """
    target = TargetDensity(path, COSTLY_BATCH)
    slope = partial(target.gradient, position)
    tuner = Tuner.create(transition, position).rescale(position, np.ones(len(position)), slope)
    spent = survey.evaluations + target.evaluations
    return _at_target(replace(survey, evaluations=spent), tuner.shortest(), position)


def _at_target(survey: Pilot, tuner: Tuner, position: np.ndarray) -> Pilot:
    """Return a survey that ends with other particles and their transition."""
    return replace(
        survey,
        transition=by_temperature([1.0], [tuner]),
        tau=np.append(survey.tau[:-1], tuner.tau),
        cost=np.append(survey.cost[:-1], tuner.cost),
        accept_rate=np.append(survey.accept_rate[:-1], tuner.accept_rate),
        position=position,
    )
