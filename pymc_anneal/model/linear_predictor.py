"""Latent normal variables, and the linear predictor through which the data depend on them.

Of regressions, varying effects, Gaussian processes and random walks, the log likelihood is

    log p(y | u, theta) = l(eta, theta) + ...,    eta = a(theta) + J(theta) u,
    d^2 l / d eta_i d eta_j = 0  for i != j,

with latent variables ``u`` whose prior is normal and independent of the other variables, ``theta``:
latent Gaussian models (Rue, Martino & Chopin 2009, section 1.1) in non-centred coordinates. The
graph of a model names candidates for ``u`` and ``eta``; that ``eta`` is linear and ``l`` a sum over
its entries is checked at draws of the prior. That ``l`` is concave is proved from the graph or not
claimed (`log_concavity.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm

from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import NormalRV
from pytensor.tensor.random.op import RandomVariable

from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.derivatives import SMOOTH
from pymc_anneal.model.jaxify import JaxGraph, jaxify
from pymc_anneal.model.location_scale_transform import is_standard_normal
from pymc_anneal.model.log_concavity import is_log_concave_in
from pymc_anneal.model.map_rows import map_positions
from pymc_anneal.model.notes import or_noted
from pymc_anneal.model.parents import known_values
from pymc_anneal.model.variables import FreeVariable, split_values

# Pairs of prior draws at which a structure is checked, and the largest relative error.
_PAIRS, _TOLERANCE = 4, 1e-8


class _Latent(NamedTuple):
    """A variable with a normal prior of known mean and standard deviation."""

    rv: Variable
    variable: FreeVariable
    mean: np.ndarray
    scale: np.ndarray

    @property
    def size(self) -> int:
        return self.variable.stop - self.variable.start


@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """Latent normal variables ``u`` of a model, and their predictor ``eta``.

    Attributes
    ----------
    names : tuple of str
        The latent variables.
    columns : ndarray of int, shape (k,)
        Their places in the vector ``x``.
    mean, scale : ndarray, shape (k,)
        Of the prior of ``u``.
    log_concave : bool
        Whether the log likelihood is known to be a concave function of ``eta``.
    """

    names: tuple[str, ...]
    columns: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    log_concave: bool
    _variables: tuple[FreeVariable, ...]
    _predictors: JaxGraph
    _terms: JaxGraph
    _shapes: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """Number of entries ``n`` of ``eta``."""
        return sum(int(np.prod(shape)) for shape in self._shapes)

    def predict(self, x: jax.Array, u: jax.Array) -> jax.Array:
        """Return ``eta``, shape ``(n,)``, with ``theta`` from ``x`` and latent variables ``u``."""
        names = (v.name for v in self._variables)
        values = dict(zip(names, split_values(self._variables, x), strict=True))
        start = 0
        for name in self.names:
            stop = start + values[name].size
            values[name], start = u[start:stop].reshape(values[name].shape), stop
        return _flatten(self._predictors(*values.values()))

    def log_likelihood(self, x: jax.Array, eta: jax.Array) -> jax.Array:
        """Return the log likelihood of the data that depend on ``eta``, in nats."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes])[:-1]
        parts = [p.reshape(s) for p, s in zip(jnp.split(eta, ends), self._shapes, strict=True)]
        terms = self._terms(*parts, *split_values(self._variables, x))
        return jnp.asarray(sum(jnp.asarray(t, jnp.float64).sum() for t in terms))

    def slope_along(
        self, x: jax.Array, eta: jax.Array, direction: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Return the gradient of the log likelihood by ``eta``, and its derivative along a line.

        Both have the shape ``(n,)``. Along ``(1, ..., 1)`` the latter holds the second derivatives
        by each entry, if the log likelihood is a sum over the entries.
        """
        slope = jax.grad(lambda e: self.log_likelihood(x, e))
        found: tuple[jax.Array, jax.Array] = jax.jvp(slope, (eta,), (direction,))
        return found


def _flatten(parts: Sequence[jax.Array]) -> jax.Array:
    return jnp.concatenate([jnp.ravel(jnp.asarray(part, jnp.float64)) for part in parts])


@double_precision
def linear_predictor(compiled: CompiledModel) -> LinearPredictor | None:
    """Find the latent normal variables of a model and their predictor; None if there are none.

    Parameters
    ----------
    compiled
        The model, its location-scale variables in non-centred coordinates.
    """
    if compiled.derivatives.order < SMOOTH or compiled.discrete or not compiled.has_likelihood:
        return None
    latents = sorted(_latents(compiled), key=lambda latent: -latent.size)
    draws = compiled.sample_prior(np.random.SeedSequence(0), 2 * _PAIRS)
    note = (
        "Latent normal variables are not looked for, because the likelihood cannot be written as a "
        "function of their predictor ({})."
    )
    return or_noted(lambda: _largest(compiled, latents, draws), compiled.fallbacks, note)


def _largest(
    compiled: CompiledModel, latents: Sequence[_Latent], draws: np.ndarray
) -> LinearPredictor | None:
    """Try all latent variables together, or else add one after the other, the largest first."""
    found = _try(compiled, latents, draws)
    if found is not None or len(latents) < 2:
        return found
    kept = list[_Latent]()
    for latent in latents:
        larger = _try(compiled, [*kept, latent], draws)
        if larger is not None:
            kept, found = [*kept, latent], larger
    return found


def _latents(compiled: CompiledModel) -> Iterator[_Latent]:
    """Yield the variables with a normal prior that depends on no other variable."""
    model = compiled.model
    for rv, variable in zip(model.free_RVs, compiled.variables, strict=True):
        transform, size = model.rvs_to_transforms[rv], variable.stop - variable.start
        if is_standard_normal(rv, transform):
            yield _Latent(rv, variable, np.zeros(size), np.ones(size))
        elif transform is None and isinstance(rv.owner.op, NormalRV):
            values = known_values(compiled, rv.owner.inputs[-2:], variable.shape)
            if values is not None:
                mean, scale = values
                yield _Latent(rv, variable, mean.ravel(), scale.ravel())


def _try(
    compiled: CompiledModel, latents: Sequence[_Latent], draws: np.ndarray
) -> LinearPredictor | None:
    """Return the predictor that is linear in all of some latent variables, or None."""
    rvs, model = {latent.rv for latent in latents}, compiled.model
    if not latents or any(_depends(potential, rvs) for potential in model.potentials):
        return None
    columns = np.concatenate([np.arange(v.start, v.stop) for _, v, *_ in latents])
    observed = [rv for rv in model.observed_RVs if _depends(rv, rvs)]
    found_cuts = [_linear_ancestor(compiled, rv, rvs, columns, draws) for rv in observed]
    cuts = [cut for cut in found_cuts if cut is not None]
    if not cuts or len(cuts) < len(observed):
        return None
    inputs = [cut.type() for cut in cuts]
    terms = [
        pm.logp(graph_replace([rv], {cut: eta})[0], model.rvs_to_values[rv])
        for rv, cut, eta in zip(observed, cuts, inputs, strict=True)
    ]
    predictors = jaxify(model.value_vars, _graphs(compiled, cuts))
    shapes = jax.eval_shape(predictors, *split_values(compiled.variables, draws[0]))
    found = LinearPredictor(
        names=tuple(latent.rv.name for latent in latents),
        columns=columns,
        mean=np.concatenate([latent.mean for latent in latents]),
        scale=np.concatenate([latent.scale for latent in latents]),
        log_concave=all(map(is_log_concave_in, observed, cuts)),
        _variables=compiled.variables,
        _predictors=predictors,
        _terms=jaxify([*inputs, *model.value_vars], _graphs(compiled, terms)),
        _shapes=tuple(part.shape for part in shapes),
    )
    return _if_sum(found, draws[:_PAIRS])


def _linear_ancestor(
    compiled: CompiledModel,
    rv: Variable,
    latents: set[Variable],
    columns: np.ndarray,
    draws: np.ndarray,
) -> Variable | None:
    """Return the first variable on the only way from an observed one up that is linear."""
    for cut in _way_up(rv, latents):
        if _is_linear(compiled, cut, columns, draws):
            return cut
    return None


def _way_up(rv: Variable, latents: set[Variable]) -> Iterator[Variable]:
    """Yield the parameter that depends on latent variables, and its ancestors up to a fork.

    There is none where another variable is drawn on the way, and then censored.
    """
    below = rv
    while below not in latents:
        above = [v for v in below.owner.inputs if _depends(v, latents)]
        drawn = {v for v in above if isinstance(v.owner.op, RandomVariable)}
        if len(above) != 1 or not drawn <= latents:
            return
        yield (below := above[0])


def _depends(variable: Variable, others: set[Variable]) -> bool:
    return bool(others & set(ancestors([variable])))


def _graphs(compiled: CompiledModel, variables: Sequence[Variable]) -> list[Variable]:
    """Return graphs of a model's random variables as graphs of their values."""
    return compiled.freeze(compiled.model.replace_rvs_by_values(list(variables)))


def _is_linear(
    compiled: CompiledModel, cut: Variable, columns: np.ndarray, draws: np.ndarray
) -> bool:
    """Whether values half way between two latent vectors are half way between their values."""
    first, second = draws[:_PAIRS].copy(), draws[:_PAIRS].copy()
    second[:, columns] = draws[_PAIRS:, columns]
    rows = np.concatenate([first, second, (first + second) / 2])
    (values,) = map_positions(compiled.model, compiled.variables, _graphs(compiled, [cut]))(rows)
    first_end, second_end, middle = values.reshape(3, _PAIRS, -1)
    size = np.abs(values[: 2 * _PAIRS]).max()
    return _agree((first_end + second_end) / 2, middle, size)


def _if_sum(found: LinearPredictor, draws: np.ndarray) -> LinearPredictor | None:
    """Return a predictor if no entry changes the derivative with respect to another one."""
    signs = jnp.asarray(np.random.default_rng(0).choice([-1.0, 1.0], size=found.size))

    def curvatures(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        eta = found.predict(x, jnp.asarray(found.mean))
        of_entries, along = (found.slope_along(x, eta, v)[1] for v in (jnp.ones_like(eta), signs))
        return of_entries, along

    of_entries, along = map(np.asarray, jax.jit(jax.vmap(curvatures))(draws))
    if not _agree(of_entries * signs, along, np.abs(of_entries).max()):
        return None
    return found


def _agree(expected: np.ndarray, found: np.ndarray, size: Any) -> bool:
    return bool(np.isfinite(size) and np.abs(found - expected).max() <= _TOLERANCE * size)
