"""The black boxes of PyMC's example gallery, as published, and the same models with gradients.

- The line of "Using a 'black box' likelihood function": an `Op` without a gradient in a
  `pm.CustomDist`.
- The predators and prey of "ODE Lotka-Volterra With Bayesian Inference in Multiple Ways": SciPy's
  `odeint` in a wrapped Python function, for the pelts of hare and lynx that the Hudson's Bay
  Company bought from 1900 to 1920 (in thousands; Hewitt 1921, as in Howard 2009).
"""

import warnings

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

from pytensor.compile.ops import wrap_py
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from scipy.integrate import odeint

SIGMA = 1.0
X = np.linspace(0.0, 9.0, 10)
LINE = np.random.default_rng(716743).normal(0.4 * X + 3.0, SIGMA)


def my_loglike(m, c, sigma, x, data):
    for param in (m, c, sigma, x, data):
        if not isinstance(param, float | np.ndarray):
            raise TypeError(f"Invalid input type to loglike: {type(param)}")
    return -0.5 * ((data - m * x - c) / sigma) ** 2 - np.log(np.sqrt(2 * np.pi)) - np.log(sigma)


class LogLike(Op):
    def make_node(self, m, c, sigma, x, data) -> Apply:
        inputs = [pt.as_tensor(v) for v in (m, c, sigma, x, data)]
        return Apply(self, inputs, [inputs[-1].type()])

    def perform(self, node, inputs, outputs):
        m, c, sigma, x, data = inputs
        outputs[0][0] = np.asarray(my_loglike(m, c, sigma, x, data))


def custom_dist_loglike(data, m, c, sigma, x):
    return LogLike()(m, c, sigma, x, data)


def black_box_line() -> pm.Model:
    with pm.Model() as model:
        m = pm.Uniform("m", lower=-10.0, upper=10.0, initval=0.4)
        c = pm.Uniform("c", lower=-10.0, upper=10.0, initval=3.0)
        pm.CustomDist("likelihood", m, c, SIGMA, X, observed=LINE, logp=custom_dist_loglike)
    return model


def pymc_line() -> pm.Model:
    with pm.Model() as model:
        m = pm.Uniform("m", lower=-10.0, upper=10.0)
        c = pm.Uniform("c", lower=-10.0, upper=10.0)
        pm.Normal("likelihood", m * X + c, SIGMA, observed=LINE)
    return model


YEAR = np.arange(1900.0, 1921.0)
HARE = [30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1, 40.3, 57.0, 76.6, 52.3]
HARE += [19.5, 11.2, 7.6, 14.6, 16.2, 24.7]
LYNX = [4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4, 8.0, 12.3, 19.5, 45.7, 51.1]
LYNX += [29.7, 15.8, 9.7, 10.1, 8.6]
PELTS = np.column_stack([HARE, LYNX])

# The least-squares fit on which the example centres its priors.
THETA = np.array([0.52, 0.026, 0.84, 0.026, 34.0, 5.9])


def rhs(state, t, theta):
    x, y = state
    alpha, beta, gamma, delta, _, _ = theta
    return [alpha * x - beta * x * y, -gamma * y + delta * x * y]


@wrap_py(itypes=[pt.dvector], otypes=[pt.dmatrix])
def solve(theta):
    return odeint(func=rhs, y0=theta[-2:], t=YEAR, args=(theta,))


def populations(theta):
    """Solve the equations in PyTensor, by Runge and Kutta's method with 32 steps a year."""
    step = 1 / 32

    def slope(state, parameters):
        return pt.stack(rhs(state, None, [parameters[i] for i in range(6)]))

    def advance(state, parameters):
        first = slope(state, parameters)
        second = slope(state + step / 2 * first, parameters)
        third = slope(state + step / 2 * second, parameters)
        last = slope(state + step * third, parameters)
        return state + step / 6 * (first + 2 * second + 2 * third + last)

    count = 32 * (len(YEAR) - 1)
    result = pytensor.scan(
        advance, outputs_info=[theta[-2:]], non_sequences=[theta], n_steps=count, strict=True
    )
    path = result[0] if isinstance(result, tuple | list) else result
    return pt.concatenate([theta[-2:][None], path[31::32]])


def lotka_volterra(solver) -> pm.Model:
    """Return the model of the gallery with a solver, a function of six parameters."""
    with warnings.catch_warnings(), pm.Model() as model:
        warnings.simplefilter("ignore", DeprecationWarning)  # the old form of scan's result
        scale = [0.1, 0.01, 0.1, 0.01, 1.0, 1.0]
        names = ["alpha", "beta", "gamma", "delta", "xt0", "yt0"]
        theta = [
            pm.TruncatedNormal(name, mu=m, sigma=s, lower=0, initval=m)
            for name, m, s in zip(names, THETA, scale, strict=True)
        ]
        sigma = pm.HalfNormal("sigma", 10)
        pm.Normal("Y_obs", mu=solver(pm.math.stack(theta)), sigma=sigma, observed=PELTS)
    return model
