"""Blocks whose densities call LAPACK take turns where JAX cannot run two of them at once."""

import threading

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.annealing import lapack_turns
from pymc_anneal.annealing.lapack_turns import calls_lapack
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.execution.workers import run_blocks
from tests.annealing.log_gamma_blocks import PATH, assert_same, make_blocks
from tests.cases import log_gamma_terms


def with_factor(x: jax.Array) -> LogTerms:
    """Log-gamma, plus the determinant of a matrix by its Cholesky factor."""
    terms = log_gamma_terms(x)
    factor = jnp.linalg.cholesky(jnp.eye(20) * (1 + (x**2).sum()))
    return LogTerms(terms.log_prior, terms.log_likelihood - jnp.log(jnp.diagonal(factor)).sum())


FACTOR = pma.GeometricPath(with_factor)

pytestmark = pytest.mark.skipif(
    jax.default_backend() != "cpu", reason="LAPACK is called on CPUs alone"
)


@pytest.mark.parametrize(("path", "expected"), [(PATH, False), (FACTOR, True)])
def test_calls_are_seen(path, expected) -> None:
    with jax.enable_x64(True):
        assert calls_lapack(path, np.zeros((3, 1))) is expected


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_two_threads() -> None:
    """With JAX 0.10 and without turns, these blocks wait for each other for ever."""
    blocks = make_blocks(4, steps=100, path=FACTOR)
    with ThreadPoolExecutor(2) as threads:
        found = run_blocks(blocks, threads)
    assert_same(found[2], run_block(blocks[2]))


@pytest.mark.parametrize(("path", "waits"), [(PATH, False), (FACTOR, True)])
def test_only_such_blocks_wait(path, waits, monkeypatch) -> None:
    monkeypatch.setattr(lapack_turns, "_MUST_TAKE_TURNS", True)
    (block,) = make_blocks(1, path=path)
    run_block(block)  # compiles
    thread = threading.Thread(target=run_block, args=[block])
    with lapack_turns._lock:
        thread.start()
        thread.join(0.5 if waits else 60)
        assert thread.is_alive() is waits
    thread.join(60)
    assert not thread.is_alive()
