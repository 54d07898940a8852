"""Statistics of the steps: sums per chain, pooled over blocks, and the discrepancy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.annealing.step_statistics import (
    Stats,
    concatenate_stats,
    discrepancies,
    discrepancy,
    merge_stats,
    reduce_step,
)
from pymc_anneal.base.contracts import StepInfo
from tests.annealing.log_gamma_blocks import CHAINS, KERNEL, PATH, make_blocks
from tests.cases import log_gamma_draws, log_gamma_evidence


@pytest.mark.parametrize("steps", [1, 6, 600])
def test_size_depends_on_the_steps_only(steps: int) -> None:
    result = run_block(make_blocks(1, steps=steps)[0])
    assert sum(s.size for s in result.stats) == len(Stats._fields) * steps * CHAINS


def test_last_row_is_the_estimate() -> None:
    result = run_block(make_blocks(1)[0])
    log_w = np.logaddexp.reduce(result.log_weight, axis=1)
    np.testing.assert_allclose(result.stats.log_w[-1], log_w, rtol=1e-12)
    squared = np.logaddexp.reduce(2 * result.log_weight, axis=1)
    np.testing.assert_allclose(result.stats.log_w_squared[-1], squared, rtol=1e-12)


def test_sums_by_hand() -> None:
    """Two chains of three particles with uneven weights, one of zero, and two NaN proposals."""
    w, u = (
        np.array([[1.0, 2.0, 4.0], [3.0, 0.5, 1.0]]),
        np.array([[2.0, 0.5, 1.0], [0.0, 3.0, 5.0]]),
    )
    v = np.array([[1.0, -2.0, 3.0], [-np.inf, 0.5, -1.5]])
    accept, nan = np.linspace(0.1, 0.6, 6), np.array([0.0, 1.0, 1.0, 0.0, 0.0, 0.5])
    with jax.enable_x64(True), np.errstate(divide="ignore"):
        weight, increment, velocity = (jnp.asarray(a.ravel()) for a in (np.log(w), np.log(u), v))
        info = StepInfo(jnp.asarray(accept), jnp.asarray(nan), jnp.zeros((6, 1)))
        sums = reduce_step(weight, increment, velocity, info, chains=2)
    share = w * u / (w * u).sum(axis=1, keepdims=True)
    v[1, 0] = 0  # its weight is zero
    by_hand = {
        "log_w": np.log((w * u).sum(axis=1)),
        "log_w_squared": np.log(((w * u) ** 2).sum(axis=1)),
        "log_wu_squared": np.log((w * u**2).sum(axis=1)),
        "velocity": (share * v).sum(axis=1),
        "velocity_squared": (share * v**2).sum(axis=1),
        "accept_rate": [0.2, 0.5],
        "nan": [2.0, 0.5],
    }
    for name, values in by_hand.items():
        np.testing.assert_allclose(getattr(sums, name), values, rtol=1e-12, err_msg=name)


def test_velocity_is_an_expectation_at_beta() -> None:
    """Weighted means at every beta against the exact ``d log Z / d beta``."""
    rng = np.random.default_rng(3)
    betas = pma.linear_schedule(8)
    position = log_gamma_draws(0.0, 40_000, rng)
    result = run_block(Block(PATH, KERNEL, betas, position, 8, np.random.SeedSequence(3)))
    h = 1e-5
    for k, beta in enumerate(betas[1:]):
        exact = (log_gamma_evidence(beta + h) - log_gamma_evidence(beta - h)) / (2 * h)
        values = result.stats.velocity[k]
        assert abs(values.mean() - exact) < 7 * values.std(ddof=1) / np.sqrt(8) + 0.01


class TestMerge:
    def test_it_is_that_of_the_pooled_particles(self) -> None:
        results = [run_block(block) for block in make_blocks(3)]
        parts = [r.stats for r in results]
        merged = merge_stats(parts)
        weights = np.concatenate([r.log_weight for r in results], axis=1)
        log_w = np.logaddexp.reduce(weights, axis=1)
        np.testing.assert_allclose(merged.log_w[-1], log_w, rtol=1e-12)
        squared = np.logaddexp.reduce(2 * weights, axis=1)
        np.testing.assert_allclose(merged.log_w_squared[-1], squared, rtol=1e-12)
        share = np.exp([p.log_w - merged.log_w for p in parts])
        np.testing.assert_allclose(share.sum(axis=0), 1, rtol=1e-12)
        for name in ("velocity", "velocity_squared"):
            mean = sum(s * getattr(p, name) for s, p in zip(share, parts, strict=True))
            np.testing.assert_allclose(getattr(merged, name), mean, rtol=1e-12)
        wu = np.logaddexp.reduce([p.log_wu_squared for p in parts])
        np.testing.assert_allclose(merged.log_wu_squared, wu, rtol=1e-12)
        rates = np.mean([p.accept_rate for p in parts], axis=0)
        np.testing.assert_allclose(merged.accept_rate, rates, rtol=1e-12)

    def test_parts_of_zero_weight(self) -> None:
        dead = Stats(*[np.full((2, 1), -np.inf)] * 3, *[np.zeros((2, 1))] * 4)
        live = Stats(*[np.zeros((2, 1))] * 3, *[np.ones((2, 1))] * 4)
        merged = merge_stats([dead, live])
        assert (merged.log_w == 0).all()
        assert (merged.velocity == 1).all()
        assert np.isneginf(merge_stats([dead, dead]).log_w).all()


def test_pieces_are_joined_in_order() -> None:
    stats = run_block(make_blocks(1)[0]).stats
    pieces = [Stats(*(s[:2] for s in stats)), Stats(*(s[2:] for s in stats))]
    for whole, joined in zip(stats, concatenate_stats(pieces), strict=True):
        np.testing.assert_array_equal(whole, joined)


def test_both_forms_of_the_discrepancy_agree() -> None:
    """In the first step the particles are equally weighted, and some have a likelihood of zero."""
    log_u = np.log([[1.0, 2.0, 3.0], [0.5, 4.0, 1.0]])
    zero = np.zeros((1, 2))
    stats = Stats(
        log_w=np.logaddexp.reduce(log_u, axis=1)[None],
        log_w_squared=zero,
        log_wu_squared=np.logaddexp.reduce(2 * log_u, axis=1)[None],
        velocity=zero,
        velocity_squared=zero,
        accept_rate=zero,
        nan=zero,
    )
    with jax.enable_x64(True):
        single = float(discrepancy(jnp.asarray(log_u.ravel())))
        with_zero = float(discrepancy(jnp.append(jnp.asarray(log_u.ravel()), -jnp.inf)))
    u = np.exp(log_u)
    assert single == pytest.approx(np.log((u**2).mean() / u.mean() ** 2), rel=1e-12)
    assert with_zero == pytest.approx(single, rel=1e-12)
    assert discrepancies(stats, 6)[0] == pytest.approx(single, rel=1e-12)
