"""The first live points of nested sampling: draws of the prior with a likelihood above zero.

Where a share of the prior has zero likelihood, the run starts from draws of the rest, a share ``f``
of the prior that is counted, and

    Z = f Z',

with ``Z'`` the evidence for the prior restricted to the rest.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# Draws of the prior, in units of the live points, among which those with a likelihood are sought.
_MAX_ROUNDS = 200


class Start(NamedTuple):
    """First live points.

    Attributes
    ----------
    points : ndarray, shape (n, d)
    log_likelihood : ndarray, shape (n,)
    log_share, log_share_mcse : float
        Log of the share of the draws with a likelihood above zero, and its standard error.
    draws : int
        Number of draws.
    """

    points: np.ndarray
    log_likelihood: np.ndarray
    log_share: float
    log_share_mcse: float
    draws: int


def draw_start(
    draw: Callable[[np.random.SeedSequence, int], np.ndarray],
    log_likelihood: Callable[[np.ndarray], np.ndarray],
    seed: np.random.SeedSequence,
    n: int,
) -> Start:
    """Draw from the prior until there are ``n`` points with a likelihood above zero.

    Parameters
    ----------
    draw
        Draws from the prior: from a seed and a number to shape ``(n, d)``.
    log_likelihood
        From shape ``(n, d)`` to shape ``(n,)``.
    seed
        Source of randomness.
    n
        Number of live points.

    Raises
    ------
    ValueError
        There are too few.
    """
    points, values, draws, found = [], [], 0, 0
    for part in seed.spawn(_MAX_ROUNDS):
        x = draw(part, n)
        value = log_likelihood(x)
        held = np.isfinite(value)
        points.append(x[held])
        values.append(value[held])
        draws, found = draws + n, found + int(held.sum())
        if found >= n:
            share = found / draws
            error = float(np.sqrt((1 - share) / found))
            log_share = float(np.log(share))
            kept = np.concatenate(points)[:n], np.concatenate(values)[:n]
            return Start(*kept, log_share, error, draws)
    raise ValueError(
        f"Of {draws} draws of the prior {found} have a likelihood above zero, too few to start "
        f"{n} live points. Take a prior nearer to the data, or fewer live points (`n_live`)."
    )
