"""Any BlackJAX kernel as a transition."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import KernelState, Path, Scalar, StepInfo, Transition


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BlackJAXKernel(Transition):
    """Adapter for the MCMC algorithms of BlackJAX (``blackjax.nuts``, ``blackjax.hmc``, ...).

    The kernel is started afresh at every temperature, so it must leave the marginal density of
    the position invariant, as every algorithm of ``blackjax.mcmc`` that draws its own momentum
    does. Its parameters are used as given; nothing is tuned.

    Parameters
    ----------
    algorithm
        ``algorithm(log_density, **parameters)`` with methods ``init(position)`` and
        ``step(key, state)``.
    parameters : dict
        Keyword arguments of the algorithm (arrays or numbers).
    """

    algorithm: Callable[..., Any] = field(metadata={"static": True})
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def restrictable(self) -> bool:
        """Particles are moved one by one, which a block of coordinates does not allow."""
        return False

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Move every particle once by the algorithm."""

        def log_density(x: jax.Array) -> jax.Array:
            return path.log_density(path.evaluate(x[None]), beta)[0]

        def move(key: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            algorithm = self.algorithm(log_density, **self.parameters)
            new, info = algorithm.step(key, algorithm.init(x))
            return new.position, getattr(info, "acceptance_rate", jnp.asarray(jnp.nan))

        start = state.position
        position, accept = jax.vmap(move)(jax.random.split(key, len(start)), start)
        new = KernelState(position, path.evaluate(position), ())
        nan = jnp.isnan(path.log_density(new.terms, beta))
        return new, StepInfo(accept, nan, position)
