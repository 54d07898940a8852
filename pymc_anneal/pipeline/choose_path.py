"""Choice of the path: the objects behind the strings of ``path=``.

"auto" compares the predicted costs of the geometric and the moment-averaged
path, the latter fitted within a share of the cost of the geometric run:

    cost = (sum_k sqrt(D_k tau_k c_k))^2

gradients per particle for a variance of one, so that both the length of a path and the mixing
along it count.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.adaptation.moment_matching import MomentMatchingError
from pymc_anneal.adaptation.pilot import Pilot
from pymc_anneal.adaptation.plan import NEAR, planned_variance
from pymc_anneal.base.arguments import resolve
from pymc_anneal.base.contracts import Path
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.pipeline.moment_averaged_path import MomentAveragedPath
from pymc_anneal.pipeline.path_choice import PathChoice, PathRequest
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.target import Choice, PilotedRun, RunCandidate

PathName: TypeAlias = Literal["geometric", "moment", "auto"]

# Share of the cost of a geometric run that "auto" may spend on the second path; empirical: the
# ratio to the better path stays below 1.2 on the exact problems.
_SHARE = 0.25
# Smallest budget for fitting a spline, as a fraction of the pilot's evaluations.
_MIN_FIT = 0.2
# Largest cost of the spline's pilot, as a multiple of the geometric one's.
_MAX_PILOT = 1.5


@dataclass(frozen=True)
class GeometricChoice:
    """The geometric path, as it is."""

    def build(self, request: PathRequest) -> Choice:
        """Return the candidate itself."""
        return Choice(request.candidate, {})


@dataclass(frozen=True)
class GivenPath:
    """A path object of the user, from the prior to the posterior."""

    path: Path

    def build(self, request: PathRequest) -> Choice:
        """Return the run along the path."""
        first = request.candidate
        return Choice(RunCandidate(first.reference, first.draw_reference, self.path), {})


@dataclass(frozen=True)
class AutoPath:
    """The geometric or the moment-averaged path, whichever is predicted to be cheaper."""

    alternative: MomentAveragedPath = field(default_factory=MomentAveragedPath)

    def build(self, request: PathRequest) -> Choice:
        """Run the pilots of both, within a share of the cost of the geometric run.

        From a reference so near that a few steps are enough, no path is shorter.
        """
        if request.candidate.one_step_variance <= NEAR:
            return Choice(request.candidate, {})
        geometric = request.with_pilot()
        try:
            moment = self._alternative(request, geometric)
        except MomentMatchingError as error:
            return Choice(geometric, {"geometric": geometric}, str(error))
        chosen = moment if moment.cost < geometric.cost else geometric
        return Choice(chosen, {"geometric": geometric, "moment": moment})

    def _alternative(self, request: PathRequest, geometric: PilotedRun) -> RunCandidate:
        session, pilot = request.session, geometric.pilot
        allowance = _SHARE * (pilot.evaluations + _counted_evaluations(session, pilot))
        fit_budget = allowance - pilot.evaluations  # the rest is for the spline's own pilot
        if fit_budget < _MIN_FIT * pilot.evaluations:
            raise MomentMatchingError("the geometric run is too short for another to pay")
        seed, pilot_budget = session.seeds.path.spawn(1)[0], _MAX_PILOT * pilot.evaluations
        piloted = request._replace(candidate=geometric)
        return self.alternative.fit(piloted, seed, fit_budget, pilot_budget)


PATHS: Mapping[str, Callable[[], PathChoice]] = {
    "geometric": GeometricChoice,
    "moment": MomentAveragedPath,
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


def _counted_evaluations(session: Session, pilot: Pilot) -> float:
    """Return a lower bound on the evaluations of the counted run along the path of a pilot.

    Long autocorrelation times are poorly estimated: they are capped at 1.
    """
    settings = session.settings
    particles = settings.draws * settings.chains
    if settings.fixed_steps is not None:
        return settings.fixed_steps * float(pilot.cost.mean()) * particles
    cost = np.sqrt(pilot.discrepancy * np.minimum(pilot.tau, 1.0) * pilot.cost).sum() ** 2
    return float(cost) / planned_variance(particles, settings.target_mcse) * particles
