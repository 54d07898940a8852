"""The prior of some variables of a model, given the values of all the others.

With ``S`` the variables and ``R`` the rest, the product of the factors of the prior that belong to
``S``,

    p(S | R) = prod_{s in S} p(s | parents of s),

is a normalised density of ``S`` for every value of ``R``, and forward draws follow it. If a
variable of ``R`` has a parent in ``S``, it is not the conditional density of the joint prior, whose
other factors depend on ``S`` as well; normalised it is all the same.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from pytensor import tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace

from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.log_densities import sum_to_scalar, translate_density
from pymc_anneal.model.prior_draws import BATCH, add_batch_axis
from pymc_anneal.model.seeded_draws import Compiled, call_seeded, compile_python
from pymc_anneal.model.spatial import missing_constants
from pymc_anneal.model.unconstrained_draws import build_forward_graphs
from pymc_anneal.model.variables import FreeVariable, join_values, split_values

# Values of variables by name, in the model's space, shapes (n, ...).
Values: TypeAlias = Mapping[str, np.ndarray]
# From a seed and values to unconstrained draws, one array of shape (n, ...) for each variable.
_Draw: TypeAlias = Callable[[np.random.SeedSequence, Values, int], list[np.ndarray]]


@dataclass(frozen=True, eq=False)
class ConditionalPrior:
    """The prior of some variables given the others.

    Attributes
    ----------
    log_density : Callable
        JAX function of the model's unconstrained vector, shape ``(d,)``, to the log density of the
        variables' unconstrained coordinates, in nats.
    coordinates : ndarray of int, shape (k,)
        Those coordinates.
    """

    log_density: Callable[[jax.Array], jax.Array]
    coordinates: np.ndarray
    _draw: _Draw

    def draw(self, seed: np.random.SeedSequence, values: Values, count: int) -> np.ndarray:
        """Draw the coordinates given values of the other variables.

        Parameters
        ----------
        seed : SeedSequence
        values : dict of str to ndarray, shapes (count, ...)
            The other variables, in the model's space; further names are ignored.
        count : int
            Number of draws.

        Returns
        -------
        ndarray, shape (count, k)
        """
        return join_values(self._draw(seed, values, count), count)


def conditional_prior(compiled: CompiledModel, names: Sequence[str]) -> ConditionalPrior:
    """Compile the prior of some free variables, given all the others.

    Parameters
    ----------
    compiled : CompiledModel
        A model without discrete variables.
    names : sequence of str
        The variables, in the model's order.

    Raises
    ------
    NotImplementedError
        A transform restricts the prior of the model, so that its factors are not normalised.
    """
    variables = [v for v in compiled.variables if v.name in set(names)]
    if not variables:
        return ConditionalPrior(_zero, np.zeros(0, dtype=int), lambda *_: [])
    if compiled.log_prior_mass != 0:
        raise NotImplementedError(
            f"The prior of {[v.name for v in variables]} is needed, normalised, and a transform of "
            "the model (such as `ordered`) restricts a prior to a part of its support. Compare the "
            "evidences of two runs of sample_ais instead."
        )
    coordinates = np.concatenate([np.arange(v.start, v.stop) for v in variables])
    return ConditionalPrior(_log_density(compiled, names), coordinates, _draws(compiled, variables))


def _zero(x: jax.Array) -> jax.Array:
    return jnp.zeros((), x.dtype)


def _log_density(compiled: CompiledModel, names: Sequence[str]) -> Callable[[jax.Array], jax.Array]:
    model = compiled.model
    rvs = [model[name] for name in names]
    term = sum_to_scalar(model.logp(vars=rvs)) + missing_constants(model, rvs)
    graph = translate_density(model, compiled.variables, compiled.freeze([term])).graph

    def log_density(x: jax.Array) -> jax.Array:
        return jnp.asarray(graph(*split_values(compiled.variables, x))[0])

    return log_density


def _draws(compiled: CompiledModel, variables: Sequence[FreeVariable]) -> _Draw:
    """Compile forward draws of the variables, with inputs in the place of all others."""
    model, forward = compiled.model, build_forward_graphs(compiled.model)
    own = {v.name for v in variables}
    order = {rv.name: i for i, rv in enumerate(model.free_RVs)}
    others = [i for name, i in order.items() if name not in own]
    inputs = {model.free_RVs[i].name: forward.draws[i].type() for i in others}
    replaced = dict(zip((forward.draws[i] for i in others), inputs.values(), strict=True))
    wanted = [forward.unconstrained[order[v.name]] for v in variables]
    outputs = compiled.freeze(clone_replace(wanted, replaced))
    try:
        return partial(_draw_batches, list(inputs), _compile_batch(inputs, outputs))
    except (NotImplementedError, ValueError, TypeError, AssertionError):
        function = compile_python(list(inputs.values()), outputs)
        return partial(_draw_one_by_one, list(inputs), function)


def _compile_batch(inputs: Mapping[str, Variable], outputs: Sequence[Variable]) -> Compiled:
    batched = {v: pt.tensor(dtype=v.dtype, shape=(BATCH, *v.type.shape)) for v in inputs.values()}
    return compile_python(list(batched.values()), add_batch_axis(outputs, {}, batched))


def _draw_batches(
    names: Sequence[str],
    function: Compiled,
    seed: np.random.SeedSequence,
    values: Values,
    count: int,
) -> list[np.ndarray]:
    """Draw in batches of a fixed size, the last one padded."""
    parts = []
    states = seed.generate_state(-(-count // BATCH), np.uint64)
    for start, state in zip(range(0, count, BATCH), states, strict=True):
        rows = np.arange(start, start + BATCH).clip(max=count - 1)
        given = (np.asarray(values[name])[rows] for name in names)
        parts.append(call_seeded(function, state, *given))
    return [np.concatenate(column)[:count] for column in zip(*parts, strict=True)]


def _draw_one_by_one(
    names: Sequence[str],
    function: Compiled,
    seed: np.random.SeedSequence,
    values: Values,
    count: int,
) -> list[np.ndarray]:
    """Draw row by row, for graphs that cannot have an axis of draws."""
    rows = []
    for i, state in enumerate(seed.generate_state(count, np.uint64)):
        given = (np.asarray(values[name])[i] for name in names)
        rows.append(call_seeded(function, state, *given))
    return [np.stack(column) for column in zip(*rows, strict=True)]
