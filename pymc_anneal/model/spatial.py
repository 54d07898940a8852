"""Spatial priors of PyMC, `pm.CAR` and `pm.ICAR`, as the normal densities that they are.

With the adjacency matrix ``W``, ``D = diag(sum_j W_ij)``, and ``N`` nodes,

    CAR:   x ~ N(mu, Q^-1),  Q = tau (D - alpha W),
    ICAR:  x ~ N(0, Q^-1),   Q = (D - W) / sigma^2 + 1 1' / (s N)^2,

where ``s`` is the standard deviation of the soft constraint on the sum. PyMC's log density of CAR
lacks its constant,

    -N/2 log(2 pi) + 1/2 sum_i log D_ii,

and that of ICAR has a normal density of the sum alone. With the eigenvalues ``l_k`` of ``D - W``,
of which one is zero if the graph is connected (Rue & Held 2005, section 3.2), it lacks

    -(N - 1)/2 log(2 pi) + 1/2 sum_{k > 1} log l_k - (N - 1) log(sigma) + 1/2 log N.

PyMC has no draws of ICAR, and those of CAR have the covariance ``Q^-2`` (PyMC 5.28 and 6.4: the
Cholesky factor is solved twice). Here both are drawn by an eigendecomposition.
"""

from collections.abc import Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.distributions.multivariate import CARRV, ICARRV
from pytensor.graph.basic import Variable
from pytensor.sparse import SparseTensorType, dense_from_sparse
from pytensor.tensor.random.op import RandomVariable
from scipy.sparse.csgraph import connected_components

_Size = tuple[int, ...] | None


class NormalCARRV(RandomVariable):  # type: ignore[misc]  # mypy does not see PyTensor
    """A CAR variable with the draws of its density, and with axes of draws in its parameters."""

    name = "normal_car"
    signature = CARRV.signature
    dtype = "floatX"

    @classmethod
    def rng_fn(
        cls,
        rng: np.random.Generator,
        mu: np.ndarray,
        W: np.ndarray,
        alpha: np.ndarray,
        tau: np.ndarray,
        W_is_valid: np.ndarray,
        size: _Size,
    ) -> np.ndarray:
        """Draw ``mu + (tau D)^-1/2 V (1 - alpha l)^-1/2 z`` with ``D^-1/2 W D^-1/2 = V l V'``."""
        if not np.all(W_is_valid):
            raise ValueError("W of pm.CAR must be a symmetric adjacency matrix")
        if np.any(np.abs(alpha) >= 1):
            raise ValueError("alpha of pm.CAR must lie between -1 and 1")
        mu, alpha, tau = np.asarray(mu), np.asarray(alpha)[..., None], np.asarray(tau)[..., None]
        adjacency = _one_matrix(W)
        root = 1 / np.sqrt(adjacency.sum(axis=0))
        value, vector = np.linalg.eigh(root[:, None] * adjacency * root)
        standard = rng.standard_normal(_shape(size, mu, alpha, tau))
        draws: np.ndarray = (standard / np.sqrt(tau * (1 - alpha * value))) @ vector.T
        return np.asarray(mu + root * draws)


class NormalICARRV(ICARRV):  # type: ignore[misc]
    """An ICAR variable with the draws of its density."""

    @classmethod
    def rng_fn(
        cls,
        rng: np.random.Generator,
        W: np.ndarray,
        sigma: np.ndarray,
        zero_sum_stdev: np.ndarray,
        size: _Size,
    ) -> np.ndarray:
        """Draw ``sigma sum_{k > 1} l_k^-1/2 z_k v_k + s z_1``."""
        sigma, spread = np.asarray(sigma)[..., None], np.asarray(zero_sum_stdev)[..., None]
        adjacency = _one_matrix(W)
        value, vector = np.linalg.eigh(np.diag(adjacency.sum(axis=0)) - adjacency)
        standard = rng.standard_normal(_shape(size, sigma, spread, adjacency[0]))
        within: np.ndarray = (standard[..., 1:] / np.sqrt(value[1:])) @ vector[:, 1:].T
        return np.asarray(sigma * within + spread * standard[..., :1])


def _one_matrix(W: np.ndarray) -> np.ndarray:
    """Return the adjacency matrix that all draws share, shape ``(N, N)``."""
    matrix: np.ndarray = np.asarray(W, dtype=float).reshape(-1, *np.shape(W)[-2:])[0]
    return matrix


def _shape(size: _Size, *parameters: np.ndarray) -> tuple[int, ...]:
    """Return the shape of draws whose parameters have an axis of nodes, or one of length 1."""
    common = np.broadcast_shapes(*(np.shape(p) for p in parameters))
    return common if size is None else (*size, common[-1])


_DRAWN: dict[type, RandomVariable] = {CARRV: NormalCARRV(), ICARRV: NormalICARRV()}


def drawn_by_density(draw: Variable) -> Variable | None:
    """Return a spatial variable with the draws of its density; None for another variable."""
    op = _DRAWN.get(type(draw.owner.op))
    if op is None:
        return None
    inputs = [
        dense_from_sparse(v) if isinstance(v.type, SparseTensorType) else v
        for v in draw.owner.inputs
    ]
    return op.make_node(*inputs).outputs[1]


def check_connected(rv: Variable) -> None:
    """Raise if an ICAR variable has a graph of several parts, whose levels have no prior."""
    if not isinstance(rv.owner.op, ICARRV):
        return
    parts, _ = connected_components(_one_matrix(rv.owner.op.dist_params(rv.owner)[0].eval()))
    if parts > 1:
        raise ValueError(
            f"Variable '{rv.name}' is a pm.ICAR on a graph of {parts} parts that are not "
            "connected: its prior is improper, because only the sum over all of them is "
            "constrained, and the marginal likelihood is not defined. Give each part a pm.ICAR of "
            "its own, and islands a pm.Normal."
        )


def missing_constants(model: pm.Model, rvs: Sequence[Variable]) -> Variable:
    """Return what PyMC's log densities of spatial variables lack, a scalar graph of the values."""
    found = missing_terms(rvs)
    total = pt.as_tensor_variable(0.0) + sum(found)
    return model.replace_rvs_by_values([total])[0].astype("float64") if found else total


def missing_terms(rvs: Sequence[Variable]) -> list[Variable]:
    """Return what PyMC's log densities of spatial variables lack, graphs of their parents."""
    return [term for rv in rvs if (term := _missing_constant(rv)) is not None]


def _missing_constant(rv: Variable) -> Variable | None:
    """Return what PyMC's log density of a variable lacks, a graph of its parents, or None."""
    op, node = rv.owner.op, rv.owner
    if isinstance(op, CARRV):
        W = op.dist_params(node)[1]
        count, nodes = pt.prod(rv.shape[:-1]), rv.shape[-1]
        degrees = pt.as_tensor_variable(W.sum(axis=0)).astype("float64")
        return count * 0.5 * (pt.log(degrees).sum() - nodes * np.log(2 * np.pi))
    if isinstance(op, ICARRV):
        W, sigma, _ = op.dist_params(node)
        adjacency = _one_matrix(W.eval())
        n = len(adjacency)
        laplacian = np.diag(adjacency.sum(axis=0)) - adjacency
        # The mean of all nodes takes the place of the eigenvalue of zero.
        log_det = np.linalg.slogdet(laplacian + 1 / n)[1]
        constant = 0.5 * (log_det + np.log(n) - (n - 1) * np.log(2 * np.pi))
        return constant - (n - 1) * pt.log(sigma)
    return None
