"""Draws of every reference against its density: scores of all samplers, tested at one level.

If ``x ~ r`` is widened by ``1 + e`` about any centre ``m``, the score ``T = -(x - m).grad log r``
has mean ``d`` at ``e = 0`` and slope ``Var[T]`` there, so that ``(mean T - d) / Var[T]`` estimates
``e`` with an error of ``1 / sqrt(n Var[T])``. Nothing but the density is needed, of any shape.
"""

from collections.abc import Callable
from functools import cache

import jax
import numpy as np
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.adaptation.mode_mixture import ModeMixture
from pymc_anneal.between import pseudo_priors
from pymc_anneal.paths import references
from pymc_anneal.paths.gaussian import Gaussian
from pymc_anneal.paths.references import Reference
from tests.cases import Case, parametrize
from tests.path_cases import INNER_REFERENCES, REFERENCES
from tests.pooled import Family, family

# Relative error of the scale of any one sampler that is seen, in the largest dimension.
ERROR = 0.01
DIMENSIONS = (1, 2, 20)
# From 80,000 draws of a Student-t density in 20 dimensions the error of a scale is 0.13 %.
DRAWS = 80_000
_STEP = 1e-5


def mean_of(d: int) -> np.ndarray:
    return np.linspace(-1.0, 2.0, d)


def scale_of(d: int) -> np.ndarray:
    rng = np.random.default_rng(d)
    return np.tril(rng.normal(scale=0.3, size=(d, d)), -1) + np.diag(rng.uniform(0.5, 2.0, size=d))


def gaussian(d: int) -> pma.GaussianReference:
    return pma.GaussianReference(mean_of(d), scale_of(d))


def student_t(d: int) -> pma.StudentTReference:
    return pma.StudentTReference(mean_of(d), scale_of(d), 6.0)


def student_modes(d: int) -> ModeMixture:
    """Return a mixture that is a Student-t density alone."""
    return ModeMixture.at([gaussian(d)], np.array([0.0, 1.0]))


def normal_modes(d: int) -> ModeMixture:
    """Return a mixture that is a normal density alone, of independent coordinates."""
    normal = pma.GaussianReference(mean_of(d), np.diag(scale_of(d)))
    return ModeMixture.at([normal], np.array([1.0, 0.0]))


def normal_mixture() -> pma.MixtureReference:
    other = pma.GaussianReference(np.array([1.0, 0.5]), np.array([0.3, 0.9]))
    return pma.MixtureReference(np.array([0.7, 0.3]), (gaussian(2), other))


FAMILIES = [gaussian, student_t, student_modes, normal_modes]
CASES = [
    *REFERENCES,
    *INNER_REFERENCES,
    Case("mixture of normals", "MixtureReference", normal_mixture),
]
# JAX takes seconds to compile the gamma distribution for another shape.
BY_JAX = [case for case in CASES if case.name not in ("student_t", "mixture")]
_draw = jax.jit(lambda reference, key, draws: reference.draw(key, draws), static_argnums=2)


# Each sampler has a seed of its own: with the same numbers, the scores would not be independent.
def by_numpy(reference: Reference, seed: int) -> np.ndarray:
    return reference.sample(np.random.SeedSequence(seed), DRAWS)


def by_jax(reference: Reference, seed: int) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(_draw(reference, jax.random.key(seed), DRAWS))


def by_path(reference: pma.GaussianReference, seed: int) -> np.ndarray:
    """Draw from the same density as that of an end of a path between two."""
    with jax.enable_x64(True):
        normal = Gaussian(reference.mean, reference.scale @ reference.scale.T)
        return np.asarray(normal.sample(jax.random.key(seed), DRAWS))


def scale_row(
    log_density: Callable, draws: np.ndarray, centre: np.ndarray
) -> tuple[float, float, float]:
    """Return the row of the relative error of the scale of draws, shape ``(n, d)``: zero."""
    away = draws - centre
    high, low = (np.asarray(log_density(draws + sign * _STEP * away)) for sign in (1, -1))
    score = -(high - low) / (2 * _STEP) - draws.shape[1]
    variance = score.var()
    return float(score.mean() / variance), 0.0, float((len(score) * variance) ** -0.5)


@cache
def samplers() -> dict[str, tuple[Reference, np.ndarray]]:
    """Return every reference with its draws, by NumPy and by JAX."""
    each = {}
    for make in FAMILIES:
        each |= {f"{make.__name__} {d}": (make(d), by_numpy) for d in DIMENSIONS}
        each[f"{make.__name__} 20 by JAX"] = make(20), by_jax
    each["student_modes 1 by JAX"] = student_modes(1), by_jax
    each["normal distribution of a path"] = gaussian(2), by_path
    each |= {case.name: (case.make(), by_numpy) for case in CASES}
    each |= {f"{case.name} by JAX": (case.make(), by_jax) for case in BY_JAX}
    numbered = enumerate(each.items(), start=1)
    return {name: (made, draw(made, seed)) for seed, (name, (made, draw)) in numbered}


@cache
def pooled(widened: float = 1.0) -> Family:
    """Return the scales of all samplers, of draws ``widened`` about their means."""
    rows = {}
    for name, (reference, draws) in samplers().items():
        centre = draws.mean(axis=0)
        rows[name] = scale_row(reference.log_density, centre + widened * (draws - centre), centre)
    for name in ("heavy", "light"):
        draws = getattr(pseudo_priors, f"draw_{name}")(np.random.default_rng(3), (DRAWS, 1))
        log_density = jax.vmap(getattr(pseudo_priors, f"log_{name}"))
        with jax.enable_x64(True):
            rows[name] = scale_row(log_density, widened * draws, np.zeros(1))
    return family("draws: references", rows)


class TestScales:
    def test_all_are_right(self) -> None:
        pooled().check()
        assert pooled().visible_shift < ERROR / 3

    def test_all_too_wide(self) -> None:
        assert not pooled(1 + ERROR / 3).agrees

    @pytest.mark.parametrize("make", FAMILIES)
    @pytest.mark.parametrize("by", ["", " by JAX"])
    @pytest.mark.parametrize("error", [-ERROR, ERROR])
    def test_one_is_wrong(self, make: Callable, by: str, error: float) -> None:
        found = pooled()
        name = f"{make.__name__} {DIMENSIONS[-1]}{by}"
        assert name in found.cases
        assert not found.shifted(error * (np.array(found.cases) == name)).agrees


def squared_radius(reference: Reference, draws: np.ndarray) -> np.ndarray:
    """Return the squared distances from the centre, in units of the scale."""
    whitening = np.asarray(reference.whitening).reshape(-1, *np.shape(reference.whitening)[-2:])
    z = (draws - np.reshape(reference.mean, -1)) @ whitening[0].T
    return (z**2).sum(axis=1)


FREEDOM = {"student_t": 6.0, "student_modes": 5.0}
HEAVY = [f"{name} {d}" for name in FREEDOM for d in DIMENSIONS]
HEAVY_BY_JAX = ["student_t 20 by JAX", "student_modes 20 by JAX", "student_modes 1 by JAX"]


@pytest.mark.parametrize("name", [*HEAVY, *HEAVY_BY_JAX])
def test_radius_of_student_t_draws(name: str) -> None:
    reference, draws = samplers()[name]
    d, freedom = draws.shape[1], FREEDOM[name.split()[0]]
    ratio = squared_radius(reference, draws) / d
    assert stats.kstest(ratio, stats.f(d, freedom).cdf).pvalue > 1e-5
    # The twin: one degree of freedom less.
    assert stats.kstest(ratio, stats.f(d, freedom - 1).cdf).pvalue < 1e-5


class Injected:
    """A generator of numbers that are known."""

    normal = np.array([[1.0, -2.0], [0.5, 3.0]])
    chi_squared = np.array([[2.0], [8.0]])

    def standard_normal(self, shape: tuple[int, ...]) -> np.ndarray:
        assert shape == self.normal.shape
        return self.normal

    def chisquare(self, freedom: float, shape: tuple[int, ...]) -> np.ndarray:
        assert (freedom, shape) == (4.0, self.chi_squared.shape)
        return self.chi_squared


@pytest.mark.parametrize(
    ("scale", "spread"),
    [
        ([[2.0, 0.0], [-1.0, 3.0]], [[2.0, -7.0], [1.0, 8.5]]),
        ([2.0, 3.0], [[2.0, -6.0], [1.0, 9.0]]),
    ],
)
def test_draws_by_hand(scale, spread, monkeypatch) -> None:
    """The map of the normal numbers: ``m + S z``, and ``m + S z / sqrt(chi^2 / nu)``."""
    mean, scale = np.array([10.0, 20.0]), np.array(scale)
    monkeypatch.setattr(references.np.random, "default_rng", lambda seed: Injected())
    normal = pma.GaussianReference(mean, scale).sample(np.random.SeedSequence(1), 2)
    np.testing.assert_allclose(normal, mean + np.array(spread), rtol=1e-15)
    heavy = pma.StudentTReference(mean, scale, 4.0).sample(np.random.SeedSequence(1), 2)
    wider = np.sqrt([[4.0 / 2.0], [4.0 / 8.0]])
    np.testing.assert_allclose(heavy, mean + wider * spread, rtol=1e-15)


def same_distribution(reference: Reference, first: np.ndarray, second: np.ndarray) -> bool:
    """Compare the coordinates and the log densities of draws."""
    columns = (np.column_stack([x, reference.log_density(x)]) for x in (first, second))
    return all(
        stats.ks_2samp(a, b).pvalue > 1e-4 for a, b in zip(*(c.T for c in columns), strict=True)
    )


@parametrize("case", BY_JAX)
def test_draws_by_jax_are_the_same_in_distribution(case: Case) -> None:
    reference, own = samplers()[case.name]
    others = samplers()[f"{case.name} by JAX"][1][:20_000]
    assert same_distribution(reference, own[:20_000], others)
    assert not same_distribution(reference, own[:20_000], 1.05 * others)
