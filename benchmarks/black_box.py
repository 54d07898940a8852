"""A slow black box in eight dimensions: calls, seconds and error, with one and with two processes.

A linear regression whose evidence is known, with a likelihood that PyTensor cannot see into and
that takes 10 ms a call, most of them spent waiting, as for a solver on another machine.

    python benchmarks/black_box.py [milliseconds] [draws]
"""

import sys
import time
import warnings

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from scipy import stats

import pymc_anneal as pma

NDIM, ROWS, PRIOR_SD = 8, 30, 2.0
RNG = np.random.default_rng(3)
DESIGN = RNG.normal(size=(ROWS, NDIM)) @ (np.eye(NDIM) + 0.6 / NDIM)
DATA = DESIGN @ RNG.normal(size=NDIM) + RNG.normal(size=ROWS)


class SlowLikelihood(Op):
    """Log likelihood of the regression after some milliseconds."""

    def __init__(self, seconds: float):
        self.seconds = seconds

    def make_node(self, coefficients):
        return Apply(self, [pt.as_tensor(coefficients)], [pt.dscalar()])

    def perform(self, node, inputs, outputs):
        time.sleep(self.seconds)
        residual = DATA - DESIGN @ inputs[0]
        outputs[0][0] = np.asarray(-0.5 * (residual @ residual + ROWS * np.log(2 * np.pi)))


def model_of(seconds: float) -> pm.Model:
    with pm.Model() as model:
        coefficients = pm.Normal("b", 0, PRIOR_SD, shape=NDIM)
        pm.Potential("likelihood", SlowLikelihood(seconds)(coefficients))
    return model


def exact_log_evidence() -> float:
    covariance = np.eye(ROWS) + PRIOR_SD**2 * DESIGN @ DESIGN.T
    return float(stats.multivariate_normal(np.zeros(ROWS), covariance).logpdf(DATA))


def measure(model: pma.CompiledModel, executor: ProcessPoolExecutor | None, draws: int) -> float:
    begin = time.perf_counter()
    idata = pma.sample_ais(
        draws,
        model=model,
        transition="random_walk",
        executor=executor,
        random_seed=1,
        progressbar=False,
    )
    seconds = time.perf_counter() - begin
    estimate, calls = pma.log_evidence(idata), int(idata["evidence"]["calls"])
    error = estimate.log_evidence - exact_log_evidence()
    print(
        f"{calls:8d} calls {seconds:8.1f} s   error {error:+.3f}, mcse {estimate.mcse:.3f}, "
        f"{estimate.verdict}",
        flush=True,
    )
    return seconds


def start(model: pma.CompiledModel, executor: ProcessPoolExecutor) -> None:
    """Have the processes import the libraries and compile the likelihood."""
    kernel = pma.RandomWalkMetropolis(0.1, 1, 1.0)
    pma.sample_ais(
        4,
        steps=1,
        schedule="linear",
        transition=kernel,
        model=model,
        executor=executor,
        progressbar=False,
    )


def main(milliseconds: float = 10.0, draws: int = 100) -> None:
    model = pma.compile_model(model_of(milliseconds / 1000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measure(pma.compile_model(model_of(0.0)), None, draws)  # compiles the programs
        print("one process")
        one = measure(model, None, draws)
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            start(model, pool)
            print("two processes")
            two = measure(model, pool, draws)
    print(f"{one / two:.2f} times as fast")


if __name__ == "__main__":
    main(float(sys.argv[1]) if sys.argv[1:] else 10.0, int(sys.argv[2]) if sys.argv[2:] else 100)
