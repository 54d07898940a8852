"""Small restricted Boltzmann machines (RBMs), with exact values by enumeration in NumPy."""

from typing import NamedTuple

import numpy as np

from scipy import stats
from scipy.special import expit, logsumexp

from pymc_anneal.rbm.model import RBM
from pymc_anneal.rbm.state_sums import Moments

# p value below which a test fails: with a few hundred tests, one in 1e4 choices of the seeds.
LEVEL = 1e-7


def states(count: int) -> np.ndarray:
    """Return all binary rows, the first unit varying fastest, shape ``(2^count, count)``."""
    return ((np.arange(2**count)[:, None] >> np.arange(count)) & 1).astype(float)


def index_of(visible: np.ndarray) -> np.ndarray:
    """Return the index of each row in ``states``."""
    visible = np.asarray(visible)
    assert set(np.unique(visible)) <= {0, 1}
    return (visible.astype(int) << np.arange(visible.shape[-1])).sum(axis=-1)


def random_rbm(
    n_visible: int, n_hidden: int, seed: int = 0, scale: float = 1.0, dtype: type = np.float64
) -> RBM:
    """Return an asymmetric RBM."""
    rng = np.random.default_rng(seed)
    return RBM(
        rng.normal(0.3, scale, n_visible).astype(dtype),
        rng.normal(-0.4, scale, n_hidden).astype(dtype),
        rng.normal(0.1, scale, (n_visible, n_hidden)).astype(dtype),
    )


def independent_units(n_visible: int, n_hidden: int, seed: int = 1, hidden: bool = False) -> RBM:
    """Return an RBM with W = 0."""
    rng = np.random.default_rng(seed)
    bias = rng.normal(0.0, 0.8, n_hidden) if hidden else np.zeros(n_hidden)
    return RBM(rng.normal(0.2, 0.8, n_visible), bias, np.zeros((n_visible, n_hidden)))


def parameters(model: RBM) -> np.ndarray:
    """Return the natural parameters in one vector."""
    parts = model.visible_bias, model.hidden_bias, model.weights
    return np.concatenate([np.ravel(part).astype(float) for part in parts])


def flat(moments: Moments) -> np.ndarray:
    """Return the moments in one vector, in the order of ``parameters``."""
    return np.concatenate([np.ravel(part).astype(float) for part in moments])


class Exact(NamedTuple):
    """Log partition function, probabilities of the visible states ``(2^n_visible,)``, moments."""

    log_z: float
    probability: np.ndarray
    moments: Moments


def enumerate_states(model: RBM) -> Exact:
    """Return sums over the states of both layers."""
    model = model.astype(np.float64)
    v, h = states(model.n_visible), states(model.n_hidden)
    table = (v @ model.visible_bias)[:, None] + h @ model.hidden_bias + v @ model.weights @ h.T
    log_z = logsumexp(table)
    p = np.exp(table - log_z)
    moments = Moments(p.sum(axis=1) @ v, p.sum(axis=0) @ h, v.T @ p @ h)
    return Exact(float(log_z), p.sum(axis=1), moments)


def enumerate_hidden_states(model: RBM) -> tuple[float, Moments]:
    """Return sums over the states of the hidden layer, for any number of visible units."""
    model = model.astype(np.float64)
    h = states(model.n_hidden)
    field = model.visible_bias + h @ model.weights.T
    log_weight = h @ model.hidden_bias + np.logaddexp(0, field).sum(axis=1)
    log_z = logsumexp(log_weight)
    p = np.exp(log_weight - log_z)
    visible = expit(field) * p[:, None]
    return float(log_z), Moments(visible.sum(axis=0), p @ h, visible.T @ h)


def exact_draws(model: RBM, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return independent visible configurations, shape ``(draws, n_visible)``."""
    p = enumerate_states(model).probability
    return states(model.n_visible)[rng.choice(len(p), draws, p=p / p.sum())]


def frequencies_agree(visible: np.ndarray, probability: np.ndarray) -> bool:
    """Test frequencies of all visible states by chi-square, with rare states merged."""
    expected = probability / probability.sum() * len(visible)
    counts = np.bincount(index_of(visible), minlength=len(expected))
    common = expected >= 10
    if not common.all():
        expected = np.append(expected[common], expected[~common].sum())
        counts = np.append(counts[common], counts[~common].sum())
    kept = expected > 1  # the merged states may still be rare
    level = stats.chisquare(
        counts[kept], expected[kept] * counts[kept].sum() / expected[kept].sum()
    )
    return bool(level.pvalue > LEVEL)


def mean_agrees(values: np.ndarray, expected: np.ndarray | float, errors: float = 5.0) -> bool:
    """Test whether means over the first axis are within some standard errors of the expected."""
    values = np.asarray(values, dtype=float)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return bool((np.abs(values.mean(axis=0) - expected) <= errors * error + 1e-12).all())
