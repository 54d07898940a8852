"""Mixtures with a normal and a Student-t component for each mode, as the fit makes them.

    r(x) = sum_j w_j N(x; m_j, S_j S_j') + v_j t_nu(x; m_j, S_j S_j')

The parameters of all modes are stacked, and there is room for more modes, of weight zero: a program
that is compiled for one fit serves the next one, which may find another number of modes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from scipy.special import gammaln

from pymc_anneal.base.array_namespace import array_namespace, special_functions
from pymc_anneal.paths.mixed_draws import mixed_draws
from pymc_anneal.paths.references import GaussianReference, Reference, StudentTReference

# Degrees of freedom of the Student-t components.
_DEGREES_OF_FREEDOM = 5.0
# Numbers of modes for which programs are compiled; up to some dimension, modes of weight zero take
# less time than another compilation. Five: a mode, a wider component and three for tails.
_ROOM, _ROOM_IF_SMALL, _SMALL = (1, 2, 4, 8, 16, 32, 64, 96), (5, 32, 64, 96), 22
# Numbers in the standardised positions of all modes that are computed at a time.
_LARGEST_PART = 2**22


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class ModeMixture:
    """A mixture of a normal and a Student-t density at each of ``J`` modes; a `Reference`.

    Parameters
    ----------
    weight : ndarray, shape (2 J,)
        Shares of the components, normal and Student-t in turn; they sum to one.
    mean : ndarray, shape (J, d)
    scale, whitening : ndarray, shape (J, d) or (J, d, d)
        Standard deviations, or Cholesky factors of the covariances; and their inverses.
    """

    weight: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    whitening: np.ndarray

    @classmethod
    def at(cls, normals: Sequence[GaussianReference], weight: np.ndarray) -> "ModeMixture":
        """Stack normal densities, as matrices if one of them has a matrix as its scale."""
        dense = any(np.ndim(normal.scale) == 2 for normal in normals)

        def stack(scales: Sequence[np.ndarray]) -> np.ndarray:
            return np.stack([np.diag(s) if dense and s.ndim == 1 else s for s in scales])

        return cls(
            weight,
            np.stack([np.asarray(n.mean) for n in normals]),
            stack([np.asarray(n.scale) for n in normals]),
            stack([np.asarray(n.whitening) for n in normals]),
        )

    @property
    def normals(self) -> list[GaussianReference]:
        """The normal component of each mode."""
        rows = zip(self.mean, self.scale, self.whitening, strict=True)
        return [GaussianReference(*row) for row in rows]

    @property
    def components(self) -> list[Reference]:
        """The components of the modes that are there, normal and Student-t in turn."""
        pairs = [
            (n, StudentTReference(n.mean, n.scale, _DEGREES_OF_FREEDOM, n.whitening))
            for n in self.without_room().normals
        ]
        return [component for pair in pairs for component in pair]

    def spread_near(self, position: np.ndarray) -> np.ndarray:
        """Return the standard deviations of the mode nearest to a position, shape ``(d,)``."""
        nearest = np.linalg.norm(self.mean - position, axis=1).argmin()
        scale = self.scale[nearest]
        return np.asarray(np.linalg.norm(scale, axis=1)) if scale.ndim == 2 else scale

    def log_components(self, position: jax.Array | np.ndarray) -> jax.Array:
        """Return the log densities of the components times their weights, shape ``(2 J, n)``."""
        xp = array_namespace(position, self.mean)
        d, nu = position.shape[1], _DEGREES_OF_FREEDOM
        squared, log_volume = self._standardise(position)
        constant = gammaln((nu + d) / 2) - gammaln(nu / 2) - 0.5 * d * np.log(nu * np.pi)
        normal = -0.5 * squared - 0.5 * d * np.log(2 * np.pi)
        student_t = constant - 0.5 * (nu + d) * xp.log1p(squared / nu)
        each = xp.stack([normal, student_t], axis=1) - log_volume[:, None, None]
        with np.errstate(divide="ignore"):  # the weights of modes that are not there
            log_weight = xp.log(self.weight)
        log_components: jax.Array = each.reshape(-1, len(position)) + log_weight[:, None]
        return log_components

    def evaluate_components(self, position: np.ndarray) -> np.ndarray:
        """Return `log_components` of the modes that are there, at many positions in parts."""
        present = self.without_room()
        parts = np.array_split(position, -(-len(position) * present.mean.size // _LARGEST_PART))
        with np.errstate(over="ignore", invalid="ignore"):  # climbs may end anywhere
            return np.concatenate([present.log_components(part) for part in parts], axis=1)

    def _standardise(
        self, position: jax.Array | np.ndarray
    ) -> tuple[jax.Array | np.ndarray, jax.Array | np.ndarray]:
        """Return ``z'z`` with respect to each mode, shape ``(J, n)``, and ``log |S|``, ``(J,)``."""
        xp = array_namespace(position, self.mean)
        centred = position - self.mean[:, None, :]
        if self.whitening.ndim == 2:
            z, diagonal = centred * self.whitening[:, None, :], self.whitening
        else:
            z = centred @ xp.swapaxes(self.whitening, 1, 2)
            diagonal = xp.diagonal(self.whitening, axis1=1, axis2=2)
        return (z**2).sum(axis=2), -xp.log(diagonal).sum(axis=1)

    def log_density(self, position: jax.Array | np.ndarray) -> jax.Array:
        """Return the log density in nats, shape ``(n,)``, at ``(n, d)`` positions."""
        each = self.log_components(position)
        logsumexp = special_functions(array_namespace(each)).logsumexp
        log_density: jax.Array = logsumexp(each, axis=0)
        return log_density

    def sample(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        """Draw from the density, shape ``(draws, d)``."""
        present = self.without_room()
        return mixed_draws(seed, draws, present.weight, [c.sample for c in present.components])

    def draw(self, key: jax.Array, draws: int) -> jax.Array:
        """Draw from the density by JAX, shape ``(draws, d)``."""
        key_component, key_normal, key_scale = jax.random.split(key, 3)
        d, nu = self.mean.shape[1], int(_DEGREES_OF_FREEDOM)
        component = jax.random.choice(key_component, len(self.weight), (draws,), p=self.weight)
        z = jax.random.normal(key_normal, (draws, d))
        chi_squared = (jax.random.normal(key_scale, (draws, nu)) ** 2).sum(axis=1)
        widened = jnp.where(component % 2 == 1, jnp.sqrt(nu / chi_squared), 1.0)
        spread = z * self.scale[:, None] if self.scale.ndim == 2 else z @ self.scale.mT
        around = spread[component // 2, jnp.arange(draws)] * widened[:, None]
        drawn: jax.Array = jnp.asarray(self.mean)[component // 2] + around
        return drawn

    def without_room(self) -> "ModeMixture":
        """Return the mixture of the modes whose weight is not zero."""
        there = self.weight.reshape(-1, 2).any(axis=1)
        if there.all():
            return self
        stacked = self.mean, self.scale, self.whitening
        return ModeMixture(self.weight[np.repeat(there, 2)], *(s[there] for s in stacked))

    def with_room(self) -> "ModeMixture":
        """Return the mixture with modes of weight zero, up to the next number of modes."""
        count, d = self.mean.shape
        missing = next(n for n in (_ROOM_IF_SMALL if d <= _SMALL else _ROOM) if n >= count) - count

        def extend(stacked: np.ndarray) -> np.ndarray:
            return np.concatenate([stacked, np.repeat(stacked[:1], missing, axis=0)])

        return replace(
            self,
            weight=np.concatenate([self.weight, np.zeros(2 * missing)]),
            mean=extend(self.mean),
            scale=extend(self.scale),
            whitening=extend(self.whitening),
        )
