"""Compare the cost of `reference="auto"` with that of the better of prior and fitted mixture.

    python benchmarks/auto_reference.py [--models eight_schools,poisson] [--seeds 2] [--limit 120]

The models are the problems with known evidence of `tests/problems`, those of `everyday_models.py`
and the six of `models.py`; those with discrete variables always start from the prior. Each is run
with `reference="prior"`, `"pilot"` (the mixture, whatever it costs) and `"auto"`, with default
settings. The cost is `evidence.evaluations`, the evaluations of gradient or density by all
particles in all stages, averaged over seeds. ``ratio`` is the cost of "auto" over that of the
cheaper of the other two, and ``work`` the same for evaluations times squared standard error, which
does not depend on the number of particles. ``z`` is the largest difference from the exact evidence,
or from that of "auto" if it is unknown, in standard errors. Every run has a process of its own, and
is ended after ``--limit`` seconds, compilation included; its cost is then unknown, and taken to be
larger than that of "auto".
"""

import argparse
import multiprocessing
import sys
import warnings

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import everyday_models
import models as zoo
import numpy as np
import pymc as pm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.problems import PROBLEMS

warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")

EXACT = {
    **{problem.name: problem.log_evidence for problem in PROBLEMS},
    **{f"six.{name}": model.log_evidence for name, model in zoo.MODELS.items()},
}
REFERENCES = ("prior", "pilot", "auto")


class Outcome(NamedTuple):
    """Cost, log evidence, its error and whether it is trusted; NaN if there was no end."""

    evaluations: float = np.nan
    log_evidence: float = np.nan
    mcse: float = np.nan
    trusted: bool = True
    taken: str = "-"

    @property
    def work(self) -> float:
        """Evaluations for a standard error of one nat."""
        return self.evaluations * self.mcse**2


def builders() -> dict[str, Callable[[], pm.Model]]:
    """Return all models by name."""
    return {
        **{problem.name: problem.build for problem in PROBLEMS},
        **{f"everyday.{name}": build for name, build in everyday_models.MODELS.items()},
        **{f"six.{name}": model.build for name, model in zoo.MODELS.items()},
    }


def outcome(name: str, reference: str, seed: int) -> Outcome:
    """Run `sample_ais` from one reference."""
    import pymc_anneal as pma  # local: JAX's threads belong to the process that runs

    model = builders()[name]()
    try:
        idata = pma.sample_ais(
            model=model,
            reference=reference,
            random_seed=[seed, 43],
            progressbar=False,
            warnings=False,
        )
    except (NotImplementedError, ValueError) as error:
        print(f"# {name}, {reference}: {str(error)[:100]}", flush=True)
        return Outcome(taken="refused")
    found, evidence = pma.log_evidence(idata), idata["evidence"]
    numbers = float(evidence["evaluations"]), found.log_evidence, found.mcse
    return Outcome(*numbers, found.verdict.trusted, evidence.attrs["reference"])


def run_limited(pool, name: str, reference: str, seed: int, limit: float) -> Outcome:
    """Run in a new process, which is ended after a number of seconds."""
    receiving, sending = pool.Pipe(duplex=False)
    process = pool.Process(target=_send, args=(sending, name, reference, seed))
    process.start()
    found = receiving.recv() if receiving.poll(limit) else Outcome(taken="too long")
    process.kill()
    process.join()
    return found


def _send(sending, name: str, reference: str, seed: int) -> None:
    sending.send(outcome(name, reference, seed))


def score(name: str, runs: dict[str, Outcome]) -> float:
    """Return the largest difference from the reference evidence, in standard errors."""
    first, exact = runs["auto"], EXACT.get(name)
    centre, spread = (exact, 0.0) if exact is not None else (first.log_evidence, first.mcse)
    kept = [r for r in runs.values() if r.mcse > 0 and (exact is not None or r != first)]
    return max((abs(r.log_evidence - centre) / np.hypot(r.mcse, spread) for r in kept), default=0)


def main() -> None:
    every = builders()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=lambda t: t.split(","), default=list(every))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120.0)
    args = parser.parse_args()
    pool = multiprocessing.get_context("spawn")
    columns = "".join(f"{reference:>10}" for reference in REFERENCES)
    print(f"{'model':34}{columns}  ratio   work     z  auto", flush=True)
    for name in args.models:
        seeds = [
            {r: run_limited(pool, name, r, seed, args.limit) for r in REFERENCES}
            for seed in range(args.seeds)
        ]
        cost = np.mean([[runs[r].evaluations for r in REFERENCES] for runs in seeds], axis=0)
        work = np.mean([[runs[r].work for r in REFERENCES] for runs in seeds], axis=0)
        ratios = [
            c[2] / np.nanmin(c[:2]) if np.isfinite(c[:2]).any() else np.nan for c in (cost, work)
        ]
        z = max(score(name, runs) for runs in seeds)
        taken = ", ".join(runs["auto"].taken for runs in seeds)
        doubted = sum(not run.trusted for runs in seeds for run in runs.values())
        numbers = "".join(f"{c:10.3g}" for c in cost) + "".join(f"{r:7.2f}" for r in ratios)
        print(f"{name:34}{numbers} {z:5.1f}  {taken}; {doubted} doubted", flush=True)


if __name__ == "__main__":
    main()
