"""The log ratio of two priors of a model at given values of its variables.

Everything is in the model's own space, without transforms: they may differ between the priors, and
their Jacobians cancel. The functions are compiled for PyTensor's Python mode, which takes
milliseconds: they are called once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

from pymc.logprob.basic import conditional_logp
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.traversal import ancestors

from pymc_anneal.model.cast_data import cast_data
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.spatial import drawn_by_density, missing_terms
from pymc_anneal.model.unconstrained_draws import free_given_data
from pymc_anneal.posthoc.null_point import shape_of

# Draws of a new prior, the factors by which they are stretched, and nats below a draw at which its
# density is negligible: 1e-13.
_DRAWS, _STRETCHES, _NEGLIGIBLE = 200, 2.0 ** np.arange(0.25, 8, 0.25), 30.0

# Values of the free variables by name, shapes (n, ...).
Values: TypeAlias = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class PriorChange:
    """A change of the prior of a model.

    Attributes
    ----------
    log_new, log_old : Callable
        From values of the free variables, shapes ``(n, ...)``, to the log densities of both priors,
        as far as they change, shape ``(n,)``, in nats.
    draw : Callable
        From a number ``n`` to draws of the free variables from the new prior.
    changed : tuple of str
        The variables whose densities change, given their parents, and potentials that do.
    """

    log_new: Callable[[Values], np.ndarray]
    log_old: Callable[[Values], np.ndarray]
    draw: Callable[[int], Values]
    changed: tuple[str, ...]

    def log_ratio(self, values: Values) -> np.ndarray:
        """Return ``log p'(x) - log p(x)`` at draws of the old posterior, shape ``(n,)``."""
        found: np.ndarray = self.log_new(values) - self.log_old(values)
        return found

    def share_above(self, log_ratio: float) -> float:
        """Return the share of the new prior at which the log ratio is above a number."""
        return float(np.mean(self.log_ratio(self.draw(_DRAWS)) > log_ratio))

    def check_support(self, name: str) -> None:
        """Raise `ValueError` if the new prior reaches beyond the support of the old one.

        Draws of the new prior are stretched, an entry at a time, to where its density is
        negligible: the likelihood may be large where few draws would ever be.
        """
        rng = np.random.default_rng(0)  # any: it looks at densities, and counts nothing
        drawn = self.draw(_DRAWS)
        own, beyond = self.log_new(drawn), np.isneginf(self.log_old(drawn))
        free = [v for v in self.changed if v in drawn]
        for factor in _STRETCHES:
            place = {**drawn, **_stretched({v: drawn[v] for v in free}, factor, rng)}
            reached = self.log_new(place) > own - _NEGLIGIBLE
            beyond |= reached & np.isneginf(self.log_old(place))
        if beyond.any():
            raise ValueError(
                f"The new prior by '{name}' reaches beyond the support of the model's prior, whose "
                "posterior draws say nothing about what the likelihood is there. Run sample_ais "
                "with this prior, or draw from the model with a prior that has the wider support."
            )


def _stretched(values: Values, factor: float, rng: np.random.Generator) -> Values:
    """Return values of which one entry in each row is moved away from the median of all rows."""
    sizes = {name: value[0].size for name, value in values.items()}
    index = rng.integers(sum(sizes.values()), size=_DRAWS)
    place, first = dict[str, np.ndarray](), 0
    for name, value in values.items():
        flat = value.reshape(_DRAWS, -1).copy()
        rows = np.flatnonzero((index >= first) & (index < first + sizes[name]))
        entry = rows, index[rows] - first
        median = np.median(flat, axis=0)[entry[1]]
        flat[entry] = median + factor * (flat[entry] - median)  # whole numbers stay whole
        place[name], first = flat.reshape(value.shape), first + sizes[name]
    return place


def change_distribution(compiled: CompiledModel, name: str, dist: Any) -> PriorChange:
    """Replace the prior of a variable by a distribution, such as ``pm.HalfNormal.dist(2)``.

    Raises
    ------
    TypeError
        `dist` is no distribution.
    ValueError
        It has another shape than the variable.
    """
    if not isinstance(dist, Variable) or dist.owner is None:
        raise TypeError(
            f"The new prior of '{name}' is a {type(dist).__name__}, expected a distribution such "
            "as pm.Normal.dist(0, 1)."
        )
    rv, inputs = compiled.model[name], _inputs(compiled.model)
    _check_shape(compiled, name, dist)
    new = rv.type()
    terms = conditional_logp({**inputs, dist: new})
    missing = [clone_replace(missing_terms([own]), inputs) for own in (rv, dist)]
    old_term = _total([terms[inputs[rv]], *missing[0]])
    new_term = clone_replace([_total([terms[new], *missing[1]])], {new: inputs[rv]})[0]
    dist = drawn_by_density(dist) or dist
    new_draw = pt.broadcast_to(dist, rv.shape).astype(rv.dtype)
    drawn = free_given_data(compiled.model, {rv: new_draw})
    return PriorChange(
        _row_function(compiled, inputs, new_term),
        _row_function(compiled, inputs, old_term),
        _draw_function(compiled, inputs, drawn),
        (name,),
    )


def _check_shape(compiled: CompiledModel, name: str, dist: Variable) -> None:
    """Raise `ValueError` unless the values of a distribution fit into those of a variable."""
    shape = shape_of(compiled, name)
    # Lengths of one are broadcast; those that are not known yet may be right.
    given = [1 if n is None else n for n in dist.type.shape]
    try:
        fits = np.broadcast_shapes(shape, tuple(given)) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"The new prior of '{name}' has the shape {tuple(given)}, expected {shape} or one that "
            "is broadcast to it."
        )


def change_data(compiled: CompiledModel, name: str, value: Any) -> PriorChange:
    """Give ``pm.Data`` on which the prior depends another value.

    Raises
    ------
    ValueError
        The value has another shape, or the observed data depend on it.
    """
    model = compiled.model
    data = model[name]
    present = compiled.constant_data()[name]
    value = cast_data(name, value, present.dtype)
    if value.shape != present.shape:
        raise ValueError(
            f"The value of '{name}' has shape {value.shape}, expected {present.shape} as in the "
            "model."
        )
    if any(data in ancestors([model.rvs_to_values[rv]]) for rv in model.observed_RVs):
        raise ValueError(f"'{name}' is observed: another value is another data set, not a prior.")
    inputs = _inputs(model)
    observed = {rv: model.rvs_to_values[rv] for rv in model.observed_RVs}
    logp = conditional_logp({**inputs, **observed})
    potentials = clone_replace(model.potentials, inputs)
    others = clone_replace(missing_terms(model.basic_RVs), inputs)
    terms = [*logp.values(), *potentials, *others]
    old_term = _total([term for term in terms if data in ancestors([term])])
    parts = {rv.name: logp[value] for rv, value in {**inputs, **observed}.items()}
    parts |= {p.name: term for p, term in zip(model.potentials, potentials, strict=True)}
    changed = (name for name, term in parts.items() if data in ancestors([term]))
    new = {data: pt.constant(value)}
    new_term = clone_replace([old_term], new)[0]
    return PriorChange(
        _row_function(compiled, inputs, new_term),
        _row_function(compiled, inputs, old_term),
        _draw_function(compiled, inputs, free_given_data(model, new)),
        tuple(changed),
    )


def _inputs(model: pm.Model) -> dict[Variable, Variable]:
    """Return a variable for the value of each free variable, in the model's space."""
    return {rv: rv.type(name=rv.name) for rv in model.free_RVs}


def _total(terms: Sequence[Variable]) -> Variable:
    """Return the sum of log densities over all of their entries."""
    return sum((pt.as_tensor_variable(t).sum() for t in terms), pt.constant(0.0))


def _row_function(
    compiled: CompiledModel, inputs: Mapping[Variable, Variable], output: Variable
) -> Callable[[Values], np.ndarray]:
    """Compile a scalar as a function of the values of the free variables, shape ``(n,)``."""
    batched = {v: pt.tensor(dtype=v.dtype, shape=(None, *v.type.shape)) for v in inputs.values()}
    graph = vectorize_graph(compiled.freeze([output])[0], replace=batched)
    function = _compile_python(list(batched.values()), [graph])

    def evaluate(values: Values) -> np.ndarray:
        rows = [np.asarray(values[rv.name]).astype(rv.dtype) for rv in inputs]
        return np.broadcast_to(function(*rows)[0], len(rows[0])).astype(np.float64)

    return evaluate


def _draw_function(
    compiled: CompiledModel, inputs: Mapping[Variable, Variable], outputs: Sequence[Variable]
) -> Callable[[int], Values]:
    """Compile draws of the free variables; the seed is fixed: they speak against a ratio only."""
    frozen = compiled.freeze(list(outputs))

    @cache  # the same number is drawn for several checks, and compiled each time
    def draw(n: int) -> Values:
        arrays = pm.draw(frozen, draws=n, random_seed=0, mode=Mode("py", "fast_compile"))
        return {rv.name: array for rv, array in zip(inputs, arrays, strict=True)}

    return draw


def _compile_python(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Callable[..., Any]:
    # Densities are zero, and not an error, where a stretched parent is no parameter.
    mode = Mode("py", "fast_compile").including("local_check_parameter_to_ninf_switch")
    function: Callable[..., Any] = pytensor.function(
        inputs, outputs, mode=mode, on_unused_input="ignore"
    )
    return function
