"""Evaluation in parts: the same values, one call of the host, batches for small densities."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.base.batches import in_parts
from pymc_anneal.base.contracts import gradient
from pymc_anneal.base.double_precision import double_precision

LARGE, D = 5000, 3
WIDE = np.linspace(0.0, 1.0, LARGE * D).reshape(LARGE, D)


def large(x: jax.Array) -> jax.Array:
    """Return a number that takes ``LARGE`` numbers on the way."""
    return jnp.cos(jnp.asarray(WIDE, x.dtype) @ x).sum()


def positions(n: int) -> jax.Array:
    return jax.random.normal(jax.random.key(1), (n, D))


def sizes_of_parts(density, n: int) -> set[int]:
    """Return the numbers of positions for which a batched density is traced."""
    sizes = set()

    def batched(x: jax.Array) -> jax.Array:
        sizes.add(len(x))
        return jax.vmap(density)(x)

    jax.eval_shape(lambda x: in_parts(batched, x, density), positions(n))
    return sizes


@pytest.mark.parametrize("n", [256, 300, 331])
@double_precision
def test_the_same_values(n: int) -> None:
    x = positions(n)
    both = partial(in_parts, jax.vmap(jax.value_and_grad(large)), density=large)
    value, slope = jax.jit(both)(x)
    expected, slopes = jax.jit(jax.vmap(jax.value_and_grad(large)))(x)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    np.testing.assert_allclose(slope, slopes, rtol=1e-9, atol=1e-9)


def test_sizes() -> None:
    assert sizes_of_parts(large, 300) == {100}
    assert sizes_of_parts(large, 331) == {331}, "a prime number has no equal parts"
    assert sizes_of_parts(large, 100) == {100}, "all fit into the cache"
    assert sizes_of_parts(lambda x: x.sum(), 300) == {300}


def test_inner_programs_are_seen() -> None:
    assert sizes_of_parts(jax.jit(large), 300) == {100}


def test_the_host_is_called_once() -> None:
    def on_host(x: jax.Array) -> jax.Array:
        return jax.pure_callback(lambda x: x[..., 0], x[0], x, vmap_method="broadcast_all")

    assert sizes_of_parts(lambda x: on_host(x) + large(x), 300) == {300}


def test_on_a_gpu_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert sizes_of_parts(large, 300) == {300}


@double_precision
def test_paths_use_parts() -> None:
    def terms(x: jax.Array) -> pma.LogTerms:
        return pma.LogTerms(-0.5 * (x**2).sum(), large(x))

    path, x = pma.GeometricPath(terms), positions(300)
    with_parts = jax.jit(lambda x: (path.evaluate(x), gradient(path, x, 0.5)))
    assert "300,5000" not in str(jax.make_jaxpr(with_parts)(x))
    found, slope = with_parts(x)
    np.testing.assert_allclose(found.log_likelihood, jax.vmap(large)(x), rtol=1e-10)
    expected = jax.vmap(jax.grad(large))(x) / 2 - x
    np.testing.assert_allclose(slope, expected, rtol=1e-9, atol=1e-9)
