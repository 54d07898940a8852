"""Check the verdict from both directions on RBMs whose partition function is known.

    python benchmarks/rbm_reverse.py --data mnist.npz --seeds 20
    python benchmarks/rbm_reverse.py --machines "CD1(20)" --steps 30000 --seeds 5

Each run anneals forward from the uniform distribution along the geometric path, and back from
`--start`: "data", the training images after Gibbs moves (for the random RBM: draws by 1,000 Gibbs
sweeps from random states); "exact", draws of the RBM by enumeration; or "draws", those of the run.
A run counts as wrong if it is more than four standard errors from the exact value. With both
directions none may be wrong and trusted. Finished runs are kept in
benchmarks/output/rbm_reverse.jsonl, so an interrupted script resumes where it stopped.
"""

import argparse
import sys
import time

from collections.abc import Callable
from pathlib import Path

import numpy as np

import pymc_anneal as pma

from pymc_anneal import rbm
from pymc_anneal.base.arviz_compat import group

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "papers"))

import common  # noqa: E402
import machines  # noqa: E402

RANDOM = "random(16)"
NAMES = ("CD1(20)", "PCD(12)", "PCD(20)", RANDOM)
# Largest error of an estimate that counts as right, in standard errors.
MAX_ERRORS = 4.0


def random_machine(visible: int = 100, hidden: int = 16) -> rbm.RBM:
    """Return an RBM with weights of standard deviation 3, in which all units matter."""
    rng = np.random.default_rng(0)
    weights = rng.normal(0.0, 3.0, (visible, hidden))
    # Both layers are symmetric under the exchange of 0 and 1 but for random fields.
    a = rng.normal(0.0, 1.0, visible) - weights.sum(axis=1) / 2
    b = rng.normal(0.0, 1.0, hidden) - weights.sum(axis=0) / 2
    return rbm.RBM(a, b, weights.astype(np.float32))


def load(name: str) -> rbm.RBM:
    """Return an RBM by name."""
    return random_machine() if name == RANDOM else machines.load(name)


def starts(args, name: str, model: rbm.RBM) -> Callable[[int], np.ndarray | str]:
    """Return a function from a seed to the start of the reverse runs."""
    if args.start == "draws":
        return lambda seed: "draws"
    if args.start == "exact":
        return lambda seed: rbm.sample_exact(model, args.draws, random_seed=1000 + seed)
    if name == RANDOM:
        return lambda seed: model.sample(args.draws, steps=1000, random_seed=1000 + seed)
    images = common.images(args.data)[0]
    return lambda seed: images


def measure(model: rbm.RBM, start, steps: int, draws: int, seed: int) -> dict:
    """Return the estimates of a run."""
    begin = time.perf_counter()
    result = rbm.sample_ais(
        model,
        draws // 4,
        steps=steps,
        schedule="linear",
        reverse_from=start,
        random_seed=seed,
        progressbar=False,
        cores=1,
    )
    found, numbers = pma.log_evidence(result), group(result, "evidence")
    names = "lower_bound", "lower_bound_mcse", "upper_bound", "upper_bound_mcse"
    return {
        "log_z": found.log_evidence,
        "mcse": found.mcse,
        **{name: float(numbers[name]) for name in names},
        "ess": found.ess,
        "status": found.verdict.status,
        "forward_trusted": forward_trusted(found, float(numbers["lower_bound_mcse"])),
        "seconds": time.perf_counter() - begin,
    }


def forward_trusted(found: pma.LogEvidence, mcse: float) -> bool:
    """Return whether the forward run alone, judged by its weights, would be trusted."""
    return found.ess >= 100 and found.pareto_k <= 0.7 and mcse <= 0.1


def row(name: str, exact: float, runs: list[dict]) -> str:
    """Return a line of the table."""
    right = np.array([abs(r["log_z"] - exact) <= MAX_ERRORS * r["mcse"] for r in runs])
    trusted = np.array([r["status"] == "trust" for r in runs])
    alone = np.array([r["forward_trusted"] for r in runs])
    off = np.array(
        [abs(r["lower_bound"] - exact) > MAX_ERRORS * r["lower_bound_mcse"] for r in runs]
    )
    encloses = [
        r["lower_bound"] - 2 * r["lower_bound_mcse"]
        <= exact
        <= r["upper_bound"] + 2 * r["upper_bound_mcse"]
        for r in runs
    ]
    middle = {k: np.median([r[k] for r in runs]) for k in ("lower_bound", "upper_bound", "log_z")}
    return (
        f"| {name} | {exact:.2f} | {middle['lower_bound']:.2f} | {middle['upper_bound']:.2f} | "
        f"{middle['log_z']:.2f} | {sum(encloses)} | {trusted.sum()} | {(trusted & ~right).sum()} | "
        f"{alone.sum()} | {(alone & off).sum()} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--draws", type=int, default=400, help="forward and reverse runs each")
    parser.add_argument("--start", choices=["data", "exact", "draws"], default="data")
    parser.add_argument("--machines", type=lambda t: t.split(";"), default=list(NAMES))
    common.add_data(parser)
    args = parser.parse_args()
    file = HERE / "output" / "rbm_reverse.jsonl"
    file.parent.mkdir(exist_ok=True)
    print(
        "| RBM | exact | forward | reverse | both | enclose | trusted | trusted and wrong | "
        "forward alone trusted | and wrong |\n" + "| --- " * 10 + "|"
    )
    for name in args.machines:
        model = load(name)
        exact, start = rbm.log_partition_function(model), starts(args, name, model)
        runs = []
        for seed in range(args.seeds):
            cell = {k: getattr(args, k) for k in ("steps", "draws", "start")}
            cell |= {"machine": name, "seed": seed}

            def compute(seed=seed, model=model, start=start) -> dict:
                return measure(model, start(seed), args.steps, args.draws, seed)

            runs.append(common.cached(file, cell, compute))
        print(row(name, exact, runs), flush=True)


if __name__ == "__main__":
    main()
