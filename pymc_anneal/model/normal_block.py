"""Variables in which a log density is quadratic, integrated out exactly.

With ``l(u, theta)`` the log density, ``g`` its gradient at ``u = 0`` and ``Q = -d^2 l / du^2``,

    m = Q^-1 g,    log int exp l(u, theta) du = l(m, theta) + k/2 log(2 pi) - 1/2 log |Q|,

and ``u`` given ``theta`` is ``N(m, Q^-1)`` (Lindley & Smith 1972, section 2). The terms of ``l``
say which entries of ``Q`` are not zero. A few variables that many others share, ``s``, are set
apart, so that the others fall into independent blocks ``b`` that are solved side by side; those of
a chain cut it (nested dissection: George 1973):

    Q_bb = L L',    S = Q_ss - sum_b Q_sb Q_bb^-1 Q_bs,    |Q| = |S| prod_b |Q_bb|

(Golub & Plemmons 1980). Variables of the same place in different blocks share no term, so that the
products of ``Q`` with as many vectors as there are shared variables and places in a block give all
of its entries, whatever the number of blocks (Curtis, Powell & Reid 1974).

A draw for a standard normal vector ``e`` has, with ``Q = L L'``, ``P = L^-1 dQ L'^-1`` and ``Phi``
the lower triangle with half of its diagonal (Murray 2016, eq. 8),

    z = L'^-1 e,    dz = L'^-1 (de - Phi(P)' e),    d log |Q| = tr P.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jax.scipy.linalg import solve_triangular
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from pymc_anneal.model.cholesky import cholesky

# Numbers of shared variables that are tried.
_TRIED = 8
# Variables of a chain from which on it is cut: fewer are one block.
_LEAST_CHAIN = 16


@dataclass(frozen=True, eq=False)
class Blocks:
    """The places of a precision that are not zero.

    Attributes
    ----------
    size : int
        Number of variables ``k``.
    shared : ndarray of int, shape (h,)
        Variables that are set apart.
    members : ndarray of int, shape (n, b)
        The others, by block; shorter blocks are filled up with ``k``.
    """

    size: int
    shared: np.ndarray
    members: np.ndarray

    @property
    def directions(self) -> np.ndarray:
        """Vectors whose products with the precision give its entries, shape ``(h + b, k)``."""
        h, (_, b) = len(self.shared), self.members.shape
        found = np.zeros((h + b, self.size + 1))
        found[np.arange(h), self.shared] = 1
        found[h + np.arange(b), self.members] = 1
        return found[:, :-1]

    @property
    def work(self) -> int:
        """Multiplications of the factorisation."""
        h, (n, b) = len(self.shared), self.members.shape
        return int(n * (b**3 + b**2 * h + b * h**2) + h**3)


def find_blocks(depends: np.ndarray, size_of_terms: int) -> Blocks:
    """Find the blocks of a precision that take the fewest multiplications.

    Parameters
    ----------
    depends : ndarray of bool, shape (T, k)
        On which variables each term of the density depends.
    size_of_terms : int
        Multiplications of a product of the precision with a vector.
    """
    own = csr_array(depends, dtype=float)
    joined = (own.T @ own).toarray() > 0
    count = joined.sum(axis=1)
    bounds = [np.inf, *np.unique(count)[: -_TRIED - 1 : -1]]
    tried = [_apart(joined, np.flatnonzero(count >= bound)) for bound in bounds]
    tried += [_apart(joined, cuts) for t in tried for cuts in _cuts(joined, t)]
    return min(tried, key=lambda t: t.work + size_of_terms * len(t.directions))


def _cuts(joined: np.ndarray, blocks: Blocks) -> Iterator[np.ndarray]:
    """Yield sets of variables that cut a chain, which is one long block, into short ones."""
    rest = np.setdiff1d(np.arange(len(joined)), blocks.shared)
    if len(blocks.members) != 1 or len(rest) < _LEAST_CHAIN:
        return
    inner = joined[np.ix_(rest, rest)]
    order = reverse_cuthill_mckee(csr_array(inner), symmetric_mode=True)
    at, other = np.nonzero(inner[np.ix_(order, order)])
    width, place = np.abs(at - other).max(), np.arange(len(rest))
    length = width
    while 2 * (length + width) < len(rest):
        cut = place % (length + width) >= length
        yield np.concatenate([blocks.shared, rest[order[cut]]])
        length *= 2


def _apart(joined: np.ndarray, shared: np.ndarray) -> Blocks:
    """Set variables apart, and find the components into which the others fall."""
    size = len(joined)
    rest = np.setdiff1d(np.arange(size), shared)
    number, label = connected_components(csr_array(joined[np.ix_(rest, rest)]), directed=False)
    lengths = np.bincount(label, minlength=number)
    members = np.full((number, lengths.max(initial=0)), size)
    members[np.arange(members.shape[1]) < lengths[:, None]] = rest[np.argsort(label, kind="stable")]
    return Blocks(size, shared, members)


class Parts(NamedTuple):
    """A vector of the variables: those in blocks, shape ``(n, b)``, and the shared ones."""

    of_blocks: jax.Array
    of_shared: jax.Array


class Precision(NamedTuple):
    """A precision within blocks, shape ``(n, b, b)``, between them and what is shared, and there.

    Its symmetric part that is not held here is zero, or follows.
    """

    local: jax.Array
    cross: jax.Array
    apart: jax.Array

    def times(self, v: Parts) -> Parts:
        """Return the product with a vector."""
        of_blocks = jnp.einsum("nbc,nc->nb", self.local, v.of_blocks) + self.cross @ v.of_shared
        along = jnp.einsum("nbh,nb->h", self.cross, v.of_blocks)
        return Parts(of_blocks, along + self.apart @ v.of_shared)


class Solution(NamedTuple):
    """The mean ``Q^-1 g``, and half of the log determinant of the precision."""

    mean: Parts
    log_volume: jax.Array


class Expansion(NamedTuple):
    """A log density in the variables: slope at zero, precision, and whether both are finite."""

    slope: Parts
    precision: Precision
    usable: jax.Array


def expand(blocks: Blocks, log_density: Callable[[jax.Array], jax.Array]) -> Expansion:
    """Expand a log density that is quadratic in a vector, shape ``(k,)``."""
    slope, product = jax.linearize(jax.grad(log_density), jnp.zeros(blocks.size))
    directions = jnp.asarray(blocks.directions)
    rows = -jax.vmap(product)(directions)
    usable = jnp.isfinite(rows).all() & jnp.isfinite(slope).all()
    # Where they overflow, those of standard normal variables, so that derivatives are numbers.
    precision = _entries(blocks, jnp.where(usable, rows, directions))
    return Expansion(by_block(blocks, jnp.where(usable, slope, 0.0)), precision, usable)


def by_block(blocks: Blocks, vector: jax.Array) -> Parts:
    """Split a vector, shape ``(k,)``, into its parts."""
    padded = jnp.concatenate([vector, jnp.zeros(1)])
    return Parts(padded[blocks.members], padded[blocks.shared])


def in_line(blocks: Blocks, parts: Parts) -> jax.Array:
    """Join the parts of a vector, to shape ``(k,)``."""
    value = jnp.zeros(blocks.size + 1).at[blocks.members].set(parts.of_blocks)
    return value.at[blocks.shared].set(parts.of_shared)[:-1]


def _entries(blocks: Blocks, rows: jax.Array) -> Precision:
    """Return the entries of a precision from its products with the directions."""
    h, (_, b) = len(blocks.shared), blocks.members.shape
    padded = jnp.concatenate([rows, jnp.zeros((len(rows), 1))], axis=1)
    filled = (blocks.members == blocks.size)[..., None] * np.eye(b)
    local = jnp.moveaxis(padded[h:][:, blocks.members], 0, -1) + filled
    cross = jnp.moveaxis(padded[:h][:, blocks.members], 0, -1)
    return Precision(local, cross, padded[:h][:, blocks.shared])


class _Factor(NamedTuple):
    """Inverses of Cholesky factors: of blocks, and of what is left of the shared variables.

    ``cross`` is ``L^-1 Q_bs``.
    """

    local: jax.Array
    cross: jax.Array
    apart: jax.Array
    log_volume: jax.Array

    def solve(self, right: Parts) -> Parts:
        """Return ``Q^-1`` times a vector."""
        half = jnp.einsum("nbc,nc->nb", self.local, right.of_blocks)
        rest = right.of_shared - jnp.einsum("nbh,nb->h", self.cross, half)
        return self.back(Parts(half, self.apart @ rest))

    def back(self, half: Parts) -> Parts:
        """Return ``L'^-1`` times a vector."""
        shared = self.apart.T @ half.of_shared
        left = half.of_blocks - self.cross @ shared
        return Parts(jnp.einsum("ncb,nc->nb", self.local, left), shared)

    def covariance(self) -> Precision:
        """Return the entries of ``Q^-1`` in the places of those of ``Q``."""
        apart, along = self.apart.T @ self.apart, self.local.mT @ self.cross
        cross = along @ apart
        return Precision(self.local.mT @ self.local + cross @ along.mT, -cross, apart)


def _factorise(precision: Precision) -> _Factor:
    local, log_volume = _inverse_root(precision.local)
    cross = local @ precision.cross
    rest = precision.apart - jnp.einsum("nbh,nbi->hi", cross, cross)
    apart, of_shared = _inverse_root(rest)
    return _Factor(local, cross, apart, log_volume + of_shared)


@jax.custom_jvp
def _inverse_root(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the inverse of the Cholesky factor, and the sum of the logs of its diagonal."""
    if matrix.shape[-1] <= 1:
        return matrix**-0.5, jnp.log(matrix).sum() / 2
    root = jax.lax.linalg.cholesky(matrix, symmetrize_input=False)
    one = jnp.broadcast_to(jnp.eye(matrix.shape[-1]), matrix.shape)
    inverse = jax.lax.linalg.triangular_solve(root, one, left_side=True, lower=True)
    return inverse, jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)).sum()


@_inverse_root.defjvp
def _derivative_of_root(primals: Any, tangents: Any) -> tuple[Any, Any]:
    """``d L^-1 = -phi(L^-1 dQ L'^-1) L^-1``, without the loops of triangular systems."""
    (matrix,), (change,) = primals, tangents
    inverse, log_volume = _inverse_root(matrix)
    scaled = inverse @ change @ inverse.mT
    diagonal = jnp.diagonal(scaled, axis1=-2, axis2=-1)
    half = jnp.tril(scaled, -1) + diagonal[..., None] * jnp.eye(matrix.shape[-1]) / 2
    return (inverse, log_volume), (-half @ inverse, diagonal.sum() / 2)


# The rule holds no array of its own: programs with other data may share it.
@jax.custom_jvp
def solve(precision: Precision, slope: Parts) -> Solution:
    """Return the mean, and the volume, of a normal density; NaN if it is not one."""
    factor = _factorise(precision)
    return Solution(factor.solve(slope), factor.log_volume)


@solve.defjvp
def _derivative(primals: Any, tangents: Any) -> tuple[Solution, Solution]:
    """``dm = Q^-1 (dg - dQ m)`` and ``d log |Q| = tr(Q^-1 dQ)``."""
    (precision, slope), (change, slope_change) = primals, tangents
    factor = _factorise(precision)
    mean = factor.solve(slope)
    moved = jax.tree.map(jnp.subtract, slope_change, change.times(mean))
    products = jax.tree.map(lambda a, b: (a * b).sum(), factor.covariance(), change)
    trace = products.local + 2 * products.cross + products.apart
    return Solution(mean, factor.log_volume), Solution(factor.solve(moved), trace / 2)


def deviate(precision: Precision, e: Parts) -> Parts:
    """Return the deviation from the mean for a standard normal vector."""
    return _factorise(precision).back(e)


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

    Backwards, its derivatives take two products of matrices in place of the dozen of those of a
    Cholesky factor and its inverse.

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
    return NormalDraw(both[:, 0], both[:, 1], -jnp.log(jnp.diagonal(root)).sum())


@normal_draw.defjvp
def _derivative_of_draw(primals: Any, tangents: Any) -> tuple[NormalDraw, NormalDraw]:
    (precision, right, e), (change, right_change, e_change) = primals, tangents
    inverse, log_volume = _inverse_root(precision)
    draw = NormalDraw(inverse.T @ (inverse @ right), inverse.T @ e, -log_volume)
    scaled = inverse @ change @ inverse.T
    half = jnp.tril(scaled, -1) + jnp.diag(jnp.diagonal(scaled) / 2)
    return draw, NormalDraw(
        inverse.T @ (inverse @ (right_change - change @ draw.mean)),
        inverse.T @ (e_change - half.T @ e),
        -jnp.trace(scaled) / 2,
    )
