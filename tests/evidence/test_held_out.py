"""Held-out particles as witnesses: level, power, families, and rough estimates too high."""

import numpy as np
import pytest

from scipy import stats

from pymc_anneal.evidence.held_out import (
    LEVEL,
    LEVEL_OF_CHOICES,
    effective_witnesses,
    find_hole,
    is_too_low,
)

# Witnesses of a survey, in families of up to 16 that stand for one mode each; and draws of a run.
WITNESSES, DRAWS = 128, 2048
# Log ratio in nats where the density has next to no mass.
HOLE = 8.0


def families(rng: np.random.Generator, n: int, largest: int) -> np.ndarray:
    """Return the family of each of ``n`` witnesses."""
    return np.repeat(np.arange(n), rng.integers(1, largest + 1, size=n))[:n]


def of_families(rng: np.random.Generator, family: np.ndarray, missed: float) -> np.ndarray:
    """Return log ratios that all of a family share, in the hole with a given probability."""
    kinds = family.max() + 1
    ratio = np.where(rng.uniform(size=kinds) < missed, HOLE, rng.normal(size=kinds))
    return ratio[family]


def p_value(rng: np.random.Generator, missed: float, largest: int, *, aware: bool = True) -> float:
    """Return the p-value of draws that miss a share of the posterior."""
    family = families(rng, WITNESSES, largest)
    at_witnesses, at_draws = of_families(rng, family, missed), rng.normal(size=DRAWS)
    weight = np.exp(0.5 * rng.normal(size=DRAWS))
    known = family if aware else np.arange(WITNESSES)
    return find_hole(at_witnesses, known, at_draws, weight / weight.sum()).p_value


@pytest.mark.parametrize("largest", [1, 4, 16])
def test_false_alarms_are_rare(largest: int) -> None:
    """At twenty times the level of a run, half of what it allows: the bounds are cautious."""
    rng = np.random.default_rng(largest)
    found = np.array([p_value(rng, 0.0, largest) for _ in range(1500)])
    assert (found < 20 * LEVEL).mean() <= 10 * LEVEL
    assert not (found < LEVEL).any()


def test_families_that_count_as_independent_raise_false_alarms() -> None:
    """The twin without families accuses right draws, and the test above would see it."""
    rng = np.random.default_rng(1)
    found = np.array([p_value(rng, 0.0, 16, aware=False) for _ in range(300)])
    assert (found < LEVEL).mean() > 10 * LEVEL


@pytest.mark.parametrize(("missed", "largest"), [(0.1, 1), (0.2, 4), (0.6, 16)])
def test_missed_mass_is_seen(missed: float, largest: int) -> None:
    rng = np.random.default_rng(3)
    found = np.array([p_value(rng, missed, largest) for _ in range(300)])
    assert (found < LEVEL).mean() > 0.95


def test_mass_that_only_the_draws_have_is_no_hole() -> None:
    """What a search has found and the survey has not is no reason to doubt."""
    rng = np.random.default_rng(4)
    at_draws = np.where(rng.uniform(size=DRAWS) < 0.5, HOLE, rng.normal(size=DRAWS))
    even = np.full(DRAWS, 1 / DRAWS)
    found = find_hole(rng.normal(size=WITNESSES), np.arange(WITNESSES), at_draws, even)
    assert found.p_value > 0.1


def test_a_hole_by_hand() -> None:
    """Five of ten independent witnesses above all of a hundred draws."""
    at_draws, at_witnesses = np.linspace(0, 1, 100), np.repeat([0.5, 2.0], 5)
    found = find_hole(at_witnesses, np.arange(10), at_draws, np.full(100, 0.01))
    assert found.share == 0.5
    assert found.witnesses == 10
    # The mass that no draw of a hundred meets with a probability of LEVEL / 10.
    assert found.mass == pytest.approx(1 - (LEVEL / 10) ** 0.01)
    assert found.p_value == pytest.approx(10 * stats.poisson.sf(4, 10 * found.mass))
    assert "0.5 of the held-out particles" in str(found)


def test_zero_densities() -> None:
    """Draws where the target is zero, and witnesses where the density is."""
    at_draws = np.concatenate([np.full(50, -np.inf), np.zeros(50)])
    weight = np.concatenate([np.zeros(50), np.full(50, 0.02)])
    inside = find_hole(np.zeros(20), np.arange(20), at_draws, weight)
    outside = find_hole(np.full(20, np.inf), np.arange(20), at_draws, weight)
    assert inside.p_value == 1.0
    assert outside.p_value < LEVEL


def test_effective_witnesses_by_hand() -> None:
    assert effective_witnesses(np.arange(7)) == 7
    assert effective_witnesses(np.array([3, 3, 3, 5])) == pytest.approx(16 / 10)


@pytest.mark.parametrize("mean", [0.05, 1.0, 5.0, 100.0])
@pytest.mark.parametrize("sd", [0.0, 0.5, 1.0])
def test_a_rough_estimate_is_rarely_far_too_high(mean: float, sd: float) -> None:
    """Families that reach the posterior: a Poisson number of them, with log-normal weights."""
    rng, runs, level = np.random.default_rng(5), 10_000, 0.01
    objections = dict.fromkeys(("right", "third"), 0)
    for count in rng.poisson(mean, size=runs):
        weight = np.exp(sd * rng.normal(size=count) - sd**2 / 2)
        if count:
            families = weight.sum() ** 2 / np.square(weight).sum()
            rough = np.log(weight.sum() / mean)
            objections["right"] += is_too_low(0.0, rough, families, level)
            objections["third"] += is_too_low(-np.log(3), rough, families, level)
    # The number of families that counts is known with an error of its own.
    assert objections["right"] / runs < 2 * level
    # Twin: an estimate that misses two thirds of the evidence.
    if mean > 10:
        assert objections["third"] / runs > 0.95


def test_an_estimate_that_is_too_low_by_hand() -> None:
    # One family: Markov's inequality, a factor of a thousand.
    assert is_too_low(-7.0, 0.0, 1.0, LEVEL)
    assert not is_too_low(-6.8, 0.0, 1.0, LEVEL)
    # A hundred: more than 3.09 standard errors of a tenth; 100 or more, where 71.9 are expected.
    assert is_too_low(np.log(0.719), 0.0, 100.0, LEVEL)
    assert not is_too_low(np.log(0.72), 0.0, 100.0, LEVEL)
    assert stats.poisson.sf(99, 71.9) < LEVEL < stats.poisson.sf(99, 72.0)
    # Too high an estimate is none that has missed something, and NaN is no estimate.
    assert not is_too_low(50.0, 0.0, 100.0, LEVEL)
    assert not is_too_low(1000.0, 0.0, 100.0, LEVEL)
    assert not is_too_low(-50.0, np.nan, 1.0, LEVEL)
    assert is_too_low(-np.inf, 0.0, 1.0, LEVEL)


def test_witnesses_that_know_a_part_make_it_look_larger() -> None:
    """Draws have found a mode of two thirds that no witness knows; what they know is all right."""
    rng = np.random.default_rng(6)
    at_witnesses = rng.normal(size=2000)
    at_draws = np.where(rng.uniform(size=2000) < 2 / 3, -3.0, rng.normal(size=2000))
    even = np.full(2000, 1 / 2000)
    arguments = at_witnesses, np.arange(2000), at_draws, even
    assert find_hole(*arguments).p_value < LEVEL
    assert find_hole(*arguments, known=1 / 3).p_value > 0.1


def by_levels(rng: np.random.Generator, mean: float, share: float, known: float) -> float:
    """Return the p-value of draws that know of a region, which a few families of levels stand for.

    Of the posterior, `share` is in the region and `known` of the draws are. A Poisson number of
    families has reached it, and many are elsewhere, all of them with shares of their own.
    """
    inside = share / mean * rng.lognormal(-0.32, 0.8, size=rng.poisson(mean))
    outside = (1 - share) / 200 * rng.lognormal(-0.32, 0.8, size=200)
    weight = np.concatenate([inside, outside])
    family = rng.choice(len(weight), size=DRAWS, p=weight / weight.sum())
    at_witnesses = np.where(family < len(inside), HOLE, rng.normal(size=DRAWS))
    at_draws = np.where(rng.uniform(size=DRAWS) < known, HOLE, rng.normal(size=DRAWS))
    return find_hole(at_witnesses, family, at_draws, np.full(DRAWS, 1 / DRAWS)).p_value


@pytest.mark.parametrize(
    ("mean", "share"),
    [(0.03, 0.003), (0.3, 0.02), (1.0, 0.02), (3.0, 0.05), (5.0, 0.1), (3.0, 0.3)],
)
def test_few_families_in_a_region_seldom_accuse_draws_that_are_right(mean, share) -> None:
    rng = np.random.default_rng(7)
    found = np.array([by_levels(rng, mean, share, share) for _ in range(1000)])
    assert (found < LEVEL_OF_CHOICES).mean() < LEVEL_OF_CHOICES


@pytest.mark.parametrize(("mean", "share"), [(20.0, 0.15), (30.0, 0.1)])
def test_a_region_of_some_families_is_seen(mean: float, share: float) -> None:
    rng = np.random.default_rng(9)
    found = np.array([by_levels(rng, mean, share, 1e-3) for _ in range(300)])
    assert (found < LEVEL).mean() > 0.95
