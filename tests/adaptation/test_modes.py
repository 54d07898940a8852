"""Grouping of particles by the valleys of the density."""

import numpy as np
import pytest

from scipy.special import logsumexp

from pymc_anneal.adaptation.modes import group_by_mode


def mixture(centres: np.ndarray, sd: float, counts: list[int]):
    """Return log density and particles of a mixture of normal distributions."""
    rng, weight = np.random.default_rng(11), np.array(counts) / sum(counts)
    parts = [rng.normal(c, sd, (n, len(c))) for c, n in zip(centres, counts, strict=True)]

    def log_density(x: np.ndarray) -> np.ndarray:
        square = ((x[:, None] - centres) ** 2).sum(axis=2) / sd**2
        return logsumexp(np.log(weight) - 0.5 * square, axis=1)

    return log_density, np.concatenate(parts)


@pytest.mark.parametrize("d", [1, 2, 30])
def test_one_normal_mode(d: int) -> None:
    position = np.random.default_rng(11).normal(size=(256, d)) * np.logspace(-3, 3, d)

    def log_density(x: np.ndarray) -> np.ndarray:
        return -0.5 * ((x / np.logspace(-3, 3, d)) ** 2).sum(axis=1)

    assert (group_by_mode(log_density, position) == 0).all()


@pytest.mark.parametrize("d", [1, 2, 10])
def test_two_modes(d: int) -> None:
    centres = np.stack([np.full(d, -6.0), np.full(d, 6.0)])
    log_density, position = mixture(centres, 1.0, [40, 216])
    label = group_by_mode(log_density, position)
    # The larger one first.
    np.testing.assert_array_equal(label, np.repeat([1, 0], [40, 216]))


def test_five_modes() -> None:
    centres = np.array([[0.0, 0], [5, 5], [-5, 5], [5, -5], [-5, -5]])
    log_density, position = mixture(centres, 0.5, [60, 50, 40, 30, 20])
    label = group_by_mode(log_density, position)
    np.testing.assert_array_equal(label, np.repeat(np.arange(5), [60, 50, 40, 30, 20]))


def test_lines_within_a_component_are_not_evaluated() -> None:
    """Five points on one line or two for each particle, not on those to all neighbours."""
    centres = np.array([[0.0, 0], [7, 7]])
    log_density, position = mixture(centres, 1.0, [150, 106])
    evaluated = 0

    def counted(x: np.ndarray) -> np.ndarray:
        nonlocal evaluated
        evaluated += len(x)
        return log_density(x)

    np.testing.assert_array_equal(group_by_mode(counted, position), np.repeat([0, 1], [150, 106]))
    assert evaluated < 256 * (1 + 5 * 1.5)


def test_a_ring_is_one_mode() -> None:
    # No line across stays high, lines between neighbours do.
    rng = np.random.default_rng(11)
    angle, radius = rng.uniform(0, 2 * np.pi, 256), rng.normal(3, 0.1, 256)
    position = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def log_density(x: np.ndarray) -> np.ndarray:
        return -0.5 * ((np.hypot(*x.T) - 3) / 0.1) ** 2

    assert (group_by_mode(log_density, position) == 0).all()


CENTRES = np.array([[-8.0], [8.0], [30.0]])


def test_a_few_particles_alone_are_marked() -> None:
    log_density, position = mixture(CENTRES, 1.0, [100, 50, 2])
    label = group_by_mode(log_density, position)
    np.testing.assert_array_equal(label, np.repeat([0, 1, -1], [100, 50, 2]))


def test_many_particles_alone_join_the_nearest_mode() -> None:
    # Valleys that cut off a tenth of the particles are those of a ragged density.
    log_density, position = mixture(CENTRES, 1.0, [20, 5, 3])
    label = group_by_mode(log_density, position)
    np.testing.assert_array_equal(label, np.repeat([0, 1, 1], [20, 5, 3]))


def test_few_particles() -> None:
    assert (group_by_mode(lambda x: -(x**2).sum(axis=1), np.zeros((3, 2))) == 0).all()
