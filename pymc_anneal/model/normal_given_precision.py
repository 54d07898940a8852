"""Draws of a normal distribution that is given by its precision, with cheap derivatives.

With ``Q = L L'``, a standard normal vector ``e`` and ``Phi`` the lower triangle with half of its
diagonal (Murray 2016, eq. 8),

    m = Q^{-1} r,    z = L'^{-1} e,    P = L^{-1} dQ L'^{-1},

    dm = Q^{-1} (dr - dQ m),    dz = L'^{-1} (de - Phi(P)' e),    d log |Q| = tr P.

Backwards, the derivatives take two products of matrices in place of the dozen of those of a
Cholesky factor and its inverse.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jax.scipy.linalg import solve_triangular

from pymc_anneal.model.cholesky import cholesky, invert_triangular


class NormalDraw(NamedTuple):
    """A draw of a normal distribution.

    Attributes
    ----------
    mean : Array, shape (k,)
    deviation : Array, shape (k,)
        From the mean.
    log_volume : Array, shape ()
        ``log |det d deviation / d e|``.
    """

    mean: jax.Array
    deviation: jax.Array
    log_volume: jax.Array


@jax.custom_jvp
def normal_draw(precision: jax.Array, right: jax.Array, e: jax.Array) -> NormalDraw:
    """Return the draw for a standard normal vector.

    Parameters
    ----------
    precision : Array, shape (k, k)
        ``Q``; its lower triangle is read.
    right : Array, shape (k,)
        ``r = Q m``.
    e : Array, shape (k,)
        The standard normal vector.

    Returns
    -------
    NormalDraw
        NaN if the precision is not positive definite.
    """
    root = cholesky(precision)
    half = solve_triangular(root, right, lower=True)
    both = solve_triangular(root, jnp.stack([half, e], axis=1), lower=True, trans="T")
    return NormalDraw(both[:, 0], both[:, 1], _log_volume(root))


def _log_volume(root: jax.Array) -> jax.Array:
    return -jnp.log(jnp.diagonal(root)).sum()


@normal_draw.defjvp
def _derivative(primals: Any, tangents: Any) -> tuple[NormalDraw, NormalDraw]:
    (precision, right, e), (change, right_change, e_change) = primals, tangents
    root = cholesky(precision)
    inverse = invert_triangular(root)
    draw = NormalDraw(inverse.T @ (inverse @ right), inverse.T @ e, _log_volume(root))
    scaled = inverse @ change @ inverse.T
    half = jnp.tril(scaled, -1) + jnp.diag(jnp.diagonal(scaled) / 2)
    return draw, NormalDraw(
        inverse.T @ (inverse @ (right_change - change @ draw.mean)),
        inverse.T @ (e_change - half.T @ e),
        -jnp.trace(scaled) / 2,
    )
