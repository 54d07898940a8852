"""Normal scores of half-Cauchy variables.

The logarithm ``r = log(x / s)`` of a half-Cauchy variable has the density ``sech(r) / pi``, whose
tails are exponential. Its normal score

    z = Phi^{-1}( (2 / pi) arctan(x / s) )

is standard normal under the prior, and no heavier in the posterior.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jax.scipy.special import log_ndtr, ndtri
from jax.scipy.stats import norm
from pymc.distributions.continuous import HalfCauchyRV
from pymc.logprob.transforms import LogTransform

from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.parents import known_values

# Angle that equals its tangent to the last digit.
_SMALL = 1e-9


@dataclass(frozen=True, eq=False)
class NormalScores:
    """Map between logarithms of half-Cauchy variables and their normal scores.

    Parameters
    ----------
    columns : ndarray of int, shape (m,)
        Places of the variables in the vector.
    log_scale : ndarray, shape (m,)
    """

    columns: np.ndarray
    log_scale: np.ndarray

    @classmethod
    def of(cls, compiled: CompiledModel) -> "NormalScores":
        """Return the map for the variables of a model whose scale is known."""
        columns, log_scale = [np.zeros(0, dtype=int)], [np.zeros(0)]
        for rv, v in zip(compiled.model.free_RVs, compiled.variables, strict=True):
            is_log = isinstance(compiled.model.rvs_to_transforms[rv], LogTransform)
            if not (is_log and isinstance(rv.owner.op, HalfCauchyRV)):
                continue
            scale = known_values(compiled, rv.owner.inputs[-1:], v.shape)
            if scale is not None:
                columns.append(np.arange(v.start, v.stop))
                log_scale.append(np.log(scale[0]).ravel())
        return cls(np.concatenate(columns), np.concatenate(log_scale))

    def backward(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Map scores to logarithms; return the vector, shape ``(d,)``, and ``log |dr / dz|``."""
        z = x[self.columns]
        # From the nearer tail, where Phi is accurate; it underflows below -37, its logarithm not.
        log_tail = log_ndtr(-jnp.abs(z))
        angle = jnp.maximum(jnp.pi / 2 * jnp.exp(log_tail), _SMALL)
        lower = jnp.log(jnp.pi / 2) + log_tail + jnp.log(jnp.tan(angle) / angle)
        r = jnp.where(z < 0, lower, -lower)
        log_density = jnp.log(2 / jnp.pi) - jnp.logaddexp(r, -r)
        log_volume = (norm.logpdf(z) - log_density).sum()
        return x.at[self.columns].set(r + self.log_scale), log_volume

    def forward(self, x: jax.Array) -> jax.Array:
        """Map logarithms to scores, shape ``(d,)``."""
        r = x[self.columns] - self.log_scale
        tail = ndtri(2 / jnp.pi * jnp.arctan(jnp.exp(-jnp.abs(r))))
        return x.at[self.columns].set(jnp.where(r < 0, tail, -tail))
