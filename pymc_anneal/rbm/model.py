"""Restricted Boltzmann machines (Smolensky 1986; Hinton 2002).

With visible units ``v``, hidden units ``h``, biases ``a``, ``b`` and weights ``W``,

    p(v, h) ~ exp(a.v + b.h + v W h),    log p*(v) = a.v + sum_j softplus(b_j + (v W)_j),

where ``softplus(x) = log(1 + e^x)``: an exponential family with natural parameters ``(a, b, W)``
and sufficient statistics ``(v, h, v h')``.
"""

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from os import PathLike
from typing import Any

import jax
import numpy as np

from numpy.typing import ArrayLike, DTypeLike
from scipy.special import expit

from pymc_anneal.base.arguments import check_count
from pymc_anneal.base.seeds import RandomSeed
from pymc_anneal.rbm.bernoulli import ArrayT, bernoulli_numpy

_PARAMETERS = "visible_bias", "hidden_bias", "weights"
# What a number of sweeps has to be.
SWEEPS = "at least 0, a whole number of sweeps"
# Floating types in which units are drawn; 16 bits hold no uniform number of 2**-32.
_TYPES = np.float32, np.float64


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True, eq=False, init=False)
class RBM:
    """A restricted Boltzmann machine (RBM) of binary units; a JAX pytree of its parameters.

    Parameters
    ----------
    visible_bias : array_like, shape (n_visible,)
        ``a``.
    hidden_bias : array_like, shape (n_hidden,)
        ``b``.
    weights : array_like, shape (n_visible, n_hidden)
        ``W``. If they are ``float32``, the RBM is annealed in this type, else in ``float64``.

    Raises
    ------
    ValueError
        The shapes do not match, or a parameter is NaN or infinite.

    Notes
    -----
    The attributes are NumPy arrays. A path's `model_at` and JAX's functions of pytrees, such as
    :func:`jax.tree.map`, make RBMs of JAX arrays, without checks.
    """

    visible_bias: np.ndarray
    hidden_bias: np.ndarray
    weights: np.ndarray

    def __init__(self, visible_bias: ArrayLike, hidden_bias: ArrayLike, weights: ArrayLike):
        w = np.asarray(weights)
        dtype = w.dtype if w.dtype in _TYPES else np.float64
        a, b, w = (np.asarray(x, dtype=dtype) for x in (visible_bias, hidden_bias, w))
        for name, array in zip(_PARAMETERS, (a, b, w), strict=True):
            object.__setattr__(self, name, array)
            if not np.isfinite(array).all():
                raise ValueError(
                    f"`{name}` has {int((~np.isfinite(array)).sum())} entries that are NaN or "
                    "infinite; expected finite numbers."
                )
        if w.ndim != 2 or a.ndim != 1 or a.shape + b.shape != w.shape:
            raise ValueError(
                f"`visible_bias`, `hidden_bias` and `weights` have shapes {a.shape}, {b.shape} "
                f"and {w.shape}; expected (n_visible,), (n_hidden,) and (n_visible, n_hidden)."
            )

    def tree_flatten(self) -> tuple[tuple[np.ndarray, ...], None]:
        """Return the parameters as the leaves of a JAX pytree."""
        return (self.visible_bias, self.hidden_bias, self.weights), None

    @classmethod
    def tree_unflatten(cls, _: None, leaves: Iterable[Any]) -> "RBM":
        """Rebuild an RBM from any leaves: tracers, or stacked parameters of several RBMs."""
        rbm = object.__new__(cls)
        for name, leaf in zip(_PARAMETERS, leaves, strict=True):
            object.__setattr__(rbm, name, leaf)
        return rbm

    @classmethod
    def from_jax(cls, visible_bias: jax.Array, hidden_bias: jax.Array, weights: jax.Array) -> "RBM":
        """Return an RBM of JAX arrays without checks, for use inside compiled functions."""
        return cls.tree_unflatten(None, (visible_bias, hidden_bias, weights))

    @property
    def n_visible(self) -> int:
        """Number of visible units."""
        return int(self.weights.shape[0])

    @property
    def n_hidden(self) -> int:
        """Number of hidden units."""
        return int(self.weights.shape[1])

    def hidden_field(self, visible: ArrayT) -> ArrayT:
        """Return the log odds of the hidden units given visible ones, shape (..., n_hidden)."""
        field: ArrayT = visible @ self.weights + self.hidden_bias
        return field

    def visible_field(self, hidden: ArrayT) -> ArrayT:
        """Return the log odds of the visible units given hidden ones, shape (..., n_visible)."""
        field: ArrayT = hidden @ self.weights.T + self.visible_bias
        return field

    def log_density(self, visible: ArrayLike) -> np.ndarray:
        """Return the unnormalised log probability ``log p*(v)``, hidden units summed out.

        Parameters
        ----------
        visible : array_like, shape (..., n_visible)
            Binary values, or probabilities in [0, 1].

        Returns
        -------
        ndarray, shape (...)
            In nats.

        Raises
        ------
        ValueError
            Values lie outside [0, 1], or the number of units is wrong.
        """
        visible = check_visible("visible", visible, self.n_visible)
        log_sum = np.logaddexp(0, self.hidden_field(visible)).sum(axis=-1, dtype=np.float64)
        log_density: np.ndarray = visible @ self.visible_bias + log_sum
        return log_density

    def free_energy(self, visible: ArrayLike) -> np.ndarray:
        """Return ``-log p*(v)``, shape (...), in nats; arguments as for :meth:`log_density`."""
        return -self.log_density(visible)

    def log_likelihood(self, visible: ArrayLike, log_partition_function: float) -> np.ndarray:
        """Return the log probability of each row of data.

        Parameters
        ----------
        visible : array_like, shape (..., n_visible)
            Binary values, or probabilities in [0, 1].
        log_partition_function : float
            ``log Z``, in nats.

        Returns
        -------
        ndarray, shape (...)
            In nats.

        Raises
        ------
        ValueError
            Values lie outside [0, 1], or the number of units is wrong.
        """
        return self.log_density(visible) - log_partition_function

    def hidden_probability(self, visible: ArrayLike) -> np.ndarray:
        """Return ``P(h = 1 | v)``, shape (..., n_hidden), given ``v`` of shape (..., n_visible)."""
        visible = check_visible("visible", visible, self.n_visible)
        probability: np.ndarray = expit(self.hidden_field(visible))
        return probability

    def visible_probability(self, hidden: ArrayLike) -> np.ndarray:
        """Return ``P(v = 1 | h)``, shape (..., n_visible), given ``h`` of shape (..., n_hidden)."""
        hidden = check_visible("hidden", hidden, self.n_hidden)
        probability: np.ndarray = expit(self.visible_field(hidden))
        return probability

    def sample(
        self,
        draws: int,
        *,
        steps: int = 1000,
        start: ArrayLike | None = None,
        random_seed: RandomSeed = None,
    ) -> np.ndarray:
        """Draw visible configurations by blocked Gibbs sampling.

        Parameters
        ----------
        draws : int
            Number of independent chains.
        steps : int
            Sweeps per chain. The last state of each chain is returned.
        start : array_like, shape (draws, n_visible), optional
            Initial states. By default the units are Bernoulli(1/2).
        random_seed
            Seed of :func:`numpy.random.default_rng`.

        Returns
        -------
        ndarray of 0 and 1, shape (draws, n_visible)

        Raises
        ------
        ValueError
            A count is no whole number, or `start` has another shape or values outside [0, 1].
        """
        check_count("draws", draws)
        check_count("steps", steps, SWEEPS, 0)
        rng = np.random.default_rng(random_seed)
        if start is None:
            start = rng.integers(0, 2, (draws, self.n_visible))
        visible = check_start(start, draws, self.n_visible).astype(self.weights.dtype)
        # In NumPy, unlike `gibbs_sweep`: its random stream is part of the results of `train` and
        # `sample_ais`, and a single sweep from a reference is not worth a compilation.
        for _ in range(steps):
            hidden = bernoulli_numpy(rng, self.hidden_probability(visible))
            visible = bernoulli_numpy(rng, self.visible_probability(hidden))
        return visible

    @classmethod
    def from_sklearn(cls, estimator: Any) -> "RBM":
        """Return the RBM of a fitted :class:`sklearn.neural_network.BernoulliRBM`.

        Raises
        ------
        ValueError
            The estimator is not fitted.
        """
        if not hasattr(estimator, "components_"):
            raise ValueError(f"This {type(estimator).__name__} has no weights yet; fit it first.")
        return cls(
            estimator.intercept_visible_, estimator.intercept_hidden_, estimator.components_.T
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the parameters to a NumPy ``.npz`` file."""
        with open(path, "wb") as file:
            np.savez_compressed(
                file,
                visible_bias=self.visible_bias,
                hidden_bias=self.hidden_bias,
                weights=self.weights,
            )

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "RBM":
        """Read a file written by :meth:`save`.

        Raises
        ------
        ValueError
            The file holds something else.
        """
        read = np.load(path)
        with nullcontext(read) if isinstance(read, np.ndarray) else read as data:
            found = set(getattr(data, "files", ()))
            if not found.issuperset(_PARAMETERS):
                raise ValueError(
                    f"The file {path} holds {sorted(found) or 'one array'}, expected "
                    f"{list(_PARAMETERS)} as `RBM.save` writes them. From the checkpoint of a "
                    "training, `train` goes on if it is called as before."
                )
            return cls(*(data[name] for name in _PARAMETERS))

    def astype(self, dtype: DTypeLike) -> "RBM":
        """Return the RBM with parameters of another floating type, ``float32`` or ``float64``."""
        if np.dtype(dtype) not in _TYPES:
            raise ValueError(f"`dtype` is {np.dtype(dtype)}, expected float32 or float64.")
        leaves, _ = self.tree_flatten()
        with np.errstate(over="ignore"):  # an infinite parameter is refused
            return RBM(*(np.asarray(x, dtype) for x in leaves))


def check_visible(name: str, visible: ArrayLike, n_visible: int) -> np.ndarray:
    """Return visible units as an array of shape ``(..., n_visible)``, or raise."""
    array = np.asarray(visible)
    if array.shape[-1:] != (n_visible,):
        raise ValueError(f"`{name}` has shape {array.shape}, expected (..., {n_visible}).")
    if array.dtype == bool:
        array = array.astype(np.float32)
    low, high = (array.min(), array.max()) if array.size else (0, 0)
    if not (low >= 0 and high <= 1):
        raise ValueError(
            f"`{name}` ranges from {low} to {high}, expected binary values or probabilities in "
            "[0, 1]. Divide grey values of 0 to 255 by 255."
        )
    return array


def check_start(start: ArrayLike, chains: int, n_visible: int) -> np.ndarray:
    """Return the initial states of chains, shape ``(chains, n_visible)``, or raise."""
    array = check_visible("start", start, n_visible)
    if array.shape != (chains, n_visible):
        raise ValueError(f"`start` has shape {array.shape}, expected {(chains, n_visible)}.")
    return array


def check_rows(data: ArrayLike, n_visible: int | None = None, name: str = "data") -> np.ndarray:
    """Return data as an array of shape ``(n, n_visible)``, or raise."""
    array = np.asarray(data)
    if array.ndim != 2 or not array.size:
        raise ValueError(f"`{name}` has shape {array.shape}, expected (n, n_visible), n >= 1.")
    return check_visible(name, array, n_visible or array.shape[1])


def uniform_reference(n_visible: int, n_hidden: int, dtype: DTypeLike = np.float64) -> RBM:
    """Return the RBM with all parameters zero: the uniform distribution.

    Parameters
    ----------
    n_visible, n_hidden : int
        Numbers of units.
    dtype
        Floating type of the parameters.
    """
    check_count("n_visible", n_visible)
    check_count("n_hidden", n_hidden)
    shapes = n_visible, n_hidden, (n_visible, n_hidden)
    return RBM(*(np.zeros(shape, dtype) for shape in shapes))


def base_rate_reference(data: ArrayLike, n_hidden: int, smoothing: float = 5.0) -> RBM:
    """Return the RBM with W = 0 whose visible units have the frequencies of data.

    Parameters
    ----------
    data : array_like, shape (n, n_visible)
        Binary values, or probabilities in [0, 1].
    n_hidden : int
        Number of hidden units, which are Bernoulli(1/2).
    smoothing : float
        Pseudo-counts added to each value of a unit (Salakhutdinov & Murray 2008): without them, a
        pixel that is always black has an infinite bias.

    Raises
    ------
    ValueError
        `data` lie outside [0, 1] or are no matrix, or `smoothing` is not positive.
    """
    data = check_rows(data)
    if not smoothing > 0:
        raise ValueError(f"`smoothing` is {smoothing}, expected a positive number of counts.")
    ones = data.sum(axis=0, dtype=np.float64) + smoothing
    zeros = len(data) - data.sum(axis=0, dtype=np.float64) + smoothing
    uniform = uniform_reference(data.shape[1], n_hidden)
    return RBM(np.log(ones / zeros), uniform.hidden_bias, uniform.weights)


def reference_log_partition_function(reference: RBM) -> float:
    """Return ``log Z = sum softplus(b) + sum softplus(a)`` of an RBM with W = 0, in nats."""
    biases = np.concatenate([reference.hidden_bias, reference.visible_bias])
    return float(np.logaddexp(0, biases.astype(np.float64)).sum())
