"""Mean-field lower bounds of log Z, a witness of runs that stay in one phase.

For independent units with means ``mu`` (visible) and ``nu`` (hidden),

    log Z >= a.mu + b.nu + mu W nu + H(mu) + H(nu)

(Peterson & Anderson 1987; for these machines Welling & Hinton 2002), for whatever means. Maximising
over one layer given the other is ``mu = sigmoid(a + W nu)``, and the same for the other layer: the
bound rises at each turn. It is far below log Z where the units of a phase depend on each other, but
it cannot lie above: a run below it has missed the phase.
"""

import numpy as np

from scipy.special import entr, expit

from pymc_anneal.rbm.model import RBM

# Starts: all hidden units off, all on, and each of some alone; turns, and the gain in nats of the
# best start at which they end.
_MOST_ALONE, _TURNS, _GAIN = 62, 200, 1e-3


def mean_field_bound(model: RBM) -> float:
    """Return the best lower bound of log Z from several starts, in nats.

    Parameters
    ----------
    model : RBM

    Returns
    -------
    float
    """
    a, b, w = (np.asarray(x, dtype=float) for x in model.tree_flatten()[0])
    nu, best = _starts(w), -np.inf
    for _ in range(_TURNS):
        mu = expit(a + nu @ w.T)
        field = b + mu @ w
        nu = expit(field)
        bound = float((mu @ a + (field * nu).sum(axis=1) + _entropy(mu) + _entropy(nu)).max())
        if bound < best + _GAIN:
            break
        best = bound
    return max(best, bound)


def _starts(weights: np.ndarray) -> np.ndarray:
    """Return means of the hidden units, shape ``(starts, n_hidden)``.

    Those alone are the ones with the largest weights, each of which may make a phase.
    """
    n = weights.shape[1]
    strongest = np.argsort(-np.abs(weights).sum(axis=0))[:_MOST_ALONE]
    return np.concatenate([np.zeros((1, n)), np.ones((1, n)), np.eye(n)[strongest]])


def _entropy(mean: np.ndarray) -> np.ndarray:
    return np.asarray((entr(mean) + entr(1 - mean)).sum(axis=1))
