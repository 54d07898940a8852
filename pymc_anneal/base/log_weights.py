"""Effective sample size of weights that are known by their logs."""

from typing import TypeVar

import jax
import numpy as np

ArrayT = TypeVar("ArrayT", jax.Array, np.ndarray, np.float64)


def log_effective_sample_size(log_sum: ArrayT, log_sum_squared: ArrayT) -> ArrayT:
    """Compute ``log((sum w)^2 / sum w^2)`` from the logs of both sums; NaN if they are zero."""
    log_size: ArrayT = 2 * log_sum - log_sum_squared
    return log_size
