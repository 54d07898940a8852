"""How many steps and particles a wanted error takes.

With ``S`` the variance of the log weights, ``RSE^2 = (exp(S) - 1) / N``, and ``S`` falls as
``1/K``. With perfect transitions ``S = Lambda^2 / K``; a trial run, frozen like the counted one,
measures what the real transitions make of it. At a fixed cost ``N K`` the error is smallest for
small ``S``; from ``S = 1/2`` on there is little to gain (a factor 1.3 above the limit), and the
weights are even enough to be draws from the posterior.
"""

from dataclasses import dataclass

import numpy as np

from scipy.interpolate import PchipInterpolator

from pymc_anneal.adaptation.pilot import Pilot

TARGET_VARIANCE = 0.5


MIN_STEPS = 16


@dataclass(frozen=True)
class Plan:
    """Size of the counted run.

    Attributes
    ----------
    steps : int
        K.
    particles : int
        N.
    predicted_mcse : float
        Error of the log evidence to expect, in nats.
    predicted_seconds : float
        Time to expect, NaN where unknown.
    evaluations : int
        Evaluations of gradient or density that the trials took.
    """

    steps: int
    particles: int
    predicted_mcse: float
    predicted_seconds: float
    evaluations: int = 0


def effective_length(pilot: Pilot) -> np.ndarray:
    """Length of the path between the pilot's temperatures, for transitions as they are.

    The variance of the log weights is ``int g tau / n`` for ``n(beta)`` steps per unit of beta
    and autocorrelation time ``tau``, its cost ``int c n`` with ``c`` gradients a step. At a fixed
    cost the best density of steps is ``n ~ sqrt(g tau / c)``; for perfect transitions of equal
    cost this is the variational schedule of Kiwaki (2015).
    """
    return np.sqrt(pilot.discrepancy * pilot.tau / pilot.cost)


def predicted_cost(pilot: Pilot) -> float:
    """Gradients a particle takes for a variance of one, under the best schedule."""
    return float(np.sqrt(pilot.discrepancy * pilot.tau * pilot.cost).sum() ** 2)


def trial_steps(pilot: Pilot) -> int:
    """Return the number of steps for which the pilot predicts a variance of about one."""
    length, weight = np.sqrt(pilot.discrepancy * pilot.tau), np.sqrt(pilot.cost)
    return max(MIN_STEPS, int(np.ceil((length * weight).sum() * (length / weight).sum())))


def make_plan(
    *,
    variance: float,
    steps: int,
    fixed_steps: int | None,
    particles: int,
    target_mcse: float,
    log_reference_mass: float,
    seconds: float,
    budget_seconds: float = np.inf,
) -> Plan:
    """Plan the counted run from a trial.

    Parameters
    ----------
    variance
        Variance of the trial's log weights.
    steps
        Steps of the trial.
    fixed_steps
        Steps the user asks for.
    particles
        Particles the user asks for, the least to run.
    target_mcse
        Wanted error.
    log_reference_mass
        Log share of particles with non-zero likelihood.
    seconds
        Time for one particle and one step.
    budget_seconds
        Time for the whole run: particles beyond those asked for, and then steps, are cut to it.

    Returns
    -------
    Plan
    """
    wanted = int(np.ceil(steps * variance / TARGET_VARIANCE))
    planned = fixed_steps or max(MIN_STEPS, wanted)
    affordable = budget_seconds / max(seconds, 1e-12)  # particles times steps
    if fixed_steps is None and planned * particles > affordable:
        planned = max(MIN_STEPS, int(affordable / particles))
    relative = np.exp(min(variance * steps / planned - log_reference_mass, 700.0)) - 1
    needed = min(relative / np.expm1(target_mcse**2), affordable / planned)
    count = particles if fixed_steps else max(particles, int(np.ceil(needed)))
    return Plan(
        steps=planned,
        particles=count,
        predicted_mcse=float(np.sqrt(np.log1p(relative / count))),
        predicted_seconds=seconds * planned * count,
    )


def refine(betas: np.ndarray, discrepancy: np.ndarray, pilot: Pilot) -> np.ndarray:
    """Effective length of the steps of a finished run, for the schedule of the next one."""
    middle = 0.5 * (betas[1:] + betas[:-1])
    factor = pilot.tau / pilot.cost
    if len(factor) > 1:
        factor = np.exp(
            PchipInterpolator(pilot.betas[1:], np.log(factor))(middle.clip(pilot.betas[1], 1))
        )
    return np.sqrt(discrepancy * factor)
