"""Variables and deterministics of a model at many points, as far as they can be stored.

Most models translate to JAX as a whole. If not, the variables that do not are evaluated by
PyTensor, one point at a time; those that have another shape at each point, or depend on random
numbers, are left out. That is found out when the model is compiled, not when a run has ended.
"""

import warnings

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.graph.traversal import graph_inputs
from pytensor.tensor.random.type import RandomType

from pymc_anneal.base.caller import levels_to_caller
from pymc_anneal.base.storable import DRAW_DIMS, find_unstorable, name_dimensions
from pymc_anneal.model.frozen_data import FrozenData, freeze_shared
from pymc_anneal.model.host_calls import compile_graph
from pymc_anneal.model.jaxify import jaxify
from pymc_anneal.model.variables import FreeVariable, split_values

# From vectors of shape (n, d) to one array of shape (n, ...) for each variable.
_Mapped: TypeAlias = Callable[[np.ndarray], Sequence[np.ndarray]]


class _ShapeError(ValueError):
    """A variable has different shapes at different points."""


@dataclass(frozen=True)
class VariableMap:
    """Functions of vectors of unconstrained values that return variables of a model.

    Attributes
    ----------
    parts : list of (names, function)
        Functions and the variables that they return.
    left_out : dict of str to str
        Variables that cannot be stored, with the reasons.
    """

    parts: list[tuple[list[str], _Mapped]]
    left_out: dict[str, str]

    def __call__(self, position: np.ndarray) -> dict[str, np.ndarray]:
        """Return the variables by name, shapes ``(n, ...)``, at vectors of shape ``(n, d)``."""
        values: dict[str, np.ndarray] = {}
        for names, function in self.parts:
            try:
                arrays = [np.asarray(v) for v in function(position)]
            except _ShapeError as error:  # no reason to lose all other variables
                warnings.warn(
                    f"Variable '{names[0]}' is left out: {error}.", stacklevel=levels_to_caller()
                )
                continue
            values.update(zip(names, arrays, strict=True))
        return values


def map_variables(
    model: pm.Model, variables: Sequence[FreeVariable], draws: np.ndarray
) -> VariableMap:
    """Compile the variables and deterministics of a model.

    Those without a JAX form are tried at draws in the unconstrained space, shape ``(n, d)``.
    """
    unobserved = list(model.unobserved_RVs)
    outputs = dict(
        zip([v.name for v in unobserved], model.replace_rvs_by_values(unobserved), strict=True)
    )
    whole = _translate(model, variables, list(outputs.values()))
    if whole is not None:
        return VariableMap([(list(outputs), whole)], {})
    translated = [k for k, v in outputs.items() if _translate(model, variables, [v]) is not None]
    fast = _translate(model, variables, [outputs[k] for k in translated])
    parts, left_out = [] if fast is None else [(translated, fast)], {}
    for name in (k for k in outputs if fast is None or k not in translated):
        try:
            _check_not_random(outputs[name])
            parts.append(([name], _try_one_by_one(model, variables, outputs[name], draws)))
        except Exception as error:  # PyTensor's compilation raises errors of any class.
            left_out[name] = str(error).partition("\n")[0]
    order = {name: i for i, name in enumerate(outputs)}
    return VariableMap(sorted(parts, key=lambda part: order[part[0][0]]), left_out)


def _translate(
    model: pm.Model, variables: Sequence[FreeVariable], outputs: Sequence[pt.TensorVariable]
) -> _Mapped | None:
    """Translate graphs to JAX; return None if that, or tracing them, fails."""
    if not outputs:
        return None
    size = variables[-1].stop if variables else 0
    try:
        graph = jaxify(model.value_vars, outputs)
        mapped = jax.jit(
            jax.vmap(lambda x: tuple(map(jnp.asarray, graph(*split_values(variables, x)))))
        )
        jax.eval_shape(mapped, np.empty((2, size)))
    except Exception:  # The translation and JAX's tracing raise errors of any class.
        return None
    return mapped


def _check_not_random(output: pt.TensorVariable) -> None:
    if any(isinstance(v.type, RandomType) for v in graph_inputs([output])):
        raise ValueError("it depends on random numbers")


def _try_one_by_one(
    model: pm.Model,
    variables: Sequence[FreeVariable],
    output: pt.TensorVariable,
    draws: np.ndarray,
) -> _Mapped:
    """Compile a graph by PyTensor, and raise if it has no single shape at some draws."""
    function = compile_graph(model.value_vars, freeze_shared([output]))

    def evaluate(position: np.ndarray) -> list[np.ndarray]:
        rows = [function(*split_values(variables, x))[0] for x in position]
        if len({np.shape(row) for row in rows}) > 1:
            raise _ShapeError("its shape depends on the values of the variables")
        return [np.stack(rows)]

    evaluate(draws)
    return evaluate


def warn_of_omissions(model: pm.Model, left_out: Mapping[str, str], data: FrozenData) -> None:
    """Warn of variables that a result cannot hold, before anything is sampled."""
    shapes = {v.name: v.type.shape for v in model.unobserved_RVs}
    dims = name_dimensions(shapes, data.dims, DRAW_DIMS)
    taken = {*DRAW_DIMS, *(d for named in dims.values() for d in named)}
    for name, reason in {**find_unstorable(shapes, taken), **left_out}.items():
        warnings.warn(
            f"Variable '{name}' is left out of results: {reason}. The evidence is not affected.",
            stacklevel=levels_to_caller(),
        )
