"""Annealing schedules: increasing arrays of inverse temperatures from 0 to 1.

Fixed schedules take a number of steps; the variational schedule (Kiwaki 2015) and the optimal
binned one (Grosse, Maddison & Salakhutdinov 2013) take measured path lengths. Arrays in, arrays
out.
"""

from pymc_anneal.schedules.fixed import (
    geometric_schedule,
    linear_schedule,
    power_schedule,
    salakhutdinov_murray_schedule,
    sigmoid_schedule,
)
from pymc_anneal.schedules.optimal_binned import optimal_binned_schedule
from pymc_anneal.schedules.variational import decelerate, variational_schedule

__all__ = [
    "decelerate",
    "geometric_schedule",
    "linear_schedule",
    "optimal_binned_schedule",
    "power_schedule",
    "salakhutdinov_murray_schedule",
    "sigmoid_schedule",
    "variational_schedule",
]
