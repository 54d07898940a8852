"""`constraint_bayes_factor`: orders and intervals of parameters, by encompassing priors.

The model restricted to a region ``C`` has the prior ``p(x) 1_C(x) / P(C)``. Against the model
without the restriction, which encompasses it,

    BF = P(C | y) / P(C)

(Klugkist, Laudy & Hoijtink 2005, eq. 9): one run of the encompassing model serves all constraints.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm

from scipy.stats import norm

from pymc_anneal.base.arguments import check_target
from pymc_anneal.base.arviz_compat import Container
from pymc_anneal.base.contracts import Transition
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed, seed_sequence, spawned
from pymc_anneal.between.constraint_mass import Mass, Slack, count_mass, estimate_mass
from pymc_anneal.between.constraints import Between, Increasing, compile_slack
from pymc_anneal.evidence.combined_verdict import combined_verdict
from pymc_anneal.evidence.draws_audit import judge_draws
from pymc_anneal.evidence.posterior_density import grouped_draws
from pymc_anneal.evidence.verdict import Verdict, warn_unless_trusted
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.pipeline.choose_transition import TransitionName, choose_transition
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.session import open_session
from pymc_anneal.pipeline.settings import Settings
from pymc_anneal.results.bayes_factor import LogBayesFactor

# Particles of a run, at least, and prior draws, of which a share of 4 % or more is counted.
_PARTICLES, _PRIOR_DRAWS, _PRIOR_CHAINS = 800, 10_000, 4


@double_precision
def constraint_bayes_factor(
    idata: Container,
    constraint: Callable[[Any], Any] | Sequence[Callable[[Any], Any]],
    *,
    model: pm.Model | CompiledModel | None = None,
    log_prior_mass: float | None = None,
    target_mcse: float = 0.1,
    transition: TransitionName | Transition = "auto",
    cores: int | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    warnings: bool = True,
) -> LogBayesFactor:
    """Compute the log Bayes factor of a constrained model against the model without the constraint.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais` or :func:`pymc.sample` for the model without the constraint.
    constraint : Increasing, Between, function, or sequence of them
        The region. A function takes a dict of the model's variables and deterministics (JAX arrays,
        by name) and returns slacks, which are positive inside; of several constraints all hold.
    model : pymc.Model or CompiledModel, optional
        The model of the draws. Default: the model on the context stack.
    log_prior_mass : float, optional
        Log of the prior mass of the region, if it is known. Default: exact for a single
        :class:`Increasing` of exchangeable entries or :class:`Between` of a variable without random
        parents; otherwise estimated from prior draws.
    target_mcse : float
        Wanted Monte Carlo standard error of each of the two masses, in nats.
    transition : {"auto", "hmc", "random_walk"} or Transition
        Moves particles into a region that few draws are in.
    cores : int, optional
        Worker threads. Default: the available processors.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress.
    warnings : bool
        Whether to warn if the verdict is not "trust".

    Returns
    -------
    LogBayesFactor
        ``log P(C | y) - log P(C)`` in nats, positive if the data favour the constraint. Its
        largest value is ``-log P(C)``.

    Raises
    ------
    ValueError
        The constraint uses an unknown variable; the given prior mass is positive or not a number;
        or the draws are not of this model.
    TypeError
        The constraint returns booleans instead of slacks.
    NotImplementedError
        The model has discrete variables.

    Warns
    -----
    EvidenceWarning
        The verdict is not "trust".

    See Also
    --------
    savage_dickey : Point nulls.

    References
    ----------
    Klugkist, Laudy & Hoijtink (2005), Inequality constrained analysis of variance: a Bayesian
    approach, eq. 9.

    Examples
    --------
    >>> pymc_anneal.constraint_bayes_factor(idata, pymc_anneal.Increasing("mean"), model=model)
    >>> pymc_anneal.constraint_bayes_factor(idata, lambda v: v["new"] - v["old"], model=model)
    """
    check_target(target_mcse)
    compiled = as_compiled(model)
    _check_continuous(compiled)
    parts = list(constraint) if isinstance(constraint, Sequence) else [constraint]
    slack = _compile(compiled, parts)
    exact = _exact_mass(compiled, parts, log_prior_mass)
    seed_prior, seed_start, seed_posterior = seed_sequence(random_seed).spawn(3)
    kernel = choose_transition(transition, compiled)

    def mass(draws: np.ndarray, log_density: Any, seed: np.random.SeedSequence) -> Mass:
        settings = Settings(
            draws=-(-_PARTICLES // len(draws)),
            chains=len(draws),
            target_mcse=target_mcse,
            cores=cores,
        )
        target = ModelTarget(compiled)
        with open_session(target, settings, random_seed=seed, progressbar=progressbar) as session:
            found = estimate_mass(session, log_density, slack, draws, kernel)
            return found._replace(evaluations=found.evaluations + session.meter.evaluations)

    given = grouped_draws(idata, compiled)
    of_draws = judge_draws(idata, compiled, given, spawned(seed_posterior, 0))
    if of_draws:  # no run is worth starting from them
        posterior = count_mass(slack, given)
    else:
        posterior = mass(given, _log_density(_log_posterior, compiled), seed_posterior)
    if exact is None:
        draws = compiled.sample_prior(seed_start, _PRIOR_DRAWS)
        prior = mass(
            draws.reshape(_PRIOR_CHAINS, -1, compiled.ndim),
            _log_density(_log_prior, compiled),
            seed_prior,
        )
    else:
        prior = Mass(exact, 0.0, Verdict("trust"))
    found = _factor(posterior, prior, of_draws)
    if warnings:
        warn_unless_trusted(found.verdict, "log Bayes factor of the constraint")
    return found


def _compile(compiled: CompiledModel, parts: Sequence[Callable[[Any], Any]]) -> Slack:
    """Compile the slacks, once for the same constraints of this package.

    A function of the user may depend on values that change between two calls.
    """
    own = tuple(part for part in parts if isinstance(part, Increasing | Between))
    if len(own) == len(parts):
        return _compile_once(compiled, own)
    return compile_slack(compiled, partial(_join, parts))


# JAX caches its programs by function: the same constraint must give the same function.
@lru_cache(maxsize=8)
def _compile_once(compiled: CompiledModel, parts: tuple[Increasing | Between, ...]) -> Slack:
    return compile_slack(compiled, partial(_join, parts))


@lru_cache(maxsize=8)
def _log_density(
    of_model: Callable[[CompiledModel, jax.Array], jax.Array], compiled: CompiledModel
) -> Callable[[jax.Array], jax.Array]:
    return partial(of_model, compiled)


def _join(parts: Sequence[Callable[[Any], Any]], values: Any) -> jax.Array:
    return jnp.concatenate([jnp.ravel(jnp.asarray(part(values))) for part in parts])


def _log_posterior(compiled: CompiledModel, x: jax.Array) -> jax.Array:
    log_density: jax.Array = compiled.log_terms(x).log_posterior
    return log_density


def _log_prior(compiled: CompiledModel, x: jax.Array) -> jax.Array:
    log_density: jax.Array = compiled.log_terms(x).log_prior
    return log_density


def _check_continuous(compiled: CompiledModel) -> None:
    if compiled.discrete:
        raise NotImplementedError(
            f"Variable '{compiled.discrete[0].name}' is discrete: the region is approached through "
            "positions outside of it, which takes real numbers. Sum the variable out of the model."
        )


def _exact_mass(
    compiled: CompiledModel, parts: Sequence[Callable[[Any], Any]], given: float | None
) -> float | None:
    """Return the log prior mass if it is given or known."""
    if given is not None:
        if not given <= 0 or np.isinf(given):
            raise ValueError(
                f"`log_prior_mass` is {given}, expected the log of a probability, at most 0."
            )
        return float(given)
    known = getattr(parts[0], "log_prior_mass", None) if len(parts) == 1 else None
    return None if known is None else known(compiled)


def _factor(posterior: Mass, prior: Mass, of_draws: Mapping[str, Verdict]) -> LogBayesFactor:
    value = posterior.log_mass - prior.log_mass
    mcse = float(np.hypot(posterior.mcse, prior.mcse))
    half = float(norm.ppf(0.975)) * mcse
    return LogBayesFactor(
        log_bayes_factor=value,
        mcse=mcse,
        interval=(value - half, value + half) if np.isfinite(mcse) else (-np.inf, np.inf),
        verdict=combined_verdict(
            {**of_draws, "posterior mass": posterior.verdict, "prior mass": prior.verdict}
        ),
        evaluations=posterior.evaluations + prior.evaluations,
        models=("the constraint", "the model without it"),
    )
