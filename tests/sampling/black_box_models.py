"""A line fitted by a likelihood that PyTensor cannot see into, and its exact evidence."""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.compile.ops import wrap_py
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from scipy import stats

TIMES = np.linspace(0.0, 9.0, 10)
DATA = np.array([3.4, 2.9, 4.5, 4.1, 4.2, 5.6, 5.0, 6.3, 5.8, 6.9])
NOISE, PRIOR_SD = 0.8, 4.0


def log_likelihood(slope: float, level: float) -> np.ndarray:
    """Log likelihood of each observation, in NumPy."""
    return stats.norm.logpdf(DATA, slope * TIMES + level, NOISE)


def exact_log_evidence() -> float:
    """Log evidence of the line, in closed form."""
    features = np.stack([TIMES, np.ones_like(TIMES)], axis=1)
    covariance = NOISE**2 * np.eye(len(DATA)) + PRIOR_SD**2 * features @ features.T
    return float(stats.multivariate_normal(np.zeros(len(DATA)), covariance).logpdf(DATA))


class LogLikelihood(Op):
    """The black box of the examples of PyMC: log likelihoods of the data, without a gradient."""

    def make_node(self, slope, level, data):
        inputs = [pt.as_tensor(slope), pt.as_tensor(level), pt.as_tensor(data)]
        return Apply(self, inputs, [inputs[-1].type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(log_likelihood(inputs[0], inputs[1]))


class Slopes(Op):
    """Derivatives of the log likelihoods with respect to slope and level."""

    def make_node(self, slope, level, data):
        inputs = [pt.as_tensor(slope), pt.as_tensor(level), pt.as_tensor(data)]
        return Apply(self, inputs, [inputs[-1].type(), inputs[-1].type()])

    def perform(self, node, inputs, outputs):
        residual = (DATA - inputs[0] * TIMES - inputs[1]) / NOISE**2
        outputs[0][0], outputs[1][0] = residual * TIMES, residual


class LogLikelihoodWithGradient(LogLikelihood):
    """The same with a gradient, under the names of both lines of PyTensor."""

    def pullback(self, inputs, outputs, cotangents):
        by_slope, by_level = Slopes()(*inputs)
        (weight,) = cotangents
        # PyMC hands the parameters on with the number of dimensions of the data.
        slope = (weight * by_slope).sum().reshape(inputs[0].shape)
        level = (weight * by_level).sum().reshape(inputs[1].shape)
        return [slope, level, pt.zeros_like(inputs[2])]

    def grad(self, inputs, cotangents):
        return self.pullback(inputs, None, cotangents)


@wrap_py(itypes=[pt.dscalar], otypes=[pt.dvector])
def solve(slope):
    """Stand in for a solver: only the part of the model that depends on the slope."""
    return slope * TIMES


def line(likelihood: Callable[..., None]) -> pm.Model:
    """Return the model of a line with a likelihood of slope and level."""
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, PRIOR_SD)
        level = pm.Normal("level", 0.0, PRIOR_SD, initval=3.0)
        likelihood(slope, level)
    return model


def custom_dist(op: Op) -> pm.Model:
    """Return the line with an Op as the log density of a `pm.CustomDist`."""

    def logp(value, slope, level):
        return op(slope, level, value)

    return line(lambda a, b: pm.CustomDist("y", a, b, observed=DATA, logp=logp))


def potential(function: Callable[[float, float], np.ndarray]) -> pm.Model:
    """Return the line with a wrapped Python function of slope and level as its likelihood."""
    op = wrap_py(itypes=[pt.dscalar, pt.dscalar], otypes=[pt.dvector])(function)
    return line(lambda a, b: pm.Potential("likelihood", op(a, b)))


def solved() -> pm.Model:
    """Return the line with a solver that has no gradient, and a level that has one."""
    return line(lambda a, b: pm.Normal("y", solve(a) + b, NOISE, observed=DATA))


def in_jax() -> pm.Model:
    """Return the line as PyMC's own distributions."""
    return line(lambda a, b: pm.Normal("y", a * TIMES + b, NOISE, observed=DATA))
