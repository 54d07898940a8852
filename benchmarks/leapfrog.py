"""Compare the time of a leapfrog step with that of a hand-written JAX gradient.

    python benchmarks/leapfrog.py

A leapfrog step is one gradient with its drift and kick; if the integrator of `HMC` evaluates
several gradients per step, each counts as one. The baseline is the jitted, vmapped gradient of
log prior + beta log likelihood, written by hand for the model (for the logistic regression with
log(1 + exp(-|x|))), without drift, kick and acceptance. It runs as single calls and in a compiled
loop, and the faster of the two counts. Both methods use float64, the same number of particles, the
same process and the same threads. Two measurements of the engine, both from `run_block` with a
fixed HMC kernel:

slope
    (time of a long trajectory - time of a short one) / difference in gradients: the time of an
    additional step.
whole
    time of the whole annealing run with 4 gradients per temperature / number of gradients,
    including momenta, acceptance, weights and statistics.

The limit is 1.5 for the slope. Engine and baseline take turns; results are medians over rounds.
"""

import argparse
import time

from collections.abc import Callable

import jax
import jax.numpy as jnp
import models as zoo
import numpy as np

import pymc_anneal

from pymc_anneal import HMC, GeometricPath
from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block

LIMIT = 1.5
LOG_2PI = float(np.log(2 * np.pi))


# Hand-written log densities: functions of x, shape (d,), and beta.


def logistic() -> Callable:
    """Return the tempered log density of the logistic regression."""
    x, y = zoo.logistic_data()
    signed = jnp.asarray(np.where(y > 0, 1.0, -1.0)[:, None] * x)

    def log_density(b, beta):
        margin = signed @ b
        value = (jnp.minimum(margin, 0) - jnp.log(1 + jnp.exp(-jnp.abs(margin)))).sum()
        return beta * value - 0.5 * b @ b

    return log_density


def regression() -> Callable:
    """Return the tempered log density of the linear regression, ``x = (log s2, b)``."""
    x, y = (jnp.asarray(a) for a in zoo.regression_data())
    n, d = x.shape

    def log_density(position, beta):
        log_s2, b = position[0], position[1:]
        precision = jnp.exp(-log_s2)
        residual = y - x @ b
        log_likelihood = -0.5 * (n * log_s2 + precision * residual @ residual)
        log_prior = -3 * log_s2 - 2 * precision - 0.5 * (d * log_s2 + precision * b @ b)
        return beta * log_likelihood + log_prior

    return log_density


def schools() -> Callable:
    """Return the tempered log density of eight schools, ``x = (mu, log tau, eta)``."""
    y, sigma = jnp.asarray(zoo.SCHOOLS_Y), jnp.asarray(zoo.SCHOOLS_SIGMA)

    def log_density(position, beta):
        mu, log_tau, eta = position[0], position[1], position[2:]
        tau = jnp.exp(log_tau)
        z = (y - mu - tau * eta) / sigma
        log_prior = log_tau - jnp.log(1 + (tau / 5) ** 2) - 0.5 * ((mu / 5) ** 2 + eta @ eta)
        return log_prior - 0.5 * beta * z @ z

    return log_density


HAND = {"logistic": logistic, "regression": regression, "schools": schools}


def check(path: GeometricPath, log_density: Callable, position: jax.Array) -> None:
    """Raise an error unless both densities have the same gradient."""
    for beta in (0.3, 1.0):
        ours = jax.vmap(jax.grad(lambda x, b=beta: sum_terms(path, x, b)))(position)
        theirs = jax.vmap(jax.grad(log_density), (0, None))(position, beta)
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7)


def sum_terms(path: GeometricPath, x: jax.Array, beta: float) -> jax.Array:
    """Return log prior + beta log likelihood."""
    log_prior, log_likelihood = path.log_terms(x)
    return log_prior + beta * log_likelihood


def call_timer(log_density: Callable, position: jax.Array, repeats: int) -> Callable:
    """Return a function that times one gradient of all particles as a single call."""
    gradient = jax.jit(jax.vmap(jax.grad(log_density), (0, None)))
    beta = jnp.asarray(0.5)
    jax.block_until_ready(gradient(position, beta))

    def seconds() -> float:
        begin = time.perf_counter()
        for _ in range(repeats):
            jax.block_until_ready(gradient(position, beta))
        return (time.perf_counter() - begin) / repeats

    return seconds


def loop_timer(log_density: Callable, position: jax.Array, repeats: int) -> Callable:
    """Return a function that times one gradient of all particles in a compiled loop."""
    gradient = jax.vmap(jax.grad(log_density), (0, None))

    @jax.jit
    def ascend(position, beta):
        # Each iteration depends on the previous one, so XLA cannot remove the loop.
        return jax.lax.fori_loop(0, repeats, lambda _, x: x + 1e-9 * gradient(x, beta), position)

    beta = jnp.asarray(0.5)
    jax.block_until_ready(ascend(position, beta))

    def seconds() -> float:
        begin = time.perf_counter()
        jax.block_until_ready(ascend(position, beta))
        return (time.perf_counter() - begin) / repeats

    return seconds


def engine_timer(path: GeometricPath, position: np.ndarray, leapfrogs: int, steps: int) -> Callable:
    """Return a function that times one annealing step of all particles."""
    kernel = HMC(jnp.asarray(1e-3), jnp.asarray(leapfrogs), jnp.ones(position.shape[1]))
    betas = np.linspace(0, 1, steps + 1) ** 4

    def seconds() -> float:
        block = Block(path, kernel, betas, position, 1, np.random.SeedSequence(0))
        return run_block(block).seconds / steps

    seconds()
    return seconds


def per_step() -> int:
    """Return the number of gradients per step of the integrator."""
    one, two = (HMC(n_steps=n).cost(np.zeros(1))[0] for n in (1, 2))
    return int(two - one)


def measure(name: str, args) -> None:
    """Time all candidates on a model and print its row."""
    compiled = pymc_anneal.compile_model(zoo.MODELS[name].build())
    path = GeometricPath(compiled.log_terms)
    start = compiled.sample_prior(np.random.SeedSequence(1), args.particles)
    log_density = HAND[name]()
    check(path, log_density, jnp.asarray(start[:20]))
    lengths = [max(1, gradients // per_step()) for gradients in (4, 8, 24)]
    timers = {
        "calls": call_timer(log_density, jnp.asarray(start), args.steps),
        "loop": loop_timer(log_density, jnp.asarray(start), args.steps),
        **{k: engine_timer(path, start, k, args.steps) for k in lengths},
    }
    rows = [{k: timer() for k, timer in timers.items()} for _ in range(args.rounds)]
    scale = 1e6 / args.particles
    hand = min(np.median([r[k] for r in rows]) for k in ("calls", "loop")) * scale
    few, some, many = lengths
    slope = np.median([(r[many] - r[some]) / (many - some) for r in rows]) * scale / per_step()
    whole = np.median([r[few] / few for r in rows]) * scale / per_step()
    verdict = "" if slope <= LIMIT * hand else f"  above {LIMIT}"
    print(
        f"{name:12s}{start.shape[1]:4d}{hand:10.3f}{slope:10.3f}{whole:10.3f}"
        f"{slope / hand:14.2f}{whole / hand:14.2f}{verdict}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(HAND))
    parser.add_argument("--particles", type=int, default=1000, help="particles in the block")
    parser.add_argument(
        "--steps", type=int, default=200, help="temperatures of a run, gradients of a loop"
    )
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print("microseconds per particle")
    print(
        f"{'model':12s}{'d':>4s}{'by hand':>10s}{'slope':>10s}{'whole':>10s}"
        f"{'slope / hand':>14s}{'whole / hand':>14s}"
    )
    for name in args.models:
        measure(name, args)


if __name__ == "__main__":
    main()
