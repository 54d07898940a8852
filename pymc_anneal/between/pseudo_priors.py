"""Densities of the coordinates that one of two models lacks: pseudo-priors (Carlin & Chib 1995).

On a path between two posteriors that are about standard normal, coordinates that the first model
lacks are drawn, and those that the second one lacks enter its density. Weights have the former in
the denominator and the latter in the numerator: they are bounded if the tails of what is drawn are
heavier than those of the posteriors, and the tails of what is added lighter,

    heavy(z) = t_5(z),    light(z) = 3 exp(-|z / s|^3) / (2 s Gamma(1 / 3)).

A normal density is not light enough: posteriors of scales fall faster than it on one side.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jax.scipy import stats

_DEGREES_OF_FREEDOM = 5.0
# The scale at which the variance of the weights of a standard normal posterior is 5 % a coordinate;
# at 1.6 it is 2 %, with tails that are too heavy for the posteriors of scales.
_SCALE = 1.4
_LOG_NORMALISER = math.log(2 * _SCALE * math.gamma(1 / 3) / 3)


def draw_heavy(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Draw coordinates that the first model lacks."""
    return rng.standard_t(_DEGREES_OF_FREEDOM, size=shape)


def log_heavy(z: jax.Array) -> jax.Array:
    """Return their log density, summed."""
    return jnp.asarray(stats.t.logpdf(z, _DEGREES_OF_FREEDOM).sum())


def draw_light(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Draw coordinates that the second model lacks: ``|z / s|^3`` has a gamma distribution."""
    radius = _SCALE * np.cbrt(rng.gamma(1 / 3, size=shape))
    return np.where(rng.uniform(size=shape) < 0.5, -radius, radius)


def log_light(z: jax.Array) -> jax.Array:
    """Return their log density, summed."""
    return jnp.asarray(-(jnp.abs(z / _SCALE) ** 3 + _LOG_NORMALISER).sum())
