"""Reproduce Figures 1 and 2 of Grosse, Maddison & Salakhutdinov (2013): two distant Gaussians.

    python benchmarks/papers/gaussians.py

Annealing from N((-10, 0), [[1, -.85], [-.85, 1]]) to N((10, 0), [[1, .85], [.85, 1]]), both
normalised, along the geometric path (GA) and the moment-averaged path (MA), with the linear and the
optimal binned schedule (10 segments), perfect and Gibbs transitions, 5,000 runs each. The script
prints the table and writes it, with the two figures, to benchmarks/output/papers.
"""

import argparse

from dataclasses import dataclass

import common
import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.base.contracts import KernelState, StepInfo, Transition
from pymc_anneal.evidence.ais import ais, bootstrap_interval
from pymc_anneal.paths.gaussian import (
    Gaussian,
    GaussianPath,
    geometric_average,
    moment_average,
)
from pymc_anneal.schedules.fixed import linear_schedule
from pymc_anneal.schedules.optimal_binned import optimal_binned_schedule

AVERAGES = {"GA": geometric_average, "MA": moment_average}
STEPS = (10, 26, 50, 100, 250, 500, 1000)
FIRST = Gaussian(np.array([-10.0, 0.0]), np.array([[1.0, -0.85], [-0.85, 1.0]]))
SECOND = Gaussian(np.array([10.0, 0.0]), np.array([[1.0, 0.85], [0.85, 1.0]]))


def accepted(position):
    """Return the state and the diagnostics of a step that accepts every proposal."""
    n = len(position)
    info = StepInfo(jnp.ones(n), jnp.zeros(n, dtype=bool), position)
    return KernelState(position, position, ()), info


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Perfect(Transition):
    """Independent draws from the intermediate distribution."""

    def step(self, key, state, path, beta):
        """Draw new positions."""
        return accepted(path.at(beta).sample(key, len(state.position)))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Gibbs(Transition):
    """One Gibbs sweep over the two coordinates."""

    def step(self, key, state, path, beta):
        """Draw each coordinate given the other."""
        shift, precision = path.at(beta).natural
        position = state.position
        for i in range(2):
            noise = jax.random.normal(jax.random.fold_in(key, i), (len(position),))
            variance = 1 / precision[i, i]
            others = position @ precision[i] - precision[i, i] * position[:, i]
            draw = variance * (shift[i] - others) + jnp.sqrt(variance) * noise
            position = position.at[:, i].set(draw)
        return accepted(position)


def schedule(name: str, path: GaussianPath, steps: int) -> np.ndarray:
    """Return the linear or the optimal binned schedule."""
    if name == "linear":
        return linear_schedule(steps)
    knots = np.linspace(0, 1, 11)
    ends = [path.at(b) for b in knots]
    eta = np.array([np.concatenate([np.ravel(x) for x in e.natural]) for e in ends])
    s = np.array([np.concatenate([np.ravel(x) for x in e.moments]) for e in ends])
    costs = (np.diff(eta, axis=0) * np.diff(s, axis=0)).sum(axis=1)
    return optimal_binned_schedule(knots, costs, steps)


def run(path_name: str, schedule_name: str, kernel: str, steps: int, runs: int) -> dict:
    """Return a row of the table."""
    seed = np.random.SeedSequence([2013, steps])
    path = GaussianPath(FIRST, SECOND, AVERAGES[path_name])
    seed_start, seed_run = seed.spawn(2)
    rng = np.random.default_rng(seed_start)
    start = rng.multivariate_normal(FIRST.mean, FIRST.covariance, size=runs)
    betas = schedule(schedule_name, path, steps)
    transition = {"perfect": Perfect, "gibbs": Gibbs}[kernel]()
    log_weight = run_block(Block(path, transition, betas, start, 1, seed_run)).log_weight.ravel()
    # The densities of the path are unnormalised; both ends have Z = 1.
    log_weight = log_weight + float(FIRST.log_normaliser() - SECOND.log_normaliser())
    low, high = bootstrap_interval(log_weight, rng=np.random.default_rng(1))
    return {
        "path": path_name,
        "schedule": schedule_name,
        "transition": kernel,
        "steps": steps,
        "mean_log_weight": float(log_weight.mean()),
        "variance": float(log_weight.var(ddof=1)),
        "log_z": ais(log_weight).log_evidence,
        "low": low,
        "high": high,
        "ess": ais(log_weight).ess,
    }


def figure_1(folder) -> None:
    """Draw the intermediate distributions of both paths."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 2.6), sharey=True, layout="constrained")
    angle = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    for axis, name in zip(axes, ("GA", "MA"), strict=True):
        path = GaussianPath(FIRST, SECOND, AVERAGES[name])
        for beta in (0.0, 0.5, 1.0):
            at = path.at(beta)
            for radius in (1, 2):
                x, y = np.asarray(at.mean)[:, None] + radius * (
                    np.linalg.cholesky(np.asarray(at.covariance)) @ circle
                )
                axis.plot(x, y, color=plt.cm.viridis(0.85 * beta), lw=1)
        means = np.array([path.at(b).mean for b in np.linspace(0, 1, 11)])
        axis.plot(*means.T, "k.", ms=4)
        axis.set_title({"GA": "geometric", "MA": "moment averages"}[name])
    figure.savefig(folder / "grosse_figure_1.png", dpi=150)


def figure_2(rows: list[dict], folder) -> None:
    """Draw the estimates against the number of steps."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for axis, kernel in zip(axes, ("perfect", "gibbs"), strict=True):
        for path, colour in (("GA", "C0"), ("MA", "C1")):
            for name, style in (("linear", "-"), ("optimal binned", "--")):
                picked = common.pick(rows, path=path, schedule=name, transition=kernel)
                k, z = ([r[c] for r in picked] for c in ("steps", "log_z"))
                axis.plot(k, z, style, color=colour, label=f"{path} {name}")
                axis.fill_between(
                    k,
                    [r["low"] for r in picked],
                    [r["high"] for r in picked],
                    color=colour,
                    alpha=0.15,
                )
        axis.axhline(0, color="k", lw=0.5)
        axis.set(xscale="log", xlabel="steps K", title=f"{kernel} transitions")
    axes[0].set(ylabel="estimate of log Z (truth 0)")
    axes[0].legend(fontsize=8)
    figure.savefig(folder / "grosse_figure_2.png", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5_000)
    args = parser.parse_args()
    folder = common.output()
    with jax.enable_x64(True):
        rows = [
            run(path, name, kernel, steps, args.runs)
            for kernel in ("perfect", "gibbs")
            for path in ("GA", "MA")
            for name in ("linear", "optimal binned")
            for steps in STEPS
        ]
        figure_1(folder)
    figure_2(rows, folder)
    columns = ("transition", "path", "schedule", "steps", "mean_log_weight", "variance", "log_z")
    text = common.table(rows, (*columns, "low", "high", "ess"))
    print(text)
    (folder / "grosse_figure_2.md").write_text(text)


if __name__ == "__main__":
    main()
