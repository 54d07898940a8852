"""Exact draws from a model's prior, in the unconstrained space.

Annealed importance sampling starts from independent draws of the normalised reference. These are
forward draws of the model's own random variables; ``initval`` is ignored. Variables that may
underflow are drawn as logarithms (`unconstrained_draws.py`). One evaluation of the graph returns a
batch of draws: every random variable has a leading axis of draws.

A transform may map onto a part of a variable's support only (``ordered`` on a vector of normals).
The density that PyMC then integrates is the prior restricted to that part, of mass

    c = P(draw lies in the part).

If the entries are exchangeable, sorted draws follow the restricted prior, and ``c = 1/k!`` for each
vector of k entries. If not, draws outside of the part are rejected, and ``c`` is estimated by the
acceptance rate. The evidence is defined with respect to the normalised restricted prior: ``log c``
is subtracted from the log prior.
"""

import math

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.distributions.shape_utils import change_dist_size
from pymc.distributions.transforms import Ordered
from pymc.pytensorf import constant_fold
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors, io_toposort
from pytensor.tensor.random.op import RandomVariable

from pymc_anneal.model.failed_draw import explain_failed_draw
from pymc_anneal.model.frozen_data import freeze_shared
from pymc_anneal.model.seeded_draws import Compiled, call_seeded, compile_python
from pymc_anneal.model.unconstrained_draws import PriorDraws, build_forward_graphs
from pymc_anneal.model.variables import HUGE

# Draws per evaluation of the graph. The draws of a seed depend on it.
BATCH = 512

# Batches for the mass of a restricted prior: the standard error of log c is below 0.01 for c > 0.1.
# For a smaller mass up to so many times as many, until it is below the second number: seconds.
_MASS_BATCHES, _MOST_TIMES, _MASS_ERROR = 200, 5, 0.02

# Smallest acceptance rate of a restricted prior: about 100 draws are accepted in the estimate of
# its mass, whose logarithm then has a standard error of 0.1.
_MIN_ACCEPTANCE = 1e-3

# Largest difference, relative to 1 + |x|, of a draw and its round trip through the transform: far
# above rounding, far below the distance of a rejected draw from the restricted part.
_ROUND_TRIP_TOLERANCE = 1e-6

# A batch of draws, one array of shape ``(BATCH, ...)`` per free variable.
_Batch: TypeAlias = PriorDraws[np.ndarray]


class NotFiniteDrawError(ValueError):
    """A draw that is not finite in the unconstrained space."""


class PriorSampler:
    """Draws from the prior of a model.

    Parameters
    ----------
    model
        A PyMC model whose free variables have proper priors.

    Attributes
    ----------
    log_mass : float
        Log of the prior mass on the space onto which the transforms map; 0 for the default
        transforms.
    log_mass_mcse : float
        Monte Carlo standard error of `log_mass`; 0 if the mass is exact.
    overflows : bool
        Whether numbers beyond 1e308 have a part of the mass.

    Raises
    ------
    NotImplementedError
        A variable has no forward draws.
    ValueError
        Almost no draw lies in the part of the support onto which the transforms map, or a variable
        cannot be drawn with the parameters that its parents give it.
    """

    def __init__(self, model: pm.Model):
        self._model, self._names = model, [rv.name for rv in model.free_RVs]
        self.log_mass, sortable = _find_exchangeable(model)
        self._sample = _compile(model, sortable)
        self.log_mass_mcse = 0.0
        batch = self._draw(np.random.SeedSequence(0))
        self.overflows = any((np.abs(v) > HUGE).any() for v in batch.draws)
        if not _accepted(batch).all():
            self._estimate_mass()

    def __call__(self, seed: np.random.SeedSequence, draws: int) -> list[np.ndarray]:
        """Draw unconstrained values of each free variable from the prior, shapes ``(n, ...)``.

        Raises
        ------
        NotFiniteDrawError
            A draw is not finite.
        """
        batches: list[list[np.ndarray]] = []
        count = 0
        # A copy, because spawning changes the seed sequence.
        seeds = np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
        while count < draws:
            batch = self._draw(seeds.spawn(1)[0])
            accepted = _accepted(batch)
            batches.append([v[accepted] for v in batch.unconstrained])
            self._check_finite(batches[-1])
            count += int(accepted.sum())
        return [np.concatenate(v)[:draws] for v in zip(*batches, strict=True)]

    def _draw(self, seed: np.random.SeedSequence) -> _Batch:
        """Draw a batch, or say which variable cannot be drawn."""
        try:
            return self._sample(seed)
        except (ValueError, NotImplementedError) as error:
            raise explain_failed_draw(self._model, error) from error

    def _estimate_mass(self) -> None:
        accepted, draws, sequence = 0, 0, np.random.SeedSequence(1)
        for _ in range(_MOST_TIMES):
            seeds = sequence.spawn(_MASS_BATCHES)
            accepted += sum(int(_accepted(self._draw(seed)).sum()) for seed in seeds)
            draws += BATCH * _MASS_BATCHES
            if accepted < _MIN_ACCEPTANCE * draws or accepted > _MASS_ERROR**-2:
                break
        if accepted < _MIN_ACCEPTANCE * draws:
            raise ValueError(
                f"Of {draws} prior draws only {accepted} lie on the part of the space onto which "
                f"the transforms of {self._names} map, too few to sample the restricted prior. "
                "Give the entries of an ordered variable equal priors, whose draws are sorted, "
                "or use a prior that lives on the restricted space."
            )
        rate = accepted / draws
        self.log_mass += math.log(rate)
        self.log_mass_mcse = math.sqrt((1 - rate) / (rate * draws))

    def _check_finite(self, values: Sequence[np.ndarray]) -> None:
        for name, value in zip(self._names, values, strict=True):
            finite = np.isfinite(value)
            if not finite.all():
                raise NotFiniteDrawError(
                    f"A prior draw of variable '{name}' is {value[~finite].flat[0]} in the "
                    "unconstrained space. Draws on the boundary of the support (a shape parameter "
                    "close to zero?) or with an invalid parameter cannot be annealed; change this "
                    "prior."
                )


def _find_exchangeable(model: pm.Model) -> tuple[float, set[Variable]]:
    """Find the ordered variables with exchangeable entries; return their log mass and them."""
    log_mass, sortable = 0.0, set()
    for rv in model.free_RVs:
        shape = rv.type.shape
        if not isinstance(model.rvs_to_transforms[rv], Ordered) or None in shape:
            continue
        if has_exchangeable_entries(rv):
            sortable.add(rv)
            log_mass -= math.prod(shape[:-1]) * math.lgamma(shape[-1] + 1)
    return log_mass, sortable


def has_exchangeable_entries(rv: Variable) -> bool:
    """Whether the entries along the last axis are independent with equal parameters."""
    op = rv.owner.op
    if not isinstance(op, RandomVariable) or op.ndim_supp > 0:
        return False
    return all(p.ndim == 0 or p.type.broadcastable[-1] for p in op.dist_params(rv.owner))


def _compile(
    model: pm.Model, sortable: set[Variable]
) -> Callable[[np.random.SeedSequence], _Batch]:
    """Compile a function of a seed that returns a batch of draws."""
    graphs = build_forward_graphs(model)
    outputs = freeze_shared([*graphs.unconstrained, *graphs.draws, *graphs.returned])
    draws = outputs[len(model.free_RVs) :]
    to_sort = {
        draw: model.rvs_to_transforms[rv]
        for rv, draw in zip(model.free_RVs, draws, strict=False)
        if rv in sortable
    }
    try:
        batched = compile_python([], add_batch_axis(outputs, to_sort))
        check_batch(batched(), outputs)
    except (NotImplementedError, ValueError, TypeError, AssertionError) as error:
        if sortable:
            raise NotImplementedError(
                f"Cannot draw {sorted(rv.name for rv in sortable)} with the transform `ordered` "
                f"in a model whose prior cannot be drawn in batches ({error}). Remove the "
                "transform, or order the variable by a pm.Potential."
            ) from error
        return partial(_sample_one_by_one, compile_python([], outputs))
    return partial(_sample_batch, batched)


def add_batch_axis(
    outputs: Sequence[Variable],
    to_sort: Mapping[Variable, Ordered],
    given: Mapping[Variable, Variable] | None = None,
) -> list[Variable]:
    """Give every random variable of the graph a leading axis of `BATCH` draws.

    ``given`` maps inputs of the graph to variables with that axis.
    """
    batched: dict[Variable, Variable] = dict(given or {})
    for node in io_toposort([], outputs):
        if not isinstance(node.op, RandomVariable | SymbolicRandomVariable):
            continue
        rv = node.outputs[getattr(node.op, "default_output", None) or 0]
        if set(ancestors([rv])) & batched.keys():
            new = _vectorize_variable(rv, batched)
        else:
            new = change_dist_size(rv, (BATCH,), expand=True)
        batched[rv] = _sort(new, to_sort[rv]) if rv in to_sort else new
    return list(vectorize_graph(list(outputs), replace=batched))


def _vectorize_variable(rv: Variable, batched: Mapping[Variable, Variable]) -> Variable:
    """Give a random variable whose parents have an axis of draws that axis too."""
    try:
        return vectorize_graph([rv], replace=batched)[0]
    except NotImplementedError:
        # PyTensor vectorises no graph with a generator of its own, as that of `pm.AR`.
        if not isinstance(rv.owner.op, SymbolicRandomVariable):
            raise
        return _rebuild(rv, batched)
    except ValueError:
        # PyTensor refuses a size that exceeds the shapes of the parameters, as that of
        # `pm.Normal("b", 0, scale, shape=8)`.
        if not isinstance(rv.owner.op, RandomVariable):
            raise
        return vectorize_graph([_broadcast_parameters(rv)], replace=batched)[0]


def _rebuild(rv: Variable, batched: Mapping[Variable, Variable]) -> Variable:
    """Build a symbolic random variable anew, on parameters with an axis of draws.

    All of them have the shape of the draws: some graphs transpose their parameters, by which
    missing axes would come last.

    Raises
    ------
    NotImplementedError, NotConstantValueError
        The dimensions of a parameter, or the shape of the variable, are not known.
    """
    op, node = rv.owner.op, rv.owner
    if op.ndims_params is None:
        raise NotImplementedError(f"{op} has parameters whose dimensions are not known")
    size = (BATCH, *map(int, constant_fold(tuple(rv.shape[: rv.ndim - op.ndim_supp]))))
    cores = dict(zip(op.dist_params(node), op.ndims_params, strict=True))
    inputs = [_with_size(p, cores[p], size, batched) if p in cores else p for p in node.inputs]
    # For PyMC, which takes operation and inputs from it; its outputs are of no type that holds.
    resized = Apply(op, inputs, [output.type() for output in node.outputs])
    new = change_dist_size(resized.outputs[node.outputs.index(rv)], size)
    if set(ancestors([new])) & batched.keys():
        raise NotImplementedError(f"{op} is not drawn from the parameters that it is given")
    return new


def _with_size(
    parameter: Variable, core: int, size: tuple[int, ...], batched: Mapping[Variable, Variable]
) -> Variable:
    """Return a parameter, whose last axes are its own, with the size of the draws before them.

    Random variables of this size stay what they are: PyMC resizes components of mixtures and the
    first values of series.
    """
    if parameter in batched and parameter.ndim - core == len(size) - 1:
        return batched[parameter]
    if set(ancestors([parameter])) & batched.keys():
        drawn = vectorize_graph([parameter], replace=batched)[0]
        parameter = pt.expand_dims(drawn, range(1, 1 + len(size) + core - drawn.ndim))
    elif parameter.ndim <= core:
        return parameter
    return pt.broadcast_to(parameter, (*size, *parameter.shape[parameter.ndim - core :]))


def _broadcast_parameters(rv: Variable) -> Variable:
    """Return the random variable with its size taken from the shapes of its parameters."""
    op, node = rv.owner.op, rv.owner
    size = tuple(op.size_param(node))
    parameters = [
        pt.broadcast_to(p, (*size, *(p.shape[-core:] if core else ())))
        for p, core in zip(op.dist_params(node), op.ndims_params, strict=True)
    ]
    return op.make_node(op.rng_param(node), None, *parameters).outputs[1]


def _sort(draws: Variable, transform: Ordered) -> Variable:
    ascending = pt.sort(draws, axis=-1)
    return ascending if transform.ascending else ascending[..., ::-1]


def check_batch(arrays: Sequence[np.ndarray], outputs: Sequence[Variable]) -> None:
    """Raise `ValueError` unless the arrays have a leading axis of `BATCH` draws."""
    for array, output in zip(arrays, outputs, strict=True):
        if array.ndim != output.ndim + 1 or array.shape[0] != BATCH:
            raise ValueError(f"a batch of draws has shape {array.shape}")


def _sample_batch(function: Compiled, seed: np.random.SeedSequence) -> _Batch:
    return _unpack(call_seeded(function, seed.generate_state(1, np.uint64)[0]))


def _sample_one_by_one(function: Compiled, seed: np.random.SeedSequence) -> _Batch:
    """Sample draw by draw, for graphs that cannot have an axis of draws."""
    rows = [call_seeded(function, state) for state in seed.generate_state(BATCH, np.uint64)]
    return _unpack([np.stack(column) for column in zip(*rows, strict=True)])


def _unpack(arrays: Sequence[np.ndarray]) -> _Batch:
    n = len(arrays) // 3
    return PriorDraws(list(arrays[:n]), list(arrays[n : 2 * n]), list(arrays[2 * n :]))


def _accepted(batch: _Batch) -> np.ndarray:
    """Flag the draws that the transforms map onto, shape ``(BATCH,)``."""
    accepted = np.ones(BATCH, dtype=bool)
    for x, y in zip(batch.draws, batch.returned, strict=True):
        with np.errstate(invalid="ignore"):
            close = np.abs(x - y) <= _ROUND_TRIP_TOLERANCE * (1 + np.abs(x))
        # Both infinite or NaN: a value that overflows in the model's space lies in no part.
        close |= (x == y) | (np.isnan(x) & np.isnan(y))
        accepted &= close.reshape(BATCH, -1).all(axis=1)
    return accepted
