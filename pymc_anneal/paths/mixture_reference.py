"""Mixtures of references, with exact draws and a normalised density.

    r(x) = sum_j w_j r_j(x),    sum_j w_j = 1.

One component for each mode of the posterior, and components of several tail weights at the same
mode: the mixture covers what any of them covers, at a cost of at most ``-log w_j`` nats (defensive
mixtures: Hesterberg 1995; Owen & Zhou 2000).
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.array_namespace import array_namespace, special_functions
from pymc_anneal.paths.mixed_draws import mixed_draws
from pymc_anneal.paths.references import Reference


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class MixtureReference:
    """A mixture of references in the unconstrained space.

    Parameters
    ----------
    weight : Array, shape (J,)
        Shares of the components, which sum to one.
    components : tuple of Reference, length J
        Normalised densities, such as :class:`GaussianReference` and :class:`StudentTReference`.

    References
    ----------
    Owen & Zhou (2000), Safe and effective importance sampling, section 4.
    """

    weight: jax.Array | np.ndarray
    components: tuple[Reference, ...]

    def log_components(self, position: jax.Array | np.ndarray) -> jax.Array:
        """Return the log densities of the components times their weights, shape ``(J, n)``."""
        each = [c.log_density(position) for c in self.components]
        xp = array_namespace(*each, self.weight)
        with np.errstate(divide="ignore"):  # a weight may be zero
            log_components: jax.Array = xp.stack(each) + xp.log(self.weight)[:, None]
        return log_components

    def log_density(self, position: jax.Array | np.ndarray) -> jax.Array:
        """Return the log density in nats, shape ``(n,)``, at ``(n, d)`` positions."""
        each = self.log_components(position)
        logsumexp = special_functions(array_namespace(each)).logsumexp
        log_density: jax.Array = logsumexp(each, axis=0)
        return log_density

    def sample(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        """Draw from the density, shape ``(draws, d)``."""
        return mixed_draws(seed, draws, self.weight, [c.sample for c in self.components])

    def draw(self, key: jax.Array, draws: int) -> jax.Array:
        """Draw from the density by JAX, shape ``(draws, d)``, if its components can."""
        key_label, *keys = jax.random.split(key, 1 + len(self.components))
        each = [c.draw(k, draws) for c, k in zip(self.components, keys, strict=True)]  # type: ignore[attr-defined]
        label = jax.random.choice(key_label, len(each), (draws,), p=jnp.asarray(self.weight))
        return jnp.stack(each)[label, jnp.arange(draws)]
