"""A PyMC model compiled for annealing.

With ``x`` the free variables in the unconstrained space, concatenated to one vector,

    log_prior(x)      = sum of the free variables' log densities, with the Jacobians of their
                        transforms, normalised,
    log_likelihood(x) = sum of the observed variables' log densities and of the potentials,

kept apart. A ``pm.Potential`` is tempered with the likelihood, as in :func:`pymc.sample_smc`.

A discrete variable is not transformed. Its coordinates of ``x`` hold whole numbers exactly, and the
derivatives with respect to them are zero.
"""

import math

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.backends.arviz import coords_and_dims_for_inferencedata, find_constants, find_observations

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.model.discrete_support import finite_support
from pymc_anneal.model.graphs import (
    Variable,
    evaluate_log_terms,
    log_graph,
    map_positions,
    split_values,
    term_values,
    unconstrain_function,
    value_dtypes,
)
from pymc_anneal.model.pickling import PicklableFunction
from pymc_anneal.model.prior_draws import PriorSampler
from pymc_anneal.model.unsupported import check_supported, unnormalised


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """A PyMC model as functions of a vector in the unconstrained space.

    Made by :func:`compile_model`; compile once to run :func:`sample_ais` many times.

    Attributes
    ----------
    model : pymc.Model
        The model; later changes to it or its data are not seen.
    variables : tuple of Variable
        The free variables, in the order of the vector.
    ndim : int
        Length ``d`` of the vector.
    log_terms : Callable
        JAX function of ``x`` with shape ``(d,)`` to :class:`LogTerms` of scalars, in nats.
    log_prior_mass, log_prior_mass_mcse : float
        Log of the prior mass on the space onto which the transforms map (0 for PyMC's default
        transforms) and its standard error; ``log_prior`` is normalised by it.
    notes : tuple of str
        What a reader of the result should know about the model.
    """

    model: pm.Model
    variables: tuple[Variable, ...]
    ndim: int
    log_terms: Callable[[jax.Array], LogTerms]
    log_prior_mass: float
    log_prior_mass_mcse: float
    notes: tuple[str, ...]
    _prior: PriorSampler = field(repr=False)
    _constrain: Callable[..., list[np.ndarray]] = field(repr=False)

    @property
    def discrete(self) -> tuple[Variable, ...]:
        """The discrete ones among the variables."""
        return tuple(v for v in self.variables if v.discrete)

    def sample_prior(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        """Draw from the prior.

        Parameters
        ----------
        seed
            The same seed gives the same draws.
        draws
            Number of draws ``n``.

        Returns
        -------
        ndarray, shape (n, d)
            Unconstrained values.
        """
        values = self._prior(seed, draws)
        flat = [v.reshape(draws, math.prod(v.shape[1:])) for v in values]
        return np.concatenate([np.empty((draws, 0)), *flat], axis=1).astype(np.float64)

    def constrain(self, position: np.ndarray) -> dict[str, np.ndarray]:
        """Map unconstrained vectors to the model's variables and deterministics.

        Parameters
        ----------
        position : ndarray, shape (n, d)

        Returns
        -------
        dict of str to ndarray, shapes (n, ...)
        """
        names = [v.name for v in self.model.unobserved_RVs]
        return dict(zip(names, self._constrain(position), strict=True))

    def unconstrain(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Map values of the free variables to unconstrained vectors, the inverse of `constrain`.

        Parameters
        ----------
        values : dict of str to ndarray, shapes (n, ...)
            The free variables by name; others are ignored.

        Returns
        -------
        ndarray, shape (n, d)

        Raises
        ------
        ValueError
            A free variable is missing, or has another shape than in the model.
        """
        rows = [self._checked(rv, values) for rv in self.model.free_RVs]
        n = len(rows[0]) if rows else 0
        flat = [v.reshape(n, math.prod(v.shape[1:])) for v in self._unconstrained(*rows)]
        return np.concatenate([np.empty((n, 0)), *flat], axis=1).astype(np.float64)

    @cached_property
    def _unconstrained(self) -> Callable[..., list[np.ndarray]]:
        return unconstrain_function(self.model)

    def _checked(self, rv: pt.TensorVariable, values: Mapping[str, np.ndarray]) -> np.ndarray:
        if rv.name not in values:
            raise ValueError(
                f"Variable '{rv.name}' of the model is not among {sorted(values)}: the draws are "
                "of another model, or it was left out (`var_names`)."
            )
        value = np.asarray(values[rv.name])
        if value.ndim != rv.ndim + 1:
            raise ValueError(
                f"Variable '{rv.name}' has {value.ndim - 1} dimensions in the draws and "
                f"{rv.ndim} in the model."
            )
        return value.astype(rv.type.dtype)

    def split(self, x: Any) -> list[Any]:
        """Cut a vector, shape ``(d,)``, into the model's value variables."""
        return split_values(self.variables, value_dtypes(self.model), x)

    def pointwise_log_likelihood(self, position: np.ndarray) -> dict[str, np.ndarray]:
        """Log likelihood of each observation, shapes ``(n, ...)``, in nats."""
        model = self.model
        terms = model.logp(vars=model.observed_RVs, sum=False, jacobian=False)
        values = map_positions(model, self.variables, terms)(position)
        return {rv.name: v for rv, v in zip(model.observed_RVs, values, strict=True)}

    def observed_data(self) -> dict[str, np.ndarray]:
        """Return the observed data by variable."""
        return find_observations(self.model)

    def constant_data(self) -> dict[str, np.ndarray]:
        """Return the values of ``pm.Data``."""
        return find_constants(self.model)

    def coords_and_dims(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return coords and dims as ArviZ takes them."""
        return coords_and_dims_for_inferencedata(self.model)

    def require_normalised(self, user: str) -> None:
        """Raise unless the prior is a density that integrates to one over the real numbers.

        Annealing from the prior itself needs its shape only; a method that starts elsewhere needs
        its normaliser as well, and real numbers for the density that it starts with.

        Parameters
        ----------
        user
            What needs it, to begin the message with.

        Raises
        ------
        NotImplementedError
            By the name of the variable.
        """
        if self.discrete:
            raise NotImplementedError(
                f"{user} needs real numbers, and the variable '{self.discrete[0].name}' is "
                "discrete. sample_ais with the prior as reference is right for this model, or "
                "sum the variable out of it (pm.Mixture, pymc_extras.marginalize)."
            )
        for rv in self.model.free_RVs:
            reason = unnormalised(rv, self.model.rvs_to_transforms[rv])
            if reason:
                raise NotImplementedError(
                    f"{user} needs normalised priors, and that of variable '{rv.name}' is not: "
                    f"{reason}. sample_ais with the prior as reference is right for this model."
                )

    def explain_nan(self, position: np.ndarray) -> str:
        """Say which term of the model is NaN at a point, and the values it has there.

        Parameters
        ----------
        position : ndarray, shape (d,)
        """
        model = self.model
        terms = term_values(model, self.split(position))
        culprits = [name for name, value in terms.items() if np.isnan(value).any()]
        values = self.constrain(position[None]).items()
        where = ", ".join(f"{k} = {np.array2string(v[0], precision=6)}" for k, v in values)
        return (
            f"The log density is NaN in the term(s) {culprits or 'unknown'} at {where}. A density "
            "must be a number or -inf wherever the prior has mass: guard the expression, or "
            "restrict the prior."
        )


def as_compiled(model: "pm.Model | CompiledModel | None" = None) -> CompiledModel:
    """Return a model compiled: itself if it is, else by :func:`compile_model`."""
    return model if isinstance(model, CompiledModel) else compile_model(model)


def compile_model(model: pm.Model | None = None) -> CompiledModel:
    """Compile a PyMC model for annealing.

    Parameters
    ----------
    model
        A model whose free variables are proper, continuous or discrete. Default: the model on
        the context stack.

    Returns
    -------
    CompiledModel

    Raises
    ------
    TypeError
        There is no model on the stack, or the argument is not a model.
    NotImplementedError
        The model has a free variable whose counts have a fixed sum, a minibatch or simulator,
        or missing values of a multivariate variable.
    ValueError
        A prior is improper.
    """
    model = pm.modelcontext(model)
    if not isinstance(model, pm.Model):
        raise TypeError(
            f"`model` is a {type(model).__name__}, expected a pymc.Model "
            "(for a Bambi model pass `model=bambi_model.backend.model`)."
        )
    check_supported(model)
    prior = PriorSampler(model)
    variables = _layout(model, prior)
    ndim = variables[-1].stop if variables else 0
    graph, notes = log_graph(model, variables)
    return CompiledModel(
        model=model,
        variables=variables,
        ndim=ndim,
        log_terms=PicklableFunction(
            partial(evaluate_log_terms, graph, variables, value_dtypes(model), prior.log_mass)
        ),
        log_prior_mass=prior.log_mass,
        log_prior_mass_mcse=prior.log_mass_mcse,
        notes=(*_notes(model, prior), *notes),
        _prior=prior,
        _constrain=map_positions(
            model, variables, model.replace_rvs_by_values(model.unobserved_RVs)
        ),
    )


def _notes(model: pm.Model, prior: PriorSampler) -> list[str]:
    notes = []
    if model.potentials:
        names = ", ".join(f"'{p.name}'" for p in model.potentials)
        notes.append(
            f"Potential {names} is tempered with the likelihood; the evidence is the integral of "
            "prior x likelihood x potential."
        )
    if prior.log_mass != 0:
        notes.append(
            "A transform maps onto a part of the prior's support. The prior is normalised on "
            f"that part, whose log mass is {prior.log_mass:.6g}."
        )
    return notes


def _layout(model: pm.Model, prior: PriorSampler) -> tuple[Variable, ...]:
    variables, start = [], 0
    draws = prior(np.random.SeedSequence(0), 1)
    for rv, value in zip(model.free_RVs, draws, strict=True):
        shape = value.shape[1:]
        stop = start + math.prod(shape)
        discrete = np.dtype(rv.type.dtype).kind in "iub"
        support = finite_support(rv, shape) if discrete else None
        variables.append(Variable(rv.name, shape, start, stop, discrete, support))
        start = stop
    return tuple(variables)
