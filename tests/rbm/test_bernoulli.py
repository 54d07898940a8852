"""Random bits and Bernoulli units."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scipy import stats

from pymc_anneal.rbm.bernoulli import bernoulli, bernoulli_numpy, random_bits, uniform
from tests.rbm_cases import LEVEL, frequencies_agree, mean_agrees, states

DTYPES = [np.float32, np.float64]


def key_of(number: int) -> jax.Array:
    return jax.random.key(number, impl="threefry2x32")


def bits_of(words: np.ndarray) -> np.ndarray:
    """Return the 32 bits of each word as numbers -1 and 1, shape ``(n, 32)``."""
    parts = np.ascontiguousarray(words, "<u4").view(np.uint8)
    digits = np.unpackbits(parts, bitorder="little").reshape(-1, 32)
    return 2 * digits.astype(np.float32) - 1


def balanced(words: np.ndarray) -> bool:
    """Test whether each byte is uniform and each bit is 1 half of the time."""
    counts = [
        np.bincount((np.ravel(words) >> shift) & 255, minlength=256) for shift in (0, 8, 16, 24)
    ]
    bytes_are = min(stats.chisquare(count).pvalue for count in counts) > LEVEL
    mean = bits_of(words).mean(axis=0)
    return bytes_are and bool(np.abs(mean).max() < 5.5 / np.sqrt(np.size(words)))


def unrelated(first: np.ndarray, second: np.ndarray) -> bool:
    """Test whether all 32 x 32 pairs of bits are uncorrelated."""
    left, right = bits_of(first), bits_of(second)
    correlation = np.einsum("ni,nj->ij", left, right) / len(left)
    return bool(np.abs(correlation).max() < 6 / np.sqrt(len(left)))


def all_combinations(parts: np.ndarray) -> bool:
    """Test whether the same bits of four words take all 16 combinations equally often."""
    codes = [(np.array([1, 2, 4, 8]) @ ((parts >> shift) & 1)) for shift in range(32)]
    counts = [np.bincount(code, minlength=16) for code in codes]
    return bool(min(stats.chisquare(count).pvalue for count in counts) > LEVEL)


WORDS = 2**16


def words_of(key: np.ndarray) -> np.ndarray:
    return np.asarray(random_bits(jax.random.wrap_key_data(key, impl="threefry2x32"), (WORDS,)))


@pytest.fixture(scope="module")
def words() -> np.ndarray:
    return np.asarray(random_bits(key_of(1), (WORDS,)))


class TestRandomBits:
    def test_a_key_is_a_result(self, words: np.ndarray) -> None:
        again = random_bits(key_of(1), (WORDS,))
        assert again.dtype == jnp.uint32
        np.testing.assert_array_equal(again, words)
        other = np.asarray(random_bits(key_of(2), (WORDS,)))
        assert (other == words).mean() < 1e-4

    def test_compiled_or_not_and_in_any_precision(self, words: np.ndarray) -> None:
        compiled = jax.jit(random_bits, static_argnums=1)
        np.testing.assert_array_equal(compiled(key_of(1), (WORDS,)), words)
        with jax.enable_x64(True):
            np.testing.assert_array_equal(random_bits(key_of(1), (WORDS,)), words)

    @pytest.mark.parametrize("shape", [(), (3,), (7, 5), (2, 3, 11), (0, 4)])
    def test_odd_sizes(self, shape: tuple[int, ...]) -> None:
        found = np.asarray(random_bits(key_of(3), shape))
        assert found.shape == shape
        size = int(np.prod(shape))
        np.testing.assert_array_equal(found.ravel(), random_bits(key_of(3), (size,)))
        assert len(np.unique(found)) == size

    @pytest.mark.parametrize("number", [0, 1, 2**32 - 1])
    def test_uniform(self, number: int) -> None:
        assert balanced(np.asarray(random_bits(key_of(number), (WORDS,))))

    def test_words_of_few_keys_are_uniform(self) -> None:
        # The same positions under many keys.
        keys = jax.vmap(lambda i: jax.random.fold_in(key_of(4), i))(jnp.arange(2**14))
        assert balanced(np.asarray(jax.vmap(lambda k: random_bits(k, (4,)))(keys)))

    @pytest.mark.parametrize("lag", [1, 2, 3, 28, 784])
    def test_neighbours_are_unrelated(self, words: np.ndarray, lag: int) -> None:
        assert unrelated(words[:-lag], words[lag:])

    @pytest.mark.parametrize(("i", "j"), [(i, j) for j in range(4) for i in range(j)])
    def test_distant_words_are_unrelated(self, i: int, j: int) -> None:
        parts = np.asarray(random_bits(key_of(5), (4, WORDS)))
        assert unrelated(parts[i], parts[j])

    @pytest.mark.parametrize("shape", [(WORDS, 4), (4, WORDS)], ids=["near", "far"])
    def test_four_words_take_all_combinations(self, shape: tuple[int, int]) -> None:
        parts = np.asarray(random_bits(key_of(5), shape))
        parts = parts if len(parts) == 4 else parts.T
        assert all_combinations(parts)
        assert not all_combinations(np.array([*parts[:3], parts[0] ^ parts[1] ^ parts[2]]))

    def test_words_of_neighbours_under_many_keys(self) -> None:
        # Four units through the steps of a run, as each particle of an RBM sees them.
        keys = jax.vmap(lambda i: jax.random.fold_in(key_of(13), i))(jnp.arange(WORDS))
        parts = np.asarray(jax.vmap(lambda k: random_bits(k, (4,)))(keys)).T
        assert all_combinations(parts)
        assert all(unrelated(parts[i], parts[j]) for j in range(4) for i in range(j))
        assert all(unrelated(part[1:], part[:-1]) for part in parts)

    @pytest.mark.parametrize("word", [0, 1])
    @pytest.mark.parametrize("bit", [0, 7, 19, 31])
    def test_a_bit_of_the_key_changes_half_of_the_bits(self, word: int, bit: int) -> None:
        first = np.array([0x9E3779B9, 0x7F4A7C15], np.uint32)
        second = first.copy()
        second[word] ^= np.uint32(1 << bit)
        changed = np.bitwise_xor(*(words_of(key) for key in (first, second)))
        assert np.abs(bits_of(changed).mean(axis=0)).max() < 6 / np.sqrt(WORDS)

    @pytest.mark.parametrize("number", [0, 999])
    def test_successive_keys_are_unrelated(self, number: int) -> None:
        first, second = (
            np.asarray(random_bits(jax.random.fold_in(key_of(6), number + i), (WORDS,)))
            for i in range(2)
        )
        assert unrelated(first, second)

    def test_layers_of_different_shape_are_unrelated(self) -> None:
        # As in a Gibbs sweep: both keys come from one by splitting.
        hidden, visible = jax.random.split(key_of(7))
        first = np.asarray(random_bits(hidden, (WORDS // 20, 20))).ravel()
        second = np.asarray(random_bits(visible, (WORDS // 30, 30))).ravel()
        length = min(len(first), len(second))
        assert unrelated(first[:length], second[:length])

    def test_no_word_is_written_to_memory(self) -> None:
        """The words of units are computed within the comparison, for each unit once."""

        def by_table(key: jax.Array, p: jax.Array) -> jax.Array:
            words = jax.lax.optimization_barrier(random_bits(key, p.shape))
            return (uniform(words, p.dtype) < p).astype(p.dtype)

        p = jax.ShapeDtypeStruct((100, 784), jnp.float32)
        memory = [
            jax.jit(draw).lower(key_of(1), p).compile().memory_analysis().temp_size_in_bytes
            for draw in (bernoulli, by_table)
        ]
        if memory[1] == 0:
            pytest.skip("this version of the compiler reports no temporary memory")
        assert memory[0] < 4 * 784 <= 4 * 78_400 <= memory[1]

    def test_broken_twins_are_found(self, words: np.ndarray) -> None:
        counter = np.arange(WORDS, dtype=np.uint32) * np.uint32(1664525)
        assert not balanced(counter | np.uint32(1 << 7))
        assert not balanced(np.where(words % 50 == 0, words + np.uint32(1), words))
        assert not unrelated(counter[1:], counter[:-1])
        assert not unrelated(words, words ^ np.roll(words, 1) & words)


@partial(jax.jit, static_argnames="size")
def count_of(key, p, size: int):
    return bernoulli(key, jnp.broadcast_to(p, (size,))).sum(dtype=jnp.float64)


def share_below(uniform, p: np.ndarray) -> float:
    """Return the share of all words whose uniform number, which increases, is below ``p``."""
    low, high = 0, 2**32  # the words below the first are, those from the second on are not
    while low < high:
        middle = (low + high) // 2
        below = bool(uniform(jnp.asarray(middle, jnp.uint32), p.dtype) < p)
        low, high = (middle + 1, high) if below else (low, middle)
    return low / 2**32


@pytest.mark.parametrize("dtype", DTYPES)
class TestBernoulli:
    @pytest.fixture(autouse=True)
    def _double_precision(self):
        with jax.enable_x64(True):
            yield

    @pytest.mark.parametrize("p", [0.0, 1e-6, 1e-3, 0.3, 0.5, 1 - 1e-3, 1.0])
    def test_probabilities(self, dtype: type, p: float) -> None:
        size = 2**23 if p == 1e-6 else 2**19 + 1
        count = float(count_of(key_of(8), jnp.asarray(p, dtype), size))
        assert abs(count - size * p) <= 5 * np.sqrt(size * p * (1 - p))

    @pytest.mark.parametrize("shape", [(5, 3), (0, 3)])
    def test_shapes_and_values(self, dtype: type, shape: tuple[int, ...]) -> None:
        found = bernoulli(key_of(9), jnp.full(shape, 0.4, dtype))
        assert found.shape == shape
        assert found.dtype == dtype
        assert set(np.unique(found)) <= {0.0, 1.0}

    def test_every_unit_has_its_own_probability(self, dtype: type) -> None:
        p = np.array([0.02, 0.9, 0.5, 0.37, 1.0], dtype=dtype)
        draws = bernoulli(key_of(10), jnp.broadcast_to(p, (100_001, 5)))
        assert mean_agrees(np.asarray(draws), p.astype(float))
        assert not mean_agrees(np.asarray(draws), p.astype(float) - [0, 0, 0, 0.02, 0])

    def test_units_are_independent(self, dtype: type) -> None:
        p = np.array([0.2, 0.6, 0.5, 0.3], dtype=dtype)
        draws = bernoulli(key_of(11), jnp.broadcast_to(p, (100_001, 4)))
        exact = np.where(states(4) > 0, p.astype(float), 1 - p.astype(float)).prod(axis=1)
        assert frequencies_agree(np.asarray(draws), exact)
        assert not frequencies_agree(np.asarray(draws), np.roll(exact, 1))

    @pytest.mark.parametrize("p", [0.0, 2.0**-31, 1e-6, 0.1, 0.5, 0.7, 1 - 2.0**-20, 1.0])
    def test_exact_probabilities(self, dtype: type, p: float) -> None:
        """Of the 2^32 words, the share that gives 1 is ``p``."""
        p = np.asarray(p, dtype)
        tolerance = 2.0**-31 + np.finfo(dtype).eps * float(p)
        assert abs(share_below(uniform, p) - float(p)) <= tolerance

    def test_sixteen_bits_are_found(self, dtype: type) -> None:
        def coarse(words: jax.Array, dtype: type) -> jax.Array:
            return uniform(words & np.uint32(0xFFFF0000), dtype)

        assert abs(share_below(coarse, np.asarray(1e-6, dtype)) - 1e-6) > 1e-6

    @pytest.mark.parametrize("size", [2, 500, 784])
    def test_neighbours_in_a_layer_are_independent(self, dtype: type, size: int) -> None:
        p = jnp.full((2**20 // size, size), 0.3, dtype)
        draws = np.asarray(bernoulli(key_of(14), p))
        exact = np.array([0.49, 0.21, 0.21, 0.09])
        shared = np.repeat(draws[:, ::2], 2, axis=1)[:, :size]  # two units by one word
        for found, expected in ((draws, True), (shared, False)):
            pairs = found[:, : size // 2 * 2].reshape(-1, 2)
            assert frequencies_agree(pairs, exact) is expected
        assert frequencies_agree(draws[: len(draws) // 2 * 2].reshape(-1, 2, size)[:, :, 0], exact)

    def test_numpy(self, dtype: type) -> None:
        p = np.broadcast_to(np.array([0.02, 0.9, 0.5, 1.0], dtype=dtype), (100_001, 4))
        draws = bernoulli_numpy(np.random.default_rng(12), p)
        assert draws.dtype == dtype
        assert mean_agrees(draws, p[0].astype(float))
