"""Search for modes that annealing passes by.

A mode of small prior mass and large likelihood is met by none of the particles on their way to the
posterior, and one far from the others is lost if few particles reach it. Candidates are

- draws from the components of a fitted mixture, drawn together to smaller and smaller scales, for
  peaks in the bulk of the posterior (spike and slab: Brewer, Partay & Csanyi 2011, section 4);
- the ends of climbs from draws of the prior, some of which follow the likelihood alone at first;
- the maxima of the branches of the model (`model/branches.py`);
- the particles themselves, some of which may be alone in their mode.

Where the target is far above the mixture, the search climbs to the top. Importance sampling around
it (`peak_mass.py`) gives the mass that the mixture misses there, and its place and scale, for which
the curvature at the top serves where it can.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from scipy.spatial import KDTree

from pymc_anneal.adaptation.climb import climb_together
from pymc_anneal.adaptation.curvature import curvature
from pymc_anneal.adaptation.laplace_reference import scale_of_curvature
from pymc_anneal.adaptation.peak_mass import LogDensity, Peak, weigh, widths
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base.batches import COSTLY_BATCH, map_batches
from pymc_anneal.model.branches import Branches
from pymc_anneal.paths.mixed_draws import Sampler
from pymc_anneal.paths.references import GaussianReference

# Scales of the draws, in units of those of the components.
_SHRINK = 0.5 ** np.arange(1.0, 3.5, 0.5)
# Largest dimension of a search: a peak is met by chance, and its curvature takes d gradients.
MAX_DIMENSIONS = 200
# Calls of the gradient for climbs from the prior, of those that go on, and for those of branches.
_MAX_CALLS, _MORE_CALLS, _MAX_BRANCH_CALLS = 30, 100, 100
# Calls of the gradient for a climb to the top of a peak.
_MAX_TOP_CALLS = 200
# Distance of the ends of climbs to one top along each coordinate, in standard deviations of the
# mode nearby, and the depth of a valley between two tops, in nats.
_NEAR, _VALLEY = 0.1, 0.1
# Climbs that follow the likelihood at first, and its power there. Where effects of a common scale
# are outliers of a heavy-tailed likelihood, particles and other climbs stay with the prior: 51 nats
# too low, and below the end of each of these climbs.
_BY_LIKELIHOOD, _POWER = 32, 32.0
# Factor between the widths of a peak and those of its curvature from which this is one of a cusp or
# of a flat top. A normal peak falls by a nat at so many standard deviations.
_NORMAL_WIDTH, _FALSE = np.sqrt(2.0), 4.0
# Starts of a further round of climbs for each of those that go on, the highest ones.
_STARTS = 4
# Calls of the gradient that a further round takes for each climb that goes on, at most.
CALLS_OF_A_ROUND = _STARTS * _MAX_CALLS + _MORE_CALLS
# Share of the climbs that may end below the particles, by so many nats, without further rounds:
# where there is one top, nearly all reach it.
_BELOW, _MARGIN = 0.05, 2.0
# Probability that a further climb ends at a new top, up to which no more are made. A period of
# which all others are aliases was missed by 3 of 12 searches without this.
_SINGLE = 0.05
# Branches that are climbed: all of them, or some if they are many, as those of mixtures with a term
# for each observation, which overlap.
_ALL_BRANCHES, _SOME_BRANCHES = 256, 16


@dataclass(frozen=True)
class Search:
    """The effort of a search.

    Attributes
    ----------
    draws : int
        Draws near the centres of the components; at most, what fits in memory.
    starts : int
        Climbs from the prior at a time.
    rounds : int
        Further rounds of climbs, if some of the first one end below the particles.
    branches : Branches or None
        The branches of the model; None if they are unknown.
    evaluations : float
        Those after which, times `FittedReference.price`, only the first few candidates are climbed.
    hints : ndarray, shape (h, d), or None
        Further starts of climbs.
    share : float
        Of the usual effort.
    """

    draws: int
    starts: int
    rounds: int = 0
    branches: Branches | None = None
    evaluations: float = 0.0
    hints: np.ndarray | None = None
    share: float = 1.0


def candidates(
    target: TargetDensity,
    components: Sequence[GaussianReference],
    particles: np.ndarray,
    draw_prior: Sampler,
    seed: np.random.SeedSequence,
    search: Search,
) -> np.ndarray:
    """Return positions among which a mode that was missed may show.

    Parameters
    ----------
    components
        Normal components of a mixture, that of the largest mode first.
    particles : ndarray, shape (n, d)

    Returns
    -------
    ndarray, shape (m, d)
    """
    seed_near, seed_prior, seed_branch, seed_likelihood = seed.spawn(4)
    scale = np.asarray(components[0].scale)
    near = draw_near_centres(components, search.draws, seed_near)
    climbed = _climb_from_prior(target, particles, draw_prior, scale, seed_prior, search)
    start = draw_prior(seed_likelihood, int(search.share * _BY_LIKELIHOOD))
    found = [near, climbed, climb_by_likelihood(target, start, scale), particles]
    if search.hints is not None:
        function = target.value_and_gradient
        found.append(climb_together(function, search.hints, scale, _MORE_CALLS)[0])
    if search.branches is not None and search.branches.terms:
        found.append(_climb_branches(search.branches, particles, scale, seed_branch, target))
    return np.concatenate(found)


def _climb_from_prior(
    target: TargetDensity,
    particles: np.ndarray,
    draw_prior: Sampler,
    scale: np.ndarray,
    seed: np.random.SeedSequence,
    search: Search,
) -> np.ndarray:
    """Climb from draws of the prior, in several rounds if tops are below the particles, or many.

    In the rounds after the first one, many climbs begin and the highest go on, a batch of them:
    a sharp top, as of a period, is met by one climb in a thousand.
    """
    climbs, batch = partial(climb_together, target.value_and_gradient, scale=scale), search.starts
    first, *others = seed.spawn(1 + search.rounds)
    end, value = climbs(draw_prior(first, batch), max_calls=_MAX_CALLS)
    if not others:
        return end
    level = np.quantile(target.log_density(particles), _BELOW) - _MARGIN
    if _some_below(value, level):
        end, value = climbs(end, max_calls=_MORE_CALLS)
    if not (_some_below(value, level) or share_of_single(end, scale) > _SINGLE):
        return end
    ends = [end]
    for own in others:
        start = draw_prior(own, _STARTS * batch)
        begun, height = climbs(start, max_calls=_MAX_CALLS)
        highest = begun[np.argsort(-height)[:batch]]  # NaN last
        ends.append(climbs(highest, max_calls=_MORE_CALLS)[0])
    return np.concatenate(ends)


def climb_by_likelihood(target: TargetDensity, start: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Climb from ``(n, d)`` positions by the likelihood nearly alone, then by the target."""
    by_likelihood = partial(target.value_and_gradient, beta=_POWER)
    end, _ = climb_together(by_likelihood, start, scale, _MAX_CALLS)
    return climb_together(target.value_and_gradient, end, scale, _MORE_CALLS)[0]


def _some_below(value: np.ndarray, level: float) -> bool:
    """Return whether more than a few climbs ended below a level."""
    return bool((value > level).mean() < 1 - _BELOW)


def share_of_single(end: np.ndarray, scale: np.ndarray) -> float:
    """Estimate the probability that one more climb ends at a top that none has met (Good 1953).

    It is the share of the climbs that ended at a top of their own, with no other one within a
    standard deviation of a mode; 1 where fewer than two have an end.
    """
    end = end[np.isfinite(end).all(axis=1)]
    if len(end) < 2:
        return 1.0
    whitened = end / scale if scale.ndim == 1 else np.linalg.solve(scale, end.T).T
    nearest, _ = KDTree(whitened).query(whitened, k=[2])
    return float((nearest > np.sqrt(end.shape[1])).mean())


def _climb_branches(
    branches: Branches,
    particles: np.ndarray,
    scale: np.ndarray,
    seed: np.random.SeedSequence,
    target: TargetDensity,
) -> np.ndarray:
    """Climb branches of the model from particles, shape ``(branches, d)``."""
    rng = np.random.default_rng(seed)
    many = np.prod(np.array(branches.terms, dtype=float)) > _ALL_BRANCHES
    choice = branches.choices(rng, _SOME_BRANCHES if many else _ALL_BRANCHES)

    def evaluate(position: np.ndarray, choice: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        target.evaluations += len(position)
        found: tuple[np.ndarray, np.ndarray]
        found = map_batches(branches.value_and_gradient, position, size, choice)
        return found

    size = min(len(choice), COSTLY_BATCH)
    start = particles[rng.integers(len(particles), size=len(choice))]
    return climb_together(evaluate, start, scale, _MAX_BRANCH_CALLS, [choice])[0]


def draw_near_centres(
    components: Sequence[GaussianReference], draws: int, seed: np.random.SeedSequence
) -> np.ndarray:
    """Draw around the centres of components at several small scales, shape ``(n, d)``.

    So many draws in all, and at least one from each component at each scale.
    """
    found, each = [], max(1, -(-draws // (len(components) * len(_SHRINK))))
    for component, child in zip(components, seed.spawn(len(components)), strict=True):
        for shrink, own in zip(_SHRINK, child.spawn(len(_SHRINK)), strict=True):
            centred = component.sample(own, each) - component.mean
            found.append(component.mean + shrink * centred)
    return np.concatenate(found)


class Top(NamedTuple):
    """Where a climb ended, ``(d,)``, the log density there, and the spread of the mode nearby."""

    position: np.ndarray
    value: float
    spread: np.ndarray

    def is_same(self, target: TargetDensity, other: "Top") -> bool:
        """Return whether another climb ended here: nearby, and with no valley in between."""
        if (np.abs(other.position - self.position) > _NEAR * self.spread).any():
            return False
        middle = (self.position + other.position) / 2
        valley = min(self.value, other.value) - _VALLEY
        return bool(target.log_density(middle[None])[0] >= valley)


def climb(target: TargetDensity, start: np.ndarray, spread: np.ndarray) -> Top:
    """Climb to a top of the target from a start, shape ``(d,)``, with the spread nearby."""
    function = target.value_and_gradient_singly
    top, value = climb_together(function, start[None], spread, _MAX_TOP_CALLS)
    return Top(top[0], float(value[0]), spread)


def weigh_top(
    target: TargetDensity, log_density: LogDensity, top: Top, seed: np.random.SeedSequence
) -> Peak | None:
    """Weigh the part of a target of this log density at a top; None if few draws have weight."""
    wide = widths(target, *top)
    scale = scale_of_curvature(curvature(target, top.position, top.spread))
    curved = None if scale is None else GaussianReference(top.position, scale)
    curved = curved if curved is not None and _has_widths(curved, wide) else None
    return weigh(log_density, wide, curved, seed)


def _has_widths(curved: GaussianReference, wide: GaussianReference) -> bool:
    """Return whether a normal density is about as wide as a peak; across a cusp it is not."""
    scale = np.asarray(curved.scale)
    along = scale if scale.ndim == 1 else 1 / np.linalg.norm(np.linalg.inv(scale), axis=0)
    off = np.log(np.asarray(wide.scale) / (_NORMAL_WIDTH * along))
    return bool((np.abs(off) < np.log(_FALSE)).all())
