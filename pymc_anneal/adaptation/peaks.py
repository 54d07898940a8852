"""Search for peaks: narrow modes inside the bulk of the posterior that annealing passes by.

A peak of small prior mass and large likelihood is met by none of the particles on their way to the
posterior (spike and slab: Brewer, Partay & Csanyi 2011, section 4). Draws from the components of a
fitted mixture, drawn together to smaller and smaller scales, look for places where the target is
far above the mixture. From the highest of them the search climbs to the top, and the curvature
there gives the scale of a new component; its weight shows whether the peak holds mass.
"""

from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.adaptation.fit_reference import scale_of_curvature
from pymc_anneal.adaptation.maximise import maximise
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.paths.references import GaussianReference

# Scales of the draws, in units of those of the components.
_SHRINK = 0.5 ** np.arange(1.0, 3.5, 0.5)
# Largest dimension of a search: a peak is met by chance, and its curvature takes d gradients.
MAX_DIMENSIONS = 200
_MAX_ITERATIONS = 200


def draw_near_centres(
    components: list[GaussianReference], draws: int, seed: np.random.SeedSequence
) -> np.ndarray:
    """Draw around the centres of components at several small scales.

    Parameters
    ----------
    components
        Normal components of a mixture.
    draws : int
        Number of draws from all components and scales; at least one from each.
    seed
        Source of randomness.

    Returns
    -------
    ndarray, shape (n, d)
    """
    found, each = [], max(1, -(-draws // (len(components) * len(_SHRINK))))
    for component, child in zip(components, seed.spawn(len(components)), strict=True):
        for shrink, own in zip(_SHRINK, child.spawn(len(_SHRINK)), strict=True):
            centred = component.sample(own, each) - component.mean
            found.append(component.mean + shrink * centred)
    return np.concatenate(found)


def climb(path: GeometricPath, start: np.ndarray) -> GaussianReference | None:
    """Climb to a peak of the target and return the normal density of its curvature.

    Parameters
    ----------
    path
        The path from the prior; its end is the target.
    start : ndarray, shape (d,)

    Returns
    -------
    GaussianReference or None
        None if there is no peak with curvature in all directions.
    """
    log_density = _log_density(path)
    top = maximise(log_density, start, maxiter=_MAX_ITERATIONS).position
    scale = scale_of_curvature(-np.asarray(_hessian(path, top)))
    return None if scale is None else GaussianReference(top, scale)


@jax.jit
def _hessian(path: GeometricPath, position: np.ndarray) -> jax.Array:
    hessian: jax.Array = jax.hessian(_log_density(path))(jnp.asarray(position))
    return hessian


@lru_cache(maxsize=8)
def _log_density(path: GeometricPath) -> Callable[[jax.Array], jax.Array]:
    return lambda x: path.log_terms(x).log_posterior
