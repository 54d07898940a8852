"""The scale of a density, from weighted particles and the gradients at them.

A kernel moves in coordinates ``z``, ``x = S z``, in which the density should be as isotropic as
possible. With the gradient ``g`` of the log density at each particle, ``S S'`` is the geometric
mean of ``A = Cov(x)`` and ``B = Cov(g)^-1``, the solution of

    M Cov(g) M = Cov(x),    M = S S',

which minimises the Fisher divergence between the density and a Gaussian of covariance ``M``. For a
Gaussian density ``g = -M^-1 (x - mean)``, and ``M`` is exact from any ``d + 1`` particles: the
noise of ``Cov(x)`` and of ``Cov(g)`` is the same and cancels. The diagonal form is
``S_i^2 = sd(x_i) / sd(g_i)``. Without gradients ``M = Cov(x)``, its correlations shrunk.
"""

import numpy as np

# Largest dimension of a dense scale in a kernel, which multiplies by the matrix at every step.
_MAX_DENSE = 64
# Robust standard deviations at which values are clipped, so that tails do not set the scale.
_CLIP = 5.0
# Added to the diagonal of correlation matrices, so that they have an inverse.
_RIDGE = 1e-3
# Largest dimension in which a reference has correlations: its density costs d^2.
MAX_DENSE = 512
# Length of a Newton step from the mean of draws, in their standard deviations, that leaves them.
_OUTSIDE = 3.0
# Interquartile range of a standard normal distribution.
_NORMAL_IQR = 1.349


def bulk_deviation(draws: np.ndarray) -> np.ndarray:
    """Return half the width of the middle 68 % of draws, shape ``(d,)``: a standard deviation.

    It is finite where the variance is not, and squares of 1e300 overflow.
    """
    low, high = np.quantile(draws, [0.16, 0.84], axis=0)
    return np.asarray(high / 2 - low / 2)


def estimate_scale(
    position: np.ndarray,
    weight: np.ndarray,
    gradient: np.ndarray | None = None,
    dense: bool = True,
    largest: int = _MAX_DENSE,
) -> np.ndarray:
    """Estimate the scale of a density from weighted particles, shapes ``(n, d)`` and ``(n,)``.

    Gradients of the log density, shape ``(n, d)``, help; rows that are not finite are left out.
    The scale is a Cholesky factor, shape ``(d, d)``, if that is wanted, the dimension is at most
    the largest one and the particles are many; otherwise a factor for each coordinate, ``(d,)``.
    """
    if gradient is not None:
        finite = np.isfinite(gradient).all(axis=1) & (weight > 0)
        if finite.sum() < 2:
            gradient = None
        else:
            position, weight, gradient = position[finite], weight[finite], gradient[finite]
    weight = weight / weight.sum()
    ess, d = 1 / (weight**2).sum(), position.shape[1]
    x = _clip_and_centre(position, weight)
    g = x if gradient is None else _clip_and_centre(gradient, weight)
    deviation = _deviation(weight, x) if gradient is None else _balance(weight, x, g)
    deviation = np.where((deviation > 0) & np.isfinite(deviation), deviation, 1.0)
    if not dense or not may_be_matrix(ess, d, largest):
        return deviation
    try:
        correlation = _correlation(
            x / deviation, weight, None if gradient is None else g * deviation
        )
        root: np.ndarray = deviation[:, None] * np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:  # scales so far apart that rounding leaves nothing of the small
        return deviation
    return root


def locate(draws: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return location and scale of a density from draws and its log gradients there.

    Parameters
    ----------
    draws, gradient : ndarray, shape (n, d)
        Rows whose gradient is not finite are left out; if all are, the moments of the draws are
        taken.

    Returns
    -------
    mean : ndarray, shape (d,)
    scale : ndarray, shape (d,) or (d, d)
        With gradients both are exact for a Gaussian density, from any ``d + 1`` draws. A step far
        out of many draws says that an edge ends the density: their moments are taken.
    """
    each, middle = np.ones(len(draws)), draws.mean(axis=0)
    scale = estimate_scale(draws, each, gradient, largest=MAX_DENSE)
    if not np.isfinite(gradient).all(axis=1).any():
        return middle, scale
    mean = newton_step(draws, gradient, scale)
    if len(draws) > 2 * len(mean) and _is_outside(mean - middle, draws):
        return middle, estimate_scale(draws, each, largest=MAX_DENSE)
    return mean, scale


def _is_outside(step: np.ndarray, draws: np.ndarray) -> bool:
    """Whether a step from the mean of draws, shape ``(d,)``, leaves them in some coordinate."""
    largest = np.maximum(np.abs(draws).max(axis=0), np.finfo(float).tiny)
    spread = (draws / largest).std(axis=0)  # squares of 1e300 overflow
    return bool((np.abs(step) / largest > _OUTSIDE * spread).any())


def newton_step(draws: np.ndarray, gradient: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the end of a Newton step from the mean of draws, shape ``(d,)``.

    It is exact for a Gaussian density of this scale: the noise of the mean cancels.
    """
    finite = np.isfinite(gradient).all(axis=1)
    slope = gradient[finite].mean(axis=0)
    step = scale @ (scale.T @ slope) if scale.ndim == 2 else scale * (scale * slope)
    return np.asarray(draws[finite].mean(axis=0) + step)


def _correlation(x: np.ndarray, weight: np.ndarray, g: np.ndarray | None) -> np.ndarray:
    """Return the matrix whose root moves scaled coordinates, shape (d, d)."""
    d = x.shape[1]
    if g is None:
        ridge = d / (d + 1 / (weight**2).sum())
        return np.asarray((1 - ridge) * _covariance(x, weight) + ridge * np.eye(d))
    diagonal = _RIDGE * np.eye(d)
    return _geometric_mean(_covariance(x, weight) + diagonal, _covariance(g, weight) + diagonal)


def may_be_matrix(ess: float, d: int, largest: int = _MAX_DENSE) -> bool:
    """Whether so many particles show the correlations of ``d`` coordinates."""
    return 1 < d <= largest and ess >= 2 * d


def _balance(weight: np.ndarray, x: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Return ``sqrt(sd(x) / sd(g))`` by coordinate, shape (d,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(_deviation(weight, x)) / np.sqrt(_deviation(weight, g)))


def _deviation(weight: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return standard deviations of centred values, shape (d,), whose squares may overflow."""
    largest = np.abs(x).max(axis=0)
    unit = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    return np.asarray(unit * np.sqrt(weight @ (x / unit) ** 2))


def _covariance(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    covariance: np.ndarray = (x.T * weight) @ x
    return covariance


def _geometric_mean(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve ``M B M = A`` for a positive definite ``M``, shape (d, d)."""
    value, vector = np.linalg.eigh(b)
    if value[0] <= 0:
        raise np.linalg.LinAlgError("rounding leaves nothing of the smallest eigenvalue")
    root = (vector * np.sqrt(value)) @ vector.T
    inverse = (vector / np.sqrt(value)) @ vector.T
    value, vector = np.linalg.eigh(root @ a @ root)
    mean: np.ndarray = inverse @ (vector * np.sqrt(np.maximum(value, 0.0))) @ vector.T @ inverse
    return np.asarray(0.5 * (mean + mean.T))


def _clip_and_centre(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Clip to five robust standard deviations about the median, and centre; shape (n, d)."""
    order = np.argsort(values, axis=0)
    ranked = np.take_along_axis(values, order, axis=0)
    mass = np.cumsum(weight[order], axis=0)
    q1, q2, q3 = (
        np.take_along_axis(ranked, (mass >= p).argmax(axis=0)[None], axis=0)[0]
        for p in (0.25, 0.5, 0.75)
    )
    spread = _CLIP * np.where(q3 > q1, q3 - q1, np.inf) / _NORMAL_IQR
    clipped = np.clip(values, q2 - spread, q2 + spread)
    centred: np.ndarray = clipped - weight @ clipped
    return centred
