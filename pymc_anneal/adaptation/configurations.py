"""Search for configurations of discrete coordinates, and a lower bound on the evidence by them.

A configuration ``s`` has the mass ``Z_s = int f(s, z) dz``, and for any set of them

    Z >= sum_{s in set} Z_s.

The search climbs in ``s`` by Laplace's approximation of ``Z_s``, the real coordinates at their peak
given ``s`` (coordinate-wise climbs: Besag 1986): it changes one entry, or several whose changes
each help, and where none helps any two entries, from draws of the prior and from each other. Then
the neighbours of the configurations with the most mass are weighed until those whose neighbours
are not known hold next to nothing, or the budget is spent. The masses that count are estimated by
importance sampling, which makes the bound one in expectation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TypeAlias

import numpy as np

from scipy.special import logsumexp

from pymc_anneal.adaptation.conditional_peak import ConditionalDensity, Peaks
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.paths.configuration_mixture import ConfigurationMixture

# Smallest and largest value of each discrete coordinate, which may be infinite.
Support: TypeAlias = Sequence[tuple[float, float]]

# Climbs, and draws of the prior from which those of non-zero density are taken.
CLIMBS, DRAWS = 8, 512
# Configurations that are weighed at most: with real coordinates a climb for each, or a density.
_MOST_PEAKS, _MOST_DENSITIES = 3_000, 30_000
# Pairs of entries that change together at most, and values of an entry that are tried.
_MOST_PAIRS, _MOST_VALUES = 1024, 32
# Steps of a count of many values: 1, 2, 4, ..., 2^7.
_POWERS = 8
# Share of the mass that may be held by configurations whose neighbours are not known.
_REST = 1e-3
# Configurations of the mixture, at most, and draws that weigh them: for each, and by their mass.
# With 64 for each, two of six errors of two coupled indicators were half of the truth.
_COMPONENTS, _LEAST_DRAWS, _DRAWS_BY_MASS = 256, 16, 8192
# Nats below the best up to which a configuration is worth a component.
_RANGE = 12.0


@dataclass(frozen=True)
class Configurations:
    """Configurations of the discrete coordinates, with a lower bound on the evidence.

    Attributes
    ----------
    reference : ConfigurationMixture
        The configurations with the most mass.
    log_evidence, mcse : float
        Log of the mass of all that were found, in nats; at most that of the evidence.
    number : int
        Configurations that were weighed.
    pairs : bool
        Whether all pairs of entries were tried.
    every : bool
        Whether there are no other configurations.
    complete : bool
        Whether all neighbours of what holds the mass were weighed.
    evaluations : int
    """

    reference: ConfigurationMixture
    log_evidence: float
    mcse: float
    number: int
    pairs: bool
    every: bool
    complete: bool
    evaluations: int


@double_precision
def find_configurations(
    density: ConditionalDensity,
    draws: np.ndarray,
    discrete: Sequence[int],
    support: Support,
    seed: np.random.SeedSequence,
) -> Configurations | None:
    """Search for configurations from draws of the prior, shape ``(m, d)``.

    The density is that of the real coordinates; the others have a support, which may be infinite.
    None if the density is zero at all draws.
    """
    rng = np.random.default_rng(seed)
    search = _Search(density, tuple(discrete), support, rng)
    for start in _starts(density, draws, rng):
        search.climb(start)
    if not search.best > -np.inf:
        return None
    complete = search.spread()
    return search.result(complete)


def _starts(density: ConditionalDensity, draws: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return draws of non-zero density: half of them the best ones, half any."""
    log_density = density.log_density(draws)
    finite = np.flatnonzero(np.isfinite(log_density))
    best = finite[np.argsort(-log_density[finite])[: CLIMBS // 2]]
    others = np.setdiff1d(finite, best)
    any_of = rng.permutation(others)[: CLIMBS - len(best)]
    return np.asarray(draws[np.concatenate([best, any_of]).astype(int)])


@dataclass
class _Search:
    """The configurations that are known, in the order in which they were weighed."""

    density: ConditionalDensity
    discrete: tuple[int, ...]
    support: Support
    rng: np.random.Generator
    known: dict[bytes, int] = field(default_factory=dict)
    position: list[np.ndarray] = field(default_factory=list)
    log_mass: list[float] = field(default_factory=list)
    scale: list[np.ndarray] = field(default_factory=list)
    expanded: set[int] = field(default_factory=set)

    @property
    def best(self) -> float:
        return max(self.log_mass, default=-np.inf)

    @property
    def most(self) -> int:
        return _MOST_PEAKS if self.density.real else _MOST_DENSITIES

    @property
    def all_pairs(self) -> bool:
        """Whether all changes of two entries are few enough."""
        values = [min(high - low, _MOST_VALUES) for low, high in self.support]
        return sum(a * b for a, b in combinations(values, 2)) <= _MOST_PAIRS

    def climb(self, start: np.ndarray) -> None:
        """Climb from a position until no change of one or two entries helps."""
        (here,) = self.weigh(start[None])
        pairs = False
        while len(self.log_mass) < self.most:
            changes = self.pairs(here) if pairs else self.singles(here)
            near = self.weigh(self.position[here] + changes)
            there = np.array([self.log_mass[i] for i in near])
            gain = there - max(self.log_mass[here], np.finfo(float).min)
            if not (gain > 0).any():
                if pairs:
                    return
                pairs = True
                continue
            best = near[int(gain.argmax())]
            if not pairs:
                best = self._together(here, changes, gain, best)
            here, pairs = best, False

    def spread(self) -> bool:
        """Weigh neighbours of what holds the mass; return whether nothing else holds any."""
        while len(self.log_mass) < self.most:
            log_mass = np.array(self.log_mass)
            rest = np.ones(len(log_mass), bool)
            rest[list(self.expanded)] = False
            if not rest.any() or logsumexp(log_mass[rest]) - logsumexp(log_mass) < np.log(_REST):
                return True
            here = int(np.where(rest, log_mass, -np.inf).argmax())
            self.expanded.add(here)
            changes = np.concatenate([self.singles(here), self.pairs(here)])
            self.weigh(self.position[here] + changes)
        return False

    def weigh(self, position: np.ndarray) -> list[int]:
        """Return the numbers of configurations, whose real coordinates start as given."""
        keys = [row[list(self.discrete)].tobytes() for row in position]
        new = {key: i for i, key in enumerate(keys) if key not in self.known}
        if new:
            peaks = self.density.peaks(position[list(new.values())])
            for row, key in enumerate(new):
                self._add(key, peaks, row)
        return [self.known[key] for key in keys]

    def _add(self, key: bytes, peaks: Peaks, row: int) -> None:
        self.known[key] = len(self.log_mass)
        self.position.append(peaks.position[row])
        self.log_mass.append(float(peaks.log_mass[row]))
        self.scale.append(peaks.scale[row])

    def singles(self, here: int) -> np.ndarray:
        """Return the changes of one entry, shape ``(m, d)``."""
        changes = [
            (i, change) for i in range(len(self.discrete)) for change in self._changes(here, i)
        ]
        found = np.zeros((len(changes), len(self.position[here])))
        for row, (i, change) in enumerate(changes):
            found[row, self.discrete[i]] = change
        return found

    def pairs(self, here: int) -> np.ndarray:
        """Return changes of two entries, all of them or as many as are allowed."""
        rows = []
        for (i, a), (j, b) in self._changes_of_two(here):
            row = np.zeros(len(self.position[here]))
            row[self.discrete[i]], row[self.discrete[j]] = a, b
            rows.append(row)
        return np.array(rows).reshape(len(rows), len(self.position[here]))

    def _changes_of_two(self, here: int) -> Iterator[tuple[tuple[int, float], tuple[int, float]]]:
        count = len(self.discrete)
        each = [self._changes(here, i) for i in range(count)]
        if self.all_pairs:
            for i, j in combinations(range(count), 2):
                yield from (((i, a), (j, b)) for a in each[i] for b in each[j])
            return
        movable = [i for i in range(count) if each[i]]
        for _ in range(_MOST_PAIRS if len(movable) > 1 else 0):
            i, j = self.rng.choice(movable, size=2, replace=False)
            a, b = float(self.rng.choice(each[i])), float(self.rng.choice(each[j]))
            yield (int(i), a), (int(j), b)

    def _changes(self, here: int, i: int) -> list[float]:
        """Return changes of an entry: to all other values, or by powers of two."""
        low, high = self.support[i]
        value = self.position[here][self.discrete[i]]
        if high - low < _MOST_VALUES:
            return [v - value for v in range(int(low), int(high) + 1) if v != value]
        steps = [sign * 2.0**j for j in range(_POWERS) for sign in (-1, 1)]
        return [step for step in steps if low <= value + step <= high]

    def _together(self, here: int, changes: np.ndarray, gain: np.ndarray, best: int) -> int:
        """Return the better of the best change and all, half, ... of those that help."""
        order = [int(i) for i in np.argsort(-gain) if gain[i] > 0]
        seen, chosen = set[int](), list[int]()
        for i in order:
            entry = int(np.flatnonzero(changes[i])[0])
            if entry not in seen:
                seen.add(entry)
                chosen.append(i)
        sizes = [len(chosen) >> j for j in range(len(chosen).bit_length() - 1)]
        if not sizes:
            return best
        jumps = np.stack([changes[chosen[:size]].sum(axis=0) for size in sizes])
        found = [*self.weigh(self.position[here] + jumps), best]
        return max(found, key=lambda number: self.log_mass[number])

    def result(self, complete: bool) -> Configurations:
        """Weigh the configurations with the most mass by importance sampling."""
        log_mass = np.array(self.log_mass)
        top = np.argsort(-log_mass)[:_COMPONENTS]
        top = top[log_mass[top] > log_mass.max() - _RANGE]
        reference = self._mixture(top, log_mass[top])
        number = len(log_mass)
        if self.density.real:
            reference, log_evidence, mcse = self._weighed(reference)
        else:
            log_evidence, mcse = float(logsumexp(log_mass)), 0.0
        return Configurations(
            reference,
            log_evidence,
            mcse,
            number,
            self.all_pairs,
            number == np.prod([high - low + 1.0 for low, high in self.support]),
            complete,
            self.density.evaluations,
        )

    def _mixture(self, top: np.ndarray, log_mass: np.ndarray) -> ConfigurationMixture:
        position = np.array([self.position[i] for i in top])
        return ConfigurationMixture(
            np.exp(log_mass - logsumexp(log_mass)),
            position[:, list(self.discrete)],
            position[:, list(self.density.real)],
            np.array([self.scale[i] for i in top]),
            self.discrete,
            self.density.real,
        )

    def _weighed(
        self, reference: ConfigurationMixture
    ) -> tuple[ConfigurationMixture, float, float]:
        """Estimate the mass of each configuration; return log of the sum, and its error."""
        share = np.asarray(reference.weight)
        count = _LEAST_DRAWS + (_DRAWS_BY_MASS * share).astype(int)
        which, first = np.repeat(np.arange(len(share)), count), np.cumsum(count) - count
        position = reference.sample_given(which, self.rng)
        log_real = np.asarray(reference.log_density_given(position, which))
        log_ratio = self.density.log_density(position) - log_real
        ratio = np.exp(log_ratio - log_ratio.max())
        mass = np.add.reduceat(ratio, first) / count
        variance = np.add.reduceat((ratio - mass[which]) ** 2, first) / (count * (count - 1))
        total = mass.sum()
        weight = np.maximum(mass / total, np.finfo(float).tiny)
        log_evidence = float(np.log(total) + log_ratio.max())
        mcse = float(np.sqrt(variance.sum()) / total)
        return replace(reference, weight=weight / weight.sum()), log_evidence, mcse
