"""Surveys: rough pilots from the prior, whose particles show what the posterior looks like."""

from dataclasses import replace

import numpy as np

from pymc_anneal.base.contracts import Transition
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.target import RunCandidate

# Particles of a survey: a floor, and so many for each coordinate up to a limit, since a dense scale
# takes more particles than coordinates.
_LEAST_PARTICLES, _PARTICLES_PER_COORDINATE, _MOST_PARTICLES = 256, 4, 2048


def survey(
    session: Session, prior: RunCandidate, transition: Transition, seed: np.random.SeedSequence
) -> RunCandidate:
    """Return the run from the prior with a survey as its pilot."""
    ndim = prior.draw_reference(seed, 1).shape[1]
    particles = min(max(_LEAST_PARTICLES, _PARTICLES_PER_COORDINATE * ndim), _MOST_PARTICLES)
    return replace(prior, pilot=session.survey(prior, transition, seed, particles))
