"""Models whose normal variables are integrated out, exactly, before they are annealed.

Coefficients of a regression, effects of groups and steps of a random walk with a normal likelihood
are normal given the scales: the log density is quadratic in them, as its program shows
(`degree.py`). A run then moves the other variables only, a handful instead of hundreds, and the
draws of those integrated out come from their normal distribution given each draw of the others
(`normal_block.py`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm

from jax.extend import core
from pymc.distributions.timeseries import AutoRegressiveRV, RandomWalkRV
from pymc.logprob.transforms import Transform
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import MvNormalRV, NormalRV

from pymc_anneal.base.batches import map_batches
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.degree import degrees
from pymc_anneal.model.dependence import MOST_MASKS, dependences, flat_program
from pymc_anneal.model.derivatives import SMOOTH
from pymc_anneal.model.jaxify import jaxify
from pymc_anneal.model.location_scale_transform import LocationScale
from pymc_anneal.model.log_densities import normalised_terms, sum_to_scalar
from pymc_anneal.model.normal_block import (
    Blocks,
    by_block,
    deviate,
    expand,
    find_blocks,
    in_line,
    solve,
)
from pymc_anneal.model.notes import or_noted
from pymc_anneal.model.parents import random_parents
from pymc_anneal.model.pickling import PicklableFunction
from pymc_anneal.model.recent import once_per_model
from pymc_anneal.model.reduced import (
    BATCH,
    Evaluate,
    ReducedModel,
    at_low_cost,
    evaluate_at_low_cost,
    join_names,
    lay_out,
    length,
    reduce_model,
    split_density,
    values_with_gradients,
)
from pymc_anneal.model.shared_program import SharedProgram
from pymc_anneal.model.summands import is_close
from pymc_anneal.model.variables import FreeVariable

# Entries from which on: fewer are annealed in the time that it takes to find the blocks.
_FEWEST = 6
# Multiplications of the blocks and of the products of the precision with vectors, a millisecond,
# and products that are fewer than the moves which they save whatever they cost.
_MOST_WORK, _FEW_PRODUCTS = 3_000_000, 16
# Observed variables whose log density is concave in what it is quadratic in.
_NORMAL = (NormalRV, MvNormalRV, AutoRegressiveRV, RandomWalkRV)
_QUADRATIC = 2
# Operations that add numbers up, and those that multiply a number or choose it.
_SUMS = frozenset("add sub neg reduce_sum convert_element_type reshape squeeze copy".split())
_FACTORS = frozenset("mul div select_n".split())
# Draws of the prior at which the integral is compared with the density.
_TRIED = 8


@dataclass(frozen=True, eq=False)
class IntegratedModel(ReducedModel):
    """A compiled model with some of its normal variables integrated out.

    Attributes
    ----------
    _density : PicklableFunction
        JAX function of those variables and of the others: the result of `split_density`.
    _blocks : Blocks
    work : int
        Multiplications of an evaluation.
    """

    _density: PicklableFunction
    _blocks: Blocks
    work: int

    @property
    def _drawing(self) -> Callable[[np.ndarray], jax.Array]:
        return lambda rows: self.draw(rows)[0]

    @property
    def draw(self) -> Callable[[np.ndarray], tuple[jax.Array, jax.Array]]:
        """Compiled function from rows, as for `to_model`, to draws and their log densities."""
        return _draw_rows(self._density, self._blocks)


@lru_cache(maxsize=4)
def _draw_rows(
    density: PicklableFunction, blocks: Blocks
) -> Callable[[np.ndarray], tuple[jax.Array, jax.Array]]:
    """Return the compiled function that draws u for rows of x and the words of a key."""
    return jax.jit(jax.vmap(partial(_draw, density, blocks)))


def _draw(
    density: PicklableFunction, blocks: Blocks, row: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Draw u for a row of x and the words of a key, and return its log density given x."""
    key = jax.random.wrap_key_data(row[-2:].astype(jnp.uint32))
    e = jax.random.normal(key, (blocks.size,))
    slope, precision, _ = expand(blocks, _in_u(density, row[:-2]))
    mean, log_volume = solve(precision, slope)
    u = jax.tree.map(jnp.add, mean, deviate(precision, by_block(blocks, e)))
    log_density = log_volume - (e**2 + np.log(2 * np.pi)).sum() / 2
    return in_line(blocks, u), log_density


def _in_u(density: PicklableFunction, x: jax.Array) -> Callable[[jax.Array], jax.Array]:
    def log_density(u: jax.Array) -> jax.Array:
        _, own, likelihood = density(u, x)
        return jnp.asarray(own + likelihood)

    return log_density


def integrate_out(
    compiled: CompiledModel, evaluate: Evaluate = evaluate_at_low_cost
) -> CompiledModel:
    """Return a model without the normal variables that can be integrated out; itself if few.

    Parameters
    ----------
    compiled
        The model.
    evaluate
        How the density without them and its gradient are evaluated to compare the models: by a
        program that is needed later, or by one of its own, which is compiled at a low cost.
    """
    found = _integrate_out(compiled, evaluate) if may_be_integrated(compiled) else None
    return found or compiled


def may_be_integrated(compiled: CompiledModel) -> bool:
    """Whether a model has variables that may be normal given the others and the data."""
    # Members of a family share one compilation, and would each have one of their own.
    shared = isinstance(getattr(compiled.log_terms, "func", None), SharedProgram)
    plain = type(compiled) is CompiledModel and shared
    return plain and compiled.derivatives.order == SMOOTH and bool(_candidates(compiled))


def are_scaled(compiled: CompiledModel) -> bool:
    """Whether the mean of the normal data depends on more than what may be normal in it.

    That of groups depends on the scale of their effects, centred or not, and the posterior is a
    funnel; that of a regression depends on its coefficients alone.
    """
    model = compiled.model
    means = [rv.owner.op.dist_params(rv.owner)[0] for rv in _normal_data(model)]
    return not random_parents(model, means) <= {model[v.name] for v in _candidates(compiled)}


@once_per_model
@double_precision
def _integrate_out(compiled: CompiledModel, evaluate: Evaluate) -> IntegratedModel | None:
    note = "Normal variables are not integrated out: {}."
    return or_noted(lambda: _find(compiled, evaluate), compiled.fallbacks, note)


def _find(compiled: CompiledModel, evaluate: Evaluate) -> IntegratedModel | None:
    names = _quadratic(compiled, _candidates(compiled))
    taken = lay_out(v for v in compiled.variables if v.name in names)
    if length(taken) < _fewest(compiled):
        return None
    others = lay_out(v for v in compiled.variables if v.name not in names)
    density = split_density(compiled, taken, others)
    found = _blocks_of(density, length(taken), length(others))
    if found is None:
        return None
    blocks, work = found
    log_terms = partial(_log_terms, density, blocks, compiled.log_prior_mass)
    note = f"Integrated out exactly: {join_names([_describe(v) for v in taken])}."
    own = {"_density": density, "_blocks": blocks, "work": work}
    model = reduce_model(IntegratedModel, compiled, log_terms, taken, others, note, **own)
    _check(model, compiled, evaluate)
    return model


def _candidates(compiled: CompiledModel) -> list[FreeVariable]:
    """Return variables that are plain or non-centred, if they are many and data are normal."""
    model = compiled.model
    # Of 32 bits, the digits of precisions and means would be too few.
    plain = [v for v in compiled.variables if v.dtype == "float64"]
    found = [v for v in plain if _is_linear(model.rvs_to_transforms[model[v.name]])]
    many = sum(v.stop - v.start for v in found) >= _fewest(compiled)
    return found if many and _normal_data(model) else []


def _is_linear(transform: Transform | None) -> bool:
    return transform is None or isinstance(transform, LocationScale)


def _fewest(compiled: CompiledModel) -> int:
    """Return from how many entries on: each keeps the discrete variables from moving freely."""
    return 1 if compiled.discrete else _FEWEST


def _normal_data(model: pm.Model) -> list[Variable]:
    """Return the observed variables whose density is concave in a mean that is linear."""
    return [rv for rv in model.observed_RVs if isinstance(rv.owner.op, _NORMAL)]


def _quadratic(compiled: CompiledModel, candidates: Sequence[FreeVariable]) -> set[str]:
    """Return variables in which the density is quadratic, all others given.

    All that could be are tried together, or else added one after the other, the largest first.
    """
    model, normal = compiled.model, _normal_data(compiled.model)
    other = [v for v in (*model.observed_RVs, *model.potentials) if v not in normal]
    terms = [*model.free_RVs, *other, *normal]
    outputs = compiled.freeze([sum_to_scalar(t) for t in model.logp(vars=terms, sum=False)])
    examples = [np.zeros(v.shape, v.dtype) for v in compiled.variables]
    program = flat_program(jaxify(model.value_vars, outputs), *examples)
    every = {v.name for v in candidates}
    if _is_quadratic(program, terms, len(normal), every):
        return every
    chosen = set[str]()
    for v in sorted(candidates, key=lambda v: v.start - v.stop):
        if _is_quadratic(program, terms, len(normal), {*chosen, v.name}):
            chosen.add(v.name)
    return chosen


def _is_quadratic(program: Any, terms: Sequence[Variable], normal: int, chosen: set[str]) -> bool:
    """Whether variables are in their own priors and the last terms only, and these quadratic."""
    degree = degrees(program, {i: 1.0 for i, rv in enumerate(terms) if rv.name in chosen})
    found = [degree(v) for v in program.jaxpr.outvars]
    free = enumerate(terms[: len(found) - normal])
    own = [i for i, rv in free if rv.name in chosen] + [*range(len(found) - normal, len(found))]
    elsewhere = sum(found) - sum(found[i] for i in own)
    return max(found[i] for i in own) <= _QUADRATIC and elsewhere == 0


def _blocks_of(density: PicklableFunction, k: int, ndim: int) -> tuple[Blocks, int] | None:
    """Return the blocks of the precision and the work that they are; None if it is too much."""
    program = flat_program(density, np.zeros(k), np.zeros(ndim))
    sizes = [int(np.prod(v.aval.shape)) for eqn in program.jaxpr.eqns for v in eqn.outvars]
    if max(sizes, default=0) * k > MOST_MASKS:
        return None
    masks, degree = dependences(program, range(k)), degrees(program, {0: 1.0})
    leaves = [v for output in program.jaxpr.outvars[1:] for v in _leaves(program, degree, output)]
    depends = [np.reshape(masks[v], (-1, k)) for v in leaves if degree(v)]  # type: ignore[arg-type]
    size = sum(sizes)
    blocks = find_blocks(np.concatenate(depends), size)
    work = blocks.work + size * len(blocks.directions)
    return (blocks, work) if work <= max(_MOST_WORK, _FEW_PRODUCTS * size) else None


def _leaves(program: Any, degree: Callable[[Any], float], output: Any) -> Iterator[Any]:
    """Yield the arrays whose sums, times factors without the variables, add up to a number."""
    made = {v: eqn for eqn in program.jaxpr.eqns for v in eqn.outvars}
    waiting = [output]
    while waiting:
        v = waiting.pop()
        eqn = None if isinstance(v, core.Literal) else made.get(v)
        name = "" if eqn is None else eqn.primitive.name
        inputs = [] if eqn is None else [i for i in eqn.invars if degree(i)]
        scalar = v.aval.shape == ()
        if scalar and name in _SUMS or scalar and name in _FACTORS and len(inputs) == 1:
            waiting += inputs
        else:
            yield v


def _log_terms(
    density: PicklableFunction, blocks: Blocks, log_mass: float, x: jax.Array
) -> LogTerms:
    with jax.enable_x64(True):
        slope, precision, usable = expand(blocks, _in_u(density, x))
        mean, log_volume = solve(precision, slope)
        usable &= jnp.isfinite(log_volume)
        log_prior, own, likelihood = density(jnp.where(usable, in_line(blocks, mean), 0.0), x)
        at_mean = own + likelihood
        constant = blocks.size / 2 * np.log(2 * np.pi)
        # No mass where the precision overflows, unless the density is not a number there.
        without = jnp.where(jnp.isnan(at_mean), jnp.nan, -jnp.inf)
        log_likelihood = jnp.where(usable, at_mean + constant - log_volume, without)
        return normalised_terms(log_prior, log_likelihood, log_mass)


def _check(model: IntegratedModel, compiled: CompiledModel, evaluate: Evaluate) -> None:
    """Raise unless the integral times the normal density is the density, and has a gradient."""
    draws = compiled.sample_prior(np.random.SeedSequence(1), _TRIED)[:, model._kept]
    seeds = np.arange(2.0 * _TRIED).reshape(_TRIED, 2)
    u, log_normal = map_batches(model.draw, np.concatenate([draws, seeds], axis=1), BATCH)
    wanted = sum(at_low_cost(jax.vmap(compiled.log_terms), model._join(draws, u)))
    if not is_close(values_with_gradients(model, draws, evaluate) + log_normal, wanted):
        raise ValueError("the density is not that of normal variables")


def _describe(variable: FreeVariable) -> str:
    """Name a variable with its number of entries."""
    return f"'{variable.name}' ({variable.stop - variable.start})"
