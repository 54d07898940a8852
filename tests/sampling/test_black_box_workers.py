"""Calls of a black box on the workers of an executor."""

import pickle
import time

from collections.abc import Callable
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from multiprocessing import get_context

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.pipeline.black_box_calls import calls_on
from tests.model.models import evaluate
from tests.sampling.black_box_models import LogLikelihood, custom_dist, in_jax, potential
from tests.sampling.slow_calls import waiting_model

pytestmark = pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning")


@pytest.fixture(scope="module")
def pool():
    # Processes that are forked from one with running threads may hang.
    with ProcessPoolExecutor(2, mp_context=get_context("forkserver")) as pool:
        yield pool


class Elsewhere(Executor):
    """Stand in for workers: all that goes to them or comes back is pickled."""

    def submit(self, function: Callable, /, *args) -> Future:
        function, args = pickle.loads(pickle.dumps((function, args)))
        future: Future = Future()
        future.set_result(pickle.loads(pickle.dumps(function(*args))))
        return future


class Broken(Executor):
    """An executor that has lost its workers."""

    def submit(self, function: Callable, /, *args) -> Future:
        raise BrokenExecutor("gone")


def weights(model: pma.CompiledModel, executor) -> np.ndarray:
    idata = pma.sample_ais(
        40,
        model=model,
        executor=executor,
        random_seed=2,
        transition="random_walk",
        progressbar=False,
    )
    return np.asarray(idata["annealing"]["log_weight"])


@pytest.fixture(scope="module")
def model() -> pma.CompiledModel:
    return pma.compile_model(custom_dist(LogLikelihood()))


@pytest.fixture(scope="module")
def expected(model) -> np.ndarray:
    return weights(model, None)


@pytest.mark.slow
def test_workers_give_the_same_bits(model, expected) -> None:
    np.testing.assert_array_equal(weights(model, Elsewhere()), expected)


@pytest.mark.slow
def test_processes_give_the_same_bits(model, expected, pool) -> None:
    np.testing.assert_array_equal(weights(model, pool), expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_two_workers_of_dask_give_the_same_bits(model, expected, tmp_path) -> None:
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path)
    )
    with cluster, distributed.Client(cluster) as client:
        np.testing.assert_array_equal(weights(model, client.get_executor()), expected)


def test_calls_go_on_without_workers(model) -> None:
    points = model.sample_prior(np.random.SeedSequence(1), 5)
    with pytest.warns(UserWarning, match="lost its workers"), calls_on(model, Broken(), None):
        there = evaluate(model, points)
    np.testing.assert_array_equal(there.log_likelihood, evaluate(model, points).log_likelihood)


def test_threads_take_blocks(model) -> None:
    with ThreadPoolExecutor(2) as threads, calls_on(model, threads, None) as blocks_on:
        assert blocks_on is threads
        assert model.calls[0].executor is None
    elsewhere = Elsewhere()
    with calls_on(pma.compile_model(in_jax()), elsewhere, None) as blocks_on:
        assert blocks_on is elsewhere


def test_calls_are_counted(model) -> None:
    idata = pma.sample_ais(
        50,
        chains=2,
        steps=3,
        schedule="linear",
        model=model,
        progressbar=False,
        transition=pma.RandomWalkMetropolis(0.1, 2, 1.0),
    )
    # One at each start, and one for each proposal.
    assert int(idata["evidence"]["calls"]) == 100 * (1 + 3 * 2)
    assert 0 < float(idata["evidence"]["seconds_per_call"]) < 0.1


@pytest.mark.slow
def test_two_workers_wait_half_as_long(pool) -> None:
    model, seconds = pma.compile_model(waiting_model()), []
    for executor in (None, pool, pool):
        begin = time.perf_counter()
        with calls_on(model, executor, None):
            evaluate(model, np.zeros((200, 1)))
        seconds.append(time.perf_counter() - begin)
    assert seconds[0] > 1.8 * seconds[2]


def test_ops_that_cannot_be_sent_are_refused() -> None:
    local = potential(lambda slope, level: np.zeros(10))
    with pytest.raises(TypeError, match=r"`executor` cannot receive the model.*top level"):
        pma.sample_ais(
            model=local, executor=Elsewhere(), transition="random_walk", progressbar=False
        )


def test_an_object_that_is_no_executor(model) -> None:
    with pytest.raises(TypeError, match="without a method `submit`"):
        pma.sample_ais(model=model, executor=2, transition="random_walk")
