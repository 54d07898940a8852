"""Missing values of a multivariate normal variable, integrated out exactly.

PyMC gives the density of an observed variable with missing values ``u`` as that of all its values,
``p(y, u | theta)``, and ``u`` no prior of its own. Where it is normal in ``u``, with
``l(u) = log p(y, u | theta)`` and the precision ``P = -l''``, one step of Newton's method leads
from any ``u_0`` to the mean, and Laplace's method is exact:

    m = u_0 + P^-1 l'(u_0),
    log p(y | theta) = l(m) + k/2 log(2 pi) - 1/2 log |P|,    u | y, theta ~ N(m, P^-1).

That is so for rows of `pm.MvNormal`, autoregressions and random walks with normal steps. Rows,
which are independent, are solved side by side.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.distributions.distribution import PartialObservedRV
from pymc.distributions.multivariate import CARRV, ICARRV
from pymc.logprob.abstract import _logprob
from pymc.model.fgraph import ModelFreeRV, ModelObservedRV, ModelVar
from pytensor.compile.mode import Mode
from pytensor.gradient import grad, jacobian
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors

from pymc_anneal.model.copy_model import copy_model
from pymc_anneal.model.jax_dispatch import jax_funcify
from pymc_anneal.model.summands import is_close

# Draws at which a density is compared with the normal one.
_TRIED = 8
# Whether PyTensor batches gradients of assignments and of joined arrays: not below PyMC 6.
_BATCHED = int(pm.__version__.split(".")[0]) >= 6
_REFUSED = (
    "Variable '{}' holds missing values of a multivariate variable, which are integrated out where "
    "their joint density is normal; {}. Model the missing entries as a separate variable."
)


class NormalPart(NamedTuple):
    """The missing values of a variable given the observed ones, in ``r`` independent rows.

    Attributes
    ----------
    log_density : scalar
        Log density of the observed values, in nats.
    mean : matrix, shape (r, c)
        Rows with fewer than ``c`` missing values are filled up.
    root : tensor, shape (r, c, c)
        Lower Cholesky factors of the precisions.
    """

    log_density: Variable
    mean: Variable
    root: Variable


class _Places:
    """Places of the missing values: in the variable, and in rows of length ``c``."""

    def __init__(self, mask: np.ndarray, ndim_supp: int):
        self._shape, self._missing, self._given = mask.shape, np.nonzero(mask), np.nonzero(~mask)
        rows = mask.reshape(-1, int(np.prod(mask.shape[mask.ndim - ndim_supp :])))
        rows = rows[rows.any(axis=1)]
        self._at = np.nonzero(rows)[0], np.cumsum(rows, axis=1)[rows] - 1
        self.number = len(self._at[0])
        self.filled = np.ones((len(rows), 1 + self._at[1].max()), bool)
        self.filled[self._at] = False

    def in_rows(self, missing: Variable) -> Variable:
        """Return a vector of missing values in rows, shape (r, c), with zeros in the gaps."""
        return pt.set_subtensor(pt.zeros(self.filled.shape)[self._at], missing)

    def in_line(self, missing: Variable) -> Variable:
        """Return missing values in rows as a vector."""
        return missing[self._at]

    def join(self, given: Variable, missing: Variable) -> Variable:
        """Return the whole variable with missing values in rows."""
        whole = pt.set_subtensor(pt.zeros(self._shape)[self._given], given)
        return pt.set_subtensor(whole[self._missing], self.in_line(missing))


def integrate(
    dist: Variable, places: _Places, observed: Variable, parents: Collection[Variable] = ()
) -> NormalPart:
    """Integrate the missing values of a variable out, as if its density were normal in them."""
    missing = pt.matrix("missing")
    density = _log_density(dist, places.join(observed, missing), parents)
    slope = grad(density, missing)
    curvature = _derivative(slope, missing, places.filled.shape[1])
    # Near the data, so that the step is short.
    start = pt.full(places.filled.shape, observed.mean())
    slope, curvature = graph_replace([slope, curvature], {missing: start}, strict=False)
    precision = places.filled[..., None] * np.eye(places.filled.shape[1]) - curvature
    root = pt.linalg.cholesky(precision, on_error="nan")
    half = pt.linalg.solve_triangular(root, slope, lower=True, b_ndim=1)
    mean = start + _solve_transposed(root, half)
    constant = places.number * np.log(2 * np.pi) / 2
    at_mean = graph_replace(density, {missing: mean})
    log_density = at_mean + constant - _log_volume(root)
    # Not a number where the precision overflows: there is no mass.
    return NormalPart(pt.switch(pt.isnan(log_density), -np.inf, log_density), mean, root)


def _derivative(slope: Variable, missing: Variable, columns: int) -> Variable:
    """Return the derivatives of a slope within each row, shape (r, c, c)."""
    if _BATCHED:
        return jacobian(slope.sum(axis=0), missing, vectorize=True).dimshuffle(1, 0, 2)
    return pt.stack([grad(slope[:, j].sum(), missing) for j in range(columns)], axis=1)


def _log_density(dist: Variable, value: Variable, parents: Collection[Variable]) -> Variable:
    """Return the log density of a variable.

    PyMC clones all that some densities depend on: parents and value are inputs meanwhile.
    """
    above, place = set(ancestors([dist])), value.type()
    inputs = {v: v.type() for v in parents if v in above}
    density = pm.logp(graph_replace(dist, inputs, strict=False), place).sum()
    back = {dummy: v for v, dummy in inputs.items()} | {place: value}
    return graph_replace(density, back, strict=False)


def _solve_transposed(root: Variable, right: Variable) -> Variable:
    return pt.linalg.solve_triangular(root.mT, right, lower=False, b_ndim=1)


def _log_volume(root: Variable) -> Variable:
    return pt.log(pt.diagonal(root, axis1=1, axis2=2)).sum()


class ObservedPartRV(PartialObservedRV):  # type: ignore[misc]  # mypy does not see PyMC
    """The observed part of a variable, with the density of that part alone."""


@_logprob.register(ObservedPartRV)  # type: ignore[untyped-decorator]
def _log_density_of_part(
    op: Op, values: list[Variable], dist: Variable, mask: Variable, **kwargs: object
) -> Variable:
    return integrate(dist, _Places(mask.data, op.ndim_supp), values[0]).log_density


class SeededNormals(Op):  # type: ignore[misc]
    """Standard normal numbers, of the shape of an array, that follow from the bits of another."""

    __props__ = ()

    def make_node(self, seed: Variable, like: Variable) -> Apply:
        """Return the node of a vector and an array of 64-bit numbers."""
        return Apply(self, [seed, like], [like.type()])

    def perform(self, node: Apply, inputs: list[np.ndarray], outputs: list[list[object]]) -> None:
        """Draw the numbers."""
        generator = np.random.default_rng(inputs[0].view(np.uint32))
        outputs[0][0] = generator.standard_normal(inputs[1].shape)


@jax_funcify.register(SeededNormals)  # type: ignore[untyped-decorator]
def _seeded_normals(op: Op, **kwargs: object) -> Callable[[jax.Array, jax.Array], jax.Array]:
    def normals(seed: jax.Array, like: jax.Array) -> jax.Array:
        words = jax.lax.bitcast_convert_type(seed, jnp.uint32).ravel()
        odd = 2 * jnp.arange(len(words), dtype=jnp.uint32) + 1
        key = jax.random.fold_in(jax.random.key(0), (words * odd).sum(dtype=jnp.uint32))
        return jax.random.normal(key, like.shape, like.dtype)

    return normals


def integrate_missing(model: pm.Model) -> pm.Model:
    """Return a model without the missing values of multivariate normal variables.

    They become deterministics: draws given the observed values and the other variables.

    Raises
    ------
    NotImplementedError
        A joint density is not normal in its missing values, or other variables depend on them.
    """
    missing = [rv for rv in model.free_RVs if _is_missing(rv)]
    if not missing:
        return model
    for rv in missing:
        _check(model, rv)
    draws = dict[str, Variable]()
    copy = copy_model(model, partial(_integrate_all, draws))
    with copy:
        for name, draw in draws.items():
            pm.Deterministic(name, draw)
    return copy


def _is_missing(rv: Variable) -> bool:
    return isinstance(rv.owner.op, PartialObservedRV) and rv.owner.op.ndim_supp > 0


def _check(model: pm.Model, missing: Variable) -> None:
    """Raise unless the missing values can be integrated out."""
    dist, mask = missing.owner.inputs
    observed = next(rv for rv in model.observed_RVs if rv.owner is missing.owner)
    others = [rv for rv in model.basic_RVs if rv.owner is not missing.owner]
    inputs = [v for rv in others for v in rv.owner.inputs]
    if dist in ancestors([*inputs, *model.potentials]):
        raise NotImplementedError(_REFUSED.format(missing.name, "another variable depends on them"))
    places = _Places(mask.data, missing.owner.op.ndim_supp)
    given = model.rvs_to_values[observed]
    part = integrate(dist, places, given, others)
    joint = _log_density(dist, places.join(given, places.in_rows(missing)), others)
    product = part.log_density + _log_normal(part, places.in_rows(missing), places)
    seed, mode = np.random.SeedSequence(0).generate_state(1), Mode("py", "fast_compile")
    found, wanted = pm.draw([product, joint], _TRIED, random_seed=seed, mode=mode)
    normal = np.isfinite(wanted).any() and is_close(found, wanted)
    if isinstance(dist.owner.op, CARRV | ICARRV) or not normal:
        raise NotImplementedError(_REFUSED.format(missing.name, "that of this variable is not"))


def _log_normal(part: NormalPart, missing: Variable, places: _Places) -> Variable:
    """Return the log density of missing values in rows, shape (r, c), given the observed ones."""
    apart = pt.where(places.filled, 0.0, missing - part.mean)
    whitened = part.root.mT @ apart[..., None]
    constant = places.number * np.log(2 * np.pi) / 2
    return _log_volume(part.root) - constant - (whitened**2).sum() / 2


def _draw(
    observed: Variable, given: Variable, parents: Collection[Variable], free: Sequence[Variable]
) -> Variable:
    """Return draws of the missing values given the observed ones and the free variables."""
    dist, mask = observed.owner.inputs
    places = _Places(mask.data, observed.owner.op.ndim_supp)
    part = integrate(dist, places, given, parents)
    seed = pt.concatenate([pt.zeros(1), *(v.ravel().astype("float64") for v in free)])
    step = _solve_transposed(part.root, SeededNormals()(seed, part.mean))
    return places.in_line(part.mean + step)


def _integrate_all(draws: dict[str, Variable], fgraph: FunctionGraph) -> None:
    """Replace variables with missing values in the graph of a model, and name their draws."""
    valued = [n for n in fgraph.apply_nodes if isinstance(n.op, ModelFreeRV | ModelObservedRV)]
    parents = [n.outputs[0] for n in fgraph.apply_nodes if isinstance(n.op, ModelVar)]
    drawn = [n for n in valued if isinstance(n.op, ModelFreeRV)]
    missing = [n for n in drawn if _is_missing(n.inputs[0])]
    free = [n.outputs[0] for n in drawn if n not in missing]
    for node in missing:
        joint = node.inputs[0].owner
        (observed,) = (n for n in valued if n.inputs[0] is joint.outputs[0])
        dist, mask = (v.type() for v in joint.inputs)
        alone = ObservedPartRV([dist, mask], [dist[~mask]], ndim_supp=joint.op.ndim_supp)
        rv = alone(*joint.inputs)
        rv.name = observed.outputs[0].name
        fgraph.replace(joint.outputs[0], rv)
        draws[node.outputs[0].name] = draw = _draw(rv, observed.inputs[1], parents, free)
        fgraph.replace(node.outputs[0], draw)
