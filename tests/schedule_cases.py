"""Every schedule of the package, as a function of the number of steps alone."""

from functools import partial

import numpy as np

import pymc_anneal as pma

from pymc_anneal.schedules.optimal_binned import optimal_binned_from_lengths
from tests.cases import Case


def _variational(steps: int) -> np.ndarray:
    knots = np.array([0.0, 1e-6, 1e-3, 0.2, 0.5, 1.0])
    return pma.variational_schedule(knots, np.array([2.0, 1.0, 3.0, 0.5, 0.0]), steps)


def _binned(steps: int) -> np.ndarray:
    knots = pma.power_schedule(min(steps, 4), 3.0)
    return pma.optimal_binned_schedule(knots, np.arange(len(knots) - 1.0, 0.0, -1.0), steps)


def _decelerated(steps: int) -> np.ndarray:
    return pma.decelerate(pma.power_schedule(steps, 6.0), 2.5 / steps)


def _binned_from_lengths(steps: int) -> np.ndarray:
    knots = np.array([0.0, 1e-6, 1e-3, 0.2, 0.5, 1.0])
    return optimal_binned_from_lengths(knots, np.array([2.0, 1.0, 3.0, 0.5, 0.1]), steps)


SCHEDULES = [
    Case("linear", "linear_schedule", pma.linear_schedule),
    Case("power", "power_schedule", pma.power_schedule),
    Case("power_0.5", "power_schedule", partial(pma.power_schedule, power=0.5)),
    Case("geometric", "geometric_schedule", pma.geometric_schedule),
    Case("geometric_tiny", "geometric_schedule", partial(pma.geometric_schedule, first=1e-12)),
    Case("sigmoid", "sigmoid_schedule", pma.sigmoid_schedule),
    Case("sigmoid_steep", "sigmoid_schedule", partial(pma.sigmoid_schedule, scale=20.0)),
    Case(
        "salakhutdinov_murray", "salakhutdinov_murray_schedule", pma.salakhutdinov_murray_schedule
    ),
    Case("variational", "variational_schedule", _variational),
    Case("decelerate", "decelerate", _decelerated),
    Case("optimal_binned", "optimal_binned_schedule", _binned),
]
# Not exported.
INNER_SCHEDULES = [
    Case("optimal_binned_from_lengths", "optimal_binned_from_lengths", _binned_from_lengths)
]
