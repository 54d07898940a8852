"""Sums over discrete variables against the sum over all of their configurations."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scipy import special, stats

from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model import elimination as module
from pymc_anneal.model.elimination import Elimination, plan_elimination

Sets = list[tuple[int, ...]]
CHAIN: Sets = [(i,) for i in range(7)] + [(i, i + 1) for i in range(6)]
CASES = {
    "chain": ([2] * 7, CHAIN),
    "cycle with a tail": ([2, 3, 4, 2], [(0,), (1, 2), (2, 3), (0, 3), (0, 1)]),
    "three at once": ([3, 2, 2, 3, 2], [(0, 1, 2), (2, 3), (3, 4), (0, 4)]),
    "grid": ([2] * 9, [(i, i + 1) for i in (0, 1, 3, 4, 6, 7)] + [(i, i + 3) for i in range(6)]),
    "independent, of two sizes": ([3, 5], [(0,), (1,)]),
    "one without a term": ([2, 3], [(0,)]),
}


def factors(sizes: list[int], sets: Sets) -> tuple[dict, np.ndarray]:
    """Places of terms, up to three in a factor, and their logs: some of them are log 0."""
    rng, places, end = np.random.default_rng(len(sets)), {}, 0
    for own in sets:
        shape = (*(sizes[i] for i in own), rng.integers(1, 4))
        places[own] = np.arange(end, end + np.prod(shape)).reshape(shape)
        end += places[own].size
    table = rng.normal(size=end)
    table[rng.random(end) < 0.05] = -np.inf
    return places, table


def enumerate_all(sizes: list[int], places: dict, table: np.ndarray) -> np.ndarray:
    """Logs of the product at all configurations, the last variable's fastest."""
    return np.array(
        [
            sum(table[place[tuple(z[i] for i in own)]].sum() for own, place in places.items())
            for z in product(*map(range, sizes))
        ]
    )


@double_precision
def plan(name: str) -> tuple[Elimination, list[int], dict, np.ndarray]:
    sizes, sets = CASES[name]
    places, table = factors(sizes, sets)
    found = plan_elimination(sizes, places, len(table))
    assert found is not None
    return found, sizes, places, table


@pytest.mark.parametrize("name", CASES)
@double_precision
def test_sum_and_gradient(name: str) -> None:
    elimination, sizes, places, table = plan(name)
    function = jax.jit(jax.value_and_grad(elimination.log_sum))
    found, gradient = function(jnp.asarray(table))
    logs = enumerate_all(sizes, places, table)
    assert found == pytest.approx(special.logsumexp(logs), abs=1e-12)
    # The derivative by a term is the probability of its values.
    share = special.softmax(logs).reshape(sizes)
    for own, place in places.items():
        rest = tuple(i for i in range(len(sizes)) if i not in own)
        expected = np.broadcast_to(share.sum(axis=rest)[..., None], place.shape)
        np.testing.assert_allclose(np.asarray(gradient)[place], expected, atol=1e-12)


@pytest.mark.parametrize("name", ["cycle with a tail", "three at once"])
@double_precision
def test_draws(name: str) -> None:
    elimination, sizes, places, table = plan(name)
    share = special.softmax(enumerate_all(sizes, places, table))
    draw = jax.jit(jax.vmap(lambda key: elimination.draw(jnp.asarray(table), key)))
    values = np.asarray(draw(jax.random.split(jax.random.key(1), 20_000)))
    counts = np.bincount(np.ravel_multi_index(values.T, sizes), minlength=len(share))
    assert not counts[share == 0].any()
    there = share > 0
    assert stats.chisquare(counts[there], 20_000 * share[there]).pvalue > 1e-4


@double_precision
def test_a_chain_takes_few_rounds_and_a_full_graph_is_refused() -> None:
    chain = [(i, i + 1) for i in range(63)]
    places = factors([2] * 64, chain)[0]
    found = plan_elimination([2] * 64, places, 4 * 63 * 3)
    assert found is not None
    assert len(found.rounds) <= 8
    full = {(i, j): np.zeros((2, 2, 1), int) for i in range(30) for j in range(i)}
    assert plan_elimination([2] * 30, {k[::-1]: v for k, v in full.items()}, 4) is None


@double_precision
def test_impossible_values() -> None:
    """A factor of zero beats another one that is NaN; if all are zero the sum is, too."""
    places = {(0,): np.array([[0, 2], [1, 3]])}
    found = plan_elimination([2], places, 4)
    assert found is not None
    half = jnp.array([-jnp.inf, -1.0, jnp.nan, 0.5])
    value, gradient = jax.value_and_grad(found.log_sum)(half)
    assert value == -0.5
    np.testing.assert_array_equal(gradient, [0, 1, 0, 1])
    value, gradient = jax.value_and_grad(found.log_sum)(jnp.full(4, -jnp.inf))
    assert value == -np.inf
    np.testing.assert_array_equal(gradient, np.zeros(4))
    assert np.isnan(found.log_sum(jnp.array([0.0, jnp.nan, 0.0, 0.0])))


@pytest.mark.slow
@double_precision
def test_a_wrong_twin_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours summed out in one round count nothing twice: without the block they would."""
    own = module._choose

    def all_at_once(sizes, factors, left):
        chosen, around = own(sizes, factors, left)
        return sorted(left), around

    monkeypatch.setattr(module, "_choose", all_at_once)
    sizes, sets = CASES["chain"]
    places, table = factors(sizes, sets)
    with pytest.raises((AssertionError, ValueError, IndexError, TypeError)):
        found = plan_elimination(sizes, places, len(table))
        assert found is not None
        exact = special.logsumexp(enumerate_all(sizes, places, table))
        assert found.log_sum(jnp.asarray(table)) == pytest.approx(exact, abs=1e-6)
