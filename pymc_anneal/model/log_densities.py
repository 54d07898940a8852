"""Log densities of a model as JAX functions of the unconstrained vector.

Log prior and log likelihood stay apart, as the two outputs of one graph. If that holds an Op
without a JAX form, each of them is translated by itself, and the one with the Op is evaluated by
compiled PyTensor code (`callback.py`). Gradients of such code are PyTensor's; an Op that has none
leaves the model without gradients.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

from jax.extend.core import jaxpr_as_fun
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.model.batch_form import batch_form
from pymc_anneal.model.callback import CallbackGraph, build_gradients
from pymc_anneal.model.derivatives import FIRST_ORDER, NO_GRADIENT, Derivatives
from pymc_anneal.model.host_calls import Calls
from pymc_anneal.model.jaxify import JaxFunction, JaxGraph, jaxify
from pymc_anneal.model.location_scale_transform import is_standardised, standard_logp
from pymc_anneal.model.notes import first_line
from pymc_anneal.model.operation_batching import batch_operations
from pymc_anneal.model.spatial import missing_constants
from pymc_anneal.model.unsupported import find_random_parameter
from pymc_anneal.model.variables import HUGE, FreeVariable, split_values


class Translation(NamedTuple):
    """A JAX function of the value variables.

    Attributes
    ----------
    graph : JaxGraph
    derivatives : Derivatives
    notes : tuple of str
        What readers of the result should know.
    calls : tuple of Calls
        Those of its parts that are called back.
    """

    graph: JaxGraph
    derivatives: Derivatives
    notes: tuple[str, ...] = ()
    calls: tuple[Calls, ...] = ()


def log_term_graphs(model: pm.Model, overflows: bool = False) -> list[pt.TensorVariable]:
    """Return the graphs of log prior and log likelihood, two scalars in nats.

    See `likelihood_graph` for variables that may overflow.

    Raises
    ------
    ValueError
        A log density depends on a random variable that is not part of the model.
    """
    try:
        return [prior_graph(model, model.free_RVs), likelihood_graph(model, overflows)]
    except ValueError as error:
        if "Random variables detected" not in str(error):
            raise
        raise ValueError(find_random_parameter(model)) from error


def prior_graph(model: pm.Model, rvs: Sequence[pt.TensorVariable]) -> pt.TensorVariable:
    """Return the graph of the log prior of variables; that of non-centred ones without parents.

    By its transform it would be that of ``mu + sigma e``, with ``sigma`` cancelled: NaN where
    either overflows, and too few digits where ``mu`` is far larger than ``sigma``.
    """
    standard = [rv for rv in rvs if is_standardised(rv, model.rvs_to_transforms[rv])]
    others = [rv for rv in rvs if rv not in standard]
    terms = [standard_logp(rv, model.rvs_to_values[rv]).sum() for rv in standard]
    total = sum_to_scalar(model.logp(vars=others)) if others else pt.constant(0.0)
    total = total + sum(map(sum_to_scalar, model.replace_rvs_by_values(terms)))
    return total + missing_constants(model, rvs)


def likelihood_graph(model: pm.Model, overflows: bool) -> pt.TensorVariable:
    """Return the graph of the log likelihood, potentials included.

    Where variables may overflow it is -inf if it is not a number and one of them is huge: the
    predictor of coefficients beyond 1e308 is ``inf - inf``, and no data are as large.
    """
    total = sum_to_scalar(model.datalogp) + missing_constants(model, model.observed_RVs)
    if not overflows:
        return total
    values = model.replace_rvs_by_values(model.free_RVs)
    huge = reduce(pt.or_, [pt.any(pt.abs(value) > HUGE) for value in values])
    return pt.switch(pt.isnan(total) & huge, -np.inf, total)


def sum_to_scalar(term: pt.TensorVariable) -> pt.TensorVariable:
    """Sum a log density over its entries, in double precision."""
    return pt.as_tensor_variable(term).sum().astype("float64")


def translate_density(
    model: pm.Model, variables: Sequence[FreeVariable], outputs: Sequence[pt.TensorVariable]
) -> Translation:
    """Translate scalar graphs of a model to JAX, by callback where an Op has no JAX form."""
    try:
        return _translate_to_jax(model, variables, outputs)
    except Exception:  # The translation and JAX's tracing raise errors of any class.
        parts = [_translate_alone(model, variables, output) for output in outputs]
    return Translation(
        JaxGraph(_side_by_side, [part.graph for part in parts]),
        min(part.derivatives for part in parts),
        tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        tuple(calls for part in parts for calls in part.calls),
    )


def _translate_to_jax(
    model: pm.Model, variables: Sequence[FreeVariable], outputs: Sequence[pt.TensorVariable]
) -> Translation:
    """Translate graphs to JAX, or raise if that, or tracing their gradients, fails."""
    graph = jaxify(model.value_vars, outputs)
    _trace_gradient(graph, variables)
    return Translation(graph, Derivatives())


def _translate_alone(
    model: pm.Model, variables: Sequence[FreeVariable], output: pt.TensorVariable
) -> Translation:
    """Translate one graph to JAX, or else wrap it as a callback."""
    try:
        return _translate_to_jax(model, variables, [output])
    except Exception as error:
        obstacle = first_line(error)
    graph = CallbackGraph(model.value_vars, [output])
    together = "many particles" if batch_form(*graph.graph) else "one particle"
    note = (
        "Part of the model has no JAX form and is evaluated by compiled PyTensor code, "
        f"{together} at a time ({obstacle})."
    )
    try:
        build_gradients(model.value_vars, [output])
    except Exception as error:
        obstacle = first_line(error)
        notes = note, f"The model has no gradient ({obstacle})."
        return Translation(graph, Derivatives(NO_GRADIENT, obstacle), notes, (graph.calls,))
    return Translation(graph, Derivatives(FIRST_ORDER, obstacle), (note,), (graph.calls,))


def _side_by_side(graphs: Sequence[JaxGraph]) -> JaxFunction:
    """Return the outputs of graphs of the same inputs as one function."""
    return lambda *point: tuple(value for graph in graphs for value in graph(*point))


def _trace_gradient(graph: JaxGraph, variables: Sequence[FreeVariable]) -> None:
    """Raise if the gradient of a batch cannot be traced: some Ops fail only then."""

    def total(x: jax.Array) -> jax.Array:
        return jnp.asarray(graph(*split_values(variables, x))).sum()

    size = variables[-1].stop if variables else 0
    program = jaxpr_as_fun(batch_operations(total, np.empty(size)))
    jax.eval_shape(jax.vmap(jax.grad(lambda x: program(x)[0])), np.empty((2, size)))


def evaluate_log_terms(
    graph: JaxGraph,
    variables: Sequence[FreeVariable],
    log_mass: float,
    x: jax.Array,
    data: Sequence[jax.Array] = (),
) -> LogTerms:
    """Evaluate log prior and log likelihood at a vector, shape ``(d,)``.

    The graph is a function of data that are arguments, if any, and of the value variables; the
    prior is normalised by ``log_mass``, the log prior mass in nats.

    A log prior of +inf counts as -inf. The density is infinite there at most on a null set, or only
    in floating point: that of an LKJ Cholesky factor is for standard deviations 1e8 apart, which
    Student-t references draw.
    """
    with jax.enable_x64(True):
        log_prior, log_likelihood = graph(*data, *split_values(variables, x))
        return normalised_terms(log_prior, log_likelihood, log_mass)


def normalised_terms(log_prior: jax.Array, log_likelihood: jax.Array, log_mass: float) -> LogTerms:
    """Return log densities, the prior normalised by its log mass; see `evaluate_log_terms`."""
    log_prior = jnp.asarray(log_prior, jnp.float64) - log_mass
    log_prior = jnp.where(jnp.isposinf(log_prior), -jnp.inf, log_prior)
    return LogTerms(log_prior, jnp.asarray(log_likelihood, jnp.float64))


def describe_nan(
    model: pm.Model,
    point: Sequence[np.ndarray],
    values: Mapping[str, np.ndarray],
    freeze: Callable[[Sequence[Variable]], list[Variable]],
) -> str:
    """Say which term is NaN at a point, with the values of the variables there.

    Data are those that `freeze` gives to graphs. PyTensor's Python mode compiles nothing: the
    function is called once.
    """
    terms = [*model.free_RVs, *model.observed_RVs, *model.potentials]
    function = pytensor.function(
        model.value_vars,
        freeze(model.logp(vars=terms, sum=False)),
        # A parameter that is not a number is no error here, but what is looked for.
        mode=Mode("py", "fast_compile").including("local_remove_check_parameter"),
        on_unused_input="ignore",
    )
    densities = zip(terms, function(*point), strict=True)
    culprits = [v.name for v, density in densities if np.isnan(density).any()]
    where = ", ".join(f"{k} = {np.array2string(v[0], precision=6)}" for k, v in values.items())
    infinite = [name for name, value in values.items() if np.isinf(value).any()]
    cause = f"{infinite} overflow: some prior has mass beyond 1e308. " if infinite else ""
    return (
        f"The log density is NaN in the term(s) {culprits or 'unknown'} at {where}. {cause}A "
        "density must be a number or -inf wherever the prior has mass: guard the expression, "
        "or restrict the prior; `sample_ais(nan='reject')` counts NaN as zero likelihood."
    )
