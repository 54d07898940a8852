"""The plan: steps and particles that a wanted error needs.

With ``S`` the variance of the log weights, ``RSE^2 = (exp(S) - 1) / N``, and ``S`` falls as
``1/K``. With perfect transitions ``S = Lambda^2 / K``; a trial run, frozen like the counted one,
measures ``S`` with the real transitions. At a fixed cost ``N K`` the error is smallest for small
``S``, but below ``S = 1/2`` there is little to gain (a factor 1.3 above the limit). The plan takes
the largest ``S`` with which the wanted particles reach the wanted error and amount to 400 draws of
the posterior, within these bounds. At ``S = 1`` the effective sample size is 37 % of the particles.
"""

from dataclasses import dataclass

import numpy as np

from pymc_anneal.adaptation.pilot import Pilot

# Bounds on the variance of the log weights at which a run is planned.
MIN_VARIANCE, MAX_VARIANCE = 0.25, 1.0
# Discrepancy of a whole path in one step, below which a run is planned from the fit of the
# reference: a few steps, whose variance follows from the 1/K law.
NEAR = 3.0
# Evaluations of a run from a fitted reference, unless the target takes more, as a share of those of
# the adaptation; and the largest variance of its log weights: tails that the fit missed need steps.
RUN_SHARE, NEAR_VARIANCE = 0.5, 0.5
# Effective number of posterior draws at which a run is planned.
_DRAWS = 400
# Share of the wanted error at which a run is planned. The predicted error of 512 normal log weights
# with a variance of one has a standard deviation of a tenth, as has the error of the run itself.
_PLANNED_ERROR = 0.8
# Largest exponent in exp(S): float64 overflows above 709.
_MAX_EXPONENT = 700.0


@dataclass(frozen=True)
class Plan:
    """Size of the counted run.

    Attributes
    ----------
    steps : int
        Number of steps K.
    particles : int
        Number of particles N over all chains.
    predicted_mcse : float
        Predicted Monte Carlo standard error of the log evidence, in nats.
    predicted_seconds : float
        Predicted time; NaN if unknown.
    note : str
        What a budget of time has changed; "" if nothing.
    """

    steps: int
    particles: int
    predicted_mcse: float
    predicted_seconds: float
    note: str = ""


def effective_length(pilot: Pilot) -> np.ndarray:
    """Return lengths of the path between the pilot's temperatures, mixing included.

    The variance of the log weights is ``int g tau / n`` for ``n(beta)`` steps per unit of beta
    and autocorrelation time ``tau``, its cost ``int c n`` with ``c`` gradients a step. At a fixed
    cost the best density of steps is ``n ~ sqrt(g tau / c)``; for perfect transitions of equal
    cost this is the variational schedule of Kiwaki (2015).
    """
    length: np.ndarray = np.sqrt(pilot.discrepancy * pilot.tau / pilot.cost)
    return length


def predicted_cost(pilot: Pilot) -> float:
    """Return the gradients per particle for a variance of one, under the best schedule."""
    return float(np.sqrt(pilot.discrepancy * pilot.tau * pilot.cost).sum() ** 2)


def planned_variance(particles: int, target_mcse: float) -> float:
    """Return the variance of the log weights at which a run of some particles is planned."""
    by_error = np.log1p(particles * np.expm1(target_mcse**2))
    by_draws = np.log(particles / _DRAWS)  # the effective sample size is N exp(-S)
    return float(np.clip(min(by_error, by_draws), MIN_VARIANCE, MAX_VARIANCE))


def trial_steps(pilot: Pilot) -> int:
    """Return the number of steps for which the pilot predicts a variance of about one."""
    length, weight = np.sqrt(pilot.discrepancy * pilot.tau), np.sqrt(pilot.cost)
    return max(1, int(np.ceil((length * weight).sum() * (length / weight).sum())))


def make_plan(
    *,
    variance: float,
    steps: int,
    least_steps: int = 1,
    particles: int,
    target_mcse: float,
    log_reference_mass: float,
    seconds: float,
    budget_seconds: float = np.inf,
) -> Plan:
    """Plan the counted run from a trial of so many steps, with log weights of a variance.

    It has at least so many particles, and steps as long as there is time. The log reference mass is
    the log share of particles with non-zero likelihood, the seconds are those of one step of one
    particle. Where time is short, further particles are cut first, then steps.
    """
    wanted = int(np.ceil(steps * variance / planned_variance(particles, target_mcse)))
    planned = max(least_steps, wanted)
    affordable = budget_seconds / max(seconds, 1e-12)  # particles times steps
    if planned * particles > affordable:
        planned = max(1, int(affordable / particles))
    exponent = min(variance * steps / planned - log_reference_mass, _MAX_EXPONENT)
    relative = np.exp(exponent) - 1
    needed = relative / np.expm1((_PLANNED_ERROR * target_mcse) ** 2)
    count = max(particles, int(min(np.ceil(needed), affordable / planned)))
    return Plan(
        steps=planned,
        particles=count,
        predicted_mcse=float(np.sqrt(np.log1p(relative / count))),
        predicted_seconds=seconds * planned * count,
    )
