"""Models whose discrete variables are summed out, exactly, before they are annealed.

A run then moves real numbers only: its density is that of `summation.py`, and the draws of the
variables summed out come from their exact conditional distribution given each draw of the others.

Counts without an end are summed up to a number ``B`` beyond the draws of their prior, if no real
variable's prior depends on them. What that leaves out is measured when the run has ended: with
``f_B(x)`` the density of the sum up to ``B``,

    Z_2B / Z_B = E_B[f_2B(x) / f_B(x)],

an average over the posterior draws.

Of a regression on indicators, whose coefficients are normal given these, no term of the density is
without one of the indicators: there are no factors to eliminate. Once the coefficients are
integrated out (`integrate_out.py`), it is a sum over the subsets (George & McCulloch 1997), smooth
in what is left: scales, and the probability of an indicator.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from pytensor.tensor.random.basic import (
    BetaBinomialRV,
    BinomialRV,
    GeometricRV,
    NegBinomialRV,
    PoissonRV,
)

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.integrate_out import IntegratedModel, integrate_out
from pymc_anneal.model.log_densities import normalised_terms
from pymc_anneal.model.notes import or_noted
from pymc_anneal.model.recent import once_per_model
from pymc_anneal.model.reduced import (
    ReducedModel,
    at_low_cost,
    join_names,
    lay_out,
    length,
    places,
    reduce_model,
    split_density,
    values_with_gradients,
)
from pymc_anneal.model.summands import is_close
from pymc_anneal.model.summation import CannotSumError, ConfigurationSum, Summation, plan_summation
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
# Configurations of a sum, and multiplications of all of them if other variables are left: of ten
# million (ten indicators, 80 rows) a run took 30 s, and one that moves the indicators 4 to 20.
_MOST_CONFIGURATIONS, _MOST_WORK = 4096, 3_000_000
# Multiplications that are made at once: an array of as many numbers for each particle.
_AT_ONCE = 50_000
_NOTE = "Discrete variables are not summed out: {}."


@dataclass(frozen=True, eq=False)
class SummedModel(ReducedModel):
    """A compiled model with some of its discrete variables summed out.

    Attributes
    ----------
    _summation : Summation or ConfigurationSum
    _cut : tuple of str
        Names of counts that are summed up to a number that is not their end.
    """

    _summation: Summation | ConfigurationSum
    _cut: tuple[str, ...]

    @property
    def evaluations(self) -> int:
        """Evaluations of the density before it was summed."""
        return len(self._summation.values)

    @double_precision
    def doubt_density(self, position: np.ndarray) -> str:
        """Say what a sum leaves out, at draws of the posterior, shape ``(n, d)``; "" if nothing."""
        if not self._cut or isinstance(self._summation, ConfigurationSum):
            return ""
        x = position[:: -(-len(position) // _COMPARED)]
        bounds = [pair for v in self._taken for pair in self._up_to_twice(v)]
        longer = plan_summation(self._summation.function, self.ndim, bounds, most=np.inf)
        own, other = (
            at_low_cost(jax.vmap(s.evaluate), x).log_likelihood for s in (self._summation, longer)
        )
        error = float(np.log(np.mean(np.exp(other - own))))
        if error <= _ERROR:
            return ""
        words = ", ".join(_describe(v) for v in self._taken if v.name in self._cut)
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
        return self._full.explain_nan(self._join(position[None], z[None])[0])

    @property
    def _drawing(self) -> Callable[[np.ndarray], jax.Array]:
        return _draw_rows(self._summation)


@lru_cache(maxsize=4)
def _draw_rows(summation: Summation | ConfigurationSum) -> Callable[[np.ndarray], jax.Array]:
    """Return the compiled function that draws z for rows of x and the words of a key."""
    # An argument: XLA would take long to evaluate what depends on constants alone.
    values, ndim = jnp.asarray(summation.values, float), summation.ndim

    def draw(values: jax.Array, row: jax.Array) -> jax.Array:
        key = jax.random.wrap_key_data(row[ndim:].astype(jnp.uint32))
        return summation.draw(row[:ndim], key, values)

    return partial(jax.jit(jax.vmap(draw, in_axes=(None, 0))), values)


def sum_out(compiled: CompiledModel) -> CompiledModel:
    """Return a model with its discrete variables summed out; itself if none can be.

    By their configurations, if these are few and there are variables that are normal given them; by
    elimination else. Where some stay, the normal variables alone are integrated out.
    """
    if not compiled.discrete or compiled.calls or compiled.taken_out:
        return compiled
    if _configurations(compiled.discrete) is not None:
        found = sum_by_configurations(integrate_out(compiled))
        if found is not None:
            return found
    summed = sum_by_elimination(compiled) or compiled
    return integrate_out(summed) if summed.discrete else summed


@once_per_model
@double_precision
def sum_by_elimination(compiled: CompiledModel) -> SummedModel | None:
    """Return a model with those of its discrete variables summed out that its terms leave apart."""
    return or_noted(lambda: _find(compiled), compiled.fallbacks, _NOTE)


@once_per_model
@double_precision
def sum_by_configurations(compiled: CompiledModel) -> SummedModel | None:
    """Return a model without normal variables as a sum over all values of its discrete ones."""
    if not isinstance(compiled, IntegratedModel):
        return None
    return or_noted(lambda: _sum_configurations(compiled), compiled.fallbacks, _NOTE)


def _find(compiled: CompiledModel) -> SummedModel | None:
    """Sum out as many variables as can be, without those that prevent it."""
    ended = [v.name for v in compiled.discrete if v.support is not None]
    chosen = [v for v in _with_ends(compiled) if v.stop > v.start]
    while chosen:
        names = {v.name for v in chosen}
        summed = lay_out(chosen)
        others = lay_out(v for v in compiled.variables if v.name not in names)
        try:
            function = split_density(compiled, summed, others)
            bounds = [pair for v in summed for pair in v.support or ()]
            summation = plan_summation(function, length(others), bounds)
            _check_cut(summation, summed, ended)
        except CannotSumError as error:
            at = set(error.entries.tolist())
            lost = {v.name for v in summed if not at.isdisjoint(range(v.start, v.stop))}
            chosen = [v for v in chosen if v.name not in lost]
            continue
        cut = tuple(v.name for v in summed if v.name not in ended)
        log_terms = partial(_log_terms, summation, compiled.log_prior_mass)
        model = _build(compiled, summation, log_terms, summed, others, cut)
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
    cut = places([v for v in summed if v.name not in ended])
    if summation.prior is not None and len(cut):
        raise CannotSumError("the prior of a real variable depends on a count without end", cut)


def _log_terms(summation: Summation, log_mass: float, x: jax.Array) -> LogTerms:
    with jax.enable_x64(True):
        return normalised_terms(*summation.evaluate(x), log_mass)


def _build(
    compiled: CompiledModel,
    summation: Summation | ConfigurationSum,
    log_terms: Callable[[jax.Array], LogTerms],
    summed: tuple[FreeVariable, ...],
    others: tuple[FreeVariable, ...],
    cut: tuple[str, ...] = (),
) -> SummedModel:
    words = [_describe(v) + (", and no further" if v.name in cut else "") for v in summed]
    note = f"Summed out exactly: {join_names(words)}."
    own = {"_summation": summation, "_cut": cut}
    return reduce_model(SummedModel, compiled, log_terms, summed, others, note, **own)


def _sum_configurations(compiled: IntegratedModel) -> SummedModel | None:
    """Sum over all values of the discrete variables, of which each evaluation takes one."""
    values = _configurations(compiled.discrete)
    real = [v for v in compiled.variables if not v.discrete]
    if values is None or (real and len(values) * compiled.work > _MOST_WORK):
        return None
    taken, others = lay_out(compiled.discrete), lay_out(real)
    place = np.argsort(np.concatenate([places(compiled.discrete), places(real)]))
    at_once = max(1, _AT_ONCE // compiled.work)
    own = ConfigurationSum(compiled._function, length(others), place, values, at_once)
    model = _build(compiled, own, own.evaluate, taken, others)
    if model.ndim:
        values_with_gradients(model, model.sample_prior(np.random.SeedSequence(1), _TRIED))
    return model


def _configurations(variables: Sequence[FreeVariable]) -> np.ndarray | None:
    """Return all values of some variables, shape ``(c, p)``; None if they are too many."""
    if any(v.support is None for v in variables):
        return None
    low, high = np.array([pair for v in variables for pair in v.support or ()]).T
    sizes = high - low + 1
    if np.prod(sizes.astype(float)) > _MOST_CONFIGURATIONS:
        return None
    return np.asarray(low + np.indices(sizes).reshape(len(sizes), -1).T)


def _check(model: SummedModel, compiled: CompiledModel) -> None:
    """Raise unless the terms add up to the density at draws of the prior, and have gradients."""
    draws, summation = compiled.sample_prior(np.random.SeedSequence(1), _TRIED), model._summation
    assert isinstance(summation, Summation)
    x = draws[:, model._kept]
    # The likelihood of all draws of the prior may be zero; that of these is not, if any is not.
    draws = np.concatenate([draws, model.to_model(x)])
    x, z = draws[:, model._kept], draws[:, model._own].astype(int)
    tables, constants = at_low_cost(jax.vmap(summation.tabulate), x)
    at_rest = summation.terms.depends.any(axis=1)
    log_terms = at_low_cost(jax.vmap(compiled.log_terms), draws)
    number = np.array([summation.number(row) for row in z])
    found = np.take_along_axis(tables, number[:, None], axis=1)[:, 0]
    total = found[:, at_rest].sum(axis=1) + sum(constants)
    wanted = log_terms.log_prior + compiled.log_prior_mass, log_terms.log_likelihood
    if not is_close(total, sum(wanted), sum(np.abs(w) for w in wanted)):
        raise ValueError("the terms of the density do not add up")
    if model.ndim:
        values_with_gradients(model, x)


def _describe(variable: FreeVariable) -> str:
    """Name a variable with its range."""
    bounds = np.array(variable.support)
    return f"'{variable.name}' ({bounds[:, 0].min()} to {bounds[:, 1].max()})"
