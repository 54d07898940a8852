"""Mass along a scale that goes to zero: growing without end, or falling."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation import conditional_peak, infinite_evidence
from pymc_anneal.adaptation.conditional_peak import ConditionalDensity
from pymc_anneal.adaptation.infinite_evidence import (
    _DISTANCES,
    InfiniteEvidenceError,
    check_finite_evidence,
)
from pymc_anneal.base.contracts import LogTerms

DATA = np.full(4, 0.7)


def path(power: float, data: np.ndarray = DATA) -> pma.GeometricPath:
    """A normal mean, and a scale whose density goes to zero as ``sigma^power``, in its log."""

    def terms(x: jax.Array) -> LogTerms:
        mu, sigma = x[0], jnp.exp(x[1])
        log_prior = -0.5 * mu**2 + (power + 1) * x[1] - 0.5 * sigma**2
        return LogTerms(log_prior, jax.scipy.stats.norm.logpdf(jnp.asarray(data), mu, sigma).sum())

    return pma.GeometricPath(terms)


def draws(rng: np.random.Generator, log_scale: float) -> np.ndarray:
    """Particles around the data at a scale."""
    log_sigma = log_scale + rng.normal(size=200)
    return np.column_stack([0.7 + np.exp(log_sigma) * rng.normal(size=200) / 2, log_sigma])


def check(path: pma.GeometricPath, log_scale: float = -14.0) -> None:
    rng = np.random.default_rng(1)
    check_finite_evidence(path, draws(rng, 0.0), draws(rng, log_scale))


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_mass_grows_by_its_power(power: float) -> None:
    """Of ``sigma^-4``, the mean takes one power, the prior's density at zero ``power + 1``."""
    with pytest.raises(InfiniteEvidenceError) as caught:
        check(path(power))
    assert caught.value.coordinate == 1
    assert caught.value.slope == pytest.approx(2 - power, abs=1e-3)
    assert caught.value.position[0] == pytest.approx(0.7, abs=1e-9)


def test_neighbouring_numbers_have_another_density_than_the_peak() -> None:
    """That of both neighbours is the same, by symmetry, and with heavy tails not out of range."""

    def terms(x: jax.Array) -> LogTerms:
        mu, sigma = x[0], jnp.exp(x[1])
        log_likelihood = jax.scipy.stats.t.logpdf(jnp.asarray(DATA), 3.0, mu, sigma).sum()
        return LogTerms(-0.5 * mu**2 + x[1] - 0.5 * sigma**2, log_likelihood)

    with pytest.raises(InfiniteEvidenceError) as caught:
        check(pma.GeometricPath(terms))
    assert caught.value.slope == pytest.approx(2.0, abs=1e-3)


def test_mass_that_falls_is_finite() -> None:
    check(path(2.1))
    check(path(0.0, DATA + 1e-6 * np.array([1, -1, 2, -2])))


def test_a_mode_far_beyond_the_prior_is_finite() -> None:
    """The mass grows all the way to data that are a million prior scales away."""

    def terms(x: jax.Array) -> LogTerms:
        return LogTerms(-jnp.log1p(x**2).sum(), -0.5 * jnp.square(x - 1e6).sum())

    rng = np.random.default_rng(3)
    reference, particles = rng.standard_cauchy((50, 2)), 1e5 + rng.normal(size=(50, 2))
    check_finite_evidence(pma.GeometricPath(terms), reference, particles)


FAR = {
    "cube of the data": lambda x: -(x**2) / 2 - (x**3 / 1e3 - 64) ** 2 / 2,
    "Laplace": lambda x: -jnp.abs(x) - 2 * jnp.abs(x - 60),
}


@pytest.mark.parametrize("name", FAR)
def test_a_mode_beyond_all_places_is_finite(name: str) -> None:
    """The mass grows along all of them, ever faster or by the same for each unit."""
    path = pma.GeometricPath(lambda x: LogTerms(jnp.zeros(()), FAR[name](x[0]) - x[1] ** 2 / 2))
    rng = np.random.default_rng(5)
    reference, particles = rng.normal(size=(2, 50, 2)) + [[[0, 0]], [[45, 0]]]
    check_finite_evidence(path, reference, particles)


def test_mass_that_grows_ever_faster_is_infinite() -> None:
    path = pma.GeometricPath(lambda x: LogTerms(-0.5 * x[0] ** 2, x[0] ** 2))
    reference, particles = np.random.default_rng(6).normal(size=(2, 50, 1)) + [[[0]], [[45]]]
    with pytest.raises(InfiniteEvidenceError):
        check_finite_evidence(path, reference, particles)


def test_only_particles_far_from_the_draws_are_looked_at() -> None:
    check(path(0.0), log_scale=-3.0)


def test_places_are_beyond_all_draws(monkeypatch) -> None:
    """Mass that grows up to a mode beyond most draws of a skewed prior, and falls after it."""
    monkeypatch.setattr(infinite_evidence, "_LATER", np.zeros(0))
    path = pma.GeometricPath(lambda x: LogTerms(-0.1 * jnp.abs(x[0]), -0.9 * jnp.abs(x[0] - 35)))
    rng = np.random.default_rng(4)
    reference = np.append(rng.normal(size=200), 40.0)[:, None]
    check_finite_evidence(path, reference, 50 + rng.normal(size=(50, 1)))


def test_deviations_of_a_normal_density_are_normal() -> None:
    covariance = np.array([[2.0, 1.9, 0.3], [1.9, 2.0, -0.1], [0.3, -0.1, 9.0]])
    precision = jnp.asarray(np.linalg.inv(covariance))
    path = pma.GeometricPath(lambda x: LogTerms(jnp.zeros(()), -0.5 * x @ precision @ x))
    density = ConditionalDensity(path, (0, 2))
    peak = density.peaks(np.array([[1.0, 2.0, 3.0]]))
    assert infinite_evidence._is_normal(density, peak)
    wide = peak._replace(scale=2.5 * peak.scale)
    assert not infinite_evidence._is_normal(density, wide)  # a fall of 3.1
    position = peak.position + 5
    beside = peak._replace(position=position, log_density=density.log_density(position))
    assert not infinite_evidence._is_normal(density, beside)


class TestSparseDirichlet:
    """Counts in three of 20 categories: tails of the others are exponential."""

    COUNTS = jnp.array([20.0, 10.0, 1.0] + 17 * [0.0])

    def check(self) -> None:
        def terms(x: jax.Array) -> LogTerms:
            log_p = jax.nn.log_softmax(jnp.append(x, -x.sum()))
            return LogTerms(0.1 * log_p.sum(), self.COUNTS @ log_p)

        particles = np.random.default_rng(7).normal(size=(2, 50, 19))
        particles[1] += np.where(np.arange(19) < 3, 20.0, -3.0)
        check_finite_evidence(pma.GeometricPath(terms), *particles)

    def test_is_finite(self) -> None:
        self.check()

    def test_laplace_would_have_it_grow(self, monkeypatch) -> None:
        """The twin takes the volume that vanishing curvatures give, and looks no further."""
        monkeypatch.setattr(conditional_peak, "_LEAST_CURVATURE", 1e-16)
        monkeypatch.setattr(infinite_evidence, "_LATER", np.zeros(0))
        self.check()
        monkeypatch.setattr(infinite_evidence, "_MOST_FALL", np.inf)
        with pytest.raises(InfiniteEvidenceError):
            self.check()


class TestSeparation:
    """A logistic regression of separated data, whose mass grows inside of a wide prior."""

    SD = 20.0

    def path(self) -> pma.GeometricPath:
        place = jnp.array([-1.2, -0.8, -0.5, -0.2, 0.1, 0.4, 0.9, 1.3])

        def terms(x: jax.Array) -> LogTerms:
            log_prior = -0.5 * jnp.square(x / self.SD).sum()
            logit = (x[0] + x[1] * place) * jnp.sign(place)
            return LogTerms(log_prior, jax.nn.log_sigmoid(logit).sum())

        return pma.GeometricPath(terms)

    def particles(self, slope: float) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(2)
        around = np.array([0.0, slope]) + [1.0, 3.0] * rng.normal(size=(50, 2))
        return self.SD * rng.normal(size=(50, 2)), around

    @pytest.mark.parametrize("slope", [70.0, 140.0])
    def test_is_finite(self, slope: float) -> None:
        check_finite_evidence(self.path(), *self.particles(slope))

    def test_mass_grows_inside_of_the_prior(self, monkeypatch) -> None:
        """The twin: within three standard deviations of the prior, it says that it is infinite."""
        monkeypatch.setattr(infinite_evidence, "_places", lambda draws, unit: _DISTANCES)
        monkeypatch.setattr(infinite_evidence, "_UNIT", np.inf)
        monkeypatch.setattr(infinite_evidence, "_LATER", np.zeros(0))
        with pytest.raises(InfiniteEvidenceError):
            check_finite_evidence(self.path(), *self.particles(70.0))
