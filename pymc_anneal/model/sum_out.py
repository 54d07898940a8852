"""Models whose discrete variables are summed out, exactly, before they are annealed.

A run then moves real numbers only: its density is that of `summation.py`, and the draws of the
variables summed out come from their exact conditional distribution given each draw of the others.

Counts without an end are summed up to a number ``B`` beyond the draws of their prior, if no real
variable's prior depends on them. What that leaves out is measured when the run has ended: with
``f_B(x)`` the density of the sum up to ``B``,

    Z_2B / Z_B = E_B[f_2B(x) / f_B(x)],

an average over the posterior draws.
"""

import hashlib

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jax.tree_util import Partial
from pytensor.tensor.random.basic import (
    BetaBinomialRV,
    BinomialRV,
    GeometricRV,
    NegBinomialRV,
    PoissonRV,
)

from pymc_anneal.base.batches import map_batches
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.branches import Branches
from pymc_anneal.model.checked_entries import checked_entry_by_entry
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.jaxify import JaxGraph, jaxify
from pymc_anneal.model.log_densities import sum_to_scalar
from pymc_anneal.model.notes import or_noted
from pymc_anneal.model.pickling import PicklableFunction
from pymc_anneal.model.recent import once_per_model
from pymc_anneal.model.shared_program import SharedProgram
from pymc_anneal.model.spatial import missing_constants
from pymc_anneal.model.summands import is_close
from pymc_anneal.model.summation import CannotSumError, Summation, plan_summation
from pymc_anneal.model.variables import FreeVariable

# Draws of the prior at which a sum is compared with the density of the model.
_TRIED = 8
# Counts without an end, from zero on.
_COUNTS = (PoissonRV, NegBinomialRV, GeometricRV, BinomialRV, BetaBinomialRV)
# Draws of the prior beyond the largest of which they are summed up to, by a quarter and five.
_DRAWS, _FURTHER, _LEAST = 1024, 1.25, 5
# Posterior draws at which a sum up to twice as many is compared, and the error that matters, in
# nats: a third of the smallest standard error that runs aim at.
_COMPARED, _ERROR = 256, 0.003
# Variables that a note names.
_NAMED = 4
# Draws of variables summed out in a batch.
_BATCH = 256


@dataclass(frozen=True, eq=False)
class SummedModel(CompiledModel):
    """A compiled model with some of its discrete variables summed out.

    Attributes
    ----------
    _summed : tuple of FreeVariable
        The variables summed out, with their places among these.
    _whole : tuple of FreeVariable
        All free variables.
    _summation : Summation
    _cut : tuple of str
        Names of counts that are summed up to a number that is not their end.
    """

    _summed: tuple[FreeVariable, ...]
    _whole: tuple[FreeVariable, ...]
    _summation: Summation
    _cut: tuple[str, ...]

    @property
    def summed(self) -> tuple[FreeVariable, ...]:
        """Variables that are summed out."""
        return self._summed

    @property
    def evaluations(self) -> int:
        """Evaluations of the density before it was summed."""
        return len(self._summation.values)

    @property
    def branches(self) -> Branches | None:  # type: ignore[override]
        """None: those of the density before it was summed are not those of the sum."""
        return None

    def sample_prior(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        """Draw from the prior, shape ``(draws, d)``."""
        return super().sample_prior(seed, draws)[:, self._kept]

    def constrain(self, position: np.ndarray) -> dict[str, np.ndarray]:
        """Map positions to variables and deterministics, those summed out drawn given the others.

        The seed is a hash of the positions: the same positions give the same draws.
        """
        return super().constrain(self._complete(position))

    def unconstrain(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Map values of the free variables to positions, shape ``(n, d)``."""
        return super().unconstrain(values)[:, self._kept]

    def pointwise_log_likelihood(self, position: np.ndarray) -> dict[str, np.ndarray]:
        """Compute the log likelihood of each observation, given draws of what is summed out."""
        return self._model_of_all.pointwise_log_likelihood(self._complete(position))

    @double_precision
    def doubt_sum(self, position: np.ndarray) -> str:
        """Say what a sum leaves out, at draws of the posterior, shape ``(n, d)``; "" if nothing."""
        if not self._cut:
            return ""
        x = position[:: -(-len(position) // _COMPARED)]
        bounds = [pair for v in self._summed for pair in self._up_to_twice(v)]
        longer = plan_summation(self._summation.function, self.ndim, bounds, most=np.inf)
        own, other = (
            _at_low_cost(jax.vmap(s.evaluate), x).log_likelihood for s in (self._summation, longer)
        )
        error = float(np.log(np.mean(np.exp(other - own))))
        if error <= _ERROR:
            return ""
        words = ", ".join(_describe(v) for v in self._summed if v.name in self._cut)
        return (
            f"the sum over {words} ends too soon: up to twice as many add {error:.2g} nats; take "
            "discrete='sample'"
        )

    def _up_to_twice(self, variable: FreeVariable) -> list[tuple[int, int]]:
        factor = 2 if variable.name in self._cut else 1
        return [(low, factor * high) for low, high in variable.support or ()]

    @double_precision
    def explain_nan(self, position: np.ndarray) -> str:
        """Say which term is NaN at a position, beside values of what is summed out."""
        table = np.asarray(self._summation.tabulate(jnp.asarray(position))[0])
        worst = int(np.isnan(table).any(axis=1).argmax())
        z = self._summation.values[worst]
        return self._model_of_all.explain_nan(self._join(position[None], z[None])[0])

    @cached_property
    def _model_of_all(self) -> CompiledModel:
        """The model before the sum, but for its density."""
        return CompiledModel(**{**_fields_of(self), "variables": self._whole})

    @cached_property
    def _kept(self) -> np.ndarray:
        """Places of the variables that are not summed out in the vector of all."""
        return _places([v for v in self._whole if v.name in {u.name for u in self.variables}])

    @cached_property
    def _own(self) -> np.ndarray:
        """Places of the variables that are summed out in the vector of all."""
        return _places([v for v in self._whole if v.name in {u.name for u in self._summed}])

    def _join(self, position: np.ndarray, z: np.ndarray) -> np.ndarray:
        whole = np.empty((len(position), position.shape[1] + z.shape[1]))
        whole[:, self._kept], whole[:, self._own] = position, z
        return whole

    @double_precision
    def _complete(self, position: np.ndarray) -> np.ndarray:
        position = np.ascontiguousarray(position, dtype=float)
        seed = int.from_bytes(hashlib.sha256(position.tobytes()).digest()[:4], "little")
        keys = jax.random.split(jax.random.key(seed), max(len(position), 1))
        words = np.asarray(jax.random.key_data(keys)).astype(float)[: len(position)]
        rows = np.concatenate([position, words], axis=1)
        return self._join(position, map_batches(_drawing(self._summation), rows, _BATCH))


@lru_cache(maxsize=4)
def _drawing(summation: Summation) -> Callable[[np.ndarray], jax.Array]:
    """Return the compiled function that draws z for rows of x and the words of a key."""
    # An argument: XLA would take long to evaluate what depends on constants alone.
    values, ndim = jnp.asarray(summation.values, float), summation.ndim

    def draw(values: jax.Array, row: jax.Array) -> jax.Array:
        key = jax.random.wrap_key_data(row[ndim:].astype(jnp.uint32))
        return summation.draw(row[:ndim], key, values)

    return partial(jax.jit(jax.vmap(draw, in_axes=(None, 0))), values)


def sum_out(compiled: CompiledModel) -> CompiledModel:
    """Return a model with those of its discrete variables summed out that can be.

    Parameters
    ----------
    compiled
        The model.

    Returns
    -------
    CompiledModel
        The same one if there are none.
    """
    if isinstance(compiled, SummedModel) or not compiled.discrete or compiled.calls:
        return compiled
    return _sum_out(compiled) or compiled


@once_per_model
@double_precision
def _sum_out(compiled: CompiledModel) -> SummedModel | None:
    note = "Discrete variables are not summed out: {}."
    return or_noted(lambda: _find(compiled), compiled.fallbacks, note)


def _find(compiled: CompiledModel) -> SummedModel | None:
    """Sum out as many variables as can be, without those that prevent it."""
    ended = [v.name for v in compiled.discrete if v.support is not None]
    chosen = [v for v in _with_ends(compiled) if v.stop > v.start]
    while chosen:
        names = {v.name for v in chosen}
        summed, others = (
            _renumber(chosen),
            _renumber([v for v in compiled.variables if v.name not in names]),
        )
        try:
            function = _density(compiled, summed, others)
            bounds = [pair for v in summed for pair in v.support or ()]
            summation = plan_summation(function, _length(others), bounds)
            _check_cut(summation, summed, ended)
        except CannotSumError as error:
            at = set(error.entries.tolist())
            lost = {v.name for v in summed if not at.isdisjoint(range(v.start, v.stop))}
            chosen = [v for v in chosen if v.name not in lost]
            continue
        cut = tuple(v.name for v in summed if v.name not in ended)
        model = _build(compiled, summation, summed, others, cut)
        _check(model, compiled)
        return model
    return None


def _with_ends(compiled: CompiledModel) -> list[FreeVariable]:
    """Return the discrete variables that have a last value, or a number to end their sum at."""
    found, draws = list[FreeVariable](), None
    for v in compiled.discrete:
        if v.support is None and isinstance(compiled.model[v.name].owner.op, _COUNTS):
            if draws is None:
                draws = compiled.sample_prior(np.random.SeedSequence(2), _DRAWS)
            most = int(_FURTHER * draws[:, v.start : v.stop].max(initial=0)) + _LEAST
            v = v._replace(support=((0, most),) * (v.stop - v.start))
        if v.support is not None:
            found.append(v)
    return found


def _check_cut(summation: Summation, summed: Sequence[FreeVariable], ended: Sequence[str]) -> None:
    """Raise if a sum that is cut is needed for the prior, which has to integrate to one."""
    cut = _places([v for v in summed if v.name not in ended])
    if summation.prior is not None and len(cut):
        raise CannotSumError("the prior of a real variable depends on a count without end", cut)


def _density(
    compiled: CompiledModel, summed: Sequence[FreeVariable], others: Sequence[FreeVariable]
) -> PicklableFunction:
    """Return the density of z and x: log prior of x, of z, and log likelihood."""
    model, names = compiled.model, {v.name for v in summed}
    groups = [
        [rv for rv in model.free_RVs if rv.name not in names],
        [rv for rv in model.free_RVs if rv.name in names],
        [*model.observed_RVs, *model.potentials],
    ]
    outputs = [
        sum_to_scalar(model.logp(vars=group) if group else 0.0)
        + missing_constants(model, [v for v in group if v in model.basic_RVs])
        for group in groups
    ]
    graph = jaxify(*checked_entry_by_entry(model.value_vars, compiled.freeze(outputs)))
    order = [rv.name for rv in model.free_RVs]
    return PicklableFunction(partial(_evaluate, graph, tuple(order), tuple(summed), tuple(others)))


def _evaluate(
    graph: JaxGraph,
    order: Sequence[str],
    summed: Sequence[FreeVariable],
    others: Sequence[FreeVariable],
    z: jax.Array,
    x: jax.Array,
) -> list[jax.Array]:
    with jax.enable_x64(True):
        values = {}
        for vector, variables in ((z, summed), (x, others)):
            for v in variables:
                values[v.name] = vector[v.start : v.stop].reshape(v.shape).astype(v.dtype)
        return [jnp.asarray(v, jnp.float64) for v in graph(*(values[name] for name in order))]


def _log_terms(summation: Summation, log_mass: float, x: jax.Array) -> LogTerms:
    with jax.enable_x64(True):
        log_prior, log_likelihood = summation.evaluate(x)
        log_prior = log_prior - log_mass
        return LogTerms(jnp.where(jnp.isposinf(log_prior), -jnp.inf, log_prior), log_likelihood)


def _build(
    compiled: CompiledModel,
    summation: Summation,
    summed: tuple[FreeVariable, ...],
    others: tuple[FreeVariable, ...],
    cut: tuple[str, ...],
) -> SummedModel:
    function = PicklableFunction(partial(_log_terms, summation, compiled.log_prior_mass))
    program = SharedProgram(function, summation.ndim)
    words = [_describe(v) + (", and no further" if v.name in cut else "") for v in summed]
    if len(words) > _NAMED:
        words = [*words[: _NAMED - 1], f"{len(words) - _NAMED + 1} more"]
    note = f"Summed out exactly: {', '.join(words)}."
    own = {
        "variables": others,
        "ndim": summation.ndim,
        "log_terms": Partial(program, *program.arrays),  # type: ignore[no-untyped-call]
        "notes": (*compiled.notes, note),
    }
    found = {"_summed": summed, "_whole": compiled.variables, "_cut": cut}
    return SummedModel(**{**_fields_of(compiled), **own, **found}, _summation=summation)


def _check(model: SummedModel, compiled: CompiledModel) -> None:
    """Raise unless the terms add up to the density at draws of the prior, and have gradients."""
    draws, summation = compiled.sample_prior(np.random.SeedSequence(1), _TRIED), model._summation
    x = draws[:, model._kept]
    # The likelihood of all draws of the prior may be zero; that of these is not, if any is not.
    draws = np.concatenate([draws, model._complete(x)])
    x, z = draws[:, model._kept], draws[:, model._own].astype(int)
    tables, constants = _at_low_cost(jax.vmap(summation.tabulate), x)
    at_rest = summation.terms.depends.any(axis=1)
    log_terms = _at_low_cost(jax.vmap(compiled.log_terms), draws)
    number = np.array([summation.number(row) for row in z])
    found = np.take_along_axis(tables, number[:, None], axis=1)[:, 0]
    total = found[:, at_rest].sum(axis=1) + sum(constants)
    wanted = log_terms.log_prior + compiled.log_prior_mass, log_terms.log_likelihood
    if not is_close(total, sum(wanted), sum(np.abs(w) for w in wanted)):
        raise ValueError("the terms of the density do not add up")
    if not model.ndim:
        return
    value, gradient = _at_low_cost(
        jax.vmap(jax.value_and_grad(lambda y: sum(model.log_terms(y)))), x
    )
    if np.isnan(gradient[np.isfinite(value)]).any():
        raise ValueError("the gradient of the sum is NaN")


def _at_low_cost(function: Callable[..., Any], x: np.ndarray) -> Any:
    """Evaluate a JAX function once: most of the time would go into its compilation."""
    options: dict[str, Any] = {"xla_backend_optimization_level": 0}
    found = jax.jit(function).lower(x).compile(compiler_options=options)(x)
    return jax.tree.map(np.asarray, found)


def _renumber(variables: Sequence[FreeVariable]) -> tuple[FreeVariable, ...]:
    """Lay variables out one after the other."""
    found, start = list[FreeVariable](), 0
    for v in variables:
        stop = start + v.stop - v.start
        found.append(v._replace(start=start, stop=stop))
        start = stop
    return tuple(found)


def _length(variables: Sequence[FreeVariable]) -> int:
    return variables[-1].stop if variables else 0


def _places(variables: Sequence[FreeVariable]) -> np.ndarray:
    return np.array([j for v in variables for j in range(v.start, v.stop)], int)


def _describe(variable: FreeVariable) -> str:
    """Name a variable with its range."""
    bounds = np.array(variable.support)
    return f"'{variable.name}' ({bounds[:, 0].min()} to {bounds[:, 1].max()})"


def _fields_of(compiled: CompiledModel) -> dict[str, Any]:
    return {f.name: getattr(compiled, f.name) for f in fields(CompiledModel)}
