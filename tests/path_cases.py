"""Every path to ``log_gamma_terms``, and every reference."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from scipy import special

import pymc_anneal as pma

from pymc_anneal.adaptation.fitted_reference import draw_start
from pymc_anneal.adaptation.mode_mixture import ModeMixture
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.paths.between_models import BetweenModels, EndTerms
from pymc_anneal.paths.moment_spline import MomentSplinePath
from pymc_anneal.paths.q_path import QAveragePath
from pymc_anneal.paths.tilted_prior import TiltedPrior
from pymc_anneal.posthoc.find_map import CoolingPath
from tests.cases import Case, log_gamma_draws, log_gamma_terms


def linear_average(log_start, log_end, beta):
    """Return the log density of a geometric path from those of its ends."""
    return (1 - beta) * log_start + beta * log_end


@dataclass(frozen=True)
class PathCase(Case):
    """A path to ``log_gamma_terms``, and its start.

    Attributes
    ----------
    log_start : Callable
        Log density at ``beta = 0``, normalised, of positions of shape ``(n, 2)``.
    draw_start : Callable
        Takes a number and a generator and returns draws of that density.
    average : Callable or None
        Log density at ``beta``, from the log densities at both ends and ``beta``; None: it depends
        on more.
    """

    log_start: Callable
    draw_start: Callable
    average: Callable | None = linear_average


def _log_gamma_prior(position: jax.Array) -> jax.Array:
    return jax.vmap(log_gamma_terms)(position).log_prior


def _draw(sample: Callable, draws: int, rng: np.random.Generator) -> np.ndarray:
    return sample(np.random.SeedSequence(rng.integers(2**32)), draws)


def _from_reference(name: str, reference) -> PathCase:
    return PathCase(
        name,
        "ReferencePath",
        lambda terms: pma.ReferencePath(terms, reference),
        reference.log_density,
        partial(_draw, reference.sample),
    )


REFERENCES = [
    Case(
        "gaussian",
        "GaussianReference",
        lambda: pma.GaussianReference(np.array([0.6, 1.0]), np.array([[0.7, 0.0], [0.2, 0.6]])),
    ),
    Case(
        "gaussian_diagonal",
        "GaussianReference",
        lambda: pma.GaussianReference(np.array([0.4, 1.1]), np.array([0.8, 0.6])),
    ),
    Case(
        "mixture",
        "MixtureReference",
        lambda: pma.MixtureReference(
            np.array([0.7, 0.3]),
            (
                pma.GaussianReference(np.array([0.6, 1.0]), np.array([0.7, 0.6])),
                pma.StudentTReference(np.array([0.2, 0.8]), np.array([0.9, 0.8]), 5.0),
            ),
        ),
    ),
    Case(
        "student_t",
        "StudentTReference",
        lambda: pma.StudentTReference(np.array([0.5, 1.0]), np.diag([0.6, 0.5]), 4.0),
    ),
]


def _modes() -> ModeMixture:
    first = pma.GaussianReference(np.array([0.6, 1.0]), np.array([[0.7, 0.0], [0.2, 0.6]]))
    second = pma.GaussianReference(np.array([0.2, 0.8]), np.array([0.9, 0.8]))
    return ModeMixture.at([first, second], np.array([0.4, 0.2, 0.1, 0.3])).with_room()


# Not exported.
INNER_REFERENCES = [Case("modes", "ModeMixture", _modes)]


def _from_prior(name: str, exported: str, make: Callable, average=linear_average) -> PathCase:
    draw_prior = partial(log_gamma_draws, 0.0)
    return PathCase(name, exported, make, _log_gamma_prior, draw_prior, average)


_PRIOR_SHARE, _REFERENCE = 0.3, REFERENCES[0].make()


def _log_shared(position: jax.Array) -> jax.Array:
    logs = _log_gamma_prior(position), _REFERENCE.log_density(position)
    return np.logaddexp(logs[0] + np.log(_PRIOR_SHARE), logs[1] + np.log(1 - _PRIOR_SHARE))


def _draw_shared(draws: int, rng: np.random.Generator) -> np.ndarray:
    def draw_prior(seed: np.random.SeedSequence, n: int) -> np.ndarray:
        return log_gamma_draws(0.0, n, np.random.default_rng(seed))

    path = pma.ReferencePath(log_gamma_terms, _REFERENCE, _PRIOR_SHARE)
    return _draw(draw_start(path, draw_prior), draws, rng)


def _spline(statistics: str, terms) -> MomentSplinePath:
    """Return a spline through arbitrary tilts, on which the weights have to be right too."""
    rng = np.random.default_rng(5)
    ends = [log_gamma_draws(beta, 200, rng) for beta in (0.0, 1.0)]
    family = TiltedPrior.around(pma.GeometricPath(terms), *ends, statistics)
    first, second = rng.normal(scale=0.3, size=(2, family.size))
    first[0], second[0] = 0.3, 0.6
    natural = np.stack([np.zeros(family.size), first, second, family.posterior])
    return MomentSplinePath(family, np.array([0.0, 0.25, 0.7, 1.0]), natural)


# The level is that of the middle of the draws: exponents of both signs.
_Q, _LEVEL = 0.8, -4.3


def _q_average(log_start, log_end, beta):
    """Return Brekelmans et al. (2020), eq. 9, of the ends ``f_0`` and ``f_1 / e^c``."""
    powers = [(1 - _Q) * (log - c) for log, c in ((log_start, 0.0), (log_end, _LEVEL))]
    weights = np.array([[1 - beta], [beta]])
    mean = special.logsumexp(np.stack(powers), axis=0, b=weights)
    return mean / (1 - _Q) + beta * _LEVEL


# Cached: JAX compiles again for another function.
@cache
def _squared(terms) -> pma.CustomPath:
    def log_density(x: jax.Array, beta) -> jax.Array:
        log_prior, log_likelihood = terms(x)
        return log_prior + beta**2 * log_likelihood

    return pma.CustomPath(log_density)


@cache
def _between(terms) -> BetweenModels:
    def log_ends(x: jax.Array) -> EndTerms:
        return EndTerms(_REFERENCE.log_density(x[None])[0], terms(x).log_posterior)

    return BetweenModels(log_ends)


@cache
def _cooling(terms) -> CoolingPath:
    """Return a path from the prior, called a posterior, to a power of a root of the posterior."""

    def log_prior(x: jax.Array) -> LogTerms:
        return LogTerms(terms(x).log_prior, jnp.zeros(()))

    return CoolingPath(log_prior, lambda x: terms(x).log_posterior / 1.5, 1.5)


PATHS = [
    _from_prior("geometric", "GeometricPath", pma.GeometricPath),
    *(_from_reference(f"from_{case.name}", case.make()) for case in REFERENCES),
    PathCase(
        "from_gaussian_and_prior",
        "ReferencePath",
        lambda terms: pma.ReferencePath(terms, _REFERENCE, _PRIOR_SHARE),
        _log_shared,
        _draw_shared,
    ),
    *(
        _from_prior(name, "MomentAveragedPath", partial(_spline, statistics), None)
        for name, statistics in (
            ("moments", "linear"),
            ("moments_of_squares", "squares"),
            ("moments_of_products", "products"),
        )
    ),
    _from_prior(
        "q",
        "QPath",
        lambda terms: QAveragePath(pma.GeometricPath(terms), _Q, _LEVEL),
        _q_average,
    ),
    _from_prior(
        "custom", "CustomPath", _squared, lambda first, last, b: linear_average(first, last, b**2)
    ),
]
# Not exported.
INNER_PATHS = [
    *(_from_reference(f"from_{case.name}", case.make()) for case in INNER_REFERENCES),
    PathCase(
        "between_models",
        "BetweenModels",
        _between,
        _REFERENCE.log_density,
        partial(_draw, _REFERENCE.sample),
    ),
    _from_prior("cooling", "CoolingPath", _cooling),
]
