"""The log evidence from posterior draws, by bridge sampling.

With ``q`` the unnormalised posterior and ``g`` a normalised proposal fitted to one half of the
draws, Bennett's acceptance ratio between draws of ``g`` and the other half estimates ``Z``
(Meng & Wong 1996; Gronau et al. 2017), everything in the unconstrained space:

- **normal**: ``g = N(m, S)``, mean and covariance of the first half, ``S = L L'``;
- **warp-III** (Meng & Schilling 2002): ``x = m + L z``, ``g = N(0, I)``, against
  ``(q(m + L z) + q(m - L z)) |L| / 2``, which has no skewness and the same ``Z``;
- **mixture**: a normal and a Student-t density for each mode among the draws and for each that a
  search finds elsewhere, and a share of the prior (`adaptation/fit_mixture.py`).

The error accounts for the autocorrelation of the draws (Micaletto & Vehtari 2025). Copies of a
draw, as resampling makes them, are moved next to each other: they then count as autocorrelation,
and no draw is in both halves.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pymc as pm

from pymc_anneal.adaptation.fit_mixture import fit_to_particles
from pymc_anneal.adaptation.fitted_reference import FittedReference
from pymc_anneal.base.arguments import check_target
from pymc_anneal.base.arviz_compat import Container, draws_ess, draws_rhat
from pymc_anneal.base.contracts import NanDensityError
from pymc_anneal.base.data_hash import hash_data
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import seed_sequence
from pymc_anneal.evidence.ais import widened
from pymc_anneal.evidence.bennett import BridgeEstimate, bar
from pymc_anneal.evidence.bridge_proposals import from_mixture, from_normal
from pymc_anneal.evidence.diagnostics import MAX_PARETO_K, MIN_ESS, weight_pareto_k
from pymc_anneal.evidence.draws_audit import doubt_divergences, doubt_modes
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.given_density import checked_draws, given_density, stand_in
from pymc_anneal.evidence.mean_ratio import MAX_RHAT
from pymc_anneal.evidence.posterior_density import grouped_draws, log_posterior
from pymc_anneal.evidence.verdict import Verdict, verdict_from, warn_unless_trusted
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.recent import as_compiled

Method: TypeAlias = Literal["auto", "normal", "warp3", "mixture"]

# Draws to which a mixture is fitted, and share of a mode on which the chains have to agree.
_FITTED = 512
# Draws of a chain: ArviZ needs four in each half of a half for an effective sample size.
_LEAST_LENGTH = 16

# Mean of the bridge terms, as a fraction of their maximum, above which their tail is not fitted.
_LARGE_MEAN = 0.2


@double_precision
def bridge_evidence(
    idata: Container | np.ndarray,
    *,
    model: pm.Model | CompiledModel | None = None,
    log_density: Callable[[Any], Any] | None = None,
    method: Method = "auto",
    target_mcse: float = 0.1,
    random_seed: Any = None,
    warnings: bool = True,
) -> LogEvidence:
    """Estimate the log evidence from posterior draws, without annealing.

    Parameters
    ----------
    idata : InferenceData, DataTree or ndarray
        Result of :func:`pymc.sample` (or of :func:`sample_ais`) with a group ``posterior`` that
        holds all free variables. With `log_density`, an array of shape ``(chains, draws, d)``.
    model : pymc.Model or CompiledModel, optional
        The model that was sampled, or the result of :func:`compile_model`. Default: the model on
        the context stack.
    log_density : callable, optional
        In place of a model: from a position, shape ``(d,)``, to the log of prior times likelihood
        in nats, with all constants, as a number; in JAX or in NumPy. The positions should range
        over all real numbers, as those of Stan's unconstrained parameters do; draws at an edge of
        the support make the bridge less efficient.
    method : {"auto", "normal", "warp3", "mixture"}
        Proposal: "normal"; "warp3" for skewed posteriors, at twice the cost; "mixture" for several
        modes. "auto": the mixture if there is more than one mode, otherwise the normal one.
    target_mcse : float
        Wanted Monte Carlo standard error, in nats; the verdict says if it is missed.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        Seed of the proposal draws.
    warnings : bool
        Whether to warn if the verdict is not "trust".

    Returns
    -------
    LogEvidence
        In nats. Its ``ess`` is the effective number of posterior draws in the bridge, its
        ``pareto_k`` that of the bridge terms, its ``barrier`` NaN.

    Raises
    ------
    ValueError
        There are too few draws, they are not of this model, or their density is zero or NaN; or
        an argument is not valid.
    NotImplementedError
        The model has discrete variables, or a prior whose density is not normalised.

    See Also
    --------
    sample_ais : The evidence without draws.
    from_sample_smc : Results of :func:`pymc.sample_smc`.

    References
    ----------
    Meng & Wong (1996), Simulating ratios of normalizing constants via a simple identity. Meng &
    Schilling (2002), Warp bridge sampling. Gronau et al. (2017), A tutorial on bridge sampling.
    Micaletto & Vehtari (2025), Bridge sampling diagnostics.

    Examples
    --------
    >>> idata = pymc.sample(model=model)
    >>> pymc_anneal.bridge_evidence(idata, model=model)
    >>> pymc_anneal.bridge_evidence(
    ...     sampler.get_chain().swapaxes(0, 1), log_density=log_prob  # of emcee
    ... )
    """
    if method not in get_args(Method):
        raise ValueError(f"Unknown `method` {method!r}; expected one of {list(get_args(Method))}.")
    check_target(target_mcse)
    if log_density is None:
        compiled = as_compiled(model)
        compiled.require_normalised("Bridge sampling")
        draws, density = grouped_draws(idata, compiled), log_posterior(compiled)
        _check_size(draws.shape)
    else:
        if model is not None:
            raise TypeError("Pass `model` or `log_density`, not both: each is the density.")
        draws = checked_draws(idata)
        _check_size(draws.shape)
        density = given_density(log_density, draws.shape[2])
        _check_density(density(draws[:, 0]))
        compiled = stand_in(log_density, draws)
    seed = seed_sequence(random_seed)
    seed_fit, seed_mixture = seed.spawn(2)
    first, second = np.array_split(draws, [draws.shape[1] // 2], axis=1)
    with _explaining_nan(compiled):
        fitted = _fit(compiled, first.reshape(-1, compiled.ndim), seed_fit)
        if method == "mixture" or (method == "auto" and fitted.modes > 1):
            log_forward, log_reverse = from_mixture(compiled, fitted, second, seed_mixture)
        else:
            rng, symmetric = np.random.default_rng(seed), method == "warp3"
            log_forward, log_reverse = from_normal(density, first, second, rng, symmetric)
    _check_density(log_reverse)
    estimate = bar(log_forward, log_reverse, draws_ess(log_reverse))
    doubts = doubt_modes(compiled, fitted, draws, "the chains missed it")
    doubts += doubt_divergences(idata)
    if not (rhat := draws_rhat(log_reverse)) < MAX_RHAT:
        doubts.append(f"R-hat of the log density is {rhat:.3f}: the chains have not converged")
    error = compiled.log_prior_mass_mcse
    found = _log_evidence(estimate, log_forward, target_mcse, doubts, compiled.notes, error)
    found = replace(found, data_hash=hash_data(compiled.observed_data()))
    if warnings:
        warn_unless_trusted(found.verdict, found.headline)
    return found


def _fit(
    compiled: CompiledModel, draws: np.ndarray, seed: np.random.SeedSequence
) -> FittedReference:
    """Fit a mixture to draws, shape ``(n, d)``, and to modes that they have missed."""
    spaced = np.linspace(0, len(draws) - 1, min(len(draws), _FITTED)).astype(int)
    return fit_to_particles(compiled, draws[spaced], seed)


@contextmanager
def _explaining_nan(compiled: CompiledModel) -> Iterator[None]:
    """Turn a log density that is NaN into an error that names the term of the model."""
    try:
        yield
    except NanDensityError as error:
        raise ValueError(compiled.explain_nan(error.position)) from error


def _check_size(shape: tuple[int, ...]) -> None:
    """Raise if half of the draws, of shape ``(chains, draws, d)``, cannot fit the proposal."""
    chains, draws, ndim = shape
    if chains * (draws // 2) < 2 * ndim + 10:
        raise ValueError(
            f"The posterior has {chains} chains of {draws} draws for {ndim} unconstrained "
            f"dimensions; half of the draws fit the proposal, which takes at least {2 * ndim + 10}."
        )
    if draws < _LEAST_LENGTH:
        raise ValueError(
            f"The posterior has chains of {draws} draws, expected {_LEAST_LENGTH} or more: the "
            "error takes the correlation of successive draws. Independent draws make one chain."
        )


def _check_density(log_reverse: np.ndarray) -> None:
    """Raise if posterior draws have a posterior density of zero."""
    zero = int(np.isneginf(log_reverse).sum())
    if zero:
        raise ValueError(
            f"{zero} posterior draws have a posterior density of zero under `model`: they are of "
            "another model or of other data."
        )


def _log_evidence(
    estimate: BridgeEstimate,
    log_forward: np.ndarray,
    target_mcse: float,
    doubts: list[str],
    notes: tuple[str, ...],
    error_of_prior: float,
) -> LogEvidence:
    ess = draws_ess(estimate.reverse_terms)
    mcse = float(np.hypot(estimate.mcse(ess), error_of_prior))
    k = max(_tail(estimate.forward_terms), _tail(estimate.reverse_terms))
    outside = int(np.isneginf(log_forward).sum())
    if outside:
        found = f"{outside} of {log_forward.size} proposed points have a posterior density of zero."
        notes = (*notes, found)
    return LogEvidence(
        log_evidence=estimate.log_evidence,
        mcse=mcse,
        interval=widened(estimate.interval(ess), estimate.log_evidence, error_of_prior),
        ess=ess,
        pareto_k=k,
        barrier=float("nan"),
        verdict=_assess(mcse, target_mcse, ess, k, doubts),
        notes=" ".join(notes),
    )


def _tail(terms: np.ndarray) -> float:
    """Return the Pareto k of one side's bridge terms; -inf if no heavy tail is possible.

    The terms are bounded above. If their mean is over a fifth of the maximum, the tail cannot be
    heavy, and the fit is skipped.
    """
    if terms.mean() > _LARGE_MEAN * terms.max():
        return -np.inf
    return weight_pareto_k(np.log(terms[terms > 0]))


def _assess(mcse: float, target_mcse: float, ess: float, k: float, doubts: list[str]) -> Verdict:
    doubts, shortfalls = [*doubts], []
    if k > MAX_PARETO_K:
        doubts.append(
            f"Pareto k of the bridge terms is {k:.2f} (above {MAX_PARETO_K}): proposal and "
            'posterior hardly overlap; try method="warp3", or sample_ais'
        )
    if mcse > target_mcse:
        factor = (mcse / target_mcse) ** 2
        shortfalls.append(
            f"the error {mcse:.3g} misses the target {target_mcse:.3g}; take {factor:.1f} times "
            "the draws"
        )
    if ess < MIN_ESS:
        shortfalls.append(f"the bridge rests on {ess:.0f} effective draws (below {MIN_ESS:.0f})")
    return verdict_from(doubts, shortfalls, "more draws needed")
