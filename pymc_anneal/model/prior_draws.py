"""Exact draws from a model's prior, in the unconstrained space.

Annealed importance sampling starts at independent draws of the normalised reference, so these are
forward draws of the model's own random variables; ``initval`` plays no part. All draws of a call
come from one evaluation of the graph, in which every random variable carries a leading axis of
draws.

A transform may map onto a part of a variable's support only (``ordered`` on a vector of normals).
The density that PyMC then integrates is the prior restricted to that part, of mass

    c = P(draw lies in the part).

Draws of the restricted prior are ordered draws where the entries are exchangeable
(``c = 1/k!`` for each vector of k entries), and accepted draws where they are not (``c`` is then
the acceptance rate, estimated). The evidence is taken with respect to the normalised restricted
prior, that is, ``log c`` is subtracted from the log prior.
"""

import math

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.distributions.shape_utils import change_dist_size
from pymc.distributions.transforms import Ordered
from pymc.pytensorf import reseed_rngs
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors, io_toposort
from pytensor.tensor.random.op import RandomVariable

_BATCH = 512


_MASS_BATCHES = 200


_MIN_ACCEPTANCE = 1e-3


_ROUND_TRIP_TOLERANCE = 1e-6


class _Graphs(NamedTuple):
    """For each free variable: its value in the unconstrained space, and the round trip."""

    unconstrained: list[Variable]
    draws: list[Variable]
    returned: list[Variable]


class PriorSampler:
    """Draws from the prior of a model.

    Parameters
    ----------
    model
        A PyMC model whose free variables are continuous and proper.

    Attributes
    ----------
    log_mass : float
        Log of the prior mass on the space onto which the transforms map; 0 for the default
        transforms.
    log_mass_mcse : float
        Its Monte Carlo standard error; 0 where the mass is exact.

    Raises
    ------
    NotImplementedError
        A variable has no forward draws.
    ValueError
        Almost no draw lies where the transforms map to, or draws are not finite.
    """

    def __init__(self, model: pm.Model):
        self._names = [rv.name for rv in model.free_RVs]
        self.log_mass, sortable = _exchangeable_ordered(model)
        self._sample = _compile(model, sortable)
        self._restricted = self._is_restricted()
        self.log_mass_mcse = 0.0
        if self._restricted:
            self._estimate_mass()

    def __call__(self, seed: np.random.SeedSequence, draws: int) -> list[np.ndarray]:
        """Draw from the prior.

        Parameters
        ----------
        seed
            Source of randomness: the same seed gives the same draws.
        draws
            Number of draws.

        Returns
        -------
        list of ndarray
            For every free variable, unconstrained values of shape ``(draws, *shape)``.
        """
        kept: list[list[np.ndarray]] = []
        count = 0
        batches = np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)  # spawns afresh
        while count < draws:
            values, accepted = self._draw(batches.spawn(1)[0])
            self._check(values, accepted)
            kept.append([v[accepted] for v in values])
            count += int(accepted.sum())
        return [np.concatenate(v)[:draws] for v in zip(*kept, strict=True)]

    def _draw(self, seed: np.random.SeedSequence):
        values, draws, returned = self._sample(seed)
        accepted = np.ones(_BATCH, dtype=bool)
        for x, y in zip(draws, returned, strict=True):
            with np.errstate(invalid="ignore"):
                close = np.abs(x - y) <= _ROUND_TRIP_TOLERANCE * (1 + np.abs(x))
            accepted &= close.reshape(_BATCH, -1).all(axis=1)
        return values, accepted

    def _is_restricted(self) -> bool:
        _, accepted = self._draw(np.random.SeedSequence(0))
        return not accepted.all()

    def _estimate_mass(self) -> None:
        seeds = np.random.SeedSequence(1).spawn(_MASS_BATCHES)
        accepted = sum(int(self._draw(seed)[1].sum()) for seed in seeds)
        draws = _BATCH * _MASS_BATCHES
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

    def _check(self, values: Sequence[np.ndarray], accepted: np.ndarray) -> None:
        for name, value in zip(self._names, values, strict=True):
            if not np.isfinite(value[accepted]).all():
                bad = value[accepted][~np.isfinite(value[accepted])].flat[0]
                raise ValueError(
                    f"A prior draw of variable '{name}' is {bad} in the unconstrained space. "
                    "Draws on the boundary of the support (a shape parameter close to zero?) "
                    "or with an invalid parameter cannot be annealed; change this prior."
                )


def _exchangeable_ordered(model: pm.Model) -> tuple[float, set[Variable]]:
    """Find ordered variables with exchangeable entries; return their log mass and themselves."""
    log_mass, sortable = 0.0, set()
    for rv in model.free_RVs:
        shape = rv.type.shape
        if not isinstance(model.rvs_to_transforms[rv], Ordered) or None in shape:
            continue
        if _exchangeable_entries(rv):
            sortable.add(rv)
            log_mass -= math.prod(shape[:-1]) * math.lgamma(shape[-1] + 1)
    return log_mass, sortable


def _exchangeable_entries(rv: Variable) -> bool:
    """Whether the entries along the last axis are independent with equal parameters."""
    op = rv.owner.op
    if not isinstance(op, RandomVariable) or op.ndim_supp > 0:
        return False
    return all(p.ndim == 0 or p.type.broadcastable[-1] for p in op.dist_params(rv.owner))


def _compile(model: pm.Model, sortable: set[Variable]) -> Callable:
    """Compile ``seed -> (unconstrained, draws, round trip)``, lists of arrays, a batch a call."""
    graphs = _graphs(model)
    outputs = [v for part in graphs for v in part]
    try:
        batched = _function(_batched(outputs, sortable, model), model)
        _check_shapes(batched(), outputs)
    except (NotImplementedError, ValueError, TypeError, AssertionError) as error:
        if sortable:
            raise NotImplementedError(
                f"Cannot draw {sorted(rv.name for rv in sortable)} with the transform `ordered` "
                f"in a model whose prior cannot be drawn in batches ({error}). Remove the "
                "transform, or order the variable by a pm.Potential."
            ) from error
        return partial(_one_by_one, _function(outputs, model), len(graphs.draws))
    return partial(_one_batch, batched, len(graphs.draws))


def _one_batch(function, variables: int, seed: np.random.SeedSequence):
    reseed_rngs(_rngs(function), seed.generate_state(1, np.uint64)[0])
    return _split(function(), variables)


def _one_by_one(function, variables: int, seed: np.random.SeedSequence):
    """Sample draw by draw: for graphs that cannot carry an axis of draws."""
    rngs, rows = _rngs(function), []
    for state in seed.generate_state(_BATCH, np.uint64):
        reseed_rngs(rngs, state)
        rows.append(function())
    return _split([np.stack(column) for column in zip(*rows, strict=True)], variables)


def _graphs(model: pm.Model) -> _Graphs:
    unconstrained, returned = [], []
    for rv in model.free_RVs:
        transform = model.rvs_to_transforms[rv]
        inputs = rv.owner.inputs
        value = rv if transform is None else transform.forward(rv, *inputs)
        unconstrained.append(value)
        returned.append(rv if transform is None else transform.backward(value, *inputs))
    return _Graphs(unconstrained, list(model.free_RVs), returned)


def _batched(outputs, sortable: set[Variable], model: pm.Model) -> list[Variable]:
    """Give every random variable of the graph a leading axis of draws."""
    batched: dict[Variable, Variable] = {}
    for node in io_toposort([], outputs):
        if not isinstance(node.op, RandomVariable | SymbolicRandomVariable):
            continue
        rv = node.outputs[getattr(node.op, "default_output", None) or 0]
        if any(a in batched for a in ancestors([rv])):
            new = vectorize_graph([rv], replace=batched)[0]
        else:
            new = change_dist_size(rv, (_BATCH,), expand=True)
        batched[rv] = _sorted(new, model.rvs_to_transforms[rv]) if rv in sortable else new
    return vectorize_graph(outputs, replace=batched)


def _sorted(draws: Variable, transform: Ordered) -> Variable:
    ascending = pt.sort(draws, axis=-1)
    return ascending if transform.ascending else ascending[..., ::-1]


def _function(outputs, model: pm.Model):
    """Compile in Python mode: the draws are NumPy's, and compiling them would cost seconds."""
    return pytensor.function([], outputs, mode=Mode("py", "fast_compile"))


def _check_shapes(drawn, outputs) -> None:
    for array, output in zip(drawn, outputs, strict=True):
        if array.ndim != output.ndim + 1 or array.shape[0] != _BATCH:
            raise ValueError(f"a batch of draws has shape {array.shape}")


def _rngs(function) -> list:
    shared = function.get_shared()
    return [v for v in shared if isinstance(v.get_value(borrow=True), np.random.Generator)]


def _split(arrays, variables: int):
    return [list(arrays[i * variables : (i + 1) * variables]) for i in range(3)]
