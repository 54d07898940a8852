"""Products of binary units and weights, as on a CPU and as on a GPU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.rbm.products import (
    bfloat16_parts,
    binary_product,
    product_in_parts,
    product_with_biases,
)

RNG = np.random.default_rng(1)
UNITS = RNG.integers(0, 2, (40, 300)).astype(np.float32)
WEIGHTS = (RNG.normal(size=(300, 20)) * 10.0 ** RNG.integers(-4, 3, (300, 20))).astype(np.float32)


@pytest.mark.parametrize("compiled", [False, True])
def test_three_parts_hold_all_bits(compiled: bool) -> None:
    # Without `reduce_precision`, a compiler may return the weights as the first part.
    split = jax.jit(bfloat16_parts) if compiled else bfloat16_parts
    parts = split(jnp.asarray(WEIGHTS))
    assert [p.dtype for p in parts] == [jnp.bfloat16] * 3
    exact = [np.asarray(p).astype(np.float64) for p in parts]
    np.testing.assert_array_equal(sum(exact), WEIGHTS.astype(np.float64))
    assert (exact[0] != WEIGHTS).any() and (exact[0] + exact[1] != WEIGHTS).any()


def test_the_sum_of_products_is_as_accurate_as_float32() -> None:
    exact = UNITS.astype(np.float64) @ WEIGHTS.astype(np.float64)
    scale = UNITS @ np.abs(WEIGHTS)
    for function in (product_in_parts, jnp.matmul):
        # The package's calls ask for full precision, without which a GPU rounds to TensorFloat-32.
        found = np.asarray(double_precision(jax.jit(function))(UNITS, WEIGHTS))
        assert found.dtype == np.float32
        assert (np.abs(found - exact) / scale).max() < 1e-6
    rounded = UNITS @ np.asarray(jnp.asarray(WEIGHTS).astype(jnp.bfloat16)).astype(np.float32)
    assert (np.abs(rounded - exact) / scale).max() > 1e-4


def lowered(platform: str, dtype: type) -> str:
    """Return the program of a product for a platform, which need not be present."""
    arguments = (jax.ShapeDtypeStruct(a.shape, dtype) for a in (UNITS, WEIGHTS))
    with jax.enable_x64(True):
        traced = jax.jit(binary_product).trace(*arguments)
        return str(traced.lower(lowering_platforms=(platform,)).as_text())


@pytest.mark.parametrize(
    ("platform", "dtype", "products", "parts"),
    [("cuda", np.float32, 3, True), ("cuda", np.float64, 1, False), ("cpu", np.float32, 1, False)],
)
def test_only_a_gpu_splits_single_precision(
    platform: str, dtype: type, products: int, parts: bool
) -> None:
    text = lowered(platform, dtype)
    assert text.count("dot_general") == products
    assert ("bf16" in text) == parts


def test_other_products_are_in_full_precision() -> None:
    # JAX's default on recent GPUs is TensorFloat-32.
    product = double_precision(lambda x: str(jax.make_jaxpr(jnp.matmul)(x, x)))
    assert "HIGHEST" in product(np.ones((2, 2), np.float32))


@pytest.mark.gpu
@pytest.mark.parametrize("function", [binary_product, jnp.matmul])
def test_on_a_gpu(function) -> None:
    try:
        device = jax.devices("gpu")[0]
    except RuntimeError:
        pytest.skip("JAX found no GPU")
    product = double_precision(jax.jit(function))
    found = np.asarray(product(*jax.device_put((UNITS, WEIGHTS), device)))
    exact = UNITS.astype(np.float64) @ WEIGHTS.astype(np.float64)
    assert (np.abs(found - exact) / (UNITS @ np.abs(WEIGHTS))).max() < 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 13, 14, 15, 16])
def test_fields_and_biases_by_one_product(columns: int, dtype: type) -> None:
    units, weights = UNITS.astype(dtype), RNG.normal(size=(300, columns)).astype(dtype)
    biases = RNG.normal(size=(2, 300))  # in another type than the weights, which decide
    with jax.enable_x64(True):
        found = jax.jit(product_with_biases)(units, weights, *biases)
    expected = units @ weights, *(biases @ units.T)
    for left, right in zip(found, expected, strict=True):
        assert left.dtype == dtype
        np.testing.assert_allclose(left, right, rtol=0, atol=300 * np.finfo(dtype).eps)
    assert not np.allclose(found[1], expected[2], atol=1e-3)
