"""Surveys: rough pilots from the prior, whose particles show what the posterior looks like."""

import numpy as np

from pymc_anneal.adaptation.fit_reference import MAX_DENSE
from pymc_anneal.base.contracts import Transition
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.target import PilotedRun, RunCandidate

# Particles of a survey: a floor, and so many for each coordinate, since a dense scale takes more
# particles than coordinates. In more dimensions scales come from the curvature, or are diagonal. A
# quarter of them is held out.
_LEAST_PARTICLES, _PARTICLES_PER_COORDINATE, _IN_MANY_DIMENSIONS = 320, 5, 512


def survey(
    session: Session, prior: RunCandidate, transition: Transition, seed: np.random.SeedSequence
) -> PilotedRun:
    """Return the run from the prior with a survey as its pilot."""
    ndim = prior.draw_reference(seed, 1).shape[1]
    particles = max(_LEAST_PARTICLES, _PARTICLES_PER_COORDINATE * ndim)
    if ndim > MAX_DENSE:
        particles = _IN_MANY_DIMENSIONS
    return prior.with_pilot(session.survey(prior, transition, seed, particles))
