"""Annealing from draws of one density to another one, with the error of the draws.

From draws ``x`` of the density at ``beta = 0`` (autocorrelated, or with copies as resampling makes
them), the mean of the weights estimates the ratio of the normalisers,

    E[w] = Z_1 / Z_0,

without bias for exact draws, whatever the number of steps (Neal 2001, section 5; Crooks 1998).
Particles start at evenly spaced draws, in the order of the chains, so that the effective sample
size of their weights accounts for the dependence of the draws.

If the two densities are near, one step is enough: importance sampling, without transitions.

What is fitted is not what is counted. The first part of each chain serves coordinates, probe, pilot
and trials; the run starts at the other draws, and its weights decide nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.arviz_compat import draws_ess
from pymc_anneal.base.contracts import Path, Transition, check_not_nan
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.programs import forgettable
from pymc_anneal.base.seeds import seed_sequence
from pymc_anneal.evidence.ais import effective_sample_size
from pymc_anneal.evidence.diagnostics import weight_pareto_k
from pymc_anneal.execution.blocks import AnnealedRun, make_blocks
from pymc_anneal.pipeline.counted_run import ForwardStages, build_schedule, path_lengths
from pymc_anneal.pipeline.reverse import anneal_back
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.settings import pilot_required
from pymc_anneal.pipeline.target import RunCandidate
from pymc_anneal.pipeline.trial import plan_run

# From a seed and draws of shape (n, d) to positions of shape (n, D) on the path.
Complete: TypeAlias = Callable[[np.random.SeedSequence, np.ndarray], np.ndarray]

# Draws of the probe; variance of the log weights and Pareto k up to which one step is taken. At a
# variance of 1.5 one step takes 12 times as many particles as a run at a variance of 1/4, whose
# moves and pilot take more evaluations than that.
_PROBE, _NEAR, _MAX_TAIL = 512, 1.5, 0.5
# Least number of steps where one was too few: a tail that a trial of a few steps does not show.
_LEAST_STEPS = 10
# Particles of the pilot.
_PILOT = 256
# Shares of each chain that are fitted to and not counted: as many draws as a probe takes, at least
# a quarter, at most half. The error of half of them is 1.4 times that of all.
_LEAST_FITTED, _MOST_FITTED = 0.25, 0.5
# Particles in excess of those planned, because the variance of a probe is uncertain.
_MARGIN = 1.3
# Positions that are evaluated at a time.
_BATCH = 512


@dataclass(frozen=True, eq=False)
class GivenDraws:
    """Draws of the density at one end of a path.

    Attributes
    ----------
    draws : ndarray, shape (chains, n, d)
    complete : Callable
        Adds the coordinates that are drawn independently, given those of the draws.
    """

    draws: np.ndarray
    complete: Complete

    def spaced(self, seed: np.random.SeedSequence, count: int) -> np.ndarray:
        """Return evenly spaced draws, ``count`` of each chain, shape ``(chains, count, D)``."""
        chains, n, _ = self.draws.shape
        index = np.linspace(0, n - 1, count).round().astype(int)
        rows = self.draws[:, index].reshape(chains * count, -1)
        return self.complete(seed, rows).reshape(chains, count, -1)

    def random(self, seed: np.random.SeedSequence, count: int) -> np.ndarray:
        """Return draws at random places, shape ``(count, D)``."""
        seed_index, seed_rest = seed_sequence(seed).spawn(2)
        flat = self.draws.reshape(-1, self.draws.shape[2])
        index = np.random.default_rng(seed_index).integers(len(flat), size=count)
        return self.complete(seed_rest, flat[index])


def split_draws(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the draws to fit to, and those to count, from shape ``(chains, n, d)``.

    Each part is a stretch of every chain, so that few draws of one are near to the other.
    """
    chains, n, _ = draws.shape
    shares = _LEAST_FITTED * n, _MOST_FITTED * n
    first = max(1, int(np.clip(_PROBE / chains, *shares)))
    return draws[:, :first], draws[:, min(first, n - 1) :]


@dataclass(frozen=True, eq=False)
class RunFromDraws:
    """A run from draws.

    Attributes
    ----------
    log_weight : ndarray, shape (chains, particles)
        In nats.
    position : ndarray, shape (chains, particles, D)
        Particles after the last step.
    barrier : float
        Length of the path.
    forward : ForwardStages or None
        The stages of a run of more than one step.
    """

    log_weight: np.ndarray
    position: np.ndarray
    barrier: float
    forward: ForwardStages | None = None


def run_from_draws(
    session: Session,
    path: Path,
    fitted: GivenDraws,
    start: GivenDraws,
    transition: Transition,
    near: "Probe",
) -> RunFromDraws:
    """Anneal draws along a path.

    Parameters
    ----------
    session
        Settings, seeds. Its number of chains is that of the draws.
    path
        A path whose first density is that of the draws.
    fitted, start
        Draws for pilot and trials, and others from which the run starts.
    transition
        The transition; its parameters that are None are tuned by a pilot.
    near
        The probe along the path, at the draws to fit to.

    Raises
    ------
    NanDensityError
        The log ratio of the densities is NaN at a draw.
    """
    if session.settings.fixed_steps is not None:
        return anneal_draws(session, path, fitted, start, transition)
    if near.one_step:
        return _one_step(session, path, start, near)
    return anneal_draws(session, path, fitted, start, transition, least_steps=_LEAST_STEPS)


def reverse_weights(
    session: Session, path: Path, run: RunFromDraws, start: GivenDraws
) -> np.ndarray:
    """Anneal draws of the last density back to the first.

    Returns
    -------
    ndarray, shape (chains, particles)
        Log weights that the run would have given the trajectories, in nats.
    """
    position = start.spaced(session.seeds.reverse, run.log_weight.shape[1])
    if run.forward is None:
        return _weights_of_one_step(session, path, position)
    return -anneal_back(session, run.forward, position, session.seeds.audit).log_weight


@dataclass(frozen=True)
class Probe:
    """The variance of the log weights of one step, and what their dependence costs.

    Attributes
    ----------
    variance : float
        ``S`` with ``n RSE^2 = exp(S) - 1``, for independent draws.
    tail : float
        Pareto k of the weights.
    efficiency : float
        Effective sample size of the weights of dependent draws over that of independent ones.
    evaluations : int
    """

    variance: float
    tail: float
    efficiency: float
    evaluations: int

    @property
    def one_step(self) -> bool:
        """Whether one step is enough."""
        return self.variance <= _NEAR and not self.tail > _MAX_TAIL

    def particles(self, target_mcse: float) -> int:
        """Return the number of particles of one step that the wanted error takes."""
        needed = np.expm1(self.variance) / np.expm1(target_mcse**2) / self.efficiency
        return int(np.ceil(_MARGIN * needed))


def probe(path: Path, start: GivenDraws, seed: np.random.SeedSequence) -> Probe:
    """Measure the log weights of one step at some of the draws.

    Raises
    ------
    NanDensityError
        The log ratio of the densities is NaN at a draw.
    """
    chains, n, _ = start.draws.shape
    log_ratio = log_ratios(path, start.spaced(seed, min(n, -(-_PROBE // chains))))
    if not np.isfinite(log_ratio).any():
        return Probe(np.inf, np.inf, 1.0, log_ratio.size)
    weight = np.exp(log_ratio - log_ratio.max())
    efficiency = min(1.0, draws_ess(weight) / weight.size) if np.ptp(weight) > 0 else 1.0
    variance = float(np.log(weight.size / effective_sample_size(log_ratio)))
    return Probe(variance, weight_pareto_k(log_ratio), efficiency, weight.size)


def _one_step(session: Session, path: Path, start: GivenDraws, near: Probe) -> RunFromDraws:
    """Take one step: importance sampling from the draws."""
    settings = session.settings
    wanted = max(settings.draws, -(-near.particles(settings.target_mcse) // settings.chains))
    position = start.spaced(session.seeds.counted, wanted)
    log_weight = _weights_of_one_step(session, path, position)
    barrier = float(np.sqrt(np.log(log_weight.size / effective_sample_size(log_weight))))
    return RunFromDraws(log_weight, position, barrier)


def _weights_of_one_step(session: Session, path: Path, position: np.ndarray) -> np.ndarray:
    session.meter.add("Annealing", position[..., 0].size, 0.0)
    return log_ratios(path, position)


def anneal_draws(
    session: Session,
    path: Path,
    fitted: GivenDraws,
    start: GivenDraws,
    transition: Transition,
    *,
    least_steps: int = 1,
) -> RunFromDraws:
    """Run pilot, trials, plan and the counted run from draws of the first density.

    Pilot and trials start at draws of ``fitted``, the counted run at those of ``start``. A planned
    run has at least ``least_steps``.
    """
    settings = session.settings
    candidate = RunCandidate("draws", fitted.random, path)
    pilot = plan = None
    trials: tuple[AnnealedRun, ...] = ()
    if pilot_required(settings, transition):
        seed = session.seeds.pilot
        pilot = session.short_pilot(candidate, transition, seed, _PILOT, np.inf)
    if pilot is not None and settings.fixed_steps is None:
        plan, trials = plan_run(session, candidate, pilot)
    tuned = transition if pilot is None else pilot.transition
    steps = max(plan.steps, least_steps) if plan else settings.fixed_steps or 0
    betas = build_schedule(settings, steps, None if pilot is None else path_lengths(pilot))
    particles = plan.particles if plan else settings.draws * settings.chains
    seed_start, seed_run = session.seeds.counted.spawn(2)
    m = settings.block_draws
    position = start.spaced(seed_start, m * -(-particles // (settings.chains * m)))
    blocks = make_blocks(path, tuned, betas, position, m, seed_run)
    run = session.anneal_fully("Annealing", blocks)
    forward = ForwardStages(candidate, pilot, plan, tuned, run, trials)
    barrier = np.nan if pilot is None else pilot.barrier
    return RunFromDraws(run.log_weight, run.position, barrier, forward)


@double_precision
def log_ratios(path: Path, position: np.ndarray) -> np.ndarray:
    """Return ``log f_1 - log f_0`` at positions of shape ``(..., D)``, in nats, shape ``(...)``."""
    flat = position.reshape(-1, position.shape[-1])
    parts = []
    for first in range(0, len(flat), _BATCH):
        rows = np.arange(first, first + _BATCH).clip(max=len(flat) - 1)
        parts.append(np.asarray(_batch(path, flat[rows])))
    values = np.concatenate(parts)[: len(flat)]
    check_not_nan(jnp.asarray(values), flat)
    return values.reshape(position.shape[:-1])


@forgettable
@jax.jit
def _batch(path: Path, position: jax.Array) -> jax.Array:
    return path.log_ratio(path.evaluate(position), 0.0, 1.0)
