"""Compute the cells of the tables: an RBM, a reference, a path, a schedule, K steps, N particles.

Finished cells are stored in benchmarks/output/papers/cells.jsonl, with the knots of the
moment-average splines next to it. All scripts for tables and figures use this module.
"""

import argparse
import time

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import common
import jax
import machines
import numpy as np

from pymc_anneal import Checkpoint, log_evidence, rbm
from pymc_anneal.annealing.block import BlockStopped
from pymc_anneal.rbm.moment_spline import binned_costs
from pymc_anneal.schedules.optimal_binned import optimal_binned_schedule

SCALES = {
    "paper": {"draws": 5_000, "steps": 100_000, "updates": 50_000, "sweeps": 10_000},
    "reduced": {"draws": 1_000, "steps": 10_000, "updates": 5_000, "sweeps": 1_000},
    "test": {"draws": 100, "steps": 200, "updates": 100, "sweeps": 20},
}
CHEAP_UPDATES = 1_000
# Seconds between two snapshots of an unfinished cell.
SNAPSHOT_INTERVAL = 10.0
PILOT_STEPS = 1_000
# Largest number of hidden units for which knots are fitted to exact moments.
EXACT_UNITS = 20
# Tolerance of exactly fitted moments, in standard deviations. Empirical: on PCD(12) the effective
# sample size is the same as with 0.001.
TOLERANCE = 0.03
LISTS = {
    "machines": 'RBMs to use, such as "CD1(20);PCD(20)"; default: all of the script',
    "paths": 'paths to use, such as "GA;MAS cheap"',
    "references": 'references to use, such as "uniform"',
    "schedules": 'schedules to use, such as "VAROPT0.009;LINEAR"',
}
KIWAKI_SCHEDULES = (
    "VAROPT",
    "VAROPT0.009",
    "VAROPT0.006",
    "VAROPT0.003",
    "LINEAR",
    "GMS13",
    "SM08",
)


def parse(description: str, scale: str = "reduced", **more: dict) -> argparse.Namespace:
    """Return the command line arguments that all scripts share, and more of a script.

    Parameters
    ----------
    description : str
        The docstring of the script.
    scale : str
        Default of the argument of this name.
    **more : dict
        Arguments of `add_argument` for further options, by name.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--scale", choices=SCALES, default=scale)
    parser.add_argument("--draws", type=int, help="number of particles; default: by scale")
    parser.add_argument("--steps", type=int, help="number of steps; default: by scale")
    parser.add_argument("--output", type=Path, help="folder of the results")
    for name, meaning in LISTS.items():
        parser.add_argument(f"--{name}", type=lambda t: t.split(";"), help=meaning)
    for name, settings in more.items():
        parser.add_argument(f"--{name}", **settings)
    common.add_data(parser)
    args = parser.parse_args()
    settings = SCALES[args.scale]
    args.draws = args.draws or settings["draws"]
    args.steps = args.steps or settings["steps"]
    args.updates = settings["updates"]
    args.output = (args.output or common.output()).absolute()
    args.weights, args.checkpoints, args.executor = machines.WEIGHTS, False, None
    return args


def selected(wanted: list[str] | None, every: Iterable[str]) -> list[str]:
    """Return the RBMs, paths, ... of a script that were selected on the command line."""
    unknown = set(wanted or []) - set(every)
    if unknown:
        raise SystemExit(f"Expected some of {list(every)}, found {sorted(unknown)}.")
    return [name for name in every if wanted is None or name in wanted]


def cell(args, machine: str, reference: str, path: str, schedule: str, steps: int, **more) -> dict:
    """Return the results of a cell, computed or from the file, and print them."""
    key = cell_key(args, machine, reference, path, schedule, steps, **more)
    row = common.cached(args.output / "cells.jsonl", key, lambda: compute(args, key))
    print(
        f"# {machine} {reference} {path} {schedule} {row['transition']} K = {steps}: "
        f"{row['log_z']:.3f} +- {row['mcse']:.3f}, ESS {row['ess']:.0f}, {row['seconds']:.0f} s",
        flush=True,
    )
    return row


def cell_key(
    args, machine: str, reference: str, path: str, schedule: str, steps: int, **more
) -> dict:
    """Return the settings by which a cell is found in the file."""
    return {
        "machine": machine,
        "reference": reference,
        "path": path,
        "schedule": schedule,
        "transition": more.get("transition", "gibbs"),
        "steps": steps,
        "draws": more.get("draws", args.draws),
        "scale": args.scale,
    }


def compute(args, key: dict) -> dict:
    """Run `rbm.sample_ais` for a cell and return its results.

    If `args.checkpoints` is true, an interrupted cell resumes from a file. Blocks that
    `args.executor` stops interrupt the cell.
    """
    model = machines.load(key["machine"], args.weights)
    base = reference_of(args, key["reference"], model)
    spline = None if key["path"] == "GA" else splines(args, key, model, base)
    settings = schedule_arguments(args, key, model, base, spline)
    file = args.output / f"{'-'.join(map(str, key.values()))}.checkpoint".replace(" ", "_")
    resumed, begin = args.checkpoints and file.exists(), time.perf_counter()
    try:
        result = rbm.sample_ais(
            model,
            key["draws"] // 4,
            steps=key["steps"],
            reference=base,
            path=spline.path if spline else "geometric",
            transition=key["transition"],
            block_size=key["draws"] if jax.default_backend() == "gpu" else None,
            checkpoint=Checkpoint(file, SNAPSHOT_INTERVAL) if args.checkpoints else None,
            executor=args.executor,
            random_seed=[2015, key["steps"]],
            progressbar=False,
            **settings,
        )
    except BlockStopped:
        raise KeyboardInterrupt from None
    estimate = log_evidence(result)
    log_weight = np.asarray(result["annealing"]["log_weight"]).ravel()
    if len(log_weight) < key["draws"] // 4 * 4:  # Ctrl-C: some particles are missing
        raise KeyboardInterrupt
    file.unlink(missing_ok=True)
    return {
        "log_z": estimate.log_evidence,
        "mcse": estimate.mcse,
        "low": estimate.interval[0],
        "high": estimate.interval[1],
        "ess": estimate.ess,
        "sd_log_weight": float(log_weight.std(ddof=1)),
        "seconds": time.perf_counter() - begin,
        "resumed": resumed,
        # Additions and multiplications of the two matrix products of a Gibbs sweep.
        "operations": 4 * model.weights.size * len(log_weight) * key["steps"],
        "ess_on_the_way": running_ess(result),
    }


def running_ess(result) -> list[list[float]]:
    """Return temperatures and effective sample sizes of all chains at about fifty steps."""
    by_step = result["annealing"]
    rows = np.unique(np.linspace(0, by_step.sizes["step"] - 1, 50).astype(int))
    beta = np.asarray(by_step["beta"])[0, rows]
    return [beta.tolist(), np.asarray(by_step["ess"])[:, rows].sum(axis=0).tolist()]


def reference_of(args, name: str, model: rbm.RBM) -> rbm.RBM:
    """Return the uniform or the base-rate reference of an RBM."""
    if name == "uniform":
        return rbm.uniform_reference(model.n_visible, model.n_hidden, model.weights.dtype)
    return rbm.base_rate_reference(images(args.data)[0], model.n_hidden)


def schedule_arguments(args, key: dict, model, base, spline) -> dict:
    """Return the arguments of `sample_ais` for a schedule with a name of the papers."""
    name, steps = key["schedule"], key["steps"]
    if name.startswith("VAROPT"):
        limit = float(name.removeprefix("VAROPT") or 1.0)
        return {"schedule": variational(model, base, limit, steps)}
    if name == "SM08":
        return {"schedule": "salakhutdinov_murray"}
    if name == "optimal binned" and spline is not None:
        return {"schedule": spline.optimal_binned_schedule(steps)}
    if name in ("GMS13", "optimal binned"):
        knots, costs = binned(args, key, model, base)
        return {"schedule": optimal_binned_schedule(knots, costs, steps)}
    return {"schedule": "linear"}


def variational(model, base, limit: float, steps: int) -> np.ndarray:
    """Return Kiwaki's schedule, decelerated on the grid of its pilot.

    At K = 100,000 no step comes close to his limits of 0.003 to 0.009, so they must refer to the
    1,000 steps of the pilot, whose mean step is 0.001: there they limit steps that are 3 to 9 times
    as large as the mean.
    """
    pilot = rbm.sample_ais(
        model,
        1,
        steps=PILOT_STEPS,
        reference=base,
        schedule="variational",
        max_step=limit,
        random_seed=2015,
        progressbar=False,
    )
    betas = np.concatenate([[0.0], np.asarray(pilot["annealing"]["beta"])[0]])
    return np.interp(np.linspace(0, PILOT_STEPS, steps + 1), np.arange(PILOT_STEPS + 1), betas)


def binned(args, key: dict, model, base) -> tuple[np.ndarray, np.ndarray]:
    """Return the knots and costs of Theorem 3 on the geometric path, with ten segments."""
    name = "-".join(str(key[k]) for k in ("machine", "reference", "scale"))
    file = args.output / f"binned-{name}.npz"
    if not file.exists():
        knots = np.linspace(0, 1, 11)
        between = [average(base, model, beta) for beta in knots]
        found = [moments(m, key["scale"], seed=i) for i, m in enumerate(between)]
        np.savez(file, knots=knots, costs=np.maximum(binned_costs(between, found), 0))
    with np.load(file) as data:
        return data["knots"], data["costs"]


def average(first: rbm.RBM, last: rbm.RBM, beta: float) -> rbm.RBM:
    """Return the RBM at ``beta`` on the geometric path between two RBMs."""
    ends = (m.astype(np.float64) for m in (first, last))
    return jax.tree.map(lambda a, b: (1 - beta) * a + beta * b, *ends)


def moments(model: rbm.RBM, scale: str, seed: int) -> rbm.Moments:
    """Return moments, exact with a small layer, otherwise from 1,000 Gibbs chains."""
    if min(model.weights.shape) <= 20:
        return rbm.exact_moments(model)
    sweeps = SCALES[scale]["sweeps"]
    single = model.astype(np.float32)
    return rbm.gibbs_moments(single, steps=sweeps, burn_in=sweeps // 10, random_seed=seed)


def splines(args, key: dict, model: rbm.RBM, base: rbm.RBM) -> rbm.MomentSpline:
    """Return a moment-average spline, fitted or from the file of an earlier run."""
    name = "-".join(str(key[k]) for k in ("machine", "reference", "path", "scale"))
    file = args.output / f"knots-{name}.npz"
    if not file.exists():
        write_spline(file, rbm.moment_spline(model, base, **spline_settings(args, key, model)))
    return read_spline(file)


def spline_settings(args, key: dict, model: rbm.RBM) -> dict:
    """Return the settings of "MAS", "MAS cheap" or "MAS biased" (footnote 3 of Grosse et al.)."""
    settings = {"updates": args.updates, "random_seed": 7}
    if model.n_hidden <= EXACT_UNITS:
        settings |= {"method": "exact", "tolerance": TOLERANCE}
    if key["path"] == "MAS":
        return settings | {"target": moments(model, key["scale"], seed=7)}
    data, labels, _ = images(args.data)
    cheap = min(CHEAP_UPDATES, args.updates)
    if key["path"] == "MAS cheap":
        return settings | {"updates": cheap, "target": rbm.data_moments(model, data)}
    return settings | {"target": rbm.data_moments(model, data, labels + 1)}


def write_spline(file: Path, spline: rbm.MomentSpline) -> None:
    """Save the knots, the RBMs and their moments."""
    models = [np.stack(x) for x in zip(*(jax.tree.leaves(m) for m in spline.models), strict=True)]
    moments = [np.stack(x) for x in zip(*spline.moments, strict=True)]
    np.savez(file, spline.knots, *models, *moments)


def read_spline(file: Path) -> rbm.MomentSpline:
    """Load a spline saved by `write_spline`."""
    with np.load(file) as data:
        knots, *arrays = (data[f"arr_{i}"] for i in range(7))
    models = [rbm.RBM(*parameters) for parameters in zip(*arrays[:3], strict=True)]
    moments = [rbm.Moments(*parts) for parts in zip(*arrays[3:], strict=True)]
    path = rbm.SplineRBMPath.through(knots, models)
    return rbm.MomentSpline(path, knots, models, moments)


@cache
def images(path: Path | None):
    """Return the images, read once per process."""
    return common.images(path)
