"""Coordinates of gamma, beta and Dirichlet variables of small shape, about normal under the prior.

The logarithm of a gamma variable ``x`` of shape ``a < 1`` falls off as ``e^(a log x)`` towards zero
and as ``e^(-x)`` above: in its logarithm the prior is ``1 / a`` times as wide on one side as on the
other, and so is a posterior where the data say little. A logistic variable ``t`` has both tails,

    log x = log softplus(t) - (1 / a - 1) softplus(-t),

and is a function of its normal score ``z``, but for 1.4e-4 in probability (Bowling, Khasawneh,
Kaewkuekool & Cho 2009),

    t = 1.5976 z + 0.07056 z^3.

The log odds of a beta variable have an exponential tail on either side,

    log (v / (1 - v)) = softplus(t) / b - softplus(-t) / a,    v ~ Beta(a, b).

A Dirichlet variable is broken off a stick, ``p_k = v_k prod_{j<k} (1 - v_j)``, with independent
``v_k ~ Beta(a_k, b_k)``, ``b_k = sum_{j>k} a_j``.

Shapes above one count as one. The maps are exact whatever the prior is, with their Jacobians.
"""

from collections.abc import Callable

import pytensor.tensor as pt

from pymc.logprob.transforms import Transform
from pytensor.graph.basic import Variable

# Of the logistic quantile at a normal score.
_LINEAR, _CUBIC = 1.5976, 0.07056
# Newton steps: 13 reach the last digit for shapes down to 1e-4 and log odds up to 1e4, since
# from the second one on they come from one side, as the slope rises or falls all the way.
_STEPS = 14
# Where ``log softplus(t) = t`` and ``softplus(t) = t`` to the last digit.
_FAR_BELOW, _FAR_ABOVE = -40.0, 34.0

_Function = Callable[[Variable], Variable]


def _softplus(t: Variable) -> Variable:
    """Return ``log(1 + e^t)``; that of PyTensor is a loop in Python where draws are made."""
    return pt.switch(t > _FAR_ABOVE, t, pt.log1p(pt.exp(pt.minimum(t, _FAR_ABOVE))))


def logistic_of_score(z: Variable) -> Variable:
    """Return the logistic variable at a normal score."""
    return _LINEAR * z + _CUBIC * z**3


def score_of_logistic(t: Variable) -> Variable:
    """Return the normal score of a logistic variable: the real root of the cubic."""
    rate = (3 * _CUBIC / _LINEAR) ** 0.5
    return 2 / rate * pt.sinh(pt.arcsinh(1.5 * rate / _LINEAR * t) / 3)


def _log_slope(z: Variable) -> Variable:
    return pt.log(_LINEAR + 3 * _CUBIC * z**2)


def _invert(function: _Function, slope: _Function, value: Variable, start: Variable) -> Variable:
    """Return where a function is some value, by Newton's method."""
    t = start
    for _ in range(_STEPS):
        t = t - (function(t) - value) / slope(t)
    return t


class GammaScore(Transform):  # type: ignore[misc]  # mypy does not see PyMC
    """Transform of a gamma variable of small shape to its normal score."""

    name = "score"

    def forward(self, value: Variable, *inputs: Variable) -> Variable:
        """Return the score."""
        return self.of_logarithm(pt.log(value), *inputs)

    def of_logarithm(self, log_value: Variable, *inputs: Variable) -> Variable:
        """Return the score of a variable whose logarithm is given."""
        shape, scale = _gamma_parameters(inputs)
        value = log_value - pt.log(scale)
        # log softplus(t) ~ log t above, t below.
        above = pt.switch(value > 1, pt.exp(pt.minimum(value, 700.0)), value)
        start = pt.maximum(shape * value, above)
        t = _invert(lambda t: _log_gamma(t, shape), lambda t: _gamma_slope(t, shape), value, start)
        return score_of_logistic(t)

    def backward(self, value: Variable, *inputs: Variable) -> Variable:
        """Return the value of the variable."""
        shape, scale = _gamma_parameters(inputs)
        return pt.exp(pt.log(scale) + _log_gamma(logistic_of_score(value), shape))

    def log_jac_det(self, value: Variable, *inputs: Variable) -> Variable:
        """Return the log Jacobian determinant of `backward`."""
        shape, scale = _gamma_parameters(inputs)
        t = logistic_of_score(value)
        logs = pt.log(scale) + _log_gamma(t, shape) + pt.log(_gamma_slope(t, shape))
        return logs + _log_slope(value)


def _gamma_parameters(inputs: tuple[Variable, ...]) -> tuple[Variable, Variable]:
    shape, scale = inputs[-2:]
    return pt.minimum(shape, 1.0), scale


def _log_gamma(t: Variable, shape: Variable) -> Variable:
    """Return ``log x``; of ``softplus(t)``, which underflows, the logarithm is ``t`` far below."""
    near = pt.log(_softplus(pt.maximum(t, _FAR_BELOW)))
    return pt.switch(t > _FAR_BELOW, near, t) - (1 / shape - 1) * _softplus(-t)


def _gamma_slope(t: Variable, shape: Variable) -> Variable:
    above = pt.maximum(t, _FAR_BELOW)
    return pt.sigmoid(above) / _softplus(above) + (1 / shape - 1) * pt.sigmoid(-t)


class BetaScore(Transform):  # type: ignore[misc]
    """Transform of a beta variable of small shapes to its normal score."""

    name = "score"

    def forward(self, value: Variable, *inputs: Variable) -> Variable:
        """Return the score."""
        return self.of_log_odds(pt.log(value) - pt.log1p(-value), *inputs)

    def of_log_odds(self, log_odds: Variable, *inputs: Variable) -> Variable:
        """Return the score of a variable whose log odds are given."""
        return _score_of_odds(log_odds, *_at_most_one(*inputs[-2:]))

    def backward(self, value: Variable, *inputs: Variable) -> Variable:
        """Return the value of the variable."""
        return pt.sigmoid(_log_odds(logistic_of_score(value), *_at_most_one(*inputs[-2:])))

    def log_jac_det(self, value: Variable, *inputs: Variable) -> Variable:
        """Return the log Jacobian determinant of `backward`."""
        shapes = _at_most_one(*inputs[-2:])
        t = logistic_of_score(value)
        log_odds = _log_odds(t, *shapes)
        of_odds = -_softplus(log_odds) - _softplus(-log_odds)
        return of_odds + pt.log(_odds_slope(t, *shapes)) + _log_slope(value)


class DirichletScore(Transform):  # type: ignore[misc]
    """Transform of a Dirichlet variable to the normal scores of the parts of a stick."""

    name = "score"
    ndim_supp = 1

    def forward(self, value: Variable, *inputs: Variable) -> Variable:
        """Return the scores, one less than weights."""
        rest = pt.cumsum(value[..., ::-1], axis=-1)[..., ::-1]
        return self.of_log_odds(pt.log(value[..., :-1]) - pt.log(rest[..., 1:]), *inputs)

    def of_log_odds(self, log_odds: Variable, *inputs: Variable) -> Variable:
        """Return the scores of parts whose log odds are given."""
        return _score_of_odds(log_odds, *_at_most_one(*stick_shapes(inputs[-1])))

    def backward(self, value: Variable, *inputs: Variable) -> Variable:
        """Return the weights."""
        log_weight, _, _ = self._logarithms(value, inputs)
        return pt.special.softmax(log_weight, axis=-1)

    def log_jac_det(self, value: Variable, *inputs: Variable) -> Variable:
        """Return the log Jacobian determinant of `backward`."""
        log_weight, log_left, log_slope = self._logarithms(value, inputs)
        return (log_weight[..., :-1] + log_left + log_slope).sum(axis=-1)

    def _logarithms(
        self, z: Variable, inputs: tuple[Variable, ...]
    ) -> tuple[Variable, Variable, Variable]:
        """Return log weights, what each part leaves, and how its log odds vary with the score."""
        shapes = _at_most_one(*stick_shapes(inputs[-1]))
        t = logistic_of_score(z)
        log_odds = _log_odds(t, *shapes)
        log_broken, log_left = -_softplus(-log_odds), -_softplus(log_odds)
        nothing = pt.zeros_like(log_left[..., :1])
        rest = pt.concatenate([nothing, pt.cumsum(log_left, axis=-1)], axis=-1)
        log_weight = rest + pt.concatenate([log_broken, nothing], axis=-1)
        return log_weight, log_left, pt.log(_odds_slope(t, *shapes)) + _log_slope(z)


def _at_most_one(*shapes: Variable) -> list[Variable]:
    return [pt.minimum(shape, 1.0) for shape in shapes]


def _score_of_odds(log_odds: Variable, first: Variable, second: Variable) -> Variable:
    """Return the score at which the log odds have a value."""
    t = _invert(
        lambda t: _log_odds(t, first, second),
        lambda t: _odds_slope(t, first, second),
        log_odds,
        pt.zeros_like(log_odds),
    )
    return score_of_logistic(t)


def _log_odds(t: Variable, first: Variable, second: Variable) -> Variable:
    return _softplus(t) / second - _softplus(-t) / first


def _odds_slope(t: Variable, first: Variable, second: Variable) -> Variable:
    return pt.sigmoid(t) / second + pt.sigmoid(-t) / first


def stick_shapes(shape: Variable) -> tuple[Variable, Variable]:
    """Return both shape parameters of each part of a stick, shape ``(..., k - 1)``."""
    rest = pt.cumsum(shape[..., ::-1], axis=-1)[..., ::-1]
    return shape[..., :-1], rest[..., 1:]
