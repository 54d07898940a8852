"""Two posteriors mapped onto each other, so that a path between them is short.

With normal approximations ``N(m_f, L_f L_f')`` and ``N(m_g, L_g L_g')`` of the two posteriors, the
coordinates ``s`` that both models have before their own ``u`` and ``v``, and triangular roots,

    (s, u) = m_f + L_f (z_s, z_u),    (s, v) = m_g + L_g (z_s, z_v),

the ends of the path are densities of ``z = (z_s, z_u, z_v)``,

    log first(z)  = log f(m_f + L_f (z_s, z_u)) + log |L_f| + log t_5(z_v),
    log second(z) = log g(m_g + L_g (z_s, z_v)) + log |L_g| + log phi(z_u),

which integrate to the evidences: ``t_5`` (Student-t) and ``phi`` (normal) are normalised, in the
role of the pseudo-priors of Carlin & Chib (1995). The tails of what is drawn are heavy, and those
of what is added to the target light, so that the weights are bounded. Any map leaves the ratio of
the normalisers as it is (warp bridge sampling, Meng & Schilling 2002; Jarzynski 2002): a bad
approximation costs precision only.

The approximations are Gaussian variational ones (Opper & Archambeau 2009): with ``x ~ N(m, C)``,

    m <- m + C E[grad],    C Cov(grad) C = Cov(x),

exact for a normal density after one iteration, from any draws.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jax.scipy import stats
from jax.tree_util import Partial
from scipy.linalg import solve_triangular

from pymc_anneal.adaptation.fit_reference import locate
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.derivatives import NO_GRADIENT
from pymc_anneal.model.joint_space import JointSpace
from pymc_anneal.paths.between_models import BetweenModels, EndTerms

# Positions at which gradients are taken: so many more than twice the coordinates.
_MORE = 32
# Iterations of the fit; for posteriors that are nearly normal the second changes little.
_ITERATIONS = 6
# Share of the positions at which the density has to be finite.
_LEAST_FINITE = 0.5
# Largest number of coordinates of a dense map.
_MAX_DIMENSIONS = 256
_DEGREES_OF_FREEDOM = 5.0


class NormalFit(NamedTuple):
    """A normal approximation: mean ``(d,)``, lower root ``(d, d)``, in the order of the map."""

    mean: np.ndarray
    root: np.ndarray


@dataclass(frozen=True, eq=False)
class Warp:
    """The map between two posteriors.

    Attributes
    ----------
    space : JointSpace
    first, second : NormalFit
        Shared coordinates come first.
    evaluations : int
        Evaluations of gradients that the fits took, of one model each.
    """

    space: JointSpace
    first: NormalFit
    second: NormalFit
    evaluations: int

    @property
    def path(self) -> BetweenModels:
        """The path from the first model to the second, in the coordinates ``z``."""
        bound = Partial(_ends_of(self.space), self.first, self.second)  # type: ignore[no-untyped-call]
        return BetweenModels(bound)

    def complete_first(self, seed: np.random.SeedSequence, draws: np.ndarray) -> np.ndarray:
        """Return ``z`` of draws of the first model, ``z_v`` drawn, shape ``(n, D)``."""
        own, rng = len(_own(self.space)[1]), np.random.default_rng(seed)
        new = rng.standard_t(_DEGREES_OF_FREEDOM, size=(len(draws), own))
        return np.concatenate([_standardise(self.first, draws[:, _orders(self.space)[0]]), new], 1)

    def complete_second(self, seed: np.random.SeedSequence, draws: np.ndarray) -> np.ndarray:
        """Return ``z`` of draws of the second model, ``z_u`` drawn, shape ``(n, D)``."""
        shared, own = len(_shared(self.space)[0]), len(_own(self.space)[0])
        z = _standardise(self.second, draws[:, _orders(self.space)[1]])
        new = np.random.default_rng(seed).standard_normal((len(draws), own))
        return np.concatenate([z[:, :shared], new, z[:, shared:]], axis=1)

    def positions(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return positions of the first and of the second model at ``z``, shapes ``(n, d)``."""
        shared, own = len(_shared(self.space)[0]), len(_own(self.space)[0])
        order_first, order_second = _orders(self.space)
        kept = np.concatenate([z[:, :shared], z[:, shared + own :]], axis=1)
        return (
            _map(self.first, z[:, : shared + own], order_first),
            _map(self.second, kept, order_second),
        )


@double_precision
def fit_warp(space: JointSpace, draws: np.ndarray, seed: np.random.SeedSequence) -> Warp | None:
    """Fit the map to draws of the first model, shape ``(n, d)``, and gradients of both.

    None if there are no gradients, too many coordinates, or no finite fit.
    """
    models = space.first, space.second
    if space.ndim > _MAX_DIMENSIONS or min(m.derivatives.order for m in models) == NO_GRADIENT:
        return None
    seed_rows, seed_rest, seed_z = seed.spawn(3)
    count = min(len(draws), 2 * space.ndim + _MORE)
    rows = np.random.default_rng(seed_rows).choice(len(draws), size=count, replace=False)
    joint = space.complete_first(seed_rest, draws[rows])
    starts = joint[:, : space.first.ndim], joint[:, space.columns]
    orders = _orders(space)
    fits = [
        _fit(model, start, order, np.random.default_rng(seed_z))
        for model, start, order in zip(models, starts, orders, strict=True)
    ]
    if fits[0] is None or fits[1] is None:
        return None
    return Warp(space, fits[0], fits[1], 2 * (_ITERATIONS + 1) * count)


def _fit(
    model: CompiledModel, position: np.ndarray, order: np.ndarray, rng: np.random.Generator
) -> NormalFit | None:
    """Return a normal approximation from positions near the bulk, or None if there is none."""
    z = rng.standard_normal((len(position) // 2, model.ndim))
    z = np.concatenate([z, -z])
    mean, covariance = position.mean(axis=0), np.cov(position.T).reshape(2 * [model.ndim])
    best = current = _Iterate.at(model, mean, covariance, z)
    fraction = 1.0
    for _ in range(_ITERATIONS):
        if current is None or best is None:
            break
        proposed = current.step(model, z, fraction)
        better = proposed is not None and proposed.bound > best.bound
        best = proposed if better else best
        # A posterior that is far from normal makes full steps overshoot.
        fraction, current = (1.0, proposed) if better else (fraction / 2, best)
    return None if best is None else best.ordered(order)


@dataclass(frozen=True)
class _Iterate:
    """A normal approximation and the log density at its points, shapes ``(n, d)`` and ``(n,)``.

    The bound is that of variational inference, ``E[log f] + log |L|``, up to a constant.
    """

    mean: np.ndarray
    covariance: np.ndarray
    position: np.ndarray
    gradient: np.ndarray
    bound: float

    @classmethod
    def at(
        cls, model: CompiledModel, mean: np.ndarray, covariance: np.ndarray, z: np.ndarray
    ) -> "_Iterate | None":
        try:
            root = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            return None
        position = mean + z @ root.T
        value, gradient = map(np.asarray, _value_and_gradient(model)(position))
        finite = np.isfinite(value) & np.isfinite(gradient).all(axis=1)
        if not finite.mean() > _LEAST_FINITE:
            return None
        bound = value[finite].mean() + np.log(np.diag(root)).sum()
        return cls(mean, covariance, position[finite], gradient[finite], float(bound))

    def step(self, model: CompiledModel, z: np.ndarray, fraction: float) -> "_Iterate | None":
        """Go a fraction of the way to the next iterate."""
        mean, scale = locate(self.position, self.gradient)
        covariance = np.diag(scale**2) if scale.ndim == 1 else scale @ scale.T
        if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
            return None
        return _Iterate.at(
            model,
            self.mean + fraction * (mean - self.mean),
            self.covariance + fraction * (covariance - self.covariance),
            z,
        )

    def ordered(self, order: np.ndarray) -> NormalFit | None:
        """Return the approximation with its coordinates in an order."""
        root = np.linalg.cholesky(self.covariance[np.ix_(order, order)])
        return NormalFit(self.mean[order], root)


@lru_cache(maxsize=8)
def _value_and_gradient(
    model: CompiledModel,
) -> Callable[[np.ndarray], tuple[jax.Array, jax.Array]]:
    function: Callable[[np.ndarray], tuple[jax.Array, jax.Array]]
    function = jax.jit(jax.vmap(jax.value_and_grad(lambda x: model.log_terms(x).log_posterior)))
    return function


def _standardise(fit: NormalFit, x: np.ndarray) -> np.ndarray:
    z: np.ndarray = solve_triangular(fit.root, (x - fit.mean).T, lower=True).T
    return z


def _map(fit: NormalFit, z: np.ndarray, order: np.ndarray) -> np.ndarray:
    x = np.empty(z.shape)
    x[:, order] = fit.mean + z @ fit.root.T
    return x


def _shared(space: JointSpace) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates of shared variables in the first and in the second model."""
    second = np.flatnonzero(space.columns < space.first.ndim)
    return space.columns[second], second


def _own(space: JointSpace) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates that each model has alone."""
    first, second = _shared(space)
    return (
        np.setdiff1d(np.arange(space.first.ndim), first),
        np.setdiff1d(np.arange(space.second.ndim), second),
    )


def _orders(space: JointSpace) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates of each model in the order of the map."""
    pairs = zip(_shared(space), _own(space), strict=True)
    first, second = (np.concatenate(pair).astype(int) for pair in pairs)
    return first, second


# JAX caches its programs by function: the same space must give the same function.
@lru_cache(maxsize=8)
def _ends_of(space: JointSpace) -> Callable[..., EndTerms]:
    return partial(_ends, space)


def _ends(space: JointSpace, first: NormalFit, second: NormalFit, z: jax.Array) -> EndTerms:
    shared, own = len(_shared(space)[0]), len(_own(space)[0])
    z_s, z_u, z_v = jnp.split(z, [shared, shared + own])
    order_first, order_second = _orders(space)
    log_f = _log_density(space.first, first, order_first, jnp.concatenate([z_s, z_u]))
    log_g = _log_density(space.second, second, order_second, jnp.concatenate([z_s, z_v]))
    return EndTerms(
        log_f + stats.t.logpdf(z_v, _DEGREES_OF_FREEDOM).sum(),
        log_g + stats.norm.logpdf(z_u).sum(),
    )


def _log_density(
    model: CompiledModel, fit: NormalFit, order: np.ndarray, z: jax.Array
) -> jax.Array:
    """Return the log density of ``z``, with the volume of the map."""
    x = jnp.zeros(len(order)).at[order].set(fit.mean + fit.root @ z)
    log_volume = jnp.log(jnp.diagonal(jnp.asarray(fit.root))).sum()
    log_density: jax.Array = model.log_terms(x).log_posterior + log_volume
    return log_density
