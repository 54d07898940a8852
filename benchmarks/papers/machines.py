"""Train the RBMs of both papers: CD1, PCD and CD25 with 20 and 500 hidden units, on MNIST.

Two more RBMs, with 12 hidden units, are small enough to fit splines to exact moments in minutes, as
Grosse et al. did with 20 units: each evaluation sums over all states of the hidden layer.

    python benchmarks/papers/machines.py                  # reduced: minutes
    python benchmarks/papers/machines.py --scale paper    # 250,000 updates, hours for CD25(500)

`full_scale.py` trains those with 500 units at the scale of the papers into weights/paper_scale.
Weights are stored in half precision in benchmarks/papers/weights, so that tables can be recomputed
with the same RBMs. The learning rate is constant for the small RBMs (Kiwaki 2015, section 7.1) and
decreases linearly to zero for the large ones. Grey values are used as probabilities.
"""

import argparse

from pathlib import Path

import common
import numpy as np

from pymc_anneal import rbm

MACHINES = {
    "CD1(20)": {"n_hidden": 20, "method": "cd", "gibbs_steps": 1},
    "PCD(20)": {"n_hidden": 20, "method": "pcd", "gibbs_steps": 1},
    "CD25(20)": {"n_hidden": 20, "method": "cd", "gibbs_steps": 25},
    "CD1(12)": {"n_hidden": 12, "method": "cd", "gibbs_steps": 1},
    "PCD(12)": {"n_hidden": 12, "method": "pcd", "gibbs_steps": 1},
    "CD1(500)": {"n_hidden": 500, "method": "cd", "gibbs_steps": 1},
    "PCD(500)": {"n_hidden": 500, "method": "pcd", "gibbs_steps": 1},
    "CD25(500)": {"n_hidden": 500, "method": "cd", "gibbs_steps": 25},
}
SMALL, TINY, LARGE = list(MACHINES)[:3], list(MACHINES)[3:5], list(MACHINES)[5:]
UPDATES = {"paper": 250_000, "reduced": 20_000, "test": 200}
WEIGHTS = common.HERE / "weights"
# Number of updates of CD25 at the reduced scale; an update costs ten times as much as with CD1.
REDUCED_CD25 = 5_000


def decreasing_rate(share):
    """Return the learning rate of the large RBMs after a fraction of the updates."""
    return 0.05 * (1 - share)


def weights(name: str, folder: Path = WEIGHTS) -> Path:
    """Return the file of a trained RBM."""
    return folder / (name.lower().replace("(", "_").replace(")", "") + ".npz")


def load(name: str, folder: Path = WEIGHTS) -> rbm.RBM:
    """Return a trained RBM in single precision."""
    file = weights(name, folder)
    if not file.exists():
        raise SystemExit(f"{name} is not trained yet: run benchmarks/papers/machines.py first.")
    return rbm.RBM.load(file).astype(np.float32)


def train(
    name: str,
    data: np.ndarray,
    scale: str,
    folder: Path = WEIGHTS,
    checkpoint: Path | None = None,
    monitor=None,
) -> None:
    """Train an RBM and save its weights; interrupted, it resumes from the checkpoint, if given."""
    settings = MACHINES[name]
    updates = UPDATES[scale]
    if scale == "reduced" and settings["gibbs_steps"] > 1:
        updates = REDUCED_CD25
    rate = 0.05 if settings["n_hidden"] <= 20 else decreasing_rate
    settings = settings | {"updates": updates, "learning_rate": rate, "checkpoint": checkpoint}
    trained = rbm.train(data, random_seed=2013, monitor=monitor, **settings)
    if trained.interrupted:
        raise KeyboardInterrupt
    last = {k: float(v[-1]) for k, v in trained.history.items()}
    print(f"{name}: {last}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    trained.model.astype(np.float16).save(weights(name, folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", choices=["paper", "reduced"], default="reduced")
    parser.add_argument("--machines", type=lambda t: t.split(";"), default=list(MACHINES))
    parser.add_argument("--again", action="store_true", help="also train RBMs whose weights exist")
    common.add_data(parser)
    args = parser.parse_args()
    data = common.images(args.data)[0]
    for name in args.machines:
        if args.again or not weights(name).exists():
            train(name, data, args.scale)


if __name__ == "__main__":
    main()
