"""Choice of the path: the objects behind the strings of ``path=``.

Every choice starts from a candidate on the geometric path from its reference, and returns one on
the path it builds. "auto" compares the predicted costs of the geometric and the moment-averaged
path, the latter fitted within a share of the cost of the geometric run:

    cost = (sum_k sqrt(D_k tau_k c_k))^2

gradients per particle for a variance of one, so that both the length of a path and the mixing
along it count.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.adaptation.moment_matching import MomentMatchingError, fit_moment_spline
from pymc_anneal.adaptation.pilot import Pilot, PilotTooLongError
from pymc_anneal.adaptation.plan import TARGET_VARIANCE
from pymc_anneal.base.arguments import resolve
from pymc_anneal.base.contracts import Path, Transition
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.paths.q_path import QAveragePath
from pymc_anneal.paths.tilted_prior import STATISTICS, Statistics
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.target import Choice, RunCandidate

PathName: TypeAlias = Literal["geometric", "moment", "q", "auto"]

# Share of the cost of a geometric run that "auto" may spend on the second path; empirical: the
# ratio to the better path stays below 1.2 on the exact problems.
_SHARE = 0.25
# Smallest budget for fitting a spline, as a fraction of the pilot's evaluations.
_MIN_FIT = 0.2
# Largest cost of the spline's pilot, as a multiple of the geometric one's.
_MAX_PILOT = 1.5
# Standard errors by which the pilots of two paths may differ.
_MAX_DISAGREEMENT = 4.0


class PathChoice(Protocol):
    """Builds the path of a run."""

    def build(
        self,
        session: Session,
        candidate: RunCandidate,
        transition: Transition,
        moments_from: np.ndarray | None,
    ) -> Choice:
        """Return the candidate on its path.

        Parameters
        ----------
        session
            Settings, seeds.
        candidate
            The run along the geometric path.
        transition
            The transition, for pilots and fits.
        moments_from : ndarray, shape (n, d), or None
            Draws of the posterior; None: the particles of a pilot.
        """


@dataclass(frozen=True)
class GeometricChoice:
    """The geometric path, as it is."""

    def build(
        self,
        session: Session,
        candidate: RunCandidate,
        transition: Transition,
        moments_from: np.ndarray | None,
    ) -> Choice:
        """Return the candidate itself."""
        return Choice(candidate, {})


@dataclass(frozen=True)
class GivenPath:
    """A path object of the user, from the prior to the posterior."""

    path: Path

    def build(
        self,
        session: Session,
        candidate: RunCandidate,
        transition: Transition,
        moments_from: np.ndarray | None,
    ) -> Choice:
        """Return the run along the path."""
        return Choice(RunCandidate(candidate.reference, candidate.draw_reference, self.path), {})


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

    def build(
        self,
        session: Session,
        candidate: RunCandidate,
        transition: Transition,
        moments_from: np.ndarray | None,
    ) -> Choice:
        """Fit the spline, or raise with the reason if it cannot be fitted."""
        if moments_from is None:
            candidate = with_pilot(session, candidate, transition)
        try:
            fitted = self.fit(session, candidate, transition, moments_from, session.seeds.path)
        except MomentMatchingError as error:
            raise ValueError(
                f"There is no moment-averaged path for this model: {error}. Use path='geometric', "
                "or path='auto', which takes the better of the two."
            ) from error
        return Choice(fitted, {})

    def fit(
        self,
        session: Session,
        candidate: RunCandidate,
        transition: Transition,
        moments_from: np.ndarray | None,
        seed: np.random.SeedSequence,
        fit_budget: float = np.inf,
        pilot_budget: float = np.inf,
    ) -> RunCandidate:
        """Fit the spline and run the pilot along it.

        Parameters
        ----------
        session, candidate, transition, moments_from
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
        spline = self._spline(candidate, transition, moments_from, seed_fit, fit_budget)
        try:
            pilot = session.pilot(spline, transition, seed_pilot, pilot_budget)
        except PilotTooLongError as error:
            spent = spline.fit_evaluations + error.evaluations
            raise MomentMatchingError(str(error), spent) from error
        for member in candidate.lineage:
            if member.pilot is not None:
                _check_agreement(pilot, member.pilot, spline.fit_evaluations + pilot.evaluations)
        return RunCandidate(
            spline.reference,
            spline.draw_reference,
            spline.path,
            pilot=pilot,
            built_from=candidate,
            fit_evaluations=spline.fit_evaluations,
        )

    def _spline(
        self,
        candidate: RunCandidate,
        transition: Transition,
        moments_from: np.ndarray | None,
        seed: np.random.SeedSequence,
        max_evaluations: float,
    ) -> RunCandidate:
        seed_first, seed_fit = seed.spawn(2)
        if moments_from is None:
            assert candidate.pilot is not None  # there is one unless there are posterior draws
            moments_from = candidate.pilot.position
        spline = fit_moment_spline(
            candidate.path,
            transition,
            candidate.draw_reference(seed_first, len(moments_from)),
            moments_from,
            seed_fit,
            statistics=self.statistics,
            max_evaluations=max_evaluations,
        )
        return RunCandidate(
            candidate.reference,
            candidate.draw_reference,
            spline.path,
            built_from=candidate,
            fit_evaluations=spline.evaluations,
        )


def _check_agreement(pilot: Pilot, other: Pilot, spent: int) -> None:
    """Raise if the pilots of two paths disagree by more than their errors."""
    spread = np.hypot(pilot.log_z_mcse, other.log_z_mcse)
    if abs(pilot.log_z - other.log_z) > _MAX_DISAGREEMENT * spread:
        raise MomentMatchingError(
            "transitions do not mix along it: the pilots of both paths disagree, "
            f"{pilot.log_z:.2f} and {other.log_z:.2f}",
            spent,
        )


@dataclass(frozen=True)
class QPath:
    """Path of q-averages, at the level of the pilot's evidence.

    Parameters
    ----------
    q : float, optional
        Below 1. Default: such that ``(1 - q) l`` spans about one between prior and posterior.

    References
    ----------
    Brekelmans et al. (2020), Annealed importance sampling with q-paths, eq. 9.
    """

    q: float | None = None

    def __post_init__(self) -> None:
        if self.q is not None and not self.q < 1:
            raise ValueError(f"`q` is {self.q}, expected a number below 1.")

    def build(
        self,
        session: Session,
        candidate: RunCandidate,
        transition: Transition,
        moments_from: np.ndarray | None,
    ) -> Choice:
        """Set the level and q from the pilot of the geometric path."""
        candidate = with_pilot(session, candidate, transition)
        pilot, base = candidate.pilot, candidate.path
        assert pilot is not None
        seed_first = session.seeds.path.spawn(1)[0]
        first = candidate.draw_reference(seed_first, len(pilot.position))
        q = self.q
        if q is None:
            q = 1 - 1 / max(_log_ratio_range(base, first, pilot.position), 1.0)
        path = QAveragePath(base, np.asarray(q), np.asarray(pilot.log_z))
        built = RunCandidate(
            candidate.reference, candidate.draw_reference, path, built_from=candidate
        )
        return Choice(built, {})


@dataclass(frozen=True)
class AutoPath:
    """The geometric or the moment-averaged path, whichever is predicted to be cheaper."""

    alternative: MomentAveragedPath = field(default_factory=MomentAveragedPath)

    def build(
        self,
        session: Session,
        candidate: RunCandidate,
        transition: Transition,
        moments_from: np.ndarray | None,
    ) -> Choice:
        """Run the pilots of both, within a share of the cost of the geometric run."""
        geometric = with_pilot(session, candidate, transition)
        try:
            moment = self._alternative(session, geometric, transition, moments_from)
        except MomentMatchingError as error:
            return Choice(geometric, {"geometric": geometric}, str(error), error.evaluations)
        chosen = moment if moment.cost < geometric.cost else geometric
        return Choice(chosen, {"geometric": geometric, "moment": moment})

    def _alternative(
        self,
        session: Session,
        geometric: RunCandidate,
        transition: Transition,
        moments_from: np.ndarray | None,
    ) -> RunCandidate:
        pilot = geometric.pilot
        assert pilot is not None
        allowance = _SHARE * (pilot.evaluations + _counted_evaluations(session, pilot))
        fit_budget = allowance - pilot.evaluations  # the rest is for the spline's own pilot
        if fit_budget < _MIN_FIT * pilot.evaluations:
            raise MomentMatchingError("the geometric run is too short for another to pay")
        seed, pilot_budget = session.seeds.path.spawn(1)[0], _MAX_PILOT * pilot.evaluations
        return self.alternative.fit(
            session, geometric, transition, moments_from, seed, fit_budget, pilot_budget
        )


PATHS: Mapping[str, Callable[[], PathChoice]] = {
    "geometric": GeometricChoice,
    "moment": MomentAveragedPath,
    "q": QPath,
    "auto": AutoPath,
}


def resolve_path(path: PathName | PathChoice | Path) -> PathChoice:
    """Return the choice behind a name, a choice itself, or one that takes a path as given.

    Raises
    ------
    ValueError
        The name is unknown.
    TypeError
        The object has not the methods of a path.
    """
    if "build" in dir(path):
        return cast(PathChoice, path)
    if isinstance(path, str):
        return resolve(path, PATHS, "path", PathChoice)
    return GivenPath(cast(Path, resolve(path, PATHS, "path", Path)))


@double_precision
def check_ends(path: Path, compiled: CompiledModel) -> None:
    """Raise if a path does not lead from the prior to prior times likelihood.

    Parameters
    ----------
    path
        A path object of the user.
    compiled
        The model; both are compared at draws of its prior.

    Raises
    ------
    ValueError
        The densities differ at one end.
    """
    position = jnp.asarray(compiled.sample_prior(np.random.SeedSequence(0), 16))
    terms, own = path.evaluate(position), jax.vmap(compiled.log_terms)(position)
    for beta, wanted, name in (
        (0.0, own.log_prior, "the log prior"),
        (1.0, own.log_posterior, "log prior + log likelihood"),
    ):
        found = np.asarray(path.log_density(terms, beta))
        off = ~np.isclose(found, wanted, rtol=1e-8, atol=1e-8, equal_nan=True)
        if off.any():
            i = int(off.argmax())
            raise ValueError(
                f"`path` is {found[i]:.8g} at beta = {beta:g} and x = {position[i]}, where "
                f"{name} is {wanted[i]:.8g}. A path has to lead from one to the other "
                "(in unconstrained space, as `compile_model(model).log_terms` has them)."
            )


def with_pilot(session: Session, candidate: RunCandidate, transition: Transition) -> RunCandidate:
    """Return the candidate with its pilot: the one that a geometric run would have."""
    if candidate.pilot is not None:
        return candidate
    pilot = session.pilot(candidate, transition, session.seeds.pilot)
    return RunCandidate(candidate.reference, candidate.draw_reference, candidate.path, pilot=pilot)


def _counted_evaluations(session: Session, pilot: Pilot) -> float:
    """Return a lower bound on the evaluations of the counted run along the path of a pilot.

    Long autocorrelation times are poorly estimated: they are capped at 1.
    """
    settings = session.settings
    particles = settings.draws * settings.chains
    if settings.fixed_steps is not None:
        return settings.fixed_steps * float(pilot.cost.mean()) * particles
    cost = np.sqrt(pilot.discrepancy * np.minimum(pilot.tau, 1.0) * pilot.cost).sum() ** 2
    return float(cost) / TARGET_VARIANCE * particles


@double_precision
def _log_ratio_range(base: Path, first: np.ndarray, last: np.ndarray) -> float:
    """Return the range of the log ratio of target to reference over most draws of both ends."""
    ends = [np.asarray(base.velocity(base.evaluate(x), 0.0)) for x in (first, last)]
    low, high = np.quantile(ends[0][np.isfinite(ends[0])], 0.1), np.quantile(ends[1], 0.9)
    return float(abs(high - low))
