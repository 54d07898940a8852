"""Compare the cost of `path="auto"` with that of the better of two paths, including pilots.

    python benchmarks/auto_path.py [--models hierarchical,gp_regression] [--seeds 3]

The models are those of `paths.py` and the problems with known evidence of `tests/problems`. Each is
run with the geometric path, the moment-averaged path and "auto", with default settings: all three
plan for the same number of particles and the same variance of the log weights. The cost is
`evidence.evaluations`, the evaluations of gradient or density by all particles in all stages,
averaged over seeds. It varies between seeds by a factor of up to 1.7, because each pilot tunes
independently. ``ratio`` is the cost of "auto" over that of the cheaper of the other two; ``z`` is
the largest difference from the exact evidence, or from that of the geometric path if the exact one
is unknown, in standard errors.
"""

import argparse
import sys
import warnings

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import paths
import pymc as pm

import pymc_anneal as pma

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.problems import PROBLEMS

warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")

EXACT = {problem.name: problem for problem in PROBLEMS}
PATHS = ("geometric", "moment", "auto")


class Outcome(NamedTuple):
    """Cost, log evidence and its error; NaN if the path cannot be constructed."""

    evaluations: float
    log_evidence: float
    mcse: float
    taken: str


def builders() -> dict[str, Callable[[], pm.Model]]:
    """Return all models by name."""
    return {**paths.MODELS, **{name: problem.build for name, problem in EXACT.items()}}


def outcome(compiled: pma.CompiledModel, path: str, seed: int) -> Outcome:
    """Run `sample_ais` along one path."""
    try:
        idata = pma.sample_ais(model=compiled, path=path, random_seed=[seed, 41], progressbar=False)
    except ValueError as error:
        print(f"# {path}: {error}", flush=True)
        return Outcome(np.nan, np.nan, np.nan, "refused")
    found, evidence = pma.log_evidence(idata), idata["evidence"]
    evaluations = float(evidence["evaluations"])
    return Outcome(evaluations, found.log_evidence, found.mcse, evidence.attrs["path"])


def score(name: str, runs: dict[str, Outcome]) -> float:
    """Return the largest difference from the reference evidence, in standard errors."""
    first = runs["geometric"]
    exact = EXACT[name].log_evidence if name in EXACT else None
    centre, spread = (exact, 0.0) if exact is not None else (first.log_evidence, first.mcse)
    others = [r for r in runs.values() if np.isfinite(r.mcse) and (exact is not None or r != first)]
    return max(abs(r.log_evidence - centre) / np.hypot(r.mcse, spread) for r in others)


def main() -> None:
    every = builders()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=lambda t: t.split(","), default=list(every))
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    print(f"{'model':24} geometric    moment      auto  ratio     z  taken", flush=True)
    for name in args.models:
        compiled = pma.compile_model(every[name]())
        seeds = [{p: outcome(compiled, p, s) for p in PATHS} for s in range(args.seeds)]
        cost = np.mean([[run.evaluations for run in runs.values()] for runs in seeds], axis=0)
        ratio, z = cost[2] / np.nanmin(cost[:2]), max(score(name, runs) for runs in seeds)
        taken = ", ".join(runs["auto"].taken for runs in seeds)
        numbers = "".join(f"{c:10.3g}" for c in cost)
        print(f"{name:23} {numbers} {ratio:6.2f} {z:5.1f}  {taken}", flush=True)


if __name__ == "__main__":
    main()
