"""The pilot: a short adaptive run that surveys the path and tunes the transition.

From prior draws, beta rises so that each step has the discrepancy

    D = log( sum W u^2 * sum W / (sum W u)^2 ) = target,    u = f_{beta'} / f_beta,

that is, a fixed conditional effective sample size (Zhou, Johansen & Aston 2016); the step is
found by bisection in log scale and may be as small as floating point allows. After each step the
particles are resampled and moved (:mod:`cloud`), and while they move the kernel is tuned
(:mod:`tuner`).

Nothing of the pilot enters the estimate.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import numpy as np

from pymc_anneal.adaptation.particles import ParticleSystem
from pymc_anneal.adaptation.tuning import by_temperature
from pymc_anneal.base.contracts import KernelState, NanDensityError, Path, Transition
from pymc_anneal.base.progress import PilotProgress
from pymc_anneal.base.seeds import key_of

_MAX_TEMPERATURES = 2000


@dataclass(frozen=True)
class Pilot:
    """What the pilot found.

    Attributes
    ----------
    betas : ndarray, shape (m + 1,)
        Temperatures from 0 to 1.
    discrepancy : ndarray, shape (m,)
        ``D`` of each step among the particles of non-zero likelihood.
    log_reference_mass : float
        Log share of prior draws with non-zero likelihood.
    transition : Transition
        The tuned transition.
    tau : ndarray, shape (m,)
        Integrated autocorrelation time of the velocity under the transition at ``betas[1:]``.
    cost : ndarray, shape (m,)
        Evaluations of gradient or density of the transition at ``betas[1:]``.
    accept_rate : ndarray, shape (m,)
    log_z : float
        Sequential Monte Carlo estimate of the log evidence, for comparison only.
    position : ndarray, shape (n, d)
        Particles at ``beta = 1``.
    evaluations : int
        Evaluations of gradient or density that the pilot took.
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
    evaluations: int = 0

    @property
    def barrier(self) -> float:
        """Length of the path, ``Lambda = sum sqrt(D)``."""
        return float(np.sqrt(self.discrepancy).sum())

    @property
    def log_z_mcse(self) -> float:
        """Rough standard error of ``log_z``: increments of the steps, inflated by the mixing."""
        increments = np.expm1(self.discrepancy) * np.maximum(self.tau, 1.0)
        return float(np.sqrt(increments.sum() / len(self.position)))


class PilotTooLongError(ValueError):
    """The pilot took more evaluations than it was allowed: ``evaluations`` of them."""

    def __init__(self, message: str, evaluations: int):
        super().__init__(message)
        self.evaluations = evaluations


def run_pilot(
    path: Path,
    transition: Transition,
    position: np.ndarray,
    seed: np.random.SeedSequence,
    report: Callable[[PilotProgress], None] = lambda progress: None,
    max_evaluations: float = np.inf,
) -> Pilot:
    """Survey the path and tune the transition.

    Parameters
    ----------
    path
        The path.
    transition
        A kernel; its parameters that are None are tuned. One without such parameters is
        used as it is.
    position : ndarray, shape (n, d)
        Draws of the reference.
    seed
        Source of randomness.
    report
        Called after each temperature.
    max_evaluations
        Of gradient or density.

    Returns
    -------
    Pilot

    Raises
    ------
    NanDensityError
        The log density is NaN at a prior draw or a sound proposal.
    ValueError
        The likelihood is zero at every draw, or infinite at one.
    PilotTooLongError
        More than ``max_evaluations`` were needed.
    """
    seed_numpy, seed_jax = seed.spawn(2)
    rng = np.random.default_rng(seed_numpy)
    with jax.enable_x64(True):
        key = key_of(seed_jax)
        cloud = ParticleSystem.begin(path, transition, key, position)
        log_mass = _check_start(path, cloud.state)
        betas, records, log_z, evaluations = [0.0], [], 0.0, 0
        while betas[-1] < 1:
            beta, step = cloud.ahead(path, betas[-1])
            log_z += step.log_mean
            key = jax.random.fold_in(key, len(betas))
            trials = cloud.tuner.trials(first=len(betas) == 1)
            cloud = cloud.resampled(path, beta, step.log_u, rng)
            cloud = cloud.moved(path, beta, key, trials).settled()
            tuner = cloud.tuner
            evaluations += 2 * len(trials) * tuner.cost * len(position)
            betas.append(beta)
            records.append((step.discrepancy, tuner))
            report(PilotProgress(beta, log_z, tuner.n_steps, tuner.accept_rate))
            if evaluations > max_evaluations:
                raise PilotTooLongError(
                    f"the pilot took more than {max_evaluations:.3g} evaluations, at beta = "
                    f"{beta:.4g}",
                    evaluations,
                )
            if len(betas) > _MAX_TEMPERATURES:
                raise ValueError(
                    f"The pilot took {_MAX_TEMPERATURES} temperatures to reach beta = {beta:.3g}. "
                    "Prior and likelihood are too far apart to anneal between them: use a prior "
                    "nearer to the data, or check the likelihood's scale."
                )
        tuners = [t for _, t in records]
        tuned = by_temperature(betas[1:], tuners)  # in double precision
    return Pilot(
        betas=np.array(betas),
        discrepancy=np.array([d for d, _ in records]),
        log_reference_mass=log_mass,
        transition=tuned,
        tau=np.array([t.tau for t in tuners]),
        cost=np.array([t.cost for t in tuners]),
        accept_rate=np.array([t.accept_rate for t in tuners]),
        log_z=log_z,
        position=np.asarray(cloud.state.position),
        evaluations=evaluations,
    )


def _check_start(path: Path, state: KernelState) -> float:
    """Return the log share of draws with a non-zero likelihood; raise where there is none."""
    ratio = np.asarray(path.log_ratio(state.terms, 0.0, 1.0))
    nan = np.isnan(ratio) | np.isnan(np.asarray(path.log_density(state.terms, 0.0)))
    if nan.any():
        raise NanDensityError(np.asarray(state.position)[nan.argmax()])
    if np.isposinf(ratio).any():
        raise ValueError(
            "The log likelihood is +inf at a prior draw: the likelihood is not a density there."
        )
    alive = np.isfinite(ratio).mean()
    if alive == 0:
        raise ValueError(
            f"The likelihood is zero at all of {len(ratio)} prior draws: prior and data "
            "contradict each other, or a potential forbids (nearly) all of the prior. Check the "
            "support of the likelihood; widen or move the prior."
        )
    return float(np.log(alive))
