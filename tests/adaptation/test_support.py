"""The search for particles of non-zero likelihood, and likelihoods of flat steps."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.adaptation.flat_likelihood import (
    FlatLikelihoodError,
    check_not_flat,
    is_mostly_flat,
)
from pymc_anneal.adaptation.pilot import Pilot, run_pilot
from pymc_anneal.adaptation.support import WANTED, Reached, take_first_step
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base.contracts import LogTerms, NanDensityError
from pymc_anneal.base.double_precision import double_precision

PARTICLES = 128


def draw(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(draws, 1))


def path_where(inside: float, elsewhere: float = -jnp.inf) -> pma.GeometricPath:
    """A standard normal prior, and a likelihood of one above some value."""

    def terms(x: jax.Array) -> LogTerms:
        log_prior = -0.5 * x[0] ** 2 - 0.5 * np.log(2 * np.pi)
        return LogTerms(log_prior, jnp.where(x[0] > inside, 0.0, elsewhere))

    return pma.GeometricPath(terms)


def pilot(path: pma.GeometricPath, further: bool = True, **limits: Any) -> Pilot:
    seed, own = np.random.SeedSequence(7).spawn(2)
    kernel = pma.RandomWalkMetropolis()
    return run_pilot(
        path, kernel, draw(own, PARTICLES), seed, draw=draw if further else None, **limits
    )


def test_further_draws_find_a_region_that_the_first_ones_miss() -> None:
    """A tail of 3e-4: of 128 draws few lie in it, of 200,000 some sixty."""
    with pytest.raises(ValueError, match="likelihood is zero at all of 128 prior draws"):
        pilot(path_where(4.0), further=False)
    found = pilot(path_where(3.43))
    mass = stats.norm.logsf(3.43)
    assert (found.position > 3.43).all()
    assert found.inside >= WANTED
    assert found.evaluations >= found.drawn - PARTICLES
    assert found.log_z == pytest.approx(np.log(found.inside / found.drawn), abs=1e-9)
    assert found.log_z == pytest.approx(mass, abs=4 / np.sqrt(WANTED))
    assert found.log_reference_mass == pytest.approx(found.log_z, abs=1e-9)
    assert len(np.unique(found.ancestor)) > WANTED / 4


def test_no_further_draws_where_enough_are_inside() -> None:
    found = pilot(path_where(-0.5))
    assert found.drawn == PARTICLES
    assert found.inside == pytest.approx(PARTICLES * stats.norm.sf(-0.5), abs=20)


def test_the_search_says_how_many_draws_it_made() -> None:
    with pytest.raises(ValueError, match="zero at all of 16512 prior draws"):
        pilot(path_where(8.0), max_draws=10_000)


class TestFirstStep:
    """Of 4,096 draws of a normal prior to a normal likelihood, far out."""

    DRAWS = 4096

    @staticmethod
    def path(nan_above: float = np.inf, low: float = 0.0) -> pma.GeometricPath:
        def terms(x: jax.Array) -> LogTerms:
            log_prior = -0.5 * x[0] ** 2 - 0.5 * np.log(2 * np.pi)
            log_likelihood = -0.5 * ((x[0] - 2.5) / 0.2) ** 2
            log_likelihood = jnp.where(x[0] < low, -jnp.inf, log_likelihood)
            return LogTerms(log_prior, jnp.where(x[0] > nan_above, jnp.nan, log_likelihood))

        return pma.GeometricPath(terms)

    @double_precision
    def take(self, seed: int, path: pma.GeometricPath, draws: int = DRAWS):
        own, further = np.random.SeedSequence(seed).spawn(2)
        return take_first_step(path, draw(own, PARTICLES), draw, further, draws, 1.0)

    def test_it_leaves_twice_as_many_effective_draws_as_particles(self) -> None:
        start, (beta, step) = self.take(1, self.path())
        assert 0 < beta < 1
        assert step.discrepancy == pytest.approx(np.log(start.inside / (2 * PARTICLES)), abs=1e-6)
        assert start.drawn == self.DRAWS
        assert start.inside == pytest.approx(self.DRAWS / 2, abs=150)
        assert start.log_mass == pytest.approx(np.log(start.inside / self.DRAWS))
        assert start.position.shape == (PARTICLES, 1)
        assert not step.log_u.any()

    def test_mean_and_distribution_at_its_temperature(self) -> None:
        """Over seeds; half of the draws have no likelihood, which counts."""
        errors, scores = [], []
        for seed in range(20):
            start, (beta, step) = self.take(seed, self.path())
            variance = 1 / (1 + beta / 0.04)
            mean = variance * beta * 2.5 / 0.04
            exact = -0.5 * 2.5**2 / (1 + 0.04 / beta) + 0.5 * np.log(variance)
            exact += stats.norm.logsf(-mean / np.sqrt(variance))
            errors.append(step.log_mean - exact)
            scores.append((start.position.mean() - mean) / np.sqrt(variance / PARTICLES))
        assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(20)
        assert np.std(errors) < 1.5 * np.sqrt(np.expm1(step.discrepancy + np.log(2)) / self.DRAWS)
        assert abs(np.mean(scores)) < 4 / np.sqrt(20) + 0.5

    def test_families_are_the_draws(self) -> None:
        start, _ = self.take(1, self.path())
        assert len(np.unique(start.family)) > 0.7 * PARTICLES
        _, first = np.unique(start.family, return_index=True)
        assert len(np.unique(start.position[first])) == len(first)

    def test_nan_is_left_to_the_moves(self) -> None:
        start, (beta, _) = self.take(1, self.path(nan_above=3.2))
        assert (start.position < 3.2).all()
        assert 0 < beta <= 1

    def test_all_the_way_where_the_likelihood_is_nearly_flat(self) -> None:
        _, (beta, step) = self.take(1, path_where(-1.0, elsewhere=-0.5))
        assert beta == 1
        assert step.discrepancy < 0.1

    def test_a_pilot_goes_on_from_it(self) -> None:
        errors, families = [], []
        for seed in range(4):
            own, seed_run = np.random.SeedSequence(seed).spawn(2)
            given = self.path(low=-1.0), pma.RandomWalkMetropolis(), draw(own, PARTICLES), seed_run
            found = run_pilot(*given, draw=draw, first_draws=self.DRAWS)
            plain = run_pilot(*given, draw=draw)
            exact = stats.norm.logpdf(2.5, 0, np.hypot(1, 0.2)) + 0.5 * np.log(2 * np.pi * 0.04)
            errors.append((found.log_z - exact) / found.log_z_mcse)
            families.append([p.families for p in (found, plain)])
            assert len(found.betas) < len(plain.betas)
            assert found.evaluations < plain.evaluations
            assert found.seen == self.DRAWS
            assert found.betas[-1] == 1
        assert max(np.abs(errors)) < 4
        many, few = np.mean(families, axis=0)
        assert many > few


def test_particles_that_a_guide_has_led_there_have_ancestors() -> None:
    """Copies of seven draws, however many they are."""

    def guide(seed: np.random.SeedSequence) -> Reached:
        inside = 8.0 + np.random.default_rng(seed).exponential(0.1, size=(350, 1))
        return Reached(inside, np.repeat(np.arange(7), 50), -30.0, 1000)

    found = pilot(path_where(8.0), max_draws=10_000, guide=guide)
    assert 1 < len(np.unique(found.ancestor)) <= 7
    assert found.ancestor.max() < 7


def test_a_nan_among_further_draws_is_an_error() -> None:
    def terms(x: jax.Array) -> LogTerms:
        log_likelihood = jnp.where(x[0] > 3, jnp.nan, -jnp.inf)
        return LogTerms(-0.5 * x[0] ** 2, log_likelihood)

    with pytest.raises(NanDensityError):
        pilot(pma.GeometricPath(terms))


@double_precision
def flat_coordinates(path: pma.GeometricPath, kernel: pma.Transition, ndim: int = 1) -> list[int]:
    position = np.random.default_rng(3).normal(size=(PARTICLES, ndim))
    try:
        check_not_flat(path, kernel, position, path.evaluate(position))
    except FlatLikelihoodError as error:
        return list(error.coordinates)
    return []


def is_flat(path: pma.GeometricPath, kernel: pma.Transition) -> bool:
    return bool(flat_coordinates(path, kernel))


FLATS = {
    "tent": (lambda x: jnp.maximum(1 - 50 * jnp.abs(x[0] - 1), 0.0), True),
    "tent beside a slope": (lambda x: x[1] + jnp.maximum(1 - 5 * jnp.abs(x[0] - 1), 0.0), True),
    "one coordinate of two": (lambda x: -((x[0] - 1) ** 2), False),
    "a little slope": (lambda x: jnp.maximum(x[0], -0.5), False),
    "constant": (lambda x: jnp.zeros(()), True),
    "zero elsewhere": (lambda x: jnp.where(x[0] > 1, -(x[0] ** 2), -jnp.inf), False),
    "zero everywhere": (lambda x: jnp.full((), -jnp.inf), False),
}


@pytest.mark.parametrize(("log_likelihood", "flat"), FLATS.values(), ids=FLATS)
@double_precision
def test_mostly_flat(log_likelihood, flat: bool) -> None:
    path = pma.GeometricPath(lambda x: LogTerms(-0.5 * (x**2).sum(), log_likelihood(x)))
    position = np.random.default_rng(3).normal(size=(PARTICLES, 2))
    assert is_mostly_flat(TargetDensity(path, PARTICLES), position) == flat


def test_flat_steps_are_recognised() -> None:
    assert is_flat(path_where(0.5, -3.0), pma.HMC())
    assert is_flat(path_where(0.5), pma.HMC())


def test_steps_of_which_no_two_draws_share_one_are_recognised() -> None:
    """As of roundings of several coordinates together."""

    def stairs(x: jax.Array) -> LogTerms:
        return LogTerms(-0.5 * x[0] ** 2, -0.5 * jnp.floor(1e6 * x[0]) ** 2 / 1e12)

    assert is_flat(pma.GeometricPath(stairs), pma.HMC())


def test_other_likelihoods_are_not_flat() -> None:
    def sloped(x: jax.Array) -> LogTerms:
        return LogTerms(-0.5 * x[0] ** 2, jnp.where(x[0] > -0.5, 0.0, 1e-3 * x[0]))

    assert not is_flat(pma.GeometricPath(sloped), pma.HMC())
    assert not is_flat(path_where(0.5, -3.0), pma.RandomWalkMetropolis())
    weak = pma.GeometricPath(lambda x: LogTerms(-0.5 * x[0] ** 2, -1e-40 * x[0] ** 2))
    assert not is_flat(weak, pma.HMC())
    # Constant at all draws: there may be anything elsewhere.
    assert not is_flat(path_where(9.0, -3.0), pma.HMC())


def test_what_is_lost_in_rounding_is_no_step() -> None:
    """In a batch of another length the terms of a likelihood are added up in another order."""

    def large(x: jax.Array) -> LogTerms:
        return LogTerms(-0.5 * x[0] ** 2, -size * (1 + 1e-15 * jnp.floor(x[0])))

    size = 1e10
    assert not is_flat(pma.GeometricPath(large), pma.HMC())
    size = 1e16  # steps of ten nats, but one in 1e15
    assert not is_flat(pma.GeometricPath(large), pma.HMC())


def test_without_moves_by_gradients_none_are_taken() -> None:
    def endless(x: jax.Array) -> LogTerms:  # by a loop that JAX does not differentiate
        twice = jax.lax.while_loop(lambda v: v < 9.0, lambda v: 2 * v, jnp.abs(x[0]) + 1)
        return LogTerms(-0.5 * x[0] ** 2, twice)

    assert not is_flat(pma.GeometricPath(endless), pma.RandomWalkMetropolis())
    with pytest.raises(ValueError, match="Reverse-mode"):
        is_flat(pma.GeometricPath(endless), pma.HMC())


def step_in_time(x: jax.Array) -> LogTerms:
    """A change from x1 to x2 at x0, and x3, which does not matter."""
    mean = jnp.where(jnp.arange(9.0) - 4 < x[0], x[1], x[2])
    return LogTerms(-0.5 * (x**2).sum(), -0.5 * ((mean - 0.2) ** 2).sum())


def test_steps_along_some_coordinates_are_recognised() -> None:
    path = pma.GeometricPath(step_in_time)
    assert flat_coordinates(path, pma.HMC(), 4) == [0, 3]
    assert flat_coordinates(path, pma.BlockTransition(pma.HMC(), [0, 2]), 4) == [0]
    assert not flat_coordinates(path, pma.BlockTransition(pma.HMC(), [1, 2, 3]), 4)
    walks = pma.BlockTransition(pma.RandomWalkMetropolis(), [0])
    rest = pma.BlockTransition(pma.HMC(), [1, 2, 3])
    assert not flat_coordinates(path, pma.Composition([walks, rest]), 4)
    # What whole numbers alone do is no step of the others.
    assert not flat_coordinates(path, pma.Composition([rest, pma.Gibbs([0], [(0, 1)])]), 4)
    steps = pma.BlockTransition(pma.HMC(), [0])
    assert flat_coordinates(path, pma.Composition([steps, pma.Gibbs([3], [(0, 1)])]), 4) == [0]
