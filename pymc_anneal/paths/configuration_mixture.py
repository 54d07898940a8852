"""Mixture over configurations of discrete coordinates, with a Student-t density given each.

    r(s, z) = w_j t_nu(z; m_j, S_j S_j')    if s = s_j,    0 elsewhere,

for distinct configurations ``s_j`` of the discrete coordinates ``s``, with ``z`` the real ones. On
its own it covers no other configuration: paths that start from it have a share of the prior.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

from jax.scipy.special import gammaln


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class ConfigurationMixture:
    """A reference on configurations of discrete coordinates.

    Parameters
    ----------
    weight : Array, shape (J,)
        Shares of the configurations, which sum to one.
    values : Array, shape (J, p)
        The configurations, all different.
    location : Array, shape (J, k)
        Locations of the real coordinates.
    scale : Array, shape (J, k, k)
        Roots ``S`` of their scale matrices ``S S'``.
    discrete, real : sequence of int
        The coordinates, together all of the position.
    degrees_of_freedom : float
    whitening, log_volume : Array, shapes (J, k, k) and (J,), optional
        Inverses of ``scale``, and the logs of its determinants; default: computed from it.
    """

    weight: jax.Array | np.ndarray
    values: jax.Array | np.ndarray
    location: jax.Array | np.ndarray
    scale: jax.Array | np.ndarray
    discrete: Sequence[int] = field(metadata={"static": True})
    real: Sequence[int] = field(metadata={"static": True})
    degrees_of_freedom: float = field(default=7.0, metadata={"static": True})
    whitening: jax.Array | np.ndarray | None = None
    log_volume: jax.Array | np.ndarray | None = None

    def __post_init__(self) -> None:
        # JAX rebuilds paths with placeholders, all of whose fields are given.
        if self.whitening is None:
            scale = np.asarray(self.scale)
            object.__setattr__(self, "whitening", np.linalg.inv(scale))
            object.__setattr__(self, "log_volume", np.linalg.slogdet(scale)[1])

    def log_density(self, position: jax.Array | np.ndarray) -> jax.Array:
        """Return the log density in nats, shape ``(n,)``, at ``(n, d)`` positions."""
        values = jnp.asarray(position)[:, jnp.asarray(self.discrete, int)]
        # Of distinct configurations at most one is that of a position.
        same = (values[:, None] == jnp.asarray(self.values)).all(axis=2)
        which = same.argmax(axis=1)
        found = jnp.log(jnp.asarray(self.weight))[which] + self.log_density_given(position, which)
        return jnp.where(same.any(axis=1), found, -jnp.inf)

    def log_density_given(
        self, position: jax.Array | np.ndarray, which: jax.Array | np.ndarray
    ) -> jax.Array:
        """Return the log density of the real coordinates given a configuration, shape ``(n,)``."""
        k, nu = len(self.real), self.degrees_of_freedom
        if k == 0:
            return jnp.zeros(len(position))
        centred = jnp.asarray(position)[:, jnp.asarray(self.real)]
        centred -= jnp.asarray(self.location)[which]
        z = jnp.einsum("nij,nj->ni", jnp.asarray(self.whitening)[which], centred)
        constant = gammaln((nu + k) / 2) - gammaln(nu / 2) - 0.5 * k * np.log(nu * np.pi)
        tail: jax.Array = constant - 0.5 * (nu + k) * jnp.log1p((z**2).sum(axis=1) / nu)
        return tail - jnp.asarray(self.log_volume)[which]

    def sample(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        """Draw from the density, shape ``(draws, d)``."""
        rng = np.random.default_rng(seed)
        share = np.asarray(self.weight)
        return self.sample_given(rng.choice(len(share), size=draws, p=share / share.sum()), rng)

    def sample_given(self, which: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw the real coordinates of given configurations, shape ``(len(which), d)``."""
        draws, k, nu = len(which), len(self.real), self.degrees_of_freedom
        z = rng.standard_normal((draws, k)) / np.sqrt(rng.chisquare(nu, (draws, 1)) / nu)
        position = np.empty((draws, len(self.discrete) + k))
        position[:, list(self.discrete)] = np.asarray(self.values)[which]
        moved = np.einsum("nij,nj->ni", np.asarray(self.scale)[which], z)
        position[:, list(self.real)] = np.asarray(self.location)[which] + moved
        return position
