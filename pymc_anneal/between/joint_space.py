"""The joint space of two models: the union of their free variables, matched by name.

With ``s`` the variables of both models, ``u`` those of the first alone and ``v`` those of the
second alone, and ``f``, ``g`` prior times likelihood of the two,

    log first(s, u, v)  = log f(s, u) + log p_g(v | s),
    log second(s, u, v) = log g(s, v) + log p_f(u | s),

where ``p_g(v | s)`` are the factors of the second model's prior that belong to ``v``, and ``p_f``
likewise (`conditional_prior.py`). They are normalised, so the two densities integrate to the
evidences of the two models (Carlin & Chib 1995, with the priors as pseudo-priors).
"""

from dataclasses import dataclass
from functools import lru_cache

import jax
import numpy as np

from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.conditional_prior import ConditionalPrior, conditional_prior

# Prior draws at which the coordinates of shared variables are compared, and the largest relative
# difference by rounding.
_DRAWS, _TOLERANCE = 8, 1e-6


@dataclass(frozen=True, eq=False)
class JointSpace:
    """Two models on the union of their free variables.

    Attributes
    ----------
    first, second : CompiledModel
    columns : ndarray of int, shape (d_second,)
        Places of the second model's coordinates in the union. Those of the first are the leading
        ones, in its order.
    only_first, only_second : ConditionalPrior
        Prior of the variables that one model has alone, given the others.
    """

    first: CompiledModel
    second: CompiledModel
    columns: np.ndarray
    only_first: ConditionalPrior
    only_second: ConditionalPrior

    @property
    def ndim(self) -> int:
        """Number of coordinates of the union."""
        return self.first.ndim + len(self.only_second.coordinates)

    def log_first(self, x: jax.Array) -> jax.Array:
        """Return the log density of the first model, in nats, at ``x`` of shape ``(ndim,)``."""
        own: jax.Array = self.first.log_terms(x[: self.first.ndim]).log_posterior
        return own + self.only_second.log_density(x[self.columns])

    def log_second(self, x: jax.Array) -> jax.Array:
        """Return the log density of the second model, in nats, at ``x`` of shape ``(ndim,)``."""
        own: jax.Array = self.second.log_terms(x[self.columns]).log_posterior
        return own + self.only_first.log_density(x[: self.first.ndim])

    def complete_first(self, seed: np.random.SeedSequence, draws: np.ndarray) -> np.ndarray:
        """Add draws of the second model's own variables to draws of the first.

        Parameters
        ----------
        seed : SeedSequence
        draws : ndarray, shape (n, d_first)

        Returns
        -------
        ndarray, shape (n, ndim)
        """
        if not len(self.only_second.coordinates):
            return draws
        own = self.only_second.draw(seed, self.first.constrain(draws), len(draws))
        return np.concatenate([draws, own], axis=1)

    def complete_second(self, seed: np.random.SeedSequence, draws: np.ndarray) -> np.ndarray:
        """Add draws of the first model's own variables to draws ``(n, d)`` of the second."""
        x = np.empty((len(draws), self.ndim))
        x[:, self.columns] = draws
        if len(self.only_first.coordinates):
            values = self.second.constrain(draws)
            x[:, self.only_first.coordinates] = self.only_first.draw(seed, values, len(draws))
        return x


# JAX caches its programs by function: the same models must give the same functions.
@lru_cache(maxsize=4)
def join_models(first: CompiledModel, second: CompiledModel) -> JointSpace:
    """Join two models on the union of their free variables.

    Parameters
    ----------
    first, second : CompiledModel
        Models without discrete variables.

    Raises
    ------
    ValueError
        A variable of both models has another shape or another transform in one of them.
    NotImplementedError
        A prior is not normalised.
    """
    shared = [v.name for v in first.variables if v.name in {w.name for w in second.variables}]
    for name in shared:
        _check_shape(first, second, name)
    _check_coordinates(first, second, shared)
    only_first, only_second = _without(first, shared), _without(second, shared)
    return JointSpace(
        first,
        second,
        _locate(first, second),
        conditional_prior(first, only_first),
        conditional_prior(second, only_second),
    )


def _without(compiled: CompiledModel, shared: list[str]) -> list[str]:
    return [v.name for v in compiled.variables if v.name not in shared]


def _locate(first: CompiledModel, second: CompiledModel) -> np.ndarray:
    """Return the places of the second model's coordinates: new variables come last."""
    start = {v.name: v.start for v in first.variables}
    end, columns = first.ndim, []
    for v in second.variables:
        size = v.stop - v.start
        place = start.get(v.name, end)
        columns.append(np.arange(place, place + size))
        end += 0 if v.name in start else size
    return np.concatenate([np.zeros(0, dtype=int), *columns])


def _check_shape(first: CompiledModel, second: CompiledModel, name: str) -> None:
    shapes = [next(v.shape for v in m.variables if v.name == name) for m in (first, second)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"Variable '{name}' has unconstrained shape {shapes[0]} in the first model and "
            f"{shapes[1]} in the second. Variables are matched by name: give it another name in "
            "one of the models."
        )


def _check_coordinates(first: CompiledModel, second: CompiledModel, shared: list[str]) -> None:
    """Raise if a value of a shared variable has other unconstrained coordinates."""
    seed = np.random.SeedSequence(0)
    x, other = first.sample_prior(seed, _DRAWS), second.sample_prior(seed, _DRAWS)
    here, values = first.constrain(x), second.constrain(other)
    with np.errstate(all="ignore"):
        mapped = second.unconstrain({**values, **{name: here[name] for name in shared}})
    for name in shared:
        a, b = (next(v for v in m.variables if v.name == name) for m in (first, second))
        left, right = x[:, a.start : a.stop], mapped[:, b.start : b.stop]
        if not (np.abs(left - right) <= _TOLERANCE * (1 + np.abs(left))).all():
            raise ValueError(
                f"Variable '{name}' has the transform {_transform(first, name)} in the first model "
                f"and {_transform(second, name)} in the second, or other bounds: the same value "
                "has other unconstrained coordinates. Give it the same transform, or another name "
                "in one of the models."
            )


def _transform(compiled: CompiledModel, name: str) -> str:
    transform = compiled.model.rvs_to_transforms[compiled.model[name]]
    return "None" if transform is None else type(transform).__name__
