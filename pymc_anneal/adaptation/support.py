"""Draws of the reference with which a pilot starts, and the region of non-zero likelihood.

A pilot of ``n`` particles knows that region by those of them inside. Where these are few, more
draws follow, until so many lie inside that a part of 5 % of the region is among them with 96 %. Of
``N`` draws ``k`` inside,

    log P(likelihood > 0) = log(k / N),

and the pilot starts from the ``k``, beside the first ``n - k`` outside.

Of ``N`` draws in all, with the likelihood ratios ``u_i``, the first step of a survey may go as far
as leaves twice as many effective ones as there are particles,

    (sum_i u_i^beta)^2 / sum_i u_i^(2 beta) = 2 n,

which costs one evaluation a draw in place of many moves, and leaves more families.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from scipy.optimize import bisect

from pymc_anneal.adaptation.particles import Increment, evaluate
from pymc_anneal.annealing.resampling import systematic
from pymc_anneal.annealing.step_statistics import discrepancy
from pymc_anneal.base.contracts import KernelState, NanDensityError, Path, PyTree
from pymc_anneal.base.programs import forgettable

# From a seed and a number n to draws of shape (n, d).
Sampler = Callable[[np.random.SeedSequence, int], np.ndarray]

# Draws inside: a part of the region with a share of 5 % has one of them with 1 - 0.95^64 = 96 %.
WANTED = 64
# Draws at a time, and at most: of a density of microseconds, a million take seconds.
_BATCH, MOST = 8192, 2**20
# Effective draws for each particle that a first step leaves, so that few are taken twice.
_EFFECTIVE = 2
# Log of the lowest temperature that it may reach.
_LEAST = np.log(1e-300)


class Reached(NamedTuple):
    """Draws of the reference where the likelihood is not zero, which conditions have led to.

    Attributes
    ----------
    position : ndarray, shape (m, d)
    family : ndarray of int, shape (m,)
        The draw from which each descends.
    log_mass : float
        Log of the mass of the region, in nats.
    evaluations : int
    """

    position: np.ndarray
    family: np.ndarray
    log_mass: float
    evaluations: int


# From a seed to such draws, if there are any.
Guide = Callable[[np.random.SeedSequence], Reached | None]


class Start(NamedTuple):
    """Particles of the reference with which a pilot starts.

    Attributes
    ----------
    position : ndarray, shape (n, d)
        Those inside come first if others had to be drawn.
    family : ndarray of int, shape (n,)
        The draw of the reference from which each descends.
    inside : int
        Draws at which the likelihood is not zero.
    drawn : int
        Number of draws among which these were found.
    log_mass : float
        Log share of the reference where the likelihood is not zero, in nats.
    """

    position: np.ndarray
    family: np.ndarray
    inside: int
    drawn: int
    log_mass: float

    @property
    def log_share(self) -> float:
        """Log share of the particles where it is not."""
        return float(np.log(min(self.inside / len(self.position), 1.0)))


def find_inside(
    path: Path,
    state: KernelState,
    draw: Sampler | None = None,
    seed: np.random.SeedSequence | None = None,
    most: float = MOST,
    guide: Guide | None = None,
) -> Start:
    """Look for particles of the reference where the likelihood is not zero.

    The state has draws of the reference, leaves of shape ``(n, ...)``; further ones follow, up to
    so many, and then what guides there, if there is any.

    Raises
    ------
    NanDensityError
        The log density is NaN at a draw.
    ValueError
        The likelihood is zero at all draws, or infinite at one.
    """
    position = np.asarray(state.position)
    possible, n = _is_possible(path, position, state.terms), len(position)
    found, inside, drawn = [position[possible]], int(possible.sum()), n
    while draw and seed and inside < min(WANTED, n) and drawn < most:
        more = draw(seed.spawn(1)[0], n * max(1, _BATCH // n))
        batches = [(m, evaluate(path, m)) for m in np.split(more, len(more) // n)]
        found += [m[_is_possible(path, m, terms)] for m, terms in batches]
        inside, drawn = sum(map(len, found)), drawn + len(more)
    if guide and seed and drawn >= most and inside < WANTED:
        reached = _reached(path, n, guide, seed, drawn)
        if reached is not None:
            return reached
    _check_found(inside, drawn)
    if drawn > n:
        position = np.concatenate([*found, position[~possible]])[:n]
    return Start(position, np.arange(n), inside, drawn, float(np.log(inside / drawn)))


def take_first_step(
    path: Path,
    position: np.ndarray,
    draw: Sampler,
    seed: np.random.SeedSequence,
    draws: int,
    least: float,
) -> tuple[Start, tuple[float, Increment]]:
    """Step along a geometric path, from so many draws of its start to as many particles as before.

    Parameters
    ----------
    position : ndarray, shape (n, d)
        The first of the draws; `draw` makes the others.
    least
        Discrepancy up to which the step may go in any case.

    Returns
    -------
    start, (beta, increment)
        The particles, the temperature that they have reached, and the increment of all draws; that
        of the particles is one.
    """
    n, (seed_draws, seed_chosen) = len(position), seed.spawn(2)
    batches = np.split(draw(seed_draws, n * (draws // n - 1)), draws // n - 1)
    every = np.concatenate([position, *batches])
    ratio = np.concatenate([_ratio(path, x) for x in (position, *batches)])
    # What is no number is left to the moves, which reject or refuse it.
    log_u = np.where(np.isfinite(ratio), ratio, -np.inf)
    inside = int(np.isfinite(log_u).sum())
    beta = _largest_beta(log_u, max(least, np.log(inside / (_EFFECTIVE * n))))
    weight = np.exp(beta * (log_u - log_u.max()))
    chosen = systematic(np.random.default_rng(seed_chosen), weight, n)
    log_mean = float(beta * log_u.max() + np.log(weight.mean()))
    spent = float(discrepancy(beta * log_u))
    start = Start(every[chosen], chosen, inside, len(every), float(np.log(inside / len(every))))
    return start, (beta, Increment(np.zeros(n), log_mean, spent))


def _largest_beta(log_u: np.ndarray, limit: float) -> float:
    """Return the largest temperature, at most 1, that a step of a discrepancy reaches."""
    if discrepancy(log_u) <= limit:
        return 1.0
    return float(np.exp(bisect(lambda s: discrepancy(np.exp(s) * log_u) - limit, _LEAST, 0.0)))


def _ratio(path: Path, position: np.ndarray) -> np.ndarray:
    return np.asarray(compare_ends(path, evaluate(path, position))[0])


def _reached(
    path: Path, n: int, guide: Guide, seed: np.random.SeedSequence, drawn: int
) -> Start | None:
    """Start from where a guide leads, if the likelihood is not zero there."""
    reached = guide(seed.spawn(1)[0])
    if reached is None:
        return None
    order = np.random.default_rng(seed.spawn(1)[0]).permutation(len(reached.position))
    order = np.resize(order, n)
    position = reached.position[order]
    possible = _is_possible(path, position, evaluate(path, position))
    if not possible.any():
        return None
    log_mass = reached.log_mass + float(np.log(possible.mean()))
    drawn += reached.evaluations
    return Start(position, reached.family[order], int(possible.sum()), drawn, log_mass)


def _check_found(inside: int, drawn: int) -> None:
    if not inside:
        raise ValueError(
            f"The likelihood is zero at all of {drawn} prior draws: prior and data contradict each "
            "other, or a potential forbids (nearly) all of the prior. Check the support of the "
            "likelihood; widen or move the prior."
        )


def _is_possible(path: Path, position: np.ndarray, terms: PyTree) -> np.ndarray:
    """Return where the likelihood is not zero, shape ``(n,)``; raise if it is no number."""
    found = compare_ends(path, terms)
    ratio, log_density = (np.asarray(part) for part in jax.device_get(found))
    nan = np.isnan(ratio) | np.isnan(log_density)
    if nan.any():
        raise NanDensityError(position[nan.argmax()])
    if np.isposinf(ratio).any():
        raise ValueError(
            "The log likelihood is +inf at a prior draw: the likelihood is not a density there."
        )
    possible: np.ndarray = np.isfinite(ratio)
    return possible


@forgettable
@jax.jit
def compare_ends(path: Path, terms: PyTree) -> tuple[jax.Array, jax.Array]:
    """Return the log ratio of target to reference and the log reference, shapes ``(n,)``."""
    return path.log_ratio(terms, 0.0, 1.0), path.log_density(terms, 0.0)
