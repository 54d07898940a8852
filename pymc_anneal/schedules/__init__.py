"""Annealing schedules: increasing arrays of inverse temperatures from 0 to 1.

Fixed schedules take a number of steps. The variational schedule (Kiwaki 2015) and the optimal
binned schedule (Grosse, Maddison & Salakhutdinov 2013) also take measurements of the path. All are
functions from arrays to arrays and import nothing else of this package.
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
