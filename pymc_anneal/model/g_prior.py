"""Zellner's g-prior of regression coefficients, and the unit-information prior among them.

    beta ~ N(0, g sigma^2 (X'X)^-1)

(Zellner 1986): with ``g = n`` it holds as much information as one observation (Kass & Wasserman
1995), which makes the log evidence behave as the BIC does.
"""

from typing import Any

import numpy as np

from scipy.linalg import solve_triangular


def g_prior(x: Any, g: float | None = None) -> np.ndarray:
    """Return a root of the covariance of a g-prior, in units of the error variance.

    Parameters
    ----------
    x : array, shape (n, k)
        Regressors, without the intercept. Their means are subtracted: the intercept keeps a prior
        of its own.
    g : float, optional
        Default: the number of rows ``n``, the unit-information prior.

    Returns
    -------
    ndarray, shape (k, k)
        The lower triangular ``L`` with ``L L' = g (X'X)^-1``.

    Raises
    ------
    ValueError
        The regressors are not a matrix of finite numbers of full rank, or `g` is not positive.

    References
    ----------
    Zellner (1986), On assessing prior distributions and Bayesian regression analysis with g-prior
    distributions. Kass & Wasserman (1995), A reference Bayesian test for nested hypotheses. Liang,
    Paulo, Molina, Clyde & Berger (2008), Mixtures of g priors for Bayesian variable selection,
    eq. 3.

    Examples
    --------
    >>> with pymc.Model():
    ...     sigma = pymc.HalfNormal("sigma", 2)
    ...     beta = pymc.MvNormal("beta", 0, chol=sigma * pymc_anneal.g_prior(X))
    """
    matrix = np.asarray(x, dtype=float)
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise ValueError(
            f"`x` has shape {matrix.shape}, expected a matrix of finite numbers: a column for each "
            "regressor."
        )
    size = len(matrix) if g is None else g
    if not size > 0:
        raise ValueError(f"`g` is {g}, expected a positive number.")
    centred = matrix - matrix.mean(axis=0)
    if np.linalg.matrix_rank(centred) < matrix.shape[1]:
        raise ValueError(
            "The regressors are not linearly independent (a constant column counts as one that is "
            "not): leave out those that follow from the others."
        )
    # With a QR factor R of the columns in reverse order, (X'X)^-1 = L L' for the turned R^-1.
    triangle = np.linalg.qr(centred[:, ::-1], mode="r")
    inverse = solve_triangular(triangle, np.eye(len(triangle)))[::-1, ::-1]
    return np.asarray(np.sqrt(size) * inverse * np.sign(np.diag(inverse)))
