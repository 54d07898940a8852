"""Models that differ in the values of their ``pm.Data`` alone, compiled once.

The data are arguments of the compiled functions: hyperparameters, masks of regressors, or other
observations of the same shape. A member of the family is a `CompiledModel` that binds its values.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from threading import Lock
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt

from jax.tree_util import Partial
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.model.cast_data import cast_data
from pymc_anneal.model.compile import CompiledModel, compile_model
from pymc_anneal.model.copy_model import copy_model, set_own_data
from pymc_anneal.model.frozen_data import FrozenData
from pymc_anneal.model.jaxify import JaxGraph, jaxify
from pymc_anneal.model.log_densities import evaluate_log_terms, log_term_graphs
from pymc_anneal.model.map_variables import VariableMap
from pymc_anneal.model.notes import first_line
from pymc_anneal.model.pickling import PicklableFunction
from pymc_anneal.model.prior_draws import PriorSampler
from pymc_anneal.model.unconstrained_draws import free_given_data
from pymc_anneal.model.variables import FreeVariable, split_values

# One member at a time has its data in the copy of its family.
_LOCK = Lock()


def check_data_names(model: pm.Model, names: Iterable[str]) -> None:
    """Raise `ValueError` if a name is not a ``pm.Data`` of a model."""
    known = sorted(v.name for v in model.data_vars)
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise ValueError(f"{unknown} are not pm.Data of the model; expected some of {known}.")


@dataclass(frozen=True, eq=False)
class ModelFamily:
    """A model as a function of the values of some of its ``pm.Data``.

    Parameters
    ----------
    compiled : CompiledModel
        The model with its present data.
    names : tuple of str
        The data that differ between the members.

    Raises
    ------
    ValueError
        A name is not a ``pm.Data`` of the model.
    """

    compiled: CompiledModel
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        check_data_names(self.compiled.model, self.names)

    def member(self, values: Mapping[str, Any]) -> CompiledModel:
        """Return the model with other values of its data.

        Parameters
        ----------
        values : mapping of str to array
            A value of the present shape for each of the family's data.

        Raises
        ------
        ValueError
            A value is missing, is not among the family's data, or has another shape.
        """
        arrays = self.check(values)
        if self._obstacle:
            alone = compile_model(self._with_data(copy_model(self.compiled.model), arrays))
            alone.fallbacks.append(
                f"The model is compiled for itself, not with its family, because {self._obstacle}."
            )
            return alone
        with _LOCK:
            own = self._with_data(self._copy, arrays)
            prior = PriorSampler(own) if self._prior_depends else self.compiled._prior
            return self._bind(arrays, prior, self._frozen(own, arrays))

    @cached_property
    def _copy(self) -> pm.Model:
        """A copy of the model, whose data are those of one member after the other."""
        return copy_model(self.compiled.model)

    def _with_data(self, copy: pm.Model, arrays: Sequence[np.ndarray]) -> pm.Model:
        set_own_data(copy, self.compiled.model, self.compiled._data.values)
        for name, array in zip(self.names, arrays, strict=True):
            copy[name].set_value(array)
        return copy

    def _frozen(self, copy: pm.Model, arrays: Sequence[np.ndarray]) -> FrozenData:
        """Record the data of a copy, by the shared variables of the model."""
        own = dict(zip(self._data, map(pt.constant, arrays), strict=True))
        return replace(FrozenData.of(copy), values=self.compiled._data.values | own)

    def _bind(
        self, arrays: Sequence[np.ndarray], prior: PriorSampler, frozen: FrozenData
    ) -> CompiledModel:
        log_terms = Partial(self._log_terms, prior.log_mass, *arrays)  # type: ignore[no-untyped-call]
        return replace(
            self.compiled,
            log_terms=log_terms,
            log_prior_mass=prior.log_mass,
            log_prior_mass_mcse=prior.log_mass_mcse,
            _prior=prior,
            _constrain=self._map_variables(arrays),
            _data=frozen,
        )

    @property
    def _data(self) -> list[Variable]:
        return [self.compiled.model[name] for name in self.names]

    @cached_property
    def _prior_depends(self) -> bool:
        """Whether the prior of a free variable depends on the data."""
        model = self.compiled.model
        return not set(self._data).isdisjoint(ancestors(free_given_data(model)))

    @cached_property
    def _obstacle(self) -> str:
        """Why one compilation does not serve all members; "" if it does."""
        if self.compiled.discrete and self._prior_depends:
            return "a support may depend on the data"
        try:
            _trace(self._log_terms, self.compiled.variables, self._present())
        except Exception as error:  # The translation and JAX's tracing raise errors of any class.
            return f"JAX does not take the data as arguments ({first_line(error)})"
        return ""

    @cached_property
    def _log_terms(self) -> PicklableFunction:
        """Function of the log prior mass, the data and the unconstrained vector."""
        graph = self._jaxify(log_term_graphs(self.compiled.model, self.compiled.overflows))
        return PicklableFunction(partial(_evaluate_member, graph, self.compiled.variables))

    def _map_variables(self, arrays: Sequence[np.ndarray]) -> VariableMap:
        names, mapped = self._mapped
        left_out = self.compiled._constrain.left_out
        return VariableMap([(names, partial(mapped, tuple(arrays)))], left_out)

    @cached_property
    def _mapped(self) -> tuple[list[str], Callable[..., Sequence[np.ndarray]]]:
        """Names of the variables, and a function of data and positions that returns them."""
        model = self.compiled.model
        left_out = self.compiled._constrain.left_out
        unobserved = [v for v in model.unobserved_RVs if v.name not in left_out]
        graph = self._jaxify(model.replace_rvs_by_values(unobserved))
        variables = self.compiled.variables

        def one(arrays: Sequence[jax.Array], x: jax.Array) -> tuple[jax.Array, ...]:
            return tuple(map(jnp.asarray, graph(*arrays, *split_values(variables, x)) or ()))

        return [v.name for v in unobserved], jax.jit(jax.vmap(one, in_axes=(None, 0)))

    def _jaxify(self, outputs: Sequence[Variable]) -> JaxGraph:
        """Translate graphs to a function of the data and the value variables."""
        inputs = [d.type() for d in self._data]
        replaced = clone_replace(list(outputs), dict(zip(self._data, inputs, strict=True)))
        return jaxify([*inputs, *self.compiled.model.value_vars], self.compiled.freeze(replaced))

    def _present(self) -> list[np.ndarray]:
        return [np.asarray(d.get_value()) for d in self._data]

    def check(self, values: Mapping[str, Any]) -> list[np.ndarray]:
        """Return values in the types of the model, in the order of the names, or raise."""
        if set(values) != set(self.names):
            raise ValueError(f"Expected values of {sorted(self.names)}, found {sorted(values)}.")
        arrays = []
        for name, present in zip(self.names, self._present(), strict=True):
            array = cast_data(name, values[name], present.dtype)
            if array.shape != present.shape:
                raise ValueError(
                    f"The value of '{name}' has shape {array.shape}, expected {present.shape} as "
                    "in the model. Build a model of its own for another shape."
                )
            arrays.append(array)
        return arrays


def _evaluate_member(
    graph: JaxGraph, variables: tuple[FreeVariable, ...], log_mass: float, *arrays: jax.Array
) -> LogTerms:
    """Evaluate the log terms; the last array is the vector, the others are the data."""
    *data, x = arrays
    return evaluate_log_terms(graph, variables, log_mass, x, data)


def _trace(
    log_terms: Callable[..., LogTerms],
    variables: Sequence[FreeVariable],
    data: Sequence[np.ndarray],
) -> None:
    """Raise if the gradient of the log posterior cannot be traced with the data as arguments."""

    def total(x: jax.Array, arrays: Sequence[jax.Array]) -> jax.Array:
        return log_terms(0.0, *arrays, x).log_posterior

    size = variables[-1].stop if variables else 0
    gradient = jax.vmap(jax.grad(total), in_axes=(0, None))
    jax.eval_shape(gradient, np.empty((2, size)), list(data))
