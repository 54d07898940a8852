"""What a mixture misses of a target: density, mass, and peaks that are worth a component."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.fit_mixture import fit_mixture
from pymc_anneal.adaptation.missing import LEAST_MASS, LEAST_PEAK, Missing, height_above
from pymc_anneal.adaptation.peak_mass import Peak
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base import LogTerms

# Place, standard deviation and mass of a second peak, in units of the first one, whose place and
# standard deviation are 0 and 1, and whose mass is e^5.
PLACE, SD, MASS = 8.0, 0.1, 3.0
LOG_Z = 5.0
WIDE = 20.0


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def log_normal(x: jax.Array, sd: float) -> jax.Array:
    return -0.5 * (x / sd) ** 2 - jnp.log(sd) - 0.5 * np.log(2 * np.pi)


def terms(position: jax.Array) -> LogTerms:
    x = position[0]
    both = jnp.logaddexp(log_normal(x, 1.0), jnp.log(MASS) + log_normal(x - PLACE, SD))
    return LogTerms(log_normal(x, WIDE), LOG_Z + both - log_normal(x, WIDE))


def draw_prior(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
    return WIDE * np.random.default_rng(seed).standard_normal((draws, 1))


@pytest.fixture(scope="module")
def missing() -> Missing:
    """A mixture fitted to draws of the first peak alone."""
    with jax.enable_x64(True):
        seed = np.random.SeedSequence(1)
        target = TargetDensity(pma.GeometricPath(terms), 256)
        particles = np.random.default_rng(seed).standard_normal((256, 1))
        return Missing(target, fit_mixture(target, particles, draw_prior, seed, draws=4096))


# Positions around the second peak, where it is all that there is.
GRID = np.linspace(PLACE - 1, PLACE + 1, 2001)[:, None]


def test_density_by_hand(missing: Missing) -> None:
    log_f = missing.target.log_density(GRID)
    height = height_above(missing.found, GRID, missing.target.evaluate(GRID))
    share = 1 / (1 + (np.exp(LEAST_PEAK) / np.exp(height)) ** 4)
    np.testing.assert_allclose(missing.log_density(GRID), log_f + np.log(share), rtol=1e-10)


def test_it_holds_the_other_peak(missing: Missing) -> None:
    """But for its tails, where the prior has a share in the mixture."""
    mass = np.trapezoid(np.exp(missing.log_density(GRID)), GRID[:, 0])
    assert mass == pytest.approx(MASS * np.exp(LOG_Z), rel=0.01)


def test_next_to_nothing_is_missing_where_the_mixture_fits(missing: Missing) -> None:
    near = np.linspace(-2, 2, 101)[:, None]
    off = missing.log_density(near) - missing.target.log_density(near)
    assert off.max() < -6.0


def test_where_the_mixture_is_far_below(missing: Missing) -> None:
    assert missing.above(np.array([[0.0], [1.0], [PLACE]])).tolist() == [False, False, True]
    # By less than two nats it is not.
    height = height_above(missing.found, GRID, missing.target.evaluate(GRID))
    assert ((height > 0) & (height < LEAST_PEAK)).any()
    np.testing.assert_array_equal(missing.above(GRID), height > LEAST_PEAK)


@pytest.mark.parametrize(
    ("place", "mass", "new"),
    [(PLACE, 0.1, True), (PLACE, 1.5 * LEAST_MASS, True), (PLACE, 0.5 * LEAST_MASS, False)]
    + [(0.0, 0.1, False), (0.5, 10.0, False)],
)
def test_peaks_that_are_new(missing: Missing, place: float, mass: float, new: bool) -> None:
    """The mass is in units of that of which the mixture knows."""
    normal = pma.GaussianReference(np.array([place]), np.array([SD]))
    assert missing.is_new(Peak(normal, LOG_Z + np.log(mass))) == new


def test_outside_of_the_support() -> None:
    def half(position: jax.Array) -> LogTerms:
        inside = jnp.where(position[0] > 0, 0.0, -jnp.inf)
        return LogTerms(log_normal(position[0], WIDE), inside)

    seed = np.random.SeedSequence(1)
    target = TargetDensity(pma.GeometricPath(half), 256)
    particles = np.abs(np.random.default_rng(seed).standard_normal((256, 1)))
    found = fit_mixture(target, particles, draw_prior, seed, draws=4096)
    assert Missing(target, found).log_density(np.array([[-1.0]])) == -np.inf
