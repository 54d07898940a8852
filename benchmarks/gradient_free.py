"""Runs without gradients against runs with gradients, on the six models: evaluations and error.

The same model twice: as it is, and with its gradients declared missing, as for a black box. The
default settings then choose HMC and a reference fitted with gradients, or random-walk Metropolis
and a reference fitted to particles alone. An evaluation is one of the density, with its gradient
where there is one. The work for a given error is

    mcse^2 x evaluations,

with the evaluations of survey, fit, pilot, trials and run; the error of each run against the
known log evidence is printed in standard errors.

    python benchmarks/gradient_free.py [models] [seeds] [max_minutes]
    python benchmarks/gradient_free.py pine,pima,schools 3
"""

import sys
import time
import warnings

from dataclasses import replace

import models as zoo
import numpy as np

import pymc_anneal as pma

from pymc_anneal.model.derivatives import NO_GRADIENT, Derivatives


def without_gradients(compiled: pma.CompiledModel) -> pma.CompiledModel:
    """Return a model of which no part has gradients."""
    hidden = Derivatives(NO_GRADIENT, "hidden by the benchmark")
    notes = (*compiled.notes, f"The model has no gradient ({hidden.obstacle}).")
    return replace(compiled, derivatives=hidden, notes=notes)


def measure(compiled: pma.CompiledModel, seed: int, max_minutes: float) -> dict[str, float]:
    """Run once with default settings."""
    begin = time.perf_counter()
    idata = pma.sample_ais(
        model=compiled, random_seed=seed, progressbar=False, max_minutes=max_minutes
    )
    found, numbers = pma.log_evidence(idata), idata["evidence"]
    return {
        "log_evidence": found.log_evidence,
        "mcse": found.mcse,
        "evaluations": float(numbers["evaluations"]),
        "steps": float(numbers["steps"]),
        "seconds": time.perf_counter() - begin,
        "trusted": found.verdict.trusted,
    }


def report(kind: str, model: zoo.BenchmarkModel, runs: list[dict[str, float]]) -> float:
    """Print a row, and return the work for a standard error of one."""
    table = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    error = table["log_evidence"] - model.log_evidence
    z = error / np.hypot(table["mcse"], model.mcse)
    work = float(np.mean(table["mcse"] ** 2 * table["evaluations"]))
    print(
        f"{model.name:13s} {kind:9s} {np.mean(table['evaluations']):11,.0f} evaluations  "
        f"{np.mean(table['steps']):5.0f} steps  rmse {np.sqrt(np.mean(error**2)):.4f}  "
        f"mcse {np.mean(table['mcse']):.4f}  z {' '.join(f'{v:+.1f}' for v in z)}  "
        f"work {work:8.1f}  {np.mean(table['seconds']):6.1f} s  "
        f"trusted {int(table['trusted'].sum())}/{len(runs)}",
        flush=True,
    )
    return work


def main(names: str = ",".join(zoo.MODELS), seeds: int = 2, max_minutes: float = 20.0) -> None:
    warnings.simplefilter("ignore")
    for name in names.split(","):
        model = zoo.MODELS[name]
        compiled = pma.compile_model(model.build())
        versions = {"gradients": compiled, "without": without_gradients(compiled)}
        work = {
            kind: report(kind, model, [measure(v, seed, max_minutes) for seed in range(seeds)])
            for kind, v in versions.items()
        }
        print(f"{name:13s} {work['without'] / work['gradients']:.1f} times the work", flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    main(*given[:1], *map(int, given[1:2]), *map(float, given[2:3]))
