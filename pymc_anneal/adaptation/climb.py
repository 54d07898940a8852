"""Climbs from many starts at once: limited-memory BFGS (Nocedal & Wright 2006, algorithm 7.4).

Each call of the gradient serves all climbs that go on. One that fails to rise shortens its step and
tries again at the next call, beside the others: climbs share no decision. Steps are bounded by a
reach that grows with success, since a step of any length can end where a transform has saturated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

# From positions of shape (n, d), and what else is given, to log densities, shape (n,), and
# gradients, shape (n, d).
ValueAndSlope: TypeAlias = Callable[..., tuple[np.ndarray, np.ndarray]]

# Pairs of steps and changes of the gradient that are remembered.
_MEMORY = 6
# Share of the predicted rise that a step has to reach (Nocedal & Wright 2006, eq. 3.4).
_ARMIJO = 1e-4
# Length of the first step in units of the scale, times sqrt(d); factors on the reach after a step
# that rises and on one that fails; the smallest reach.
_FIRST_REACH, _GROW, _SHRINK, _LEAST_REACH = 2.0, 2.0, 0.25, 1e-8
# Predicted rise in nats below which a climb has ended. The prediction is far too small in a bent
# valley, after the step to its floor.
_FLAT = 1e-6


@dataclass
class _Climbs:
    """Climbs on their way.

    Attributes
    ----------
    position, slope, direction : ndarray, shape (n, d)
    value : ndarray, shape (n,)
    length : ndarray, shape (n,)
        Lengths of the directions in units of the scale.
    reach : ndarray, shape (n,)
        Largest length of a step in these units.
    moves, changes : ndarray, shape (memory, n, d)
        Last steps and changes of the gradient, the newest first; zero: none.
    """

    position: np.ndarray
    value: np.ndarray
    slope: np.ndarray
    direction: np.ndarray
    length: np.ndarray
    reach: np.ndarray
    moves: np.ndarray
    changes: np.ndarray

    @property
    def step(self) -> np.ndarray:
        """Factors on the directions, shape ``(n,)``."""
        return np.asarray(self.reach / np.maximum(self.length, self.reach))

    @property
    def rise(self) -> np.ndarray:
        """Rise that the slope predicts for a whole step, shape ``(n,)``."""
        rise: np.ndarray = (self.slope * self.direction).sum(axis=1)
        return rise

    @property
    def active(self) -> np.ndarray:
        """Whether a climb goes on, shape ``(n,)``."""
        usable = np.isfinite(self.value) & np.isfinite(self.slope).all(axis=1)
        active: np.ndarray = usable & (self.rise > _FLAT) & (self.reach > _LEAST_REACH)
        return active


@np.errstate(over="ignore", invalid="ignore")  # a climb that leaves the numbers ends
def climb_together(
    function: ValueAndSlope,
    start: np.ndarray,
    scale: np.ndarray,
    max_calls: int,
    given: Sequence[np.ndarray] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """Climb from each of many starts, shape ``(n, d)``, towards a local maximum.

    The function returns log density and gradient of a batch of positions; further arguments that
    are given to it have a row for each climb. The first step is taken in units of the scale, or
    root of a covariance, and calls end at the largest number. Returns the highest points, shape
    ``(n, d)`` (the start where the density is zero or not a number), and their log densities.
    """
    value, slope = function(start, *given)
    direction = _precondition(scale, slope)
    climbs = _Climbs(
        position=start.copy(),
        value=value.copy(),
        slope=slope.copy(),
        direction=direction,
        length=_length(scale, direction),
        reach=np.full(len(start), _FIRST_REACH * np.sqrt(start.shape[1])),
        moves=np.zeros((_MEMORY, *start.shape)),
        changes=np.zeros((_MEMORY, *start.shape)),
    )
    for _ in range(max_calls - 1):
        if not climbs.active.any():
            break
        _advance(climbs, function, scale, given)
    return climbs.position, climbs.value


def _advance(
    climbs: _Climbs, function: ValueAndSlope, scale: np.ndarray, given: Sequence[np.ndarray]
) -> None:
    """Try one step of each climb: take those that rise, shorten the others."""
    active, step = climbs.active, climbs.step
    proposal = climbs.position.copy()
    proposal[active] += step[active, None] * climbs.direction[active]
    value, slope = climbs.value.copy(), climbs.slope.copy()
    value[active], slope[active] = function(proposal[active], *(part[active] for part in given))
    rises = value >= climbs.value + _ARMIJO * step * climbs.rise
    rises &= active & np.isfinite(slope).all(axis=1)
    failed = active & ~rises
    climbs.reach[failed] = _SHRINK * (step * climbs.length)[failed]
    climbs.reach[rises] = _GROW * np.maximum(climbs.reach, step * climbs.length)[rises]
    _remember(climbs, rises, proposal - climbs.position, climbs.slope - slope)
    climbs.position[rises], climbs.value[rises] = proposal[rises], value[rises]
    climbs.slope[rises] = slope[rises]
    climbs.direction[rises] = _direction(climbs, scale, rises)
    climbs.length[rises] = _length(scale, climbs.direction)[rises]


def _remember(climbs: _Climbs, rises: np.ndarray, move: np.ndarray, change: np.ndarray) -> None:
    """Store the steps that were taken, where the density curves downwards along them."""
    kept = rises & ((move * change).sum(axis=1) > 0)
    for memory, new in ((climbs.moves, move), (climbs.changes, change)):
        memory[1:, kept] = memory[:-1, kept]
        memory[0, kept] = new[kept]


def _direction(climbs: _Climbs, scale: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Return the directions of some climbs by the recursion of two loops of L-BFGS."""
    moves, changes, slope = climbs.moves[:, of], climbs.changes[:, of], climbs.slope[of]
    curvature = (moves * changes).sum(axis=2)
    inverse = np.divide(1.0, curvature, out=np.zeros_like(curvature), where=curvature > 0)
    alphas = list[np.ndarray]()
    for move, change, rho in zip(moves, changes, inverse, strict=True):
        alphas.append(rho * (move * slope).sum(axis=1))
        slope -= alphas[-1][:, None] * change
    first = _first_curvature(changes[0], scale, curvature[0])
    direction: np.ndarray
    direction = _precondition(scale, slope) * first[:, None]
    for i in reversed(range(_MEMORY)):
        beta = inverse[i] * (changes[i] * direction).sum(axis=1)
        direction += (alphas[i] - beta)[:, None] * moves[i]
    return direction


def _first_curvature(change: np.ndarray, scale: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """Return the factor on the preconditioner that fits the last step, shape ``(n,)``."""
    own = (change * _precondition(scale, change)).sum(axis=1)
    factor: np.ndarray = np.divide(curvature, own, out=np.ones_like(own), where=own > 0)
    return factor


def _precondition(scale: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Multiply by the covariance of a scale, rows of shape ``(n, d)``."""
    product: np.ndarray = slope @ scale @ scale.T if scale.ndim == 2 else slope * scale**2
    return product


def _length(scale: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return the lengths of directions in units of a scale, shape ``(n,)``."""
    z = np.linalg.solve(scale, direction.T).T if scale.ndim == 2 else direction / scale
    return np.asarray(np.linalg.norm(z, axis=1))
