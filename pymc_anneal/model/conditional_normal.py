"""Coordinates of latent normal variables given the other variables and the data.

For a model with latent normal variables ``u``, prior ``N(m_0, S_0)``, and a predictor
``eta = a(theta) + J(theta) u`` (`linear_predictor.py`), the log likelihood is expanded around a
fixed predictor ``c``, with slope ``g(theta)`` and curvatures ``-w(theta)``:

    l(eta, theta) ~ g'(eta - c) - (eta - c)' diag(w) (eta - c) / 2.

Given ``theta``, ``u`` is then normal, with

    Q(theta) = S_0^{-1} + J' diag(w) J = L L',
    Q m(theta) = S_0^{-1} m_0 + J' (g + diag(w) (c - a)),

and its coordinates are ``e = L'(u - m)``: the Laplace approximation of Rue, Martino & Chopin
(2009, eq. 3) as a reparametrisation (Murray & Adams 2010, for Gaussian processes). With a normal
likelihood ``e`` is standard normal given ``theta``, exactly. Any ``c`` gives a bijection, and the
same evidence.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np

from jax.tree_util import Partial

from pymc_anneal.base.batches import COSTLY_BATCH, map_batches
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.branches import Branches
from pymc_anneal.model.cholesky import cholesky
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.linear_predictor import LinearPredictor, linear_predictor
from pymc_anneal.model.mapped import MappedModel, copy_of, fields_of
from pymc_anneal.model.normal_block import NormalDraw, normal_draw
from pymc_anneal.model.normal_scores import NormalScores
from pymc_anneal.model.pickling import PicklableFunction
from pymc_anneal.model.recent import once_per_model
from pymc_anneal.model.shared_program import SharedProgram

# Largest number of multiplications of the map, n k^2 + k^3: a millisecond.
_MOST_WORK = 3_000_000


@dataclass(frozen=True, eq=False)
class ConditionalMap:
    """The map from coordinates ``(theta, e)`` to ``(theta, u)``, and back.

    Half-Cauchy variables of ``theta`` are mapped to their normal scores as well.
    """

    predictor: LinearPredictor
    scores: NormalScores

    def backward(self, centre: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the position in the model, shape ``(d,)``, and the log volume of the map."""
        x, log_volume = self.scores.backward(y)
        columns = self.predictor.columns
        _, draw = self._draw(*self._precision(centre, x), x[columns])
        return x.at[columns].set(draw.mean + draw.deviation), log_volume + draw.log_volume

    def forward(self, centre: jax.Array, x: jax.Array) -> jax.Array:
        """Return the coordinates of a position, shape ``(d,)``."""
        columns, (precision, right) = self.predictor.columns, self._precision(centre, x)
        usable, draw = self._draw(precision, right, jnp.zeros(len(columns)))
        apart = x[columns] - draw.mean
        e = jnp.where(usable, cholesky(precision).T @ apart, apart / self.predictor.scale)
        return self.scores.forward(x.at[columns].set(e))

    def _precision(self, centre: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the precision ``Q`` of the latent variables given theta, and ``Q m``."""
        known = self.predictor
        m_0, precision = jnp.asarray(known.mean), jnp.asarray(known.scale) ** -2.0
        a, jvp = jax.linearize(lambda u: known.predict(x, u), jnp.zeros_like(m_0))
        jacobian = jax.vmap(jvp, out_axes=1)(jnp.eye(len(m_0)))
        slope, curvature = known.slope_along(x, centre, jnp.ones_like(centre))
        # A likelihood that is not log-concave there adds no precision.
        w = jnp.maximum(-curvature, 0.0)
        right = precision * m_0 + jacobian.T @ (slope + w * (centre - a))
        return jnp.diag(precision) + jacobian.T @ (w[:, None] * jacobian), right

    def _draw(
        self, precision: jax.Array, right: jax.Array, e: jax.Array
    ) -> tuple[jax.Array, NormalDraw]:
        """Return latent variables, and whether they could be computed.

        Where the expansion overflows, the prior takes its place: any map will do.
        """
        mean, scale = jnp.asarray(self.predictor.mean), jnp.asarray(self.predictor.scale)
        draw = normal_draw(precision, right, e)
        usable = jnp.isfinite(draw.mean).all() & jnp.isfinite(draw.log_volume)
        prior = NormalDraw(mean, scale * e, jnp.log(scale).sum())
        return usable, jax.tree.map(partial(jnp.where, usable), draw, prior)


class ConditionalCoordinates:
    """A model in coordinates of its latent normal variables given the rest, for any centre.

    Parameters
    ----------
    compiled
        The model, its location-scale variables in non-centred coordinates.
    predictor
        Its latent variables and their predictor.
    """

    def __init__(self, compiled: CompiledModel, predictor: LinearPredictor):
        self._full = copy_of(compiled)
        self._map = ConditionalMap(predictor, NormalScores.of(compiled))

    @property
    def columns(self) -> np.ndarray:
        """Places of the latent variables in the vector, shape ``(k,)``."""
        return self._map.predictor.columns

    @property
    def unimodal_columns(self) -> np.ndarray:
        """Places of the latent variables, if the likelihood is log-concave in them, or none."""
        return self.columns if self._map.predictor.log_concave else self.columns[:0]

    @property
    def work(self) -> int:
        """Multiplications of the map, ``(n + k) k^2``."""
        k = len(self.columns)
        return (self._map.predictor.size + k) * k**2

    def at(self, centre: np.ndarray) -> "ConditionalModel":
        """Return the model with the expansion around a predictor, shape ``(n,)``."""
        arguments = jnp.asarray(centre), *self._program.arrays
        log_terms = Partial(_At(self._program), *arguments)  # type: ignore[no-untyped-call]
        own = {**fields_of(self._full), "log_terms": log_terms, "_full": self._full}
        return ConditionalModel(**own, _coordinates=self, _centre=centre)

    @double_precision
    def centre(self, position: np.ndarray) -> np.ndarray:
        """Return the median predictor of positions in the model, shape ``(n,)``."""
        return np.asarray(np.median(np.asarray(self._predict(position)), axis=0))

    @double_precision
    def to_model(self, centre: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Map coordinates to positions in the model, both of shape ``(n, d)``."""
        return np.asarray(map_batches(partial(self._backward, centre), y, COSTLY_BATCH))

    @double_precision
    def from_model(self, centre: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Map positions in the model to coordinates, both of shape ``(n, d)``."""
        return np.asarray(map_batches(partial(self._forward, centre), x, COSTLY_BATCH))

    @cached_property
    def _program(self) -> SharedProgram:
        """The log densities as a function of centre and coordinates, in one vector."""
        function = partial(_evaluate, self._map, self._full.log_terms)
        size = self._map.predictor.size + self._full.ndim
        return SharedProgram(PicklableFunction(function), size)

    @cached_property
    def _predict(self) -> Callable[..., jax.Array]:
        known = self._map.predictor
        function: Callable[..., jax.Array]
        function = jax.jit(jax.vmap(lambda x: known.predict(x, x[known.columns])))
        return function

    @cached_property
    def _backward(self) -> Callable[..., jax.Array]:
        function: Callable[..., jax.Array]
        function = jax.jit(jax.vmap(lambda c, y: self._map.backward(c, y)[0], in_axes=(None, 0)))
        return function

    @cached_property
    def _forward(self) -> Callable[..., jax.Array]:
        function: Callable[..., jax.Array]
        function = jax.jit(jax.vmap(self._map.forward, in_axes=(None, 0)))
        return function


def _evaluate(
    mapping: ConditionalMap, log_terms: Callable[[jax.Array], LogTerms], joined: jax.Array
) -> LogTerms:
    """Evaluate the log densities at centre and coordinates, joined to one vector."""
    centre, y = jnp.split(joined, [mapping.predictor.size])
    x, log_volume = mapping.backward(centre, y)
    terms = log_terms(x)
    return LogTerms(terms.log_prior + log_volume, terms.log_likelihood)


@dataclass(frozen=True)
class _At:
    """A program of centre and coordinates as a function of both, one after the other."""

    program: SharedProgram

    def __call__(self, centre: jax.Array, *arguments: jax.Array) -> LogTerms:
        *arrays, y = arguments
        return self.program(*arrays, jnp.concatenate([centre, y]))


@dataclass(frozen=True, eq=False)
class ConditionalModel(MappedModel):
    """A compiled model in coordinates of its latent normal variables given the rest.

    Positions are mapped to those of the model where its variables are wanted.
    """

    _coordinates: ConditionalCoordinates
    _centre: np.ndarray

    def to_model(self, position: np.ndarray) -> np.ndarray:
        """Map positions, shape ``(n, d)``, to those of the model."""
        return self._coordinates.to_model(self._centre, position)

    def from_model(self, position: np.ndarray) -> np.ndarray:
        """Map positions of the model, shape ``(n, d)``, to these coordinates."""
        return self._coordinates.from_model(self._centre, position)

    @property
    def unimodal_columns(self) -> np.ndarray:
        """Places of the latent variables, if the likelihood is log-concave in them, or none."""
        return self._coordinates.unimodal_columns

    @property
    def costly(self) -> bool:
        """True: the map takes long, and its gradient several times as long."""
        return True


@once_per_model
def conditional_coordinates(compiled: CompiledModel) -> ConditionalCoordinates | None:
    """Return these coordinates of a model; None if it has no latent normal variables.

    Parameters
    ----------
    compiled
        The model, its location-scale variables in non-centred coordinates.
    """
    branches: Branches | None = compiled.branches
    if branches is None or branches.terms:  # None: in other coordinates already, or with other data
        return None
    predictor = linear_predictor(compiled)
    if predictor is None:
        return None
    coordinates = ConditionalCoordinates(compiled, predictor)
    return coordinates if coordinates.work <= _MOST_WORK else None
