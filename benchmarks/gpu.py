"""Compare the time of the same runs on the CPU and on a GPU, if JAX finds one.

    python benchmarks/gpu.py [--particles 5000] [--steps 1000]

rbm
    Blocked Gibbs sampling of a restricted Boltzmann machine with 784 x 500 units in single
    precision, a cell of Grosse et al. (2013), Table 2, with `--steps` instead of 100,000. The
    fraction of the device's peak performance counts the two matrix products only (`--peak`, in
    Tflop/s), as often as the algorithm needs them: on a GPU each is computed as three products in
    bfloat16, so that the fraction may exceed 100 % of the peak in single precision.
regression
    Hamiltonian transitions on a logistic regression with 10,000 rows, in double precision.

Each device runs in its own process. Times are in milliseconds per annealing step, from the
difference between runs of two lengths, which excludes compilation and the overhead of a call.
"""

import argparse
import os
import subprocess
import sys
import time
import warnings

import jax
import numpy as np
import pymc as pm

import pymc_anneal as pma

from pymc_anneal import rbm
from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block

warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")

VISIBLE, HIDDEN, ROWS = 784, 500, 10_000


def rbm_block(particles: int, steps: int) -> Block:
    """Return a block of blocked Gibbs sampling along the geometric path of an RBM."""
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.1, (VISIBLE, HIDDEN)).astype(np.float32)
    model = rbm.RBM(rng.normal(-1, 1, VISIBLE), rng.normal(0, 1, HIDDEN), weights)
    reference = rbm.uniform_reference(VISIBLE, HIDDEN, np.float32)
    path = rbm.GeometricRBMPath(reference.visible_bias, model)
    start = rng.integers(0, 2, (particles, VISIBLE)).astype(np.float32)
    betas, seed = pma.linear_schedule(steps), np.random.SeedSequence(1)
    return Block(path, rbm.BlockedGibbs(), betas, start, 1, seed)


def regression(particles: int, steps: int) -> Block:
    """Return a block of HMC along the geometric path of a logistic regression."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 10))
    y = rng.uniform(size=ROWS) < 1 / (1 + np.exp(-x @ rng.normal(0, 0.5, size=10)))
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, 1, shape=10)
        pm.Bernoulli("y", logit_p=pm.math.dot(x, beta), observed=y.astype(int))
    compiled, seed = pma.compile_model(model), np.random.SeedSequence(1)
    path, kernel = pma.GeometricPath(compiled.log_terms), pma.HMC(0.1, 3, 0.1)
    start = compiled.sample_prior(seed, particles)
    return Block(path, kernel, pma.power_schedule(steps, 4.0), start, 1, seed)


def seconds_per_step(make, particles: int, steps: int) -> float:
    """Return the time of an annealing step, after compilation."""
    times = []
    for count in (steps, 2 * steps):
        block = make(particles, count)
        run_block(block)  # compiles
        begin = time.perf_counter()
        run_block(block)
        times.append(time.perf_counter() - begin)
    return (times[1] - times[0]) / steps


def report(args: argparse.Namespace) -> None:
    """Print the row of the device of this process."""
    device = jax.devices()[0]
    flops = 4 * args.particles * VISIBLE * HIDDEN
    once = seconds_per_step(rbm_block, args.particles, args.steps)
    share = f"{flops / once / args.peak / 1e12:8.1%}" if device.platform == "gpu" else ""
    other = seconds_per_step(regression, args.particles // 5, max(args.steps // 20, 10))
    print(f"{device.device_kind:24} {1e3 * once:10.2f} {1e3 * other:11.2f} {share}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--particles", type=int, default=5000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--peak", type=float, default=67.0, help="Tflop/s in single precision")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.here:
        report(args)
        return
    print(f"{'ms per step':24} {'rbm':>10} {'regression':>11}  of peak", flush=True)
    for platform in ("cpu", "cuda"):
        settings = {**os.environ, "JAX_PLATFORMS": platform}
        command = [sys.executable, __file__, "--here", *sys.argv[1:]]
        done = subprocess.run(command, env=settings, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            missing = "in backends" in done.stderr  # JAX's own message depends on its version
            print("JAX found no GPU" if missing else done.stderr)


if __name__ == "__main__":
    main()
