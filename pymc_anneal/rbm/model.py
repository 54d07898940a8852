"""Restricted Boltzmann machines (Smolensky 1986; Hinton 2002).

With visible units ``v``, hidden units ``h``, biases ``a``, ``b`` and weights ``W``,

    p(v, h) ~ exp(a.v + b.h + v W h),    log p*(v) = a.v + sum_j softplus(b_j + (v W)_j),

an exponential family with natural parameters ``(a, b, W)`` and statistics ``(v, h, v h')``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import jax
import numpy as np

from scipy.special import expit


def softplus(x: np.ndarray) -> np.ndarray:
    """``log(1 + exp(x))``."""
    return np.logaddexp(0, x)


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True, eq=False)
class RBM:
    """A restricted Boltzmann machine of binary units.

    Parameters
    ----------
    visible_bias : array_like, shape (n_visible,)
        ``a``.
    hidden_bias : array_like, shape (n_hidden,)
        ``b``.
    weights : array_like, shape (n_visible, n_hidden)
        ``W``; its floating type is the one in which the machine is annealed.

    Raises
    ------
    ValueError
        Shapes do not fit, or a parameter is NaN or infinite.
    """

    visible_bias: Any
    hidden_bias: Any
    weights: Any

    def __post_init__(self):
        weights = np.asarray(self.weights)
        dtype = weights.dtype if np.issubdtype(weights.dtype, np.floating) else np.float64
        for name in ("visible_bias", "hidden_bias", "weights"):
            array = np.asarray(getattr(self, name), dtype=dtype)
            object.__setattr__(self, name, array)
            if not np.isfinite(array).all():
                raise ValueError(
                    f"`{name}` has {int((~np.isfinite(array)).sum())} entries that are NaN or "
                    "infinite; expected finite numbers."
                )
        shapes = self.visible_bias.shape, self.hidden_bias.shape, self.weights.shape
        if self.weights.ndim != 2 or shapes[0] + shapes[1] != shapes[2] or len(shapes[0]) != 1:
            raise ValueError(
                f"`visible_bias`, `hidden_bias` and `weights` have shapes {shapes[0]}, {shapes[1]} "
                f"and {shapes[2]}; expected (n_visible,), (n_hidden,) and (n_visible, n_hidden)."
            )

    def tree_flatten(self) -> tuple[tuple[Any, Any, Any], None]:
        """Return the parameters as the leaves of a JAX pytree."""
        return (self.visible_bias, self.hidden_bias, self.weights), None

    @classmethod
    def tree_unflatten(cls, _: None, leaves: Sequence[Any]) -> "RBM":
        """Rebuild a machine around any leaves: tracers, or the parameters of several machines."""
        machine = object.__new__(cls)
        for name, leaf in zip(("visible_bias", "hidden_bias", "weights"), leaves, strict=True):
            object.__setattr__(machine, name, leaf)
        return machine

    @classmethod
    def of(cls, visible_bias: Any, hidden_bias: Any, weights: Any) -> "RBM":
        """Build a machine of JAX arrays, unchecked: for use inside compiled functions."""
        return cls.tree_unflatten(None, (visible_bias, hidden_bias, weights))

    @property
    def n_visible(self) -> int:
        """Number of visible units."""
        return self.weights.shape[0]

    @property
    def n_hidden(self) -> int:
        """Number of hidden units."""
        return self.weights.shape[1]

    def log_density(self, visible: np.ndarray) -> np.ndarray:
        """Unnormalised log probability ``log p*(v)``, hidden units summed out.

        Parameters
        ----------
        visible : array_like, shape (..., n_visible)
            Binary, or probabilities in [0, 1].

        Returns
        -------
        ndarray, shape (...), in nats.

        Raises
        ------
        ValueError
            Values outside [0, 1], or another number of units.
        """
        visible = check_visible(visible, self.n_visible)
        field = self.hidden_bias + visible @ self.weights
        return visible @ self.visible_bias + softplus(field).sum(axis=-1, dtype=np.float64)

    def free_energy(self, visible: np.ndarray) -> np.ndarray:
        """``-log p*(v)``, shape (...); arguments as for :meth:`log_density`."""
        return -self.log_density(visible)

    def log_likelihood(self, visible: np.ndarray, log_partition_function: float) -> np.ndarray:
        """Log probability of each row of data, given ``log Z``, in nats."""
        return self.log_density(visible) - log_partition_function

    def hidden_probability(self, visible: np.ndarray) -> np.ndarray:
        """``P(h = 1 | v)``, shape (..., n_hidden)."""
        return expit(self.hidden_bias + check_visible(visible, self.n_visible) @ self.weights)

    def visible_probability(self, hidden: np.ndarray) -> np.ndarray:
        """``P(v = 1 | h)``, shape (..., n_visible)."""
        return expit(self.visible_bias + np.asarray(hidden) @ self.weights.T)

    def sample(
        self,
        draws: int,
        *,
        steps: int = 1000,
        start: np.ndarray | None = None,
        random_seed: Any = None,
    ) -> np.ndarray:
        """Draw by Gibbs sampling.

        Parameters
        ----------
        draws
            Number of independent chains.
        steps
            Sweeps of each chain, of which the last state is returned.
        start : array_like, shape (draws, n_visible), optional
            First state; default: fair coins.
        random_seed
            Seed of :func:`numpy.random.default_rng`.

        Returns
        -------
        ndarray of 0 and 1, shape (draws, n_visible)
        """
        rng = np.random.default_rng(random_seed)
        dtype = self.weights.dtype
        if start is None:
            start = rng.integers(0, 2, (draws, self.n_visible))
        visible = np.asarray(check_start(start, draws, self.n_visible), dtype=dtype)
        for _ in range(steps):
            hidden = _bernoulli(rng, self.hidden_probability(visible))
            visible = _bernoulli(rng, self.visible_probability(hidden))
        return visible

    @classmethod
    def from_sklearn(cls, machine: Any) -> "RBM":
        """Take the parameters of a fitted :class:`sklearn.neural_network.BernoulliRBM`."""
        if not hasattr(machine, "components_"):
            raise ValueError(f"This {type(machine).__name__} has no weights yet; fit it first.")
        return cls(
            np.asarray(machine.intercept_visible_),
            np.asarray(machine.intercept_hidden_),
            np.asarray(machine.components_).T,
        )

    def save(self, path: str | PathLike) -> None:
        """Write the parameters to a NumPy ``.npz`` file."""
        with open(path, "wb") as file:
            np.savez_compressed(
                file,
                visible_bias=self.visible_bias,
                hidden_bias=self.hidden_bias,
                weights=self.weights,
            )

    @classmethod
    def load(cls, path: str | PathLike) -> "RBM":
        """Read what :meth:`save` wrote."""
        with np.load(path) as data:
            return cls(data["visible_bias"], data["hidden_bias"], data["weights"])

    def astype(self, dtype: Any) -> "RBM":
        """Return the machine with parameters of another floating type."""
        return jax.tree.map(lambda x: np.asarray(x, dtype), self)


def check_visible(visible: np.ndarray, n_visible: int) -> np.ndarray:
    """Return data as an array, or say what is wrong with it."""
    visible = np.asarray(visible)
    if visible.shape[-1:] != (n_visible,):
        raise ValueError(f"Data have shape {visible.shape}, expected (..., {n_visible}).")
    if visible.dtype == bool:
        visible = visible.astype(np.float32)
    low, high = (visible.min(), visible.max()) if visible.size else (0, 0)
    if not (low >= 0 and high <= 1):
        raise ValueError(
            f"Data range from {low} to {high}, expected binary values or probabilities in [0, 1]. "
            "Divide grey values of 0 to 255 by 255."
        )
    return visible


def check_start(start: np.ndarray, chains: int, n_visible: int) -> np.ndarray:
    """Return the first states of chains, or say what is wrong with them."""
    start = check_visible(start, n_visible)
    if start.shape != (chains, n_visible):
        raise ValueError(f"`start` has shape {start.shape}, expected {(chains, n_visible)}.")
    return start


def check_rows(data: np.ndarray, n_visible: int | None = None) -> np.ndarray:
    """Return data as rows of a matrix, or say what is wrong with them."""
    data = np.asarray(data)
    if data.ndim != 2 or not data.size:
        raise ValueError(f"Data have shape {data.shape}, expected (n, n_visible), n >= 1.")
    return check_visible(data, n_visible or data.shape[1])


def uniform_reference(n_visible: int, n_hidden: int, dtype: Any = np.float64) -> RBM:
    """Return the machine with all parameters zero: a uniform distribution."""
    shapes = n_visible, n_hidden, (n_visible, n_hidden)
    return RBM(*(np.zeros(shape, dtype) for shape in shapes))


def base_rate_reference(data: np.ndarray, n_hidden: int, smoothing: float = 5.0) -> RBM:
    """Return the machine of independent visible units with the frequencies of data.

    Parameters
    ----------
    data : array_like, shape (n, n_visible)
        Binary, or probabilities in [0, 1].
    n_hidden
        Number of hidden units, which are fair coins.
    smoothing
        Pseudo-counts added to each value of a unit (Salakhutdinov & Murray 2008): a pixel that is
        always black would have an infinite bias.
    """
    data = check_rows(data)
    if not smoothing > 0:
        raise ValueError(f"`smoothing` is {smoothing}, expected a positive number of counts.")
    ones = data.sum(axis=0, dtype=np.float64) + smoothing
    zeros = len(data) - data.sum(axis=0, dtype=np.float64) + smoothing
    uniform = uniform_reference(data.shape[1], n_hidden)
    return RBM(np.log(ones / zeros), uniform.hidden_bias, uniform.weights)


def reference_log_partition_function(reference: RBM) -> float:
    """``log Z`` of a machine without weights, ``sum softplus(b) + sum softplus(a)``, in nats."""
    biases = np.concatenate([reference.hidden_bias, reference.visible_bias])
    return float(softplus(biases.astype(np.float64)).sum())


def _bernoulli(rng: np.random.Generator, probability: np.ndarray) -> np.ndarray:
    uniform = rng.random(probability.shape, dtype=probability.dtype.type)
    return (uniform < probability).astype(probability.dtype)
