"""Two posteriors mapped onto each other, so that a path between them is short.

With normal approximations ``N(m_f, L_f L_f')`` and ``N(m_g, L_g L_g')`` of the two posteriors, the
coordinates ``s`` that both models have before their own ``u`` and ``v``, and triangular roots,

    (s, u) = m_f + L_f (z_s, z_u),    (s, v) = m_g + L_g (z_s, z_v),

the ends of the path are densities of ``z = (z_s, z_u, z_v)``,

    log first(z)  = log f(m_f + L_f (z_s, z_u)) + log |L_f| + log heavy(z_v),
    log second(z) = log g(m_g + L_g (z_s, z_v)) + log |L_g| + log light(z_u),

which integrate to the evidences: the pseudo-priors (`between/pseudo_priors.py`) are normalised.
Any map leaves the ratio of the normalisers as it is (warp bridge sampling, Meng & Schilling 2002;
Jarzynski 2002): a bad approximation costs precision only. So the coordinates of a shared variable
need not be the same in both models.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jax.tree_util import Partial
from scipy.linalg import solve_triangular

from pymc_anneal.adaptation.variational_normal import ITERATIONS, NormalFit, fit_normal
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.between.joint_space import JointSpace
from pymc_anneal.between.map_coordinates import (
    MapCoordinates,
    coordinates_given_data,
    own_coordinates,
)
from pymc_anneal.between.pseudo_priors import draw_heavy, draw_light, log_heavy, log_light
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.derivatives import NO_GRADIENT
from pymc_anneal.paths.between_models import BetweenModels, EndTerms
from pymc_anneal.paths.geometric import as_pytree

# Positions at which gradients are taken: so many more than twice the coordinates.
_MORE = 32
# Largest number of coordinates of a dense map.
_MAX_DIMENSIONS = 256


class _Layout(NamedTuple):
    """Coordinates of both models, the shared ones before the others, and the number of these."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    shared: int


@dataclass(frozen=True, eq=False)
class Warp:
    """The map between two posteriors.

    Attributes
    ----------
    space : JointSpace
    coordinates : sequence of MapCoordinates
        Those of the first and of the second model.
    first, second : NormalFit
        Shared coordinates come first.
    evaluations : int
        Evaluations of gradients that the fits took, of one model each.
    """

    space: JointSpace
    coordinates: Sequence[MapCoordinates]
    first: NormalFit
    second: NormalFit
    evaluations: int

    @property
    def models(self) -> tuple[CompiledModel, CompiledModel]:
        """The two models, in the coordinates of the map."""
        first, second = self.coordinates
        return first.inner, second.inner

    @property
    def path(self) -> BetweenModels:
        """The path from the first model to the second, in the coordinates ``z``."""
        terms = (as_pytree(model.log_terms) for model in self.models)
        ends = _ends_of(self._layout)
        bound = Partial(ends, *terms, self.first, self.second)  # type: ignore[no-untyped-call]
        return BetweenModels(bound)

    def complete_first(self, seed: np.random.SeedSequence, draws: np.ndarray) -> np.ndarray:
        """Return ``z`` of draws of the first model, ``z_v`` drawn, shape ``(n, D)``."""
        order, other, shared = self._layout
        position = self.coordinates[0].from_model(draws)
        z = _standardise(self.first, position[:, order])
        shape = len(draws), len(other) - shared
        return np.concatenate([z, draw_heavy(np.random.default_rng(seed), shape)], axis=1)

    def complete_second(self, seed: np.random.SeedSequence, draws: np.ndarray) -> np.ndarray:
        """Return ``z`` of draws of the second model, ``z_u`` drawn, shape ``(n, D)``."""
        return self.add_to_second(seed, self.coordinates[1].from_model(draws))

    def add_to_second(self, seed: np.random.SeedSequence, position: np.ndarray) -> np.ndarray:
        """Return ``z`` of positions of the second model in the coordinates of the map."""
        other, order, shared = self._layout
        z = _standardise(self.second, position[:, order])
        new = draw_light(np.random.default_rng(seed), (len(z), len(other) - shared))
        return np.concatenate([z[:, :shared], new, z[:, shared:]], axis=1)

    def positions(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return positions of both models, in the coordinates of the map, shapes ``(n, d)``."""
        first, second, shared = self._layout
        kept = np.concatenate([z[:, :shared], z[:, len(first) :]], axis=1)
        return (
            _map(self.first, z[:, : len(first)], first),
            _map(self.second, kept, second),
        )

    @property
    def _layout(self) -> _Layout:
        return _lay_out(*self.models)


@double_precision
def fit_warp(
    space: JointSpace, draws: np.ndarray, seed: np.random.SeedSequence, given_data: bool = False
) -> Warp | None:
    """Fit the map to draws of the first model and gradients of both.

    Parameters
    ----------
    space
        The two models.
    draws : ndarray, shape (n, d)
        Draws of the first.
    seed
        Source of randomness.
    given_data
        Whether latent normal variables have their coordinates given the data.

    Returns
    -------
    Warp or None
        None if there are no gradients, too many coordinates, no latent normal variables that are
        asked for, or no finite fit.
    """
    models = space.first, space.second
    if space.ndim > _MAX_DIMENSIONS or min(m.derivatives.order for m in models) == NO_GRADIENT:
        return None
    seed_rows, seed_rest, seed_z = seed.spawn(3)
    count = min(len(draws), 2 * space.ndim + _MORE)
    rows = np.random.default_rng(seed_rows).choice(len(draws), size=count, replace=False)
    joint = space.complete_first(seed_rest, draws[rows])
    starts = joint[:, : space.first.ndim], joint[:, space.columns]
    found = coordinates_given_data(models, starts) if given_data else own_coordinates(models)
    if found is None:
        return None
    layout = _lay_out(*(c.inner for c in found))
    first, second = (
        fit_normal(
            c.inner.log_terms, c.from_model(start), np.array(order), np.random.default_rng(seed_z)
        )
        for c, start, order in zip(found, starts, layout[:2], strict=True)
    )
    if first is None or second is None:
        return None
    return Warp(space, found, first, second, 2 * (ITERATIONS + 1) * count)


def _lay_out(first: CompiledModel, second: CompiledModel) -> _Layout:
    """Match the variables of two models by name."""
    places = [
        {v.name: list(range(v.start, v.stop)) for v in model.variables} for model in (first, second)
    ]
    shared = [name for name in places[0] if name in places[1]]
    orders = [
        tuple(i for n in [*shared, *(n for n in p if n not in shared)] for i in p[n])
        for p in places
    ]
    return _Layout(orders[0], orders[1], sum(len(places[0][name]) for name in shared))


def _standardise(fit: NormalFit, x: np.ndarray) -> np.ndarray:
    z: np.ndarray = solve_triangular(fit.root, (x - fit.mean).T, lower=True).T
    return z


def _map(fit: NormalFit, z: np.ndarray, order: Sequence[int]) -> np.ndarray:
    x = np.empty(z.shape)
    x[:, order] = fit.mean + z @ fit.root.T
    return x


# JAX caches its programs by function: the same layout must give the same function.
@lru_cache(maxsize=8)
def _ends_of(layout: _Layout) -> Callable[..., EndTerms]:
    return partial(_ends, layout)


def _ends(
    layout: _Layout,
    first_terms: Callable[[jax.Array], LogTerms],
    second_terms: Callable[[jax.Array], LogTerms],
    first: NormalFit,
    second: NormalFit,
    z: jax.Array,
) -> EndTerms:
    z_s, z_u, z_v = jnp.split(z, [layout.shared, len(layout.first)])
    log_f = _log_density(first_terms, first, layout.first, jnp.concatenate([z_s, z_u]))
    log_g = _log_density(second_terms, second, layout.second, jnp.concatenate([z_s, z_v]))
    return EndTerms(log_f + log_heavy(z_v), log_g + log_light(z_u))


def _log_density(
    log_terms: Callable[[jax.Array], LogTerms],
    fit: NormalFit,
    order: Sequence[int],
    z: jax.Array,
) -> jax.Array:
    """Return the log density of ``z``, with the volume of the map."""
    x = jnp.zeros(len(order)).at[np.array(order)].set(fit.mean + fit.root @ z)
    log_volume = jnp.log(jnp.diagonal(jnp.asarray(fit.root))).sum()
    log_density: jax.Array = log_terms(x).log_posterior + log_volume
    return log_density
