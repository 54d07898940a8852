"""Compare the time of an annealing step of an RBM with that of its matrix products.

    python benchmarks/rbm_step.py
    python benchmarks/rbm_step.py --particles 1000 --visible 784 --hidden 500
    taskset -c 0 python benchmarks/rbm_step.py --clock cpu  # on a machine with other work

A step of blocked Gibbs sampling draws two layers of Bernoulli units, updates the log weights and
needs two matrix products on the geometric path, three on a moment-average spline. The products
alone, in the same loop and of the same type, are a lower bound. The candidates run in one process
on the same cores and take turns; times per step and ratios of two times of the same round are
medians over rounds. The temperatures are those of a schedule of 10,000 steps from its middle on.

numpy
    The same step with NumPy's matrix products, random numbers and functions.
torch
    The same step with PyTorch, if it is installed.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal import rbm
from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.rbm.model import uniform_reference
from pymc_anneal.schedules.fixed import linear_schedule

# Steps of the schedule whose middle is timed: increments as small as those of a real run.
LENGTH = 10_000
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def random_rbm(visible: int, hidden: int) -> rbm.RBM:
    """Return an RBM with random parameters."""
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.1, (visible, hidden)).astype(np.float32)
    return rbm.RBM(rng.normal(-1, 1, visible), rng.normal(0, 1, hidden), weights)


def products(count: int):
    """Return a function of a number of steps with ``count`` matrix products each."""

    @jax.jit
    def loop(visible, weights, steps):
        def body(i, v):
            hidden = v @ weights[i % 2]
            if count == 3:
                hidden = hidden + v @ weights[(i + 1) % 2]
            # Cheap binary inputs, as in a Gibbs step, keep the values in range.
            return ((hidden > 0).astype(v.dtype) @ weights[i % 2].T > 0).astype(v.dtype)

        return jax.lax.fori_loop(0, steps, body, visible)

    return loop


def candidates(args):
    """Yield the name of each candidate and a function of a number of steps that runs it."""
    model = random_rbm(args.visible, args.hidden)
    start = np.random.default_rng(1).integers(0, 2, (args.particles, args.visible))
    visible = start.astype(np.float32)
    two = jnp.stack([model.weights, -model.weights])
    for count in (2, 3):
        loop = products(count)
        yield f"{count} products", lambda k, loop=loop: loop(visible, two, k).block_until_ready()
    reference = uniform_reference(args.visible, args.hidden, np.float32)
    half = jax.tree.map(lambda x: 0.5 * x, model)
    paths = {
        "geometric": rbm.GeometricRBMPath(reference.visible_bias, model),
        "spline": rbm.SplineRBMPath.through(np.array([0, 0.5, 1]), [reference, half, model]),
    }
    for name, path in paths.items():
        yield name, lambda k, path=path: anneal(path, visible, k)
    yield "numpy", lambda k: numpy_steps(model, visible, k)
    try:
        import torch  # noqa: F401
    except ImportError:
        print("torch is not installed: skipped")
    else:
        yield "torch", torch_steps(model, visible)


def anneal(path, visible: np.ndarray, steps: int) -> None:
    """Anneal the particles with the engine of this package."""
    seed = np.random.SeedSequence(2)
    betas = linear_schedule(LENGTH)[LENGTH // 2 :][: steps + 1]
    run_block(Block(path, rbm.BlockedGibbs(), betas, visible, 1, seed))


def numpy_steps(model: rbm.RBM, visible: np.ndarray, steps: int) -> np.ndarray:
    """Anneal the particles along the geometric path with NumPy."""
    rng = np.random.default_rng(3)
    a, b, w = model.visible_bias, model.hidden_bias, model.weights
    log_weight = np.zeros(len(visible))
    field = b + visible @ w
    for k in range(steps):
        old, new = np.float32(k / steps), np.float32((k + 1) / steps)
        log_weight += (new - old) * (visible @ a)
        log_weight += (np.logaddexp(0, new * field) - np.logaddexp(0, old * field)).sum(axis=1)
        probability = 1 / (1 + np.exp(-new * field))
        hidden = (rng.random(field.shape) < probability).astype(np.float32)
        probability = 1 / (1 + np.exp(-new * (a + hidden @ w.T)))
        visible = (rng.random(visible.shape) < probability).astype(np.float32)
        field = b + visible @ w
    return log_weight


def torch_steps(model: rbm.RBM, start: np.ndarray):
    """Return a function that anneals the particles along the geometric path with PyTorch."""
    import torch

    a, b, w = (torch.tensor(np.asarray(x)) for x in jax.tree.leaves(model))
    softplus = torch.nn.functional.softplus

    @torch.no_grad()
    def run(steps: int):
        visible = torch.tensor(start)
        log_weight = torch.zeros(len(visible), dtype=torch.float64)
        field = b + visible @ w
        for k in range(steps):
            old, new = k / steps, (k + 1) / steps
            log_weight += (new - old) * (visible @ a)
            log_weight += (softplus(new * field) - softplus(old * field)).sum(dim=1)
            hidden = torch.bernoulli(torch.sigmoid(new * field))
            visible = torch.bernoulli(torch.sigmoid(new * (a + hidden @ w.T)))
            field = b + visible @ w
        return log_weight

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--particles", type=int, default=1000)
    parser.add_argument("--visible", type=int, default=784)
    parser.add_argument("--hidden", type=int, default=500)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    args = parser.parse_args()
    times = measure(args)
    baseline = {"geometric": "2 products", "spline": "3 products"}
    print(f"{'':14s}{'ms per step':>12s}{'/ products':>12s}{'/ geometric':>12s}")
    for name, value in times.items():
        over = np.median(value / times[baseline.get(name, "2 products")])
        relative = np.median(value / times["geometric"])
        print(f"{name:14s}{1e3 * np.median(value):12.2f}{over:12.2f}{relative:12.2f}")


def measure(args) -> dict[str, np.ndarray]:
    """Return the seconds per step of each candidate in every round."""
    runs, clock = list(candidates(args)), CLOCKS[args.clock]
    for _, run in runs:
        run(args.steps)  # compiles
    times = {name: np.empty(args.rounds) for name, _ in runs}
    for i in range(args.rounds):
        for name, run in runs:
            run(args.steps)  # the first call after another candidate is slower
            # The difference between two lengths excludes the overhead of a call.
            short, long = (elapsed(run, k * args.steps, clock) for k in (1, 2))
            times[name][i] = (long - short) / args.steps
    return times


def elapsed(run, steps: int, clock) -> float:
    begin = clock()
    run(steps)
    return clock() - begin


if __name__ == "__main__":
    main()
