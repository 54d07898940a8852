"""Train the machines of both papers: CD1, PCD and CD25 with 20 and 500 hidden units, on MNIST.

Two more, with 12 hidden units, are small enough for splines fitted to exact moments in minutes, as
Grosse et al. did with 20 units: an evaluation sums over all states of the hidden layer.

    python benchmarks/papers/machines.py                  # reduced: minutes
    python benchmarks/papers/machines.py --scale paper    # 250,000 updates, hours for CD25(500)

Weights are kept in benchmarks/papers/weights, in half precision, so that tables can be run again on
the same machines. The learning rate is constant for the small machines (Kiwaki 2015, section 7.1)
and falls linearly to zero for the large ones. Grey values enter as probabilities.
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
UPDATES = {"paper": 250_000, "reduced": 20_000}
# CD25 costs ten times as much an update.
REDUCED_CD25 = 5_000


def falling(share):
    """Learning rate of the large machines."""
    return 0.05 * (1 - share)


def weights(name: str) -> Path:
    return common.HERE / "weights" / (name.lower().replace("(", "_").replace(")", "") + ".npz")


def load(name: str) -> rbm.RBM:
    """Return a trained machine, in single precision."""
    if not weights(name).exists():
        raise SystemExit(f"{name} is not trained yet: run benchmarks/papers/machines.py first.")
    return rbm.RBM.load(weights(name)).astype(np.float32)


def train(name: str, data: np.ndarray, scale: str) -> None:
    settings = MACHINES[name]
    updates = UPDATES[scale]
    if scale == "reduced" and settings["gibbs_steps"] > 1:
        updates = REDUCED_CD25
    rate = 0.05 if settings["n_hidden"] <= 20 else falling
    trained = rbm.train(data, updates=updates, learning_rate=rate, random_seed=2013, **settings)
    last = {k: float(v[-1]) for k, v in trained.history.items()}
    print(f"{name}: {last}", flush=True)
    weights(name).parent.mkdir(exist_ok=True)
    trained.model.astype(np.float16).save(weights(name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", choices=UPDATES, default="reduced")
    parser.add_argument("--machines", type=lambda t: t.split(";"), default=list(MACHINES))
    parser.add_argument("--again", action="store_true", help="train those that are there, too")
    common.add_data(parser)
    args = parser.parse_args()
    data = common.images(args.data)[0]
    for name in args.machines:
        if args.again or not weights(name).exists():
            train(name, data, args.scale)


if __name__ == "__main__":
    main()
