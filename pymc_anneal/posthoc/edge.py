"""The posterior density of a variable at the edge of its support, from the inside.

At the edge ``b_0`` the unconstrained coordinate is infinite, and the variable itself is not. With
the posterior density ``q(b, r)`` of the variable and the unconstrained rest, the identity of
`density_at_point.py` holds for any density ``w`` on an interval that begins at the edge,

    p(b_0 | y) = E[ w(b) q(b_0, r + A (b_0 - b)) / q(b, r) ],

and ``w`` is a normal density that is cut there. The edge is approached to a millionth of the spread
of the draws. The witness is a count: the mean density next to the edge, times the width, is the
share of the draws.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from scipy.special import logsumexp
from scipy.stats import norm

from pymc_anneal.evidence.ais import effective_sample_size
from pymc_anneal.evidence.mean_ratio import MeanRatio, mean_ratio
from pymc_anneal.evidence.posterior_density import LogDensity
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.map_rows import map_positions
from pymc_anneal.model.parents import random_parents
from pymc_anneal.posthoc.density_at_point import PointDensity

# Distance from the edge, in standard deviations of the draws; half the width of w in its own, so
# that the tails, where its ratio to the posterior may be large, are left out.
_NEAR, _REACH = 1e-6, 1.96
# Centres of w between the mean of the draws and the edge, and widths in standard deviations.
_CENTRES, _WIDTHS = (0.0, 0.25, 0.5, 1.0), (1.0, 0.8, 0.6, 0.4)
# Share of the draws next to the edge that are counted, and points there at which the density is
# compared with the count.
_SHARE, _POINTS = 0.2, 16


@dataclass(frozen=True, eq=False)
class Edge:
    """A variable, a number, at an edge of its support.

    Attributes
    ----------
    compiled : CompiledModel
    name : str
    value : float
        The edge.
    inwards : float
        1 if the support lies above the edge, -1 if below.
    """

    compiled: CompiledModel
    name: str
    value: float
    inwards: float

    @property
    def coordinate(self) -> int:
        """Index of the unconstrained coordinate."""
        return next(v.start for v in self.compiled.variables if v.name == self.name)

    def at(self, distance: float) -> float:
        """Return the unconstrained coordinate of the variable at a distance from the edge."""
        free = self.compiled.constrain(self.compiled.sample_prior(np.random.SeedSequence(0), 1))
        free[self.name] = np.array([self.value + self.inwards * distance])
        return float(self.compiled.unconstrain(free)[0, self.coordinate])

    def log_jacobian(self, x: np.ndarray) -> np.ndarray:
        """Return the log derivative of the variable by its coordinate, ``(n, d)`` to ``(n,)``."""
        return np.asarray(self._jacobian(x)[0], dtype=float)

    @cached_property
    def _jacobian(self) -> Callable[[np.ndarray], Any]:
        model = self.compiled.model
        rv = model[self.name]
        graph = model.rvs_to_transforms[rv].log_jac_det(model.rvs_to_values[rv], *rv.owner.inputs)
        graphs = self.compiled.freeze(model.replace_rvs_by_values([graph]))
        return map_positions(model, self.compiled.variables, graphs)


def find_edge(compiled: CompiledModel, null: Mapping[str, Any]) -> Edge | None:
    """Return the edge at which a null lies; None if it is no edge, or not of one number alone."""
    if not isinstance(null, Mapping) or len(null) != 1:
        return None
    ((name, value),) = null.items()
    variable = next((v for v in compiled.variables if v.name == name), None)
    if variable is None or np.ndim(value) or compiled.model[name].ndim:
        return None
    rv = compiled.model[name]
    if compiled.model.rvs_to_transforms[rv] is None or random_parents(
        compiled.model, rv.owner.inputs
    ):
        return None
    free = compiled.constrain(compiled.sample_prior(np.random.SeedSequence(0), 1))
    inside = float(free[name][0])
    free[name] = np.array([float(value)])
    with np.errstate(divide="ignore", invalid="ignore"):
        x = compiled.unconstrain(free)[0, variable.start]
    return Edge(compiled, name, float(value), np.sign(inside - value)) if np.isinf(x) else None


def edge_density(edge: Edge, draws: np.ndarray, log_density: LogDensity) -> PointDensity:
    """Estimate the log posterior density of a variable at the edge of its support.

    Parameters
    ----------
    edge
    draws : ndarray, shape (chains, n, d)
        Posterior draws, unconstrained.
    log_density
        Log of the unnormalised posterior, in these coordinates.

    Returns
    -------
    PointDensity
        With respect to the variable itself.
    """
    chains, n, d = draws.shape
    first, second = (part.reshape(-1, d) for part in (draws[:, : n // 2], draws[:, n // 2 :]))
    b_first, b_second = (_distance(edge, x) for x in (first, second))
    slope = _regress(first, b_first)
    at_second = log_density(second) - edge.log_jacobian(second)

    def log_ratio(x: np.ndarray, b: np.ndarray, at_x: np.ndarray, distance: float) -> np.ndarray:
        moved = x + np.outer(distance - b, slope)
        moved[:, edge.coordinate] = edge.at(distance)
        return np.asarray(log_density(moved) - edge.log_jacobian(moved) - at_x)

    near = _NEAR * float(b_first.std())
    at_first = log_density(first) - edge.log_jacobian(first)
    fitted = log_ratio(first, b_first, at_first, near)
    log_w = max(_candidates(b_first), key=lambda w: effective_sample_size(w(b_first) + fitted))
    weight = log_w(b_second)
    value = (weight + log_ratio(second, b_second, at_second, near)).reshape(chains, -1)
    width = float(np.quantile(np.concatenate([b_first, b_second]), _SHARE))
    places = width * (np.arange(_POINTS) + 0.5) / _POINTS
    each = [weight + log_ratio(second, b_second, at_second, place) for place in places]
    inside = np.concatenate([b.reshape(chains, -1) <= width for b in (b_first, b_second)], axis=1)
    around = _mean_over(np.array(each) + np.log(width), chains)
    counted = mean_ratio(np.where(inside, 0.0, -np.inf))
    off = abs(around.log_mean - counted.log_mean) / np.hypot(around.mcse, counted.mcse)
    return PointDensity(mean_ratio(value), float(off), value)


def _mean_over(log_ratio: np.ndarray, chains: int) -> MeanRatio:
    """Average over points and draws, shape ``(points, n)``; the points are a part of the error."""
    by_draw = logsumexp(log_ratio, axis=0) - np.log(len(log_ratio))
    found = mean_ratio(by_draw.reshape(chains, -1))
    by_point = np.exp(logsumexp(log_ratio, axis=1) - logsumexp(log_ratio))
    spread = np.std(by_point) * np.sqrt(len(by_point))  # relative error of a mean of as many
    return found._replace(mcse=float(np.hypot(found.mcse, spread)))


def _distance(edge: Edge, x: np.ndarray) -> np.ndarray:
    """Return the distances of the variable from the edge at positions, shape ``(n,)``."""
    return np.asarray(edge.inwards * (edge.compiled.constrain(x)[edge.name] - edge.value))


def _regress(x: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the regression of all coordinates on the distance, shape ``(d,)``."""
    if np.ptp(b) == 0:
        raise ValueError("A coordinate of the null is the same in all draws: the chains are stuck.")
    centred = b - b.mean()
    return np.asarray(centred @ (x - x.mean(axis=0)) / (centred @ centred))


def _candidates(b: np.ndarray) -> Iterator[Callable[[np.ndarray], np.ndarray]]:
    """Yield log densities of the distance between the edge and the farthest draw."""
    for centre in _CENTRES:
        for width in _WIDTHS:
            mean, sd = (1 - centre) * b.mean(), width * b.std()
            low, high = max(mean - _REACH * sd, 0.0), min(mean + _REACH * sd, b.max())
            yield _cut_normal(mean, sd, low, high)


def _cut_normal(
    mean: float, sd: float, low: float, high: float
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the log density of a normal distribution that is cut to an interval."""
    log_mass = np.log(norm.cdf(high, mean, sd) - norm.cdf(low, mean, sd))

    def log_w(x: np.ndarray) -> np.ndarray:
        inside = (low <= x) & (x <= high)
        return np.where(inside, norm.logpdf(x, mean, sd) - log_mass, -np.inf)

    return log_w
