"""Which path a run takes: what the short strings of ``path`` stand for.

A route lays out the path of a run that is about to begin at its reference: the geometric path as it
is, others from what the pilot has found along it. "auto" takes the route whose counted run is
predicted to be cheaper, with a spline laid out within a share of what the geometric run would cost:

    cost = (sum_k sqrt(D_k tau_k c_k))^2

gradients for each particle and a variance of one, so that both the length of a path and the mixing
along it count.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.adaptation.moment_matching import MomentMatchingError, fit_moment_spline
from pymc_anneal.adaptation.pilot import Pilot, PilotTooLongError
from pymc_anneal.adaptation.plan import TARGET_VARIANCE, predicted_cost
from pymc_anneal.base.arguments import resolve
from pymc_anneal.base.contracts import Path, Transition
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.paths.q_path import QAveragePath
from pymc_anneal.paths.tilted_prior import STATISTICS
from pymc_anneal.pipeline.choose_reference import Start
from pymc_anneal.pipeline.rounds import survey

_SHARE = 0.25  # of the cost of a geometric run: what "auto" may spend to better it


_DISAGREEMENT = 4.0  # standard errors between the pilots of two paths


_LEAST = 0.2  # of a pilot: fewer evaluations than that lay out no spline


class Route(Protocol):
    """Lays out a path."""

    def lay_out(
        self,
        start: Start,
        kernel: Transition,
        posterior: np.ndarray | None,
        seed: np.random.SeedSequence,
    ) -> Start:
        """Return the start with its path; draws of the posterior, if there are, flattened."""


@dataclass(frozen=True)
class Geometric:
    """The geometric path."""

    def lay_out(self, start: Start, kernel, posterior, seed) -> Start:
        """Return the start as it is."""
        return start


@dataclass(frozen=True)
class MomentAveragedPath:
    """Moment-averaged path: a spline through the tilted prior (Grosse et al. 2013).

    Parameters
    ----------
    statistics
        Whose moments are averaged, beside the log likelihood: "linear", the coordinates;
        "squares", their squares too; "products", all their products. More statistics can make
        the path shorter; where the likelihood is far from quadratic they can also part it into
        modes between which no transition moves.
    """

    statistics: str = "linear"

    def __post_init__(self):
        if self.statistics not in STATISTICS:
            raise ValueError(
                f"Unknown `statistics` {self.statistics!r}; expected one of {list(STATISTICS)}."
            )

    def lay_out(self, start: Start, kernel, posterior, seed) -> Start:
        """Fit the spline, or raise with the reason why it cannot be fitted."""
        if posterior is None:
            start = _surveyed(start, kernel)
        try:
            return self.surveyed(start, kernel, posterior, seed)
        except MomentMatchingError as error:
            raise ValueError(
                f"There is no moment-averaged path for this model: {error}. Use path='geometric', "
                "or path='auto', which takes the better of the two."
            ) from error

    def surveyed(
        self,
        start: Start,
        kernel: Transition,
        posterior: np.ndarray | None,
        seed: np.random.SeedSequence,
        allowed: tuple[float, float] = (np.inf, np.inf),
    ) -> Start:
        """Return the start on the spline, with its pilot.

        Parameters
        ----------
        start
            On the geometric path, with a pilot unless there are draws of the posterior.
        kernel
            The transition.
        posterior
            Draws of the posterior; default: the pilot's particles.
        seed
            Source of randomness.
        allowed
            Evaluations for the spline and for its pilot.

        Raises
        ------
        MomentMatchingError
            The moments cannot be matched, the spline's pilot takes more evaluations than allowed,
            or the pilots of both paths disagree.
        """
        seed_fit, seed_survey = seed.spawn(2)
        laid = self._fitted(start, kernel, posterior, seed_fit, allowed[0])
        spent = laid.evaluations - start.evaluations
        try:
            found = survey(laid.session, kernel, seed_survey, allowed[1])
        except PilotTooLongError as error:
            raise MomentMatchingError(str(error), spent + error.evaluations) from error
        for pilot in laid.earlier:
            spread = np.hypot(found.log_z_mcse, pilot.log_z_mcse)
            if abs(found.log_z - pilot.log_z) > _DISAGREEMENT * spread:
                raise MomentMatchingError(
                    "transitions do not mix along it: the pilots of both paths disagree, "
                    f"{found.log_z:.2f} and {pilot.log_z:.2f}",
                    spent + found.evaluations,
                )
        return replace(laid, pilot=found)

    def _fitted(
        self,
        start: Start,
        kernel: Transition,
        posterior: np.ndarray | None,
        seed: np.random.SeedSequence,
        max_evaluations: float,
    ) -> Start:
        seed_first, seed_fit = seed.spawn(2)
        if posterior is None:
            assert start.pilot is not None  # whoever has no posterior draws has surveyed
            posterior = start.pilot.position
        spline = fit_moment_spline(
            start.session.path,
            kernel,
            start.session.draw_reference(seed_first, len(posterior)),
            posterior,
            seed_fit,
            statistics=self.statistics,
            max_evaluations=max_evaluations,
        )
        return _onto(_spent(start, spline.evaluations), spline.path)


@dataclass(frozen=True)
class QPath:
    """Path of q-averages, at the level of the pilot's evidence.

    Parameters
    ----------
    q
        Below 1. Default: such that ``(1 - q) l`` spans about one between prior and posterior.
    """

    q: float | None = None

    def __post_init__(self):
        if self.q is not None and not self.q < 1:
            raise ValueError(f"`q` is {self.q}, expected a number below 1.")

    def lay_out(self, start: Start, kernel, posterior, seed) -> Start:
        """Set the level and q from the pilot."""
        start = _surveyed(start, kernel)
        pilot, base = start.pilot, start.session.path
        assert pilot is not None
        first = start.session.draw_reference(seed.spawn(1)[0], len(pilot.position))
        q = self.q
        if q is None:
            q = 1 - 1 / max(_span(base, first, pilot.position), 1.0)
        return _onto(start, QAveragePath(base, np.asarray(q), np.asarray(pilot.log_z)))


@dataclass(frozen=True)
class Cheapest:
    """The geometric or the moment-averaged path, whichever is predicted to be cheaper."""

    alternative: MomentAveragedPath = MomentAveragedPath()

    def lay_out(self, start: Start, kernel, posterior, seed) -> Start:
        """Survey both, within a share of the cost of the geometric run."""
        start = _surveyed(start, kernel)
        pilot = start.pilot
        assert pilot is not None
        costs = {"geometric": predicted_cost(pilot)}
        try:
            other = self._alternative(start, pilot, kernel, posterior, seed.spawn(1)[0])
        except MomentMatchingError as error:
            refused = replace(start, path_costs=costs, refused=str(error))
            return _spent(refused, error.evaluations)
        assert other.pilot is not None
        costs["moment"] = predicted_cost(other.pilot)
        if costs["moment"] < costs["geometric"]:
            return replace(other, path_costs=costs)
        spent = other.evaluations + other.pilot.evaluations
        return replace(start, path_costs=costs, evaluations=spent)

    def _alternative(self, start: Start, pilot: Pilot, kernel, posterior, seed) -> Start:
        allowance = _SHARE * (pilot.evaluations + _counted(start, pilot))
        left = allowance - pilot.evaluations  # the spline's own pilot
        if left < _LEAST * pilot.evaluations:
            raise MomentMatchingError("the geometric run is too short for another to pay")
        allowed = left, 1.5 * pilot.evaluations
        return self.alternative.surveyed(start, kernel, posterior, seed, allowed)


ROUTES: Mapping[str, Callable[[], Route]] = {
    "geometric": Geometric,
    "moment": MomentAveragedPath,
    "q": QPath,
    "auto": Cheapest,
}


def check_ends(path: Path, compiled: CompiledModel, seed: np.random.SeedSequence) -> None:
    """Raise where a path does not lead from the prior to prior times likelihood.

    Parameters
    ----------
    path
        Passed by the user.
    compiled
        The model; both are compared at draws of its prior.
    seed
        Of the draws.
    """
    with jax.enable_x64(True):
        position = jnp.asarray(compiled.sample_prior(seed, 16))
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


def _surveyed(start: Start, kernel: Transition) -> Start:
    """Return the start with its pilot: the very one that a geometric run would have."""
    if start.pilot is not None:
        return start
    return replace(start, pilot=survey(start.session, kernel, start.session.pilot_seed))


def _spent(start: Start, evaluations: int) -> Start:
    return replace(start, evaluations=start.evaluations + evaluations)


def _onto(start: Start, path: Path) -> Start:
    """Return the start on another path, to be surveyed."""
    earlier = start.earlier if start.pilot is None else (*start.earlier, start.pilot)
    return replace(start, session=replace(start.session, path=path), pilot=None, earlier=earlier)


def _counted(start: Start, pilot: Pilot) -> float:
    """Predict the evaluations of the counted run on the path of a pilot, at the least.

    A long autocorrelation time is a rough one; nothing is spent on the strength of it.
    """
    options = start.session.options
    particles = options.draws * options.chains
    if options.fixed_steps is not None:
        return options.fixed_steps * float(pilot.cost.mean()) * particles
    mixing = replace(pilot, tau=np.minimum(pilot.tau, 1.0))
    return predicted_cost(mixing) / TARGET_VARIANCE * particles


def _span(base: Path, first: np.ndarray, last: np.ndarray) -> float:
    """Range of the log ratio of target to reference over most draws of both."""
    with jax.enable_x64(True):
        ends = [np.asarray(base.velocity(base.evaluate(x), 0.0)) for x in (first, last)]
    low, high = np.quantile(ends[0][np.isfinite(ends[0])], 0.1), np.quantile(ends[1], 0.9)
    return float(abs(high - low))


def resolve_route(path: Any) -> Route | None:
    """Return the route that a string or a route object stands for, None for a path object."""
    named = isinstance(path, str) or hasattr(path, "lay_out")
    return resolve(path, ROUTES, "path", Route) if named else None
