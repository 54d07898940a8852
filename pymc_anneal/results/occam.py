"""The price of information by block of parameters: volumes of prior and posterior.

A block ``b`` is a free variable, in unconstrained coordinates ``x_b``. With its conditional prior
``p(x_b | parents)`` and the covariance ``S_b`` of its posterior,

    log V_prior = -E[log p(x_b | parents) | y],
    log V_post  = log det(2 pi e S_b) / 2,
    log Occam   = log V_post - log V_prior

(MacKay 1992, eq. 2.6, with means in place of values at the mode): the width of a uniform prior of
the same density, that of a uniform posterior of the same entropy, and the factor by which the
evidence falls for having that block. The one approximation is the normal one of the entropy: it is
exact for normal posteriors, and otherwise ``V_post`` is too large, as no density of this covariance
has a higher entropy. Blocks that depend on each other in the posterior share information,

    information = -sum_b log Occam_b + dependence,

and ``dependence``, the total correlation of the blocks (Watanabe 1960), is what remains: it takes
up the approximation as well.

The determinant of a sample covariance of ``n`` normal draws is too small on average, by a factor
that is known (`_log_wishart`). The influence of a draw on ``log Occam``, with
``m^2 = (x - mean)' S^-1 (x - mean)``, is ``log p(x) + (m^2 - d) / 2`` minus its mean.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from scipy.special import digamma

from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.map_rows import map_positions
from pymc_anneal.model.spatial import missing_constants
from pymc_anneal.model.variables import FreeVariable

# Positions that are evaluated at a time, which bounds the memory.
_BATCH = 2000

COLUMNS = ("dimension", "log_prior_volume", "log_posterior_volume", "log_occam", "log_occam_mcse")


class Block(NamedTuple):
    """Volumes of one block, in nats.

    Attributes
    ----------
    name : str
    dimension : int
        Number of its unconstrained coordinates.
    log_prior_volume, log_posterior_volume : float
        NaN for discrete variables, and where there are no more effective draws than coordinates.
    influence : ndarray, shape (n,)
        Of each draw on their difference, up to the number of draws; NaN likewise.
    """

    name: str
    dimension: int
    log_prior_volume: float
    log_posterior_volume: float
    influence: np.ndarray


@double_precision
def blocks_of(compiled: CompiledModel, x: np.ndarray, ess: float) -> list[Block]:
    """Return the volumes of all free variables.

    Parameters
    ----------
    compiled : CompiledModel
    x : ndarray, shape (n, d)
        Draws of the posterior, unconstrained.
    ess : float
        Their effective number.
    """
    log_prior = _log_prior_by_variable(compiled, x)
    return [_block(v, x[:, v.start : v.stop], log_prior[v.name], ess) for v in compiled.variables]


def table_of(blocks: list[Block], error_of: Callable[[np.ndarray], float]) -> pd.DataFrame:
    """Return the volumes as a table by block, with errors from influences."""
    rows = [
        (
            block.dimension,
            block.log_prior_volume,
            block.log_posterior_volume,
            block.log_posterior_volume - block.log_prior_volume,
            error_of(block.influence),
        )
        for block in blocks
    ]
    index = pd.Index([block.name for block in blocks], name="block")
    return pd.DataFrame(rows, index=index, columns=list(COLUMNS))


def _block(variable: FreeVariable, x: np.ndarray, log_prior: np.ndarray, ess: float) -> Block:
    d, volume = x.shape[1], -float(log_prior.mean())
    if variable.discrete or ess <= d + 1:
        return Block(variable.name, d, volume, np.nan, np.full(len(x), np.nan))
    centred = x - x.mean(axis=0)
    covariance = centred.T @ centred / len(x)
    sign, log_det = np.linalg.slogdet(covariance)
    if sign <= 0:
        return Block(variable.name, d, volume, np.nan, np.full(len(x), np.nan))
    square = (centred * np.linalg.solve(covariance, centred.T).T).sum(axis=1)
    log_det += d * np.log(2 * np.pi * np.e) - _log_wishart(ess, d)
    influence = log_prior + volume + (square - d) / 2
    return Block(variable.name, d, volume, 0.5 * float(log_det), influence)


def _log_wishart(n: float, d: int) -> float:
    """Return the mean log determinant of a covariance of ``n`` standard normal draws.

    That of a Wishart matrix with ``n - 1`` degrees, divided by ``n`` (Muirhead 1982, section 3.2).
    """
    degrees = n - 1 - np.arange(d)
    return float((digamma(degrees / 2) + np.log(2 / n)).sum())


def _log_prior_by_variable(compiled: CompiledModel, x: np.ndarray) -> dict[str, np.ndarray]:
    """Return the log density of each free variable given its parents, shape ``(n,)`` each."""
    model, free = compiled.model, compiled.model.free_RVs
    terms = model.logp(vars=free, sum=False)
    graphs = compiled.freeze(
        [t.sum() + missing_constants(model, [rv]) for t, rv in zip(terms, free, strict=True)]
    )
    evaluate: Any = map_positions(model, compiled.variables, graphs)
    parts = [evaluate(x[i : i + _BATCH]) for i in range(0, len(x), _BATCH)]
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return {rv.name: value for rv, value in zip(free, joined, strict=True)}
