"""A PyMC model compiled for annealing.

With ``x`` the free variables in the unconstrained space, concatenated to one vector,

    log_prior(x)      = sum of the free variables' log densities, with the Jacobians of their
                        transforms, normalised,
    log_likelihood(x) = sum of the observed variables' log densities and of the potentials.

The two are kept apart. A ``pm.Potential`` is tempered with the likelihood, as in
:func:`pymc.sample_smc`.

A discrete variable is not transformed. Its coordinates of ``x`` hold integers exactly, and the
derivatives with respect to them are zero.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
import pymc as pm

from pytensor.graph.basic import Variable

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.bambi import unwrap_bambi
from pymc_anneal.model.branches import Branches
from pymc_anneal.model.derivatives import Derivatives
from pymc_anneal.model.frozen_data import FrozenData
from pymc_anneal.model.host_calls import Calls
from pymc_anneal.model.location_scale_transform import non_centred
from pymc_anneal.model.log_densities import describe_nan, log_term_graphs, translate_density
from pymc_anneal.model.map_rows import RowFunction, map_positions, map_transforms
from pymc_anneal.model.map_variables import VariableMap, map_variables, warn_of_omissions
from pymc_anneal.model.missing_values import integrate_missing
from pymc_anneal.model.notes import IN_UNIT_SCALE, list_notes
from pymc_anneal.model.pickling import pack
from pymc_anneal.model.prior_draws import NotFiniteDrawError, PriorSampler
from pymc_anneal.model.reject_nan import rejecting_nan
from pymc_anneal.model.shared_program import build_log_terms
from pymc_anneal.model.unsupported import check_supported, explain_unnormalised
from pymc_anneal.model.variables import (
    Array,
    FreeVariable,
    check_values,
    join_values,
    locate_variables,
    split_values,
)
from pymc_anneal.model.violation import violation_graph
from pymc_anneal.model.without_dims import without_dims

# Prior draws at which variables without a JAX form are tried.
_TRIED = 8


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """A PyMC model as functions of a vector in the unconstrained space; see `compile_model`.

    Attributes
    ----------
    model : pymc.Model
        The model, in tensors; later changes to it or its data have no effect.
    variables : tuple of FreeVariable
        Free variables, in the order of the vector.
    ndim : int
        Length ``d`` of the vector.
    log_terms : Callable
        JAX function of ``x`` with shape ``(d,)`` to :class:`LogTerms` of scalars, in nats.
    log_prior_mass, log_prior_mass_mcse : float
        Log of the prior mass on the space onto which the transforms map (0 for PyMC's default
        transforms), by which ``log_prior`` is normalised, and its standard error, in nats.
    notes : tuple of str
        Properties of the model that matter for the interpretation of a result.
    derivatives : Derivatives
        Those of ``log_terms``; of order 0 if a part of the model has no gradient.
    calls : tuple of Calls
        Records of the calls of parts without a JAX form.
    graphs : sequence of Variable
        Graphs of log prior and log likelihood.
    fallbacks : list of str
        What a run does without, where the graph could not be rewritten; it grows as a run tries.
    """

    model: pm.Model
    variables: tuple[FreeVariable, ...]
    ndim: int
    log_terms: Callable[[jax.Array], LogTerms]
    log_prior_mass: float
    log_prior_mass_mcse: float
    notes: tuple[str, ...]
    derivatives: Derivatives
    calls: tuple[Calls, ...]
    graphs: Sequence[Variable] = field(repr=False)
    _prior: PriorSampler = field(repr=False)
    _constrain: VariableMap = field(repr=False)
    _data: FrozenData = field(repr=False)
    fallbacks: list[str] = field(default_factory=list, repr=False, kw_only=True)

    def __reduce__(self) -> tuple[Any, ...]:
        return pack(self)

    @property
    def unimodal_columns(self) -> np.ndarray:
        """Coordinates whose density given the others is known to have one mode, shape ``(k,)``."""
        return np.zeros(0, dtype=int)

    @property
    def costly(self) -> bool:
        """Whether small batches are faster, and moves without gradients better."""
        return False

    @property
    def discrete(self) -> tuple[FreeVariable, ...]:
        """Discrete variables, in the order of the vector."""
        return tuple(v for v in self.variables if v.discrete)

    @property
    def taken_out(self) -> tuple[FreeVariable, ...]:
        """Variables summed or integrated out of the density, which is one of the others."""
        return ()

    @property
    def overflows(self) -> bool:
        """Whether variables may be beyond 1e308."""
        return self._prior.overflows

    @property
    def evaluations(self) -> int:
        """Evaluations of the model's density in one of ``log_terms``: more than one in a sum."""
        return 1

    def doubt_density(self, position: np.ndarray) -> str:
        """Say what is wrong with the density at draws of the posterior, shape ``(n, d)``, or ""."""
        return ""

    @cached_property
    def rejecting_nan(self) -> "CompiledModel":
        """The model whose likelihood is zero where its log likelihood is NaN."""
        return replace(self, log_terms=rejecting_nan(self.log_terms))

    @double_precision
    def sample_prior(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        """Draw from the prior, unconstrained values of shape ``(draws, d)``.

        Raises
        ------
        ValueError
            A draw is not finite in the unconstrained space.
        """
        return join_values(self._prior(seed, draws), draws)

    @double_precision
    def constrain(self, position: np.ndarray) -> dict[str, np.ndarray]:
        """Map unconstrained vectors to the model's variables and deterministics.

        Parameters
        ----------
        position : ndarray, shape (n, d)
            Unconstrained values.

        Returns
        -------
        dict of str to ndarray, shapes (n, ...)
        """
        return self._constrain(position)

    @double_precision
    def unconstrain(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Map values of the free variables to unconstrained vectors, the inverse of `constrain`.

        Parameters
        ----------
        values : dict of str to ndarray, shapes (n, ...)
            Free variables by name; other names are ignored.

        Returns
        -------
        ndarray, shape (n, d)

        Raises
        ------
        ValueError
            A free variable is missing, or has another number of dimensions than in the model.
        """
        rows = [check_values(rv, values) for rv in self.model.free_RVs]
        return join_values(self._unconstrain(*rows), len(rows[0]) if rows else 0)

    @cached_property
    def _unconstrain(self) -> RowFunction:
        return map_transforms(self.model, self._data)

    def split(self, x: Array) -> list[Array]:
        """Cut a vector, shape ``(d,)``, into values of the free variables."""
        return split_values(self.variables, x)

    @double_precision
    def pointwise_log_likelihood(self, position: np.ndarray) -> dict[str, np.ndarray]:
        """Compute the log likelihood of each observation at positions, shape ``(n, d)``."""
        model = self.model
        terms = self.freeze(model.logp(vars=model.observed_RVs, sum=False, jacobian=False))
        values = map_positions(model, self.variables, terms)(position)
        return {rv.name: v for rv, v in zip(model.observed_RVs, values, strict=True)}

    def observed_data(self) -> dict[str, np.ndarray]:
        """Return the observed data by variable."""
        return dict(self._data.observed)

    def constant_data(self) -> dict[str, np.ndarray]:
        """Return the values of ``pm.Data`` by name."""
        return dict(self._data.constant)

    def coords_and_dims(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return coordinates by dimension and dimensions by variable, as ArviZ expects them."""
        return dict(self._data.coords), dict(self._data.dims)

    def freeze(self, graphs: Sequence[Variable]) -> list[Variable]:
        """Give graphs of the model the data with which it was compiled."""
        return self._data.freeze(graphs)

    def require_normalised(self, method: str) -> None:
        """Raise unless the prior is a density over real numbers that integrates to one.

        Annealing from the prior needs the prior only up to its constant. Annealing from another
        reference needs the constant, and real numbers to define the reference on.

        Raises
        ------
        NotImplementedError
            A variable is discrete, or its prior is not normalised.
        """
        reason = self.explain_unnormalised()
        if reason:
            raise NotImplementedError(f"{method} needs {reason}")

    @property
    def has_likelihood(self) -> bool:
        """Whether there are observed variables or potentials."""
        return bool(self.model.observed_RVs or self.model.potentials)

    @cached_property
    def branches(self) -> Branches:
        """The branches of the model, with the data with which it was compiled."""
        outputs = self.freeze(self.graphs)
        return Branches(self.model.value_vars, self.variables, outputs, self.fallbacks)

    @cached_property
    def violation(self) -> Callable[[np.ndarray], np.ndarray] | None:
        """What is lacking until the likelihood is not zero, by position; None if unknown."""
        graph = violation_graph(self.model) if type(self) is CompiledModel else None
        if graph is None:
            return None
        rows = map_positions(self.model, self.variables, self.freeze([graph]))
        return lambda position: rows(position)[0]

    def explain_unnormalised(self) -> str:
        """Say what a reference other than the prior lacks and what to do; "" if nothing."""
        if not self.lacking:
            return ""
        remedy = "Use sample_ais with the prior as reference"
        if self.discrete:
            remedy += ", or sum the variable out of the model (pm.Mixture, pymc_extras.marginalize)"
        return f"{self.lacking}. {remedy}."

    @property
    def lacking(self) -> str:
        """What a reference other than the prior takes and the model has not; "" if nothing."""
        if self.discrete:
            return f"real numbers, and variable '{self.discrete[0].name}' is discrete"
        for rv in self.model.free_RVs:
            reason = explain_unnormalised(rv, self.model.rvs_to_transforms[rv])
            if reason:
                return f"normalised priors, and that of variable '{rv.name}' is not: {reason}"
        return ""

    def explain_nan(self, position: np.ndarray) -> str:
        """Say which term is NaN at a vector, shape ``(d,)``, with the values of the variables."""
        values = self.constrain(position[None])
        return describe_nan(self.model, self.split(position), values, self.freeze)


@double_precision
def compile_model(model: pm.Model | None = None) -> CompiledModel:
    """Compile a PyMC model for annealing.

    Parameters
    ----------
    model : pymc.Model or bambi.Model, optional
        Model with proper priors. Default: the model on the context stack.

    Returns
    -------
    CompiledModel

    Raises
    ------
    TypeError
        There is no model on the stack, or the argument is not a model.
    NotImplementedError
        The model has a free variable whose counts have a fixed sum, a minibatch or simulator,
        missing values whose joint density is not normal, or a variable without forward draws.
    ValueError
        A prior is improper, or has almost no mass on the space onto which its transform maps.

    Warns
    -----
    UserWarning
        Results cannot hold a variable: it has the name of a dimension, or a deterministic has a
        shape that depends on values, or depends on random numbers. The evidence is not affected.
    """
    model = unwrap_bambi(pm.modelcontext(model))
    if not isinstance(model, pm.Model):
        raise TypeError(
            f"`model` is a {type(model).__name__}, expected a pymc.Model or a model of Bambi."
        )
    fallbacks: list[str] = []
    check_supported(model := without_dims(model, fallbacks))
    model = integrate_missing(model)
    try:
        return _compile(model, fallbacks)
    except NotFiniteDrawError:
        other = non_centred(model)
        if other is None:
            raise
    compiled = _compile(other, fallbacks)
    return replace(compiled, notes=(*compiled.notes, IN_UNIT_SCALE))


def _compile(model: pm.Model, fallbacks: list[str]) -> CompiledModel:
    prior, seed = PriorSampler(model), np.random.SeedSequence(0)
    variables = locate_variables(model, prior(seed, 1))
    graphs = log_term_graphs(model)
    outputs = log_term_graphs(model, overflows=True) if prior.overflows else graphs
    density = translate_density(model, variables, outputs)
    values = map_variables(model, variables, join_values(prior(seed, _TRIED), _TRIED))
    data = FrozenData.of(model)
    warn_of_omissions(model, values.left_out, data)
    return CompiledModel(
        model=model,
        variables=variables,
        ndim=variables[-1].stop if variables else 0,
        log_terms=build_log_terms(density, variables, prior.log_mass),
        log_prior_mass=prior.log_mass,
        log_prior_mass_mcse=prior.log_mass_mcse,
        notes=(
            *list_notes(model, prior.log_mass, prior.log_mass_mcse, prior.overflows),
            *density.notes,
        ),
        derivatives=density.derivatives,
        calls=density.calls,
        graphs=graphs,
        _prior=prior,
        _constrain=values,
        _data=data,
        fallbacks=fallbacks,
    )
