"""Multilevel splitting: the evidence by levels of the likelihood, without temperatures.

Kahn & Harris (1951); subset simulation, Au & Beck (2001); nested sampling, Skilling (2006). Of
``n`` particles of the prior inside ``L > l``, the lower half by likelihood is taken off, and copies
of the others are moved inside the new level. The prior mass halves each time:

    Z = sum_k 2^-k (1/n) sum_{i off} L_i,    var(log Z) = K / n at the posterior's level

if copies move far. All particles that descend from the same draw of the prior are a family.
Families are independent, and where few draws have met a peak, the shares ``s_j`` of families in the
evidence say so (Chan & Lai 2013; Lee & Whiteley 2018): ``var(log Z) = sum_j s_j^2``. The larger
variance is taken.

As long as there are more than ``n`` draws of the prior, nothing is copied: that costs one
evaluation a draw, and shows peaks that few draws meet.

A level is passed by mass and not by temperature, so that a first-order transition does not stop
it, and it sees a spike inside the bulk of the posterior: it goes on until the likelihood is flat
among the particles. No gradient is needed. It does not see a narrow peak beside the bulk that holds
less than a few in ``n`` of the prior mass above a level. Particles on a plateau are ordered by
random labels.

Copies move by slice sampling (Neal 2003, without stepping out) along differences of other particles
(ter Braak 2006), which have the scales and the correlations of the level.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeAlias

import numpy as np

from scipy.special import logsumexp

# From positions (n, d) to log prior and log likelihood, each (n,).
Terms: TypeAlias = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

# Slices of a copy for each coordinate, and at least: of a normal likelihood in 10 dimensions, log Z
# was 0.79, 0.48 and 0.04 nats too high with 1, 2 and 4 of them (256 particles, error 0.35).
_SLICES, _LEAST_SLICES = 4, 5
# Proposals of a slice, on average.
_PROPOSALS = 1.8
# Length of the first interval, in units of a difference of particles in one dimension: a slice of a
# normal density is about three standard deviations wide.
_LENGTH = 3.0
# Share of the evidence that the particles left may add, and range of their log likelihoods, at
# which it ends: with a range of 0.3 a flat-topped spike was left out.
_REST, _FLAT = 1e-3, 1e-3
# Share of the particles in a region that ends the search for it.
_INSIDE = 0.5
# Copies that are still at their place after so many proposals stay there: rounding.
_MOST_PROPOSALS = 100


@dataclass(frozen=True)
class Levels:
    """What multilevel splitting found.

    Attributes
    ----------
    log_evidence, mcse : float
        In nats.
    levels : int
        Number of halvings.
    position : ndarray, shape (m, d)
        All particles that were taken off, and those left at the end.
    log_weight : ndarray, shape (m,)
        Log masses of these, which sum to the evidence.
    family : ndarray of int, shape (m,)
        The draw of the prior from which each descends.
    evaluations : int
    complete : bool
        Whether it ended by itself, and not for its evaluations.
    """

    log_evidence: float
    mcse: float
    levels: int
    position: np.ndarray
    log_weight: np.ndarray
    family: np.ndarray
    evaluations: int
    complete: bool


class _Rows:
    """Arrays with one row for each particle."""

    def at(self, index: np.ndarray) -> Self:
        """Return copies of some rows."""
        return type(self)(*(values[index] for values in vars(self).values()))

    def put(self, index: np.ndarray, other: Self) -> None:
        """Overwrite some rows by those of another."""
        for name, values in vars(self).items():
            values[index] = getattr(other, name)


@dataclass
class _Particles(_Rows):
    """Particles with their log prior, log likelihood, label, and the draw they descend from."""

    position: np.ndarray
    log_prior: np.ndarray
    log_likelihood: np.ndarray
    label: np.ndarray
    family: np.ndarray

    def __len__(self) -> int:
        return len(self.label)

    def joined(self, other: "_Particles") -> "_Particles":
        """Return the rows of both."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Particles(*(np.concatenate(pair) for pair in pairs))

    def above(self, level: tuple[float, float]) -> np.ndarray:
        """Whether each is above a log likelihood, or at it with a larger label."""
        log_likelihood, label = level
        tied = (self.log_likelihood == log_likelihood) & (self.label > label)
        return np.asarray((self.log_likelihood > log_likelihood) | tied)


def split(
    evaluate: Terms,
    position: np.ndarray,
    seed: np.random.SeedSequence,
    kept: int,
    max_evaluations: float = np.inf,
) -> Levels:
    """Estimate an evidence by multilevel splitting.

    Parameters
    ----------
    evaluate : callable
        From positions ``(n, d)`` to log prior and log likelihood, each ``(n,)``. NaN counts as
        zero.
    position : ndarray, shape (n, d)
        Draws from the prior, more than are kept.
    kept : int
        Number of particles from which on those taken off are replaced.
    max_evaluations : float
        Evaluations of the density after which no further level begins.
    """
    rng = np.random.default_rng(seed)
    counted = _Counted(evaluate)
    live = counted.draws(position, rng)
    off, log_z, beyond, complete = list[_Off](), -np.inf, 0, True
    while not (beyond and _is_flat(live)) and beyond <= _levels_beyond(position.shape[1]):
        if counted.evaluations >= max_evaluations or log_z == np.inf:
            complete = False
            break
        lower, upper = _halves(live)
        off.append(_Off.of(lower, len(off), len(live)))
        log_z = np.logaddexp(log_z, logsumexp(off[-1].log_weight))
        beyond = beyond + 1 if _is_negligible(upper, log_z, len(off)) else 0
        live = _refilled(counted, lower, upper, kept, rng)
    off.append(_Off.of(live, len(off), len(live)))
    return _result(off, counted.evaluations, complete)


def reach(
    evaluate: Terms,
    position: np.ndarray,
    seed: np.random.SeedSequence,
    kept: int,
    max_evaluations: float = np.inf,
) -> tuple[np.ndarray, np.ndarray, float, int] | None:
    """Split levels until half of the particles have the highest log likelihood there is, zero.

    For ``-g``, where ``g`` says how far a position is from a region, these are draws of the prior
    inside of it (subset simulation; Au & Beck 2001): their positions, the draws from which they
    descend, the log of the region's prior mass, and the evaluations. None if these did not suffice,
    or no particle comes nearer. The arguments are those of `split`.
    """
    rng = np.random.default_rng(seed)
    counted = _Counted(evaluate)
    live, levels = counted.draws(position, rng), 0
    while (live.log_likelihood == 0).mean() < _INSIDE:
        # Where all are equally far away nothing leads them on.
        if counted.evaluations >= max_evaluations or np.ptp(live.log_likelihood) == 0:
            return None
        live = _refilled(counted, *_halves(live), kept, rng)
        levels += 1
    inside = live.log_likelihood == 0
    log_mass = float(np.log(inside.mean()) - levels * np.log(2))
    return live.position[inside], live.family[inside], log_mass, counted.evaluations


def _halves(live: "_Particles") -> tuple["_Particles", "_Particles"]:
    """Return the particles of lower and of higher likelihood, ties by their labels."""
    order = np.lexsort((live.label, live.log_likelihood))
    return live.at(order[: len(order) // 2]), live.at(order[len(order) // 2 :])


def _refilled(
    counted: "_Counted",
    lower: "_Particles",
    upper: "_Particles",
    kept: int,
    rng: np.random.Generator,
) -> "_Particles":
    """Replace the lower half by moved copies of the upper one, if few are left."""
    if len(lower) + len(upper) > kept:
        return upper
    copies = upper.at(rng.permutation(len(upper))[: len(lower)])
    level = float(lower.log_likelihood[-1]), float(lower.label[-1])
    return upper.joined(_moved(counted, copies, upper.position, level, rng))


def predict_evaluations(draws: int, kept: int, ndim: int, information: float) -> float:
    """Predict the evaluations of `split`.

    Parameters
    ----------
    draws, kept, ndim : int
    information : float
        Divergence of the posterior from the prior, in nats: ``log(1 / mass)`` of its level.
    """
    beyond = max(_levels_beyond(ndim), -np.log2(_REST))
    levels = max(information, 0.0) / np.log(2) + beyond - np.log2(draws / kept)
    return float(draws + max(levels, 0.0) * kept / 2 * _slices(ndim) * _PROPOSALS)


@dataclass
class _Counted:
    """A density whose evaluations are counted."""

    evaluate: Terms
    evaluations: int = 0

    def draws(self, position: np.ndarray, rng: np.random.Generator) -> _Particles:
        """Return draws of the prior, each a family of its own."""
        return self.particles(position, rng.random(len(position)), np.arange(len(position)))

    def particles(self, position: np.ndarray, label: np.ndarray, family: np.ndarray) -> _Particles:
        self.evaluations += len(position)
        log_prior, log_likelihood = map(_known, self.evaluate(position))
        return _Particles(position.copy(), log_prior, log_likelihood, label, family)


def _known(term: np.ndarray) -> np.ndarray:
    """Return a log density of which NaN is zero."""
    return np.where(np.isnan(term), -np.inf, np.asarray(term, dtype=float))


class _Off(NamedTuple):
    """Particles taken off, their log masses and families, and the number that they were half of."""

    position: np.ndarray
    log_weight: np.ndarray
    family: np.ndarray
    number: int

    @classmethod
    def of(cls, off: _Particles, level: int, number: int) -> "_Off":
        """Weigh particles taken off ``number`` ones by their share of the mass of the level."""
        log_weight = off.log_likelihood - level * np.log(2) - np.log(number)
        return cls(off.position, log_weight, off.family, number)


def _is_negligible(live: _Particles, log_z: float, levels: int) -> bool:
    """Whether the rest adds nothing, as long as its likelihood is no higher than it was seen."""
    return bool(live.log_likelihood.max() - levels * np.log(2) < log_z + np.log(_REST))


def _is_flat(live: _Particles) -> bool:
    """Whether all particles have nearly the same likelihood."""
    highest, lowest = live.log_likelihood.max(), live.log_likelihood.min()
    return bool(highest == lowest or highest - lowest < _FLAT)


def _levels_beyond(ndim: int) -> float:
    """Return the levels from the bulk of a normal density to where it is flat.

    The range of log likelihoods, ``ndim`` nats, falls by ``2^(2 / ndim)`` at each of them. Of a
    likelihood without a bound it never ends.
    """
    return float(ndim / 2 * np.log2(ndim / _FLAT))


def _result(off: list[_Off], evaluations: int, complete: bool) -> Levels:
    """Put all particles together."""
    log_weight = np.concatenate([part.log_weight for part in off])
    log_z = float(logsumexp(log_weight))
    share = np.exp(log_weight - log_z) if log_z > -np.inf else np.zeros(len(log_weight))
    family = np.concatenate([part.family for part in off])
    of_family = np.bincount(family, share)
    grown = np.cumsum([1 / part.number for part in off])
    by_levels = share @ np.repeat(grown, [len(part.log_weight) for part in off])
    return Levels(
        log_evidence=log_z,
        mcse=float(np.sqrt(max(by_levels, of_family @ of_family))),
        levels=len(off) - 1,
        position=np.concatenate([part.position for part in off]),
        log_weight=log_weight,
        family=family,
        evaluations=evaluations,
        complete=complete,
    )


def _moved(
    counted: _Counted,
    copies: _Particles,
    others: np.ndarray,
    level: tuple[float, float],
    rng: np.random.Generator,
) -> _Particles:
    """Move copies by slice sampling inside a level.

    Each goes on to its next slice as soon as it has a place in the last one, so that batches stay
    full.
    """
    left = np.full(len(copies), _slices(others.shape[1]))
    slices = _Slices.of(copies, others, rng)
    while (active := np.flatnonzero(left)).size:
        part = slices.at(active)
        step = rng.uniform(part.low, part.high)
        place = copies.position[active] + step[:, None] * part.direction
        found = counted.particles(place, copies.label[active], copies.family[active])
        inside = (found.log_prior > part.log_height) & found.above(level)
        accepted = active[inside]
        copies.put(accepted, found.at(np.flatnonzero(inside)))
        slices.shrink(active[~inside], step[~inside])
        given_up = active[~inside][slices.proposals[active[~inside]] > _MOST_PROPOSALS]
        done = np.concatenate([accepted, given_up])
        left[done] -= 1
        _relabel(copies, done, level, rng)
        slices.put(done, _Slices.of(copies.at(done), others, rng))
    return copies


def _slices(ndim: int) -> int:
    return max(_SLICES * ndim, _LEAST_SLICES)


def _relabel(
    copies: _Particles, index: np.ndarray, level: tuple[float, float], rng: np.random.Generator
) -> None:
    """Draw labels anew, given the positions."""
    tied = copies.log_likelihood[index] == level[0]
    copies.label[index] = rng.uniform(np.where(tied, level[1], 0.0), 1.0)


@dataclass
class _Slices(_Rows):
    """Slices of the prior along directions: heights and the intervals around the positions."""

    direction: np.ndarray
    log_height: np.ndarray
    low: np.ndarray
    high: np.ndarray
    proposals: np.ndarray

    @classmethod
    def of(cls, particles: _Particles, others: np.ndarray, rng: np.random.Generator) -> "_Slices":
        """Draw slices for particles, along differences of two other ones."""
        n, d = particles.position.shape
        first = rng.integers(len(others), size=n)
        second = (first + rng.integers(1, len(others), size=n)) % len(others)
        length = _LENGTH / np.sqrt(d)
        low = -length * rng.random(n)
        return cls(
            others[first] - others[second],
            particles.log_prior - rng.exponential(size=n),
            low,
            low + length,
            np.zeros(n, dtype=int),
        )

    def shrink(self, index: np.ndarray, step: np.ndarray) -> None:
        """Shrink intervals to where a proposal failed; the particle, at 0, stays inside."""
        self.low[index] = np.where(step < 0, step, self.low[index])
        self.high[index] = np.where(step < 0, self.high[index], step)
        self.proposals[index] += 1
