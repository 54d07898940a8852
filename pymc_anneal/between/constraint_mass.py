"""The mass of a region under a density, from draws of it.

With slacks ``g_j > 0`` inside of the region ``C``, in units of their spread, and the violation
``v(x) = sum_j max(0, -g_j(x))``, the particles go from ``pi`` to ``pi e^{-T v}``, and those outside
at the end get weight zero,

    E[w 1_C(x_K)] = P(C),

which holds for any ``T``, schedule and mixing: ``e^{-T v}`` is one in ``C``. A share that is not
small is counted among the draws. Other draws than those that are counted decide which it is, and
give the spread of the slacks.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jax.tree_util import Partial

from pymc_anneal.base.arviz_compat import draws_ess
from pymc_anneal.base.contracts import LogTerms, Transition
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.between.from_draws import GivenDraws, anneal_draws, split_draws
from pymc_anneal.evidence.mean_ratio import mean_ratio
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.pipeline.session import Session

# Effective number of draws on either side from which the share of the draws is taken.
_COUNTED = 400.0
# Penalty of a violation of one standard deviation. In a region six standard deviations away the
# density falls by a factor e in a sixth of one, and a tenth of the particles end outside.
_PENALTY = 60.0
# Half a draw: the error of a share of which there is none or all (Jeffreys' prior).
_HALF = 0.5
_BATCH = 512

Slack = Callable[[jax.Array], jax.Array]


class Mass(NamedTuple):
    """The log mass of a region, in nats, its error and verdict, and the evaluations it took."""

    log_mass: float
    mcse: float
    verdict: Verdict
    evaluations: int = 0


def estimate_mass(
    session: Session,
    log_density: Callable[[jax.Array], jax.Array],
    slack: Slack,
    draws: np.ndarray,
    transition: Transition,
) -> Mass:
    """Estimate the log mass of a region under a density.

    Parameters
    ----------
    session
        Settings, seeds. Its number of chains is that of the draws.
    log_density
        JAX function of ``x`` with shape ``(d,)``, in nats, up to a constant.
    slack
        JAX function of ``x`` to slacks, positive inside.
    draws : ndarray, shape (chains, n, d)
        Draws of the density.
    transition
        Moves the particles; its parameters that are None are tuned by a pilot.
    """
    fitted, counted = split_draws(draws)
    slacks = _slacks(slack, fitted)
    inside = _inside(slacks)
    if _ess(inside) * inside.mean() * counted.size / fitted.size >= _COUNTED:
        return count_mass(slack, counted)
    scale = slacks.std(axis=(0, 1))
    terms = Partial(_bind_terms(log_density, slack), np.where(scale > 0, scale, 1.0))  # type: ignore[no-untyped-call]
    fit, start = (GivenDraws(part, lambda seed, rows: rows) for part in (fitted, counted))
    run = anneal_draws(session, GeometricPath(terms), fit, start, transition)
    inside = _inside(_slacks(slack, run.position))
    if not inside.any():
        return Mass(-np.inf, np.inf, Verdict("do not trust", (_unreached(slack, run.position),)))
    ratio = mean_ratio(np.where(inside, run.log_weight, -np.inf))
    return Mass(ratio.log_mean, ratio.mcse, ratio.verdict("take more steps or draws"))


_CONTRADICTION = (
    "many of the first draws of the chains are inside of the region, and none of the others, which "
    "are counted: the chains have not converged; draw longer ones, or run sample_ais"
)


def _unreached(slack: Slack, position: np.ndarray) -> str:
    """Say how far the particles are from a region that none has reached."""
    slacks = _slacks(slack, position)
    positive = ", ".join(f"{share:.2g}" for share in (slacks > 0).mean(axis=(0, 1)))
    return (
        f"no particle reached the region: of {slacks[..., 0].size}, expected where all slacks are "
        f"positive, these shares have a positive one, by slack: {positive}. The region may be "
        "empty, or a sign be turned: evaluate the constraint at values that should fulfil it"
    )


def _slacks(slack: Slack, draws: np.ndarray) -> np.ndarray:
    """Return the slacks at draws of shape ``(chains, n, d)``, shape ``(chains, n, k)``."""
    chains, n, d = draws.shape
    return _evaluate(slack, draws.reshape(-1, d)).reshape(chains, n, -1)


def _inside(slacks: np.ndarray) -> np.ndarray:
    """Return 1.0 where all slacks are positive and 0.0 elsewhere, shape ``(chains, n)``."""
    return np.asarray((slacks > 0).all(axis=2), dtype=float)


def _ess(inside: np.ndarray) -> float:
    return draws_ess(inside) if np.ptp(inside) else float(inside.size)


def count_mass(slack: Slack, draws: np.ndarray) -> Mass:
    """Return the share of draws, shape ``(chains, n, d)``, that lie in a region."""
    return _counted(_inside(_slacks(slack, draws)))


def _counted(inside: np.ndarray) -> Mass:
    """Return the share of the draws inside, with at least half a draw outside."""
    share = float(inside.mean())
    if share == 0:
        return Mass(-np.inf, np.inf, Verdict("do not trust", (_CONTRADICTION,)), inside.size)
    ess = _ess(inside)
    outside = max(1 - share, _HALF / ess)
    mcse = float(np.sqrt(np.log1p(outside / (share * ess))))
    return Mass(float(np.log(share)), mcse, Verdict("trust"), inside.size)


# JAX caches its programs by function: the same density and region must give the same function.
@lru_cache(maxsize=8)
def _bind_terms(
    log_density: Callable[[jax.Array], jax.Array], slack: Slack
) -> Callable[[jax.Array, jax.Array], LogTerms]:
    return partial(_terms, log_density, slack)


def _terms(
    log_density: Callable[[jax.Array], jax.Array], slack: Slack, scale: jax.Array, x: jax.Array
) -> LogTerms:
    violation = jnp.maximum(-slack(x) / scale, 0.0).sum()
    return LogTerms(log_density(x), -_PENALTY * violation)


@lru_cache(maxsize=8)
def _map(slack: Slack) -> Slack:
    mapped: Slack = jax.jit(jax.vmap(slack))
    return mapped


@double_precision
def _evaluate(slack: Slack, x: np.ndarray) -> np.ndarray:
    """Return the slacks at positions of shape ``(n, d)``, shape ``(n, k)``."""
    mapped = _map(slack)
    rows = [np.arange(i, i + _BATCH).clip(max=len(x) - 1) for i in range(0, len(x), _BATCH)]
    return np.concatenate([np.asarray(mapped(x[r])) for r in rows])[: len(x)]
