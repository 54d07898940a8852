"""Annealed optimisation: particles cooled below the temperature of the posterior.

With ``p`` the posterior density of the model's own (constrained) parameters, as
:func:`pymc.find_MAP` maximises it, and ``J`` the Jacobian of the transforms, the path

    log f_beta(x) = (1 - beta) log(p(x) J(x)) + beta C log p(x)

leads from the posterior, where a pilot from the prior ended, to ``p^C``, ``C`` large, whose mass is
concentrated on the highest mode (Kirkpatrick, Gelatt & Vecchi 1983). A second pilot finds the
cooling schedule, and its particles, resampled on the way, concentrate on the highest mode. The
particles of the first pilot are then cooled once more without resampling: the share that ends at
the mode is the share of the posterior in its basin. ``2 C (log p(x*) - log p(x))`` has about a
chi-squared distribution with ``d`` degrees of freedom for particles at the mode ``x*``; others lie
far beyond it.
"""

import os

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm

from scipy.stats import chi2

from pymc_anneal.adaptation.pilot import Pilot
from pymc_anneal.base.arguments import check_count
from pymc_anneal.base.contracts import LogTerms, Scalar, Transition
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed
from pymc_anneal.execution.blocks import make_blocks
from pymc_anneal.execution.checkpoint import Checkpoint
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.derivatives import SMOOTH
from pymc_anneal.model.misplaced_model import check_not_model
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.pipeline.choose_transition import TransitionName, choose_transition
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.session import Session, open_session
from pymc_anneal.pipeline.settings import Settings
from pymc_anneal.pipeline.target import RunCandidate
from pymc_anneal.posthoc.maximise import maximise
from pymc_anneal.posthoc.point_density import compile_point_density

# Quantile of the chi-squared distribution up to which particles belong to the mode.
_LEVEL = 0.999
# Factor on the chi-squared threshold for particles that are not fully cooled.
_COOLING_FACTOR = 4.0
# Cooling steps for each step of the pilot: without resampling the cooling has to be slower.
_SLOWDOWN = 4
# Moves at the last power; empirical: after 20, a third of the particles of a random walk lay near
# their mode, but not within its quadratic approximation.
_LAST_MOVES = 100
# Tolerance for rounding, in nats, added to the spread that the temperature explains.
_ROUNDING = 1e-6

LogDensity = Callable[[jax.Array], jax.Array]


@dataclass(frozen=True)
class MAPEstimate:
    """The highest mode that was found.

    Attributes
    ----------
    point : dict of str to ndarray
        Values of the model's variables and deterministics there.
    log_posterior : float
        Log prior plus log likelihood of the constrained parameters, without Jacobians, in nats.
    agreement : float
        Share of the particles, draws of the posterior, that ended at this mode when they were
        cooled independently. If it is small, other modes hold most of the posterior's mass, and
        there may be a higher one: run again with more draws.
    draws : int
        Number of particles.
    position : ndarray, shape (d,)
        The mode in the unconstrained space.
    """

    point: dict[str, np.ndarray]
    log_posterior: float
    agreement: float
    draws: int
    position: np.ndarray = field(repr=False)

    def __repr__(self) -> str:
        """Return a summary of a few lines."""
        values = ", ".join(
            f"{k} = {np.array2string(v, precision=4)}" for k, v in self.point.items()
        )
        return (
            f"log posterior {self.log_posterior:.4f} nats, reached by {self.agreement:.0%} of "
            f"{self.draws} particles\n{values}"
        )


class CoolingTerms(NamedTuple):
    """Log densities at both ends of the cooling path, shape (n,) each."""

    log_start: jax.Array
    log_point: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CoolingPath:
    """Path from the posterior to a power of the density that is to be maximised.

    Parameters
    ----------
    log_terms
        As for :class:`GeometricPath`.
    log_point
        JAX function of one position to the log density that is maximised.
    power : float
        ``C``.
    """

    log_terms: Callable[[jax.Array], LogTerms] = field(metadata={"static": True})
    log_point: LogDensity = field(metadata={"static": True})
    power: Scalar

    def evaluate(self, position: jax.Array) -> CoolingTerms:
        """Return both log densities, shape ``(n,)`` each, at ``(n, d)`` positions."""
        start = jax.vmap(self.log_terms)(position).log_posterior
        return CoolingTerms(start, jax.vmap(self.log_point)(position))

    def log_density(self, terms: CoolingTerms, beta: Scalar) -> jax.Array:
        """Return ``(1 - beta) log_start + beta C log_point``, shape ``(n,)``."""
        start = jnp.where(beta == 1, 0.0, (1 - beta) * terms.log_start)
        return start + jnp.where(beta == 0, 0.0, beta * self.power * terms.log_point)

    def log_ratio(self, terms: CoolingTerms, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``(stop - start)`` times the velocity, shape ``(n,)``."""
        return jnp.multiply(stop - start, self.velocity(terms, stop))

    def velocity(self, terms: CoolingTerms, beta: Scalar) -> jax.Array:
        """Return ``C log_point - log_start``, shape ``(n,)``."""
        return jnp.subtract(self.power * terms.log_point, terms.log_start)


@double_precision
def find_map(
    draws: int = 500,
    *,
    power: float = 1e4,
    transition: TransitionName | Transition = "auto",
    cores: int | None = None,
    block_size: int | None = None,
    executor: Executor | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    model: pm.Model | CompiledModel | None = None,
) -> MAPEstimate:
    """Find the highest mode of the posterior by annealing.

    Particles follow the likelihood from the prior to the posterior and are then cooled: the
    posterior density is raised to a power far above one. The best of them is polished by
    L-BFGS-B. Unlike a search from one start, this does not end at the nearest mode, and it reports
    how many particles end at the mode found.

    Parameters
    ----------
    draws : int
        Number of particles, rounded up to whole blocks.
    power : float
        Last power of the posterior density, above 1.
    transition, cores, block_size, executor, checkpoint, random_seed, progressbar
        As for :func:`sample_ais`.
    model : pymc.Model or CompiledModel, optional
        The model, or the result of :func:`compile_model`. Default: the model on the context
        stack.

    Returns
    -------
    MAPEstimate
        Of the density that :func:`pymc.find_MAP` maximises: of the constrained parameters.

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        An argument makes no sense, or the model cannot be annealed (see :func:`compile_model`).

    References
    ----------
    Kirkpatrick, Gelatt & Vecchi (1983), Optimization by simulated annealing.

    Examples
    --------
    >>> pymc_anneal.find_map(model=model)
    """
    check_not_model("draws", draws)
    check_count("draws", draws)
    if not 1 < power < np.inf:
        raise ValueError(f"`power` is {power}, expected a number above 1.")
    settings = Settings(draws=draws, chains=1, steps="auto", cores=cores, block_size=block_size)
    target = ModelTarget(as_compiled(model))
    target.compiled.derivatives.require("find_map", SMOOTH)
    kernel = choose_transition(transition, target.compiled)
    log_point = compile_point_density(target.compiled)
    with open_session(
        target,
        settings,
        random_seed=random_seed,
        executor=executor,
        checkpoint=checkpoint,
        progressbar=progressbar,
        choices={"transition": kernel, "power": power},
    ) as session:
        cooled = _cool(session, target, log_point, kernel, float(power))
    return _estimate(target.compiled, log_point, cooled, power)


class _Cooled(NamedTuple):
    """Particles at the last power, shape (draws, d): resampled on the way, and not."""

    resampled: np.ndarray
    independent: np.ndarray


def _cool(
    session: Session,
    target: ModelTarget,
    log_point: LogDensity,
    kernel: Transition,
    power: float,
) -> _Cooled:
    """Run the pilot to the posterior, the pilot of the cooling, and the cooling itself."""
    seeds, m = session.seeds, session.settings.block_draws
    count = m * -(-session.settings.draws // m)  # whole blocks

    def draw_prior(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        return target.compiled.sample_prior(seed, max(draws, count))

    prior = replace(target.candidate(), draw_reference=draw_prior)
    posterior = session.pilot(prior, kernel, seeds.pilot).position[:count]
    path = CoolingPath(target.compiled.log_terms, log_point, power)
    cold = RunCandidate("posterior", lambda seed, n: posterior, path)
    pilot = session.pilot(cold, kernel, seeds.path)
    start, betas = posterior[None], _cooling_schedule(pilot)
    blocks = make_blocks(path, pilot.transition, betas, start, m, seeds.counted)
    return _Cooled(pilot.position, session.anneal("Cooling", blocks).position[0])


def _cooling_schedule(pilot: Pilot) -> np.ndarray:
    """Return the pilot's temperatures with steps in between, and moves at the last one."""
    knots = np.arange(len(pilot.betas)) * _SLOWDOWN
    slow = np.interp(np.arange(knots[-1] + 1), knots, pilot.betas)
    return np.concatenate([slow, np.ones(_LAST_MOVES)])


@double_precision
def _estimate(
    compiled: CompiledModel, log_point: LogDensity, cooled: _Cooled, power: float
) -> MAPEstimate:
    """Polish the best particle, and count those that ended at the same mode."""
    values = jax.jit(jax.vmap(log_point))
    found = np.concatenate(cooled)
    first = found[np.nanargmax(np.asarray(values(jnp.asarray(found))))]
    real = _real_coordinates(compiled)
    best = _polish(log_point, first, real)
    highest = float(log_point(jnp.asarray(best)))
    height = highest - np.asarray(values(jnp.asarray(cooled.independent)))
    depth = _quadratic_depth(log_point, best, cooled.independent, real)
    # By height and by place: modes may be equally high.
    quantile = chi2.ppf(_LEVEL, max(compiled.ndim, 1)) / (2 * power)
    allowed = _COOLING_FACTOR * quantile + _ROUNDING
    agree = (height <= allowed) & (depth <= allowed)
    return MAPEstimate(
        point={name: v[0] for name, v in compiled.constrain(best[None]).items()},
        log_posterior=highest,
        agreement=float(agree.mean()),
        draws=len(cooled.independent),
        position=best,
    )


def _real_coordinates(compiled: CompiledModel) -> np.ndarray:
    whole = [j for v in compiled.discrete for j in range(v.start, v.stop)]
    return np.setdiff1d(np.arange(compiled.ndim), whole)


def _polish(log_point: LogDensity, start: np.ndarray, real: np.ndarray) -> np.ndarray:
    """Climb to the top along the real coordinates; return the start if that fails."""
    if not real.size:
        return start

    def along_real(z: jax.Array) -> jax.Array:
        return log_point(jnp.asarray(start).at[real].set(z))

    top = maximise(along_real, start[real], ftol=1e-15, gtol=1e-8)
    best = start.copy()
    if np.isfinite(top.position).all() and top.value >= float(log_point(jnp.asarray(start))):
        best[real] = top.position
    return best


def _quadratic_depth(
    log_point: LogDensity, best: np.ndarray, position: np.ndarray, real: np.ndarray
) -> np.ndarray:
    """Return how far particles lie below the mode by its quadratic approximation, shape ``(n,)``.

    In nats; infinite if a whole number differs.
    """
    centre = jnp.asarray(best)
    hessian = jax.hessian(lambda z: log_point(centre.at[real].set(z)))
    step = (position - best)[:, real]
    depth = -0.5 * np.einsum("ni,ij,nj->n", step, np.asarray(hessian(centre[real])), step)
    others = np.delete(position - best, real, axis=1)
    return np.where((others == 0).all(axis=1), depth, np.inf)
