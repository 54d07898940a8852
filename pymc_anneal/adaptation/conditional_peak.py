"""The peak of some coordinates given the others, as of real ones given discrete ones, and its mass.

Newton steps in the eigenvectors of the curvature, whose eigenvalues count by their magnitude, with
steps that are shortened until the density rises, lead from ``z`` to a peak ``m`` of
``f(s, z)``. With ``A`` minus the curvature there, Laplace's approximation of the mass is

    log f(s, m) + k/2 log(2 pi) - 1/2 log det A,

and importance sampling from a Student-t density at the peak estimates the mass of ``s`` without
bias, whatever the shape.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.adaptation.particles import evaluate
from pymc_anneal.base.batches import map_batches
from pymc_anneal.base.contracts import Path, log_density_and_gradient
from pymc_anneal.base.programs import forgettable

# Newton steps, at most; those of a density that is normal given the discrete coordinates are two.
_STEPS = 25
# Nats to a peak that no longer matter, and the least curvature.
_AT_PEAK, _LEAST_CURVATURE = 1e-4, 1e-8
# Positions in a batch.
BATCH = 64


class Peaks(NamedTuple):
    """Peaks of the density given the other coordinates.

    Attributes
    ----------
    position : ndarray, shape (m, d)
    log_density : ndarray, shape (m,)
    log_mass : ndarray, shape (m,)
        Laplace's approximation, in nats; -inf where the density is zero.
    scale : ndarray, shape (m, k, k)
        Roots ``S`` of the covariances ``S S'`` of the real coordinates.
    """

    position: np.ndarray
    log_density: np.ndarray
    log_mass: np.ndarray
    scale: np.ndarray


class _Local(NamedTuple):
    """Log density, gradient and minus the curvature, shapes (m,), (m, k), (m, k, k)."""

    log_density: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray


@dataclass
class ConditionalDensity:
    """The density of a model in some real coordinates, given the others.

    Attributes
    ----------
    path : Path
        Its end is the density.
    real : tuple of int
        These coordinates.
    evaluations : int
        Evaluations of gradient or density up to now.
    """

    path: Path
    real: tuple[int, ...]
    evaluations: int = 0

    def log_density(self, position: np.ndarray) -> np.ndarray:
        """Return the log density, shape ``(m,)``; NaN counts as zero."""
        self.evaluations += len(position)
        terms = map_batches(partial(evaluate, self.path), position, BATCH)
        found = np.asarray(self.path.log_density(terms, 1.0))
        return np.where(np.isnan(found), -np.inf, found)

    def peaks(self, position: np.ndarray) -> Peaks:
        """Climb from positions, shape ``(m, d)``, in the real coordinates."""
        m, k = len(position), len(self.real)
        if k == 0:
            log_density = self.log_density(position)
            return Peaks(position, log_density, log_density, np.zeros((m, 0, 0)))
        here, local = position.copy(), self._local(position)
        length, climbing = np.ones(m), np.isfinite(local.log_density)
        for _ in range(_STEPS):
            size, vectors = _eigen(local.curvature)
            along = np.einsum("nji,nj->ni", vectors, local.slope)
            step = np.einsum("nij,nj->ni", vectors, along / size)
            climbing &= (along**2 / size).sum(axis=1) > _AT_PEAK
            if not climbing.any():
                break
            tried = here[climbing]
            tried[:, self.real] += length[climbing, None] * step[climbing]
            found = self._local(tried)
            better = found.log_density >= local.log_density[climbing]
            rows = np.flatnonzero(climbing)
            here[rows[better]] = tried[better]
            for old, new in zip(local, found, strict=True):
                old[rows[better]] = new[better]
            length[rows] = np.where(better, np.minimum(4 * length[rows], 1.0), length[rows] / 8)
        size, vectors = _eigen(local.curvature)
        scale = vectors / np.sqrt(size)[:, None]
        volume = np.linalg.slogdet(scale)[1] + 0.5 * k * np.log(2 * np.pi)
        return Peaks(here, local.log_density, local.log_density + volume, scale)

    def _local(self, position: np.ndarray) -> _Local:
        self.evaluations += len(position) * (1 + len(self.real))
        function = partial(_second_order, self.path, np.array(self.real))
        found = map_batches(function, position, BATCH)
        local = _Local(*(np.array(part) for part in found))
        bad = ~np.isfinite(local.curvature).all(axis=(1, 2)) | ~np.isfinite(local.slope).all(axis=1)
        bad |= np.isnan(local.log_density)
        local.log_density[bad], local.slope[bad] = -np.inf, 0.0
        local.curvature[bad] = np.eye(len(self.real))
        return local


def _eigen(curvature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return magnitudes ``l`` and columns ``V`` with ``V diag(1 / l) V'`` the inverse.

    They are the eigenvalues and vectors in units of the diagonal: those of curvatures of 1e18 and 1
    are lost in each other's rounding.
    """
    diagonal = np.abs(np.diagonal(curvature, axis1=1, axis2=2))
    unit = 1 / np.sqrt(np.maximum(diagonal, _LEAST_CURVATURE))
    values, vectors = np.linalg.eigh(unit[:, :, None] * curvature * unit[:, None])
    return np.maximum(np.abs(values), _LEAST_CURVATURE), unit[:, :, None] * vectors


@forgettable
@jax.jit
def _second_order(
    path: Path, columns: jax.Array, position: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return log density, gradient and minus the curvature in some coordinates."""
    position = jnp.asarray(position)

    def slope(z: jax.Array) -> tuple[jax.Array, jax.Array]:
        whole = position.at[:, columns].set(z)
        log_density, gradient = log_density_and_gradient(path, whole, 1.0)
        return gradient[:, columns], log_density

    def column(direction: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        z = position[:, columns]
        along = jnp.broadcast_to(direction, z.shape)
        gradient, second, log_density = jax.jvp(slope, (z,), (along,), has_aux=True)
        return log_density, gradient, second

    log_density, gradient, second = jax.vmap(column, out_axes=(None, None, 2))(
        jnp.eye(len(columns), dtype=position.dtype)
    )
    return log_density, gradient, -0.5 * (second + second.swapaxes(1, 2))
