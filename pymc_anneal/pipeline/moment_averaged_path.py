"""Choice of the moment-averaged path: fit the spline, run its pilot, compare the pilots."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from pymc_anneal.adaptation.moment_matching import MomentMatchingError, fit_moment_spline
from pymc_anneal.adaptation.pilot import Pilot, PilotTooLongError
from pymc_anneal.paths.tilted_prior import STATISTICS, Statistics
from pymc_anneal.pipeline.path_choice import PathRequest
from pymc_anneal.pipeline.target import Choice, RunCandidate

# Standard errors by which the pilots of two paths may differ.
_MAX_DISAGREEMENT = 4.0


@dataclass(frozen=True)
class MomentAveragedPath:
    """Moment-averaged path: a spline through the tilted prior.

    Parameters
    ----------
    statistics : {"linear", "squares", "products"}
        Statistics whose moments are averaged beside the log likelihood: the coordinates; their
        squares too; all their products too. More statistics can make the path shorter; if the
        likelihood is far from quadratic they can also split it into modes between which no
        transition moves.

    References
    ----------
    Grosse, Maddison & Salakhutdinov (2013), Annealing between distributions by averaging moments,
    section 4.
    """

    statistics: Statistics = "linear"

    def __post_init__(self) -> None:
        if self.statistics not in STATISTICS:
            raise ValueError(
                f"Unknown `statistics` {self.statistics!r}; expected one of {list(STATISTICS)}."
            )

    def build(self, request: PathRequest) -> Choice:
        """Fit the spline, or raise with the reason if it cannot be fitted."""
        if request.moments_from is None:
            request = request._replace(candidate=request.with_pilot())
        try:
            fitted = self.fit(request, request.session.seeds.path)
        except MomentMatchingError as error:
            raise ValueError(
                f"There is no moment-averaged path for this model: {error}. Use path='geometric', "
                "or path='auto', which takes the better of the two."
            ) from error
        return Choice(fitted, {})

    def fit(
        self,
        request: PathRequest,
        seed: np.random.SeedSequence,
        fit_budget: float = np.inf,
        pilot_budget: float = np.inf,
    ) -> RunCandidate:
        """Fit the spline and run the pilot along it.

        Parameters
        ----------
        request
            As for `build`; the candidate has a pilot unless there are draws of the posterior.
        seed
            Source of randomness.
        fit_budget, pilot_budget
            Evaluations for the spline and for its pilot.

        Raises
        ------
        MomentMatchingError
            The moments cannot be matched, a budget is exceeded, or the pilots of both paths
            disagree.
        """
        seed_fit, seed_pilot = seed.spawn(2)
        spline = self._spline(request, seed_fit, fit_budget)
        try:
            pilot = request.session.pilot(spline, request.transition, seed_pilot, pilot_budget)
        except PilotTooLongError as error:
            raise MomentMatchingError(str(error)) from error
        for member in request.candidate.lineage:
            if member.pilot is not None:
                _check_agreement(pilot, member.pilot)
        return spline.with_pilot(pilot)

    def _spline(
        self, request: PathRequest, seed: np.random.SeedSequence, max_evaluations: float
    ) -> RunCandidate:
        session, candidate, transition, moments_from = request
        seed_first, seed_fit = seed.spawn(2)
        if moments_from is None:
            assert candidate.pilot is not None  # there is one unless there are posterior draws
            moments_from = candidate.pilot.position
        fit = partial(
            fit_moment_spline,
            candidate.path,
            transition,
            candidate.draw_reference(seed_first, len(moments_from)),
            moments_from,
            seed_fit,
            statistics=self.statistics,
            max_evaluations=max_evaluations,
        )
        path, reference = session.meter.run("Moments", fit).path, candidate.reference
        return RunCandidate(reference, candidate.draw_reference, path, built_from=candidate)


def _check_agreement(pilot: Pilot, other: Pilot) -> None:
    """Raise if the pilots of two paths disagree by more than their errors."""
    spread = np.hypot(pilot.log_z_mcse, other.log_z_mcse)
    if abs(pilot.log_z - other.log_z) > _MAX_DISAGREEMENT * spread:
        raise MomentMatchingError(
            "transitions do not mix along it: the pilots of both paths disagree, "
            f"{pilot.log_z:.2f} and {other.log_z:.2f}"
        )
