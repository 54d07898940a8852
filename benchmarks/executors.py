"""Compare the time of the same blocks on threads, processes and a local Dask cluster.

    python benchmarks/executors.py [--repeats 3] [--steps 1000]

Each executor runs the same blocks of a logistic regression on two workers with one XLA thread each.
A first block compiles the program on every worker. Threads share JAX's own thread pool. The
executors take turns, so that the load of the machine affects all of them. The results are compared
bit by bit.
"""

import argparse
import multiprocessing
import os
import time

from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pymc as pm

import pymc_anneal as pma

from pymc_anneal.annealing.block import Block
from pymc_anneal.execution.workers import run_blocks

WORKERS, BLOCKS, PARTICLES = 2, 8, 500
ONE_THREAD = {"NPROC": "1"}  # XLA reads it at start-up


def logistic_regression() -> pm.Model:
    """Return a regression with 300 rows and 20 coefficients."""
    rng = np.random.default_rng(1)
    design = rng.normal(size=(300, 20))
    truth = rng.normal(size=20)
    y = rng.binomial(1, 1 / (1 + np.exp(-design @ truth)))
    with pm.Model() as model:
        beta = pm.Normal("beta", shape=20)
        pm.Bernoulli("y", logit_p=design @ beta, observed=y)
    return model


def blocks(compiled: pma.CompiledModel, count: int, steps: int) -> list[Block]:
    """Return blocks of equal size."""
    path, betas = pma.GeometricPath(compiled.log_terms), pma.power_schedule(steps, 3.0)
    return [
        Block(path, pma.HMC(0.3, 3, 0.3), betas, compiled.sample_prior(seed, PARTICLES), 1, seed)
        for seed in np.random.SeedSequence(1).spawn(count)
    ]


def one_thread() -> None:
    """Limit XLA to one thread in this worker."""
    os.environ.update(ONE_THREAD)


def executors(stack: ExitStack) -> dict[str, Executor]:
    """Return the available executors by name."""
    spawn = multiprocessing.get_context("spawn")
    found: dict[str, Executor] = {
        "threads": stack.enter_context(ThreadPoolExecutor(WORKERS)),
        "processes": stack.enter_context(
            ProcessPoolExecutor(WORKERS, mp_context=spawn, initializer=one_thread)
        ),
    }
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        return found
    cluster = LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, env=ONE_THREAD
    )
    client = stack.enter_context(Client(stack.enter_context(cluster)))
    return found | {"dask": client.get_executor()}


def timed(executor: Executor, work: list[Block]) -> tuple[float, np.ndarray]:
    """Return seconds and log weights."""
    begin = time.perf_counter()
    results = run_blocks(work, executor)
    return time.perf_counter() - begin, np.concatenate([r.log_weight for r in results])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    work = blocks(pma.compile_model(logistic_regression()), BLOCKS, args.steps)
    with ExitStack() as stack:
        pools = executors(stack)
        for pool in pools.values():
            run_blocks(work[: 2 * WORKERS], pool)
        seconds: dict[str, list[float]] = {name: [] for name in pools}
        weights = {}
        for _ in range(args.repeats):
            for name, pool in pools.items():
                spent, weights[name] = timed(pool, work)
                seconds[name].append(spent)
    first = min(seconds["threads"])
    for name, values in seconds.items():
        same = np.array_equal(weights[name], weights["threads"])
        print(
            f"{name:10s} {min(values):7.2f} s, {min(values) / first - 1:+.0%} over threads, "
            f"{'identical' if same else 'NOT IDENTICAL'}"
        )


if __name__ == "__main__":
    main()
