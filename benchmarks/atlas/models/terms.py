"""Terms that several models share, as PyTensor expressions."""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

from pytensor.tensor import TensorVariable
from scipy.special import gammaln

ordered = pm.distributions.transforms.ordered
positive_ordered = pm.distributions.transforms.Chain([pm.distributions.transforms.log, ordered])


def f64(value) -> TensorVariable:
    """Return a constant in double precision; PyTensor takes the least type that holds a float."""
    return pt.as_tensor(np.array(value, dtype="float64"))


def scan(step: Callable, **arguments):
    return pytensor.scan(step, return_updates=False, **arguments)


def comb_log(n, k):
    """Return the logarithm of a binomial coefficient."""
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def log_sigmoid(x: TensorVariable) -> TensorVariable:
    return -pt.softplus(-x)


def logit(p: TensorVariable) -> TensorVariable:
    return pt.log(p) - pt.log1p(-p)


def normal_logp(y, mu, sigma) -> TensorVariable:
    return -0.5 * ((y - mu) / sigma) ** 2 - pt.log(sigma) - 0.5 * np.log(2 * np.pi)


def exp_quad(x: np.ndarray, alpha, rho) -> TensorVariable:
    """Return Stan's `gp_exp_quad_cov`, of shape (n, n) for n points on a line."""
    square = (x[:, None] - x[None, :]) ** 2
    return alpha**2 * pt.exp(-0.5 * square / rho**2)
