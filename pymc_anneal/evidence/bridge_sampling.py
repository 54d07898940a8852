"""The evidence of a model that has been fitted already, by bridge sampling.

With ``q`` the unnormalised posterior and ``g`` a normalised proposal fitted to one half of the
draws, Bennett's acceptance ratio between draws of ``g`` and the other half estimates ``Z``
(Meng & Wong 1996; Gronau et al. 2017), everything in the unconstrained space:

- **normal**: ``g = N(m, S)``, mean and covariance of the first half, ``S = L L'``;
- **warp-III** (Meng & Schilling 2002): ``x = m + L z``, ``g = N(0, I)``, against
  ``(q(m + L z) + q(m - L z)) |L| / 2``, which has no skewness and the same ``Z``.

The error counts the autocorrelation of the draws (Micaletto & Vehtari 2025). Draws that come
several times, as resampled particles do, are put next to each other: repetition then counts as
autocorrelation, and none is in both halves.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
import pymc as pm

from scipy.linalg import solve_triangular
from scipy.stats import norm

from pymc_anneal.base.arguments import check_target
from pymc_anneal.base.arviz_compat import draws_ess, draws_rhat
from pymc_anneal.base.seeds import seed_sequence
from pymc_anneal.evidence.bennett import BridgeEstimate, bar
from pymc_anneal.evidence.diagnostics import MAX_PARETO_K, Verdict, weight_pareto_k
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.model.compile import CompiledModel, as_compiled
from pymc_anneal.model.posterior_draws import posterior_draws

_MAX_RHAT = 1.05


_MIN_ESS = 100.0


_BATCH = 2000


_LARGE = 0.2


LogDensity = Callable[[np.ndarray], np.ndarray]


def bridge_evidence(
    idata: Any,
    *,
    model: pm.Model | CompiledModel | None = None,
    method: str = "normal",
    target_mcse: float = 0.1,
    random_seed: Any = None,
) -> LogEvidence:
    """Estimate the log evidence from posterior draws, without annealing.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`pymc.sample` (or of :func:`sample_ais`) with a group ``posterior`` that
        holds all free variables.
    model
        The model that was sampled, or the result of :func:`compile_model`. Default: the model on
        the context stack.
    method
        Proposal: "normal", or "warp3" for skewed posteriors, at twice the cost.
    target_mcse
        Wanted Monte Carlo standard error, in nats; the verdict says if it is missed.
    random_seed
        Seed of the proposal's draws.

    Returns
    -------
    LogEvidence
        Its ``ess`` is the effective number of posterior draws that the bridge rests on, its
        ``barrier`` NaN.

    Raises
    ------
    ValueError
        The draws are too few, not of this model, or have a density that is zero or NaN.
    NotImplementedError
        The model has discrete variables, or a prior whose density is not normalised.

    References
    ----------
    Meng & Wong (1996), Simulating ratios of normalizing constants via a simple identity. Gronau et
    al. (2017), A tutorial on bridge sampling. Micaletto & Vehtari (2025), Bridge sampling
    diagnostics.

    Examples
    --------
    >>> idata = pymc.sample(model=model)
    >>> pymc_anneal.bridge_evidence(idata, model=model)
    """
    if method not in ("normal", "warp3"):
        raise ValueError(f'Unknown `method` {method!r}; expected "normal" or "warp3".')
    check_target(target_mcse)
    compiled = as_compiled(model)
    compiled.require_normalised("Bridge sampling")
    draws = np.stack([_grouped(chain) for chain in posterior_draws(idata, compiled)])
    chains, half, ndim = draws.shape[0], draws.shape[1] // 2, draws.shape[2]
    if chains * half < 2 * ndim + 10:
        raise ValueError(
            f"The posterior has {chains} chains of {draws.shape[1]} draws for {ndim} unconstrained "
            f"dimensions; half of the draws fit the proposal, which takes at least {2 * ndim + 10}."
        )
    centre, root = _fit(draws[:, :half].reshape(-1, ndim))
    target = _checked(compiled, _log_posterior(compiled))
    log_target = _warped(target, centre, root, symmetric=method == "warp3")
    rng = np.random.default_rng(seed_sequence(random_seed))
    z = solve_triangular(root, (draws[:, half:] - centre).reshape(-1, ndim).T, lower=True).T
    proposed = rng.standard_normal(z.shape)
    log_reverse = _log_ratio(log_target, z).reshape(chains, -1)
    log_forward = _log_ratio(log_target, proposed)
    zero = int(np.isneginf(log_reverse).sum())
    if zero:
        raise ValueError(
            f"{zero} posterior draws have a posterior density of zero under `model`: they are of "
            "another model or of other data."
        )
    estimate = bar(log_forward, log_reverse, draws_ess(log_reverse))
    return _summary(estimate, log_forward, target_mcse, draws_rhat(log_reverse), compiled)


def _grouped(x: np.ndarray) -> np.ndarray:
    """Move repetitions of a draw, shape ``(n, d)``, behind its first appearance."""
    _, first, index = np.unique(x, axis=0, return_index=True, return_inverse=True)
    return x[np.argsort(first[np.ravel(index)], kind="stable")]


def _fit(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and Cholesky factor of the covariance of draws of shape ``(n, d)``."""
    covariance = np.atleast_2d(np.cov(x.T))
    try:
        return x.mean(axis=0), np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        constant = np.flatnonzero(np.ptp(x, axis=0) == 0)
        raise ValueError(
            f"The covariance of the posterior draws is singular (constant coordinates: "
            f"{constant.tolist()}): take more draws, or check that the chains moved."
        ) from None


def _log_posterior(compiled: CompiledModel) -> LogDensity:
    """Return prior times likelihood of positions of shape ``(n, d)``, in logs."""

    def log_posterior(x: np.ndarray) -> np.ndarray:
        parts = [x[i : i + _BATCH] for i in range(0, len(x), _BATCH)]
        with jax.enable_x64(True):
            return np.concatenate([np.asarray(_batch(compiled.log_terms, x)) for x in parts])

    return log_posterior


# The function is part of the key: another call for the same compiled model compiles nothing.
@partial(jax.jit, static_argnums=0)
def _batch(log_terms: Callable, x: np.ndarray) -> jax.Array:
    return jax.vmap(log_terms)(x).log_posterior


def _checked(compiled: CompiledModel, log_density: LogDensity) -> LogDensity:
    """Raise at the first density that is NaN or infinite, naming the term of the model."""

    def checked(x: np.ndarray) -> np.ndarray:
        values = log_density(x)
        if np.isnan(values).any():
            raise ValueError(compiled.explain_nan(x[np.isnan(values).argmax()]))
        if np.isposinf(values).any():
            raise ValueError("The posterior density is infinite at a draw: it is not a density.")
        return values

    return checked


def _warped(
    log_density: LogDensity, centre: np.ndarray, root: np.ndarray, symmetric: bool
) -> LogDensity:
    """Return the density of ``z``, ``x = m + L z``; symmetric: with either sign of ``z``."""
    log_volume = np.log(np.diag(root)).sum()

    def warped(z: np.ndarray) -> np.ndarray:
        step = z @ root.T
        value = log_density(centre + step)
        if symmetric:
            value = np.logaddexp(value, log_density(centre - step)) - np.log(2)
        return value + log_volume

    return warped


def _log_ratio(log_target: LogDensity, z: np.ndarray) -> np.ndarray:
    return log_target(z) - norm.logpdf(z).sum(axis=1)


def _summary(
    estimate: BridgeEstimate,
    log_forward: np.ndarray,
    target_mcse: float,
    rhat: float,
    compiled: CompiledModel,
) -> LogEvidence:
    ess = draws_ess(estimate.reverse_terms)
    mcse = estimate.mcse(ess)
    k = max(_tail(estimate.forward_terms), _tail(estimate.reverse_terms))
    outside = int(np.isneginf(log_forward).sum())
    notes = [*compiled.notes]
    if outside:
        notes.append(
            f"{outside} of {log_forward.size} proposed points have a posterior density of zero."
        )
    return LogEvidence(
        log_evidence=estimate.log_evidence,
        mcse=mcse,
        interval=estimate.interval(ess),
        ess=ess,
        pareto_k=k,
        barrier=float("nan"),
        verdict=str(_judge(mcse, target_mcse, ess, k, rhat)),
        notes=" ".join(notes),
    )


def _tail(terms: np.ndarray) -> float:
    """Pareto k of one side's terms; -inf where they are many compared to their bound."""
    # Terms are bounded: with a mean well up their range a heavy tail has nowhere to go.
    if terms.mean() > _LARGE * terms.max():
        return -np.inf
    return weight_pareto_k(np.log(terms[terms > 0]))


def _judge(mcse: float, target_mcse: float, ess: float, k: float, rhat: float) -> Verdict:
    doubts = []
    if k > MAX_PARETO_K:
        doubts.append(
            f"Pareto k of the bridge's terms is {k:.2f} (above {MAX_PARETO_K}): proposal and "
            'posterior hardly overlap; try method="warp3", or sample_ais'
        )
    if not rhat < _MAX_RHAT:
        doubts.append(f"R-hat of the log density is {rhat:.3f}: the chains have not converged")
    if doubts:
        return Verdict("do not trust", tuple(doubts))
    wants = []
    if mcse > target_mcse:
        factor = (mcse / target_mcse) ** 2
        wants.append(
            f"the error {mcse:.3g} misses the target {target_mcse:.3g}; take {factor:.1f} times "
            "the draws"
        )
    if ess < _MIN_ESS:
        wants.append(f"the bridge rests on {ess:.0f} effective draws (below {_MIN_ESS:.0f})")
    return Verdict("more draws needed", tuple(wants)) if wants else Verdict("trust", ())
