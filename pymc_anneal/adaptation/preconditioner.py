"""The scale of a density from weighted particles, and from the gradients at them.

A kernel moves in coordinates ``z``, ``x = S z``, in which the density should be as round as it can
be made. With the gradient ``g`` of the log density at each particle, ``S S'`` is the geometric mean
of ``A = Cov(x)`` and ``B = Cov(g)^-1``, the solution of

    M Cov(g) M = Cov(x),    M = S S',

which minimises the Fisher divergence between the density and a Gaussian of covariance ``M``. For a
Gaussian density ``g = -M^-1 (x - mean)``, and ``M`` comes out exactly from any ``d + 1`` particles:
the noise of ``Cov(x)`` and of ``Cov(g)`` is the same and cancels. The diagonal form is
``S_i^2 = sd(x_i) / sd(g_i)``. Without gradients ``M = Cov(x)``, its correlations shrunk.
"""

import numpy as np

_MAX_DENSE = 64


_CLIP = 5.0


_RIDGE = 1e-3


def estimate_scale(
    position: np.ndarray,
    weight: np.ndarray,
    gradient: np.ndarray | None = None,
    dense: bool = True,
    largest: int = _MAX_DENSE,
) -> np.ndarray:
    """Return the scale of a density.

    Parameters
    ----------
    position : ndarray, shape (n, d)
        Particles.
    weight : ndarray, shape (n,)
        Their weights, not all zero.
    gradient : ndarray, shape (n, d), optional
        Gradients of the log density at the particles; those that are not finite are left out.
    dense
        Whether correlations may count.
    largest
        Dimension up to which they do: a kernel multiplies by the matrix at every step.

    Returns
    -------
    ndarray, shape (d,) or (d, d)
        One factor for each coordinate, or a Cholesky factor where the dimension is low and the
        particles are many.
    """
    if gradient is not None:
        sound = np.isfinite(gradient).all(axis=1) & (weight > 0)
        if sound.sum() < 2:
            gradient = None
        else:
            position, weight, gradient = position[sound], weight[sound], gradient[sound]
    weight = weight / weight.sum()
    ess, d = 1 / (weight**2).sum(), position.shape[1]
    x = _centred(position, weight)
    g = x if gradient is None else _centred(gradient, weight)
    deviation = np.sqrt(weight @ x**2) if gradient is None else _balance(weight, x, g)
    deviation = np.where((deviation > 0) & np.isfinite(deviation), deviation, 1.0)
    if not dense or d == 1 or d > largest or ess < 2 * d:
        return deviation
    if gradient is None:
        ridge = d / (d + ess)
        correlation = (1 - ridge) * _covariance(x / deviation, weight) + ridge * np.eye(d)
    else:
        ridge = _RIDGE * np.eye(d)
        correlation = _geometric_mean(
            _covariance(x / deviation, weight) + ridge, _covariance(g * deviation, weight) + ridge
        )
    return deviation[:, None] * np.linalg.cholesky(correlation)


def _balance(weight: np.ndarray, x: np.ndarray, g: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return ((weight @ x**2) / (weight @ g**2)) ** 0.25


def _covariance(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return (x.T * weight) @ x


def _geometric_mean(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve ``M B M = A`` for a positive definite ``M``."""
    value, vector = np.linalg.eigh(b)
    root = (vector * np.sqrt(value)) @ vector.T
    inverse = (vector / np.sqrt(value)) @ vector.T
    value, vector = np.linalg.eigh(root @ a @ root)
    mean = inverse @ (vector * np.sqrt(np.maximum(value, 0.0))) @ vector.T @ inverse
    return 0.5 * (mean + mean.T)


def _centred(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Clip to five robust standard deviations, so that tails do not set the scale, and centre."""
    order = np.argsort(values, axis=0)
    ranked = np.take_along_axis(values, order, axis=0)
    mass = np.cumsum(weight[order], axis=0)
    q1, q2, q3 = (
        np.take_along_axis(ranked, (mass >= p).argmax(axis=0)[None], axis=0)[0]
        for p in (0.25, 0.5, 0.75)
    )
    spread = _CLIP * np.where(q3 > q1, q3 - q1, np.inf) / 1.349
    clipped = np.clip(values, q2 - spread, q2 + spread)
    return clipped - weight @ clipped
