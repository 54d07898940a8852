"""Compare `sample_ais` with NUTS and a bridge on everyday models, from cold processes.

    python benchmarks/everyday.py
    python benchmarks/everyday.py --models mixture,irt --seeds 3 --cached
    python benchmarks/everyday.py --reference mixture   # recompute a reference value

The methods, each with default settings and in a new process for each model and seed:

ais
    `pymc_anneal.sample_ais`.
nuts
    `pymc.sample` with four chains, then `pymc_anneal.bridge_evidence`.

The cold call includes building the model and compilation, but not the imports; the warm call is a
second one in the same process, with another seed. The cold process finds none of this package's
compiled programs of earlier processes, and PyTensor's own as it left them: NUTS compiles little
for a model that has run before. `--empty` gives each process an empty PyTensor cache, as after an
installation; `--cached` adds a process of `ais` that finds its compiled programs as well. PyMC runs
its chains in as many processes as there are cores, and uses nutpie where it is installed.

Seconds are those of the whole call, CPU seconds those of the process and its children. Evaluations
are those of the log density and its gradient, in all stages: pilots and tuning included. The error
is that of the log evidence against a reference value (`everyday_references.py`) in Monte Carlo
standard errors. A method is marked `!` if its verdict is not "trust", and the verdict printed below
the table. Limits are printed with the totals.
"""

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

from collections.abc import Callable, Iterator
from pathlib import Path

import everyday_models as zoo
import models
import numpy as np

from everyday_references import RECOMPUTE, REFERENCES

CALLS = ("cold", "warm")
MAX_RATIO, MAX_ERROR, MAX_MCSE, MAX_EVALUATIONS = 2.0, 4.0, 0.1, 3.0
MAX_MEAN_RATIO = {"cold": 1.0, "warm": 1 / 3, "cached": 1.0}


# Inside of a process


def estimate_ais(model, seed: int) -> dict:
    """Return the log evidence by `sample_ais`, with default settings."""
    import pymc_anneal

    idata = pymc_anneal.sample_ais(model=model, random_seed=seed, progressbar=False)
    evaluations = float(idata["evidence"]["evaluations"])
    return {**as_record(pymc_anneal.log_evidence(idata)), "evaluations": evaluations}


def estimate_nuts(model, seed: int) -> dict:
    """Return the log evidence by NUTS and bridge sampling, with default settings."""
    import pymc as pm

    import pymc_anneal

    with model:  # tuning draws are kept to count their evaluations
        idata = pm.sample(
            chains=4, random_seed=seed, progressbar=False, quiet=True, discard_tuned_samples=False
        )
    found = pymc_anneal.bridge_evidence(idata, model=model, random_seed=seed)
    steps = [idata[group]["n_steps"].values for group in ("warmup_sample_stats", "sample_stats")]
    evaluations = float(sum(s.sum() for s in steps) + steps[1].size)  # the bridge: half and half
    return {**as_record(found), "evaluations": evaluations}


def as_record(estimate) -> dict:
    """Return the numbers of a `LogEvidence`."""
    return {
        "log_evidence": estimate.log_evidence,
        "mcse": estimate.mcse,
        "verdict": str(estimate.verdict),
    }


METHODS: dict[str, Callable] = {"ais": estimate_ais, "nuts": estimate_nuts}


def run_inside(method: str, name: str, seed: int, calls: int) -> None:
    """Measure the calls in this process and print one line of JSON after each."""
    import pymc  # noqa: F401

    import pymc_anneal  # noqa: F401

    model = None
    for i in range(calls):
        cpu, begin = cpu_seconds(), time.perf_counter()
        model = zoo.MODELS[name]() if model is None else model
        record = METHODS[method](model, seed + 1000 * i)
        record |= {"seconds": time.perf_counter() - begin, "cpu": cpu_seconds() - cpu}
        print(json.dumps(record), flush=True)


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and its children."""
    usages = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usages)


# One process for each model, method and seed


def measure(method: str, name: str, seed: int, args, cache: str = "off", calls: int = 2) -> list:
    """Return the records of the calls in a new process; a failure ends them with a message."""
    command = [sys.executable, "-W", "ignore", __file__, "--inside", method, "--models", name]
    command += ["--first-seed", str(seed), "--calls", str(calls)]
    command += ["--data", str(args.data)] if args.data else []
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYMC_ANNEAL_CACHE": cache}
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        if args.empty:
            flags = [environment.get("PYTENSOR_FLAGS", ""), f"base_compiledir={folder}"]
            environment["PYTENSOR_FLAGS"] = ",".join(filter(None, flags))
        output, failure = run_process(command, environment, args.limit)
    records = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return records + [{"failure": failure}] * (calls - len(records))


def run_process(command: list[str], environment: dict, limit: float) -> tuple[str, str]:
    """Return the output of a process, and why it failed or was stopped, if so."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0], f"stopped after {limit:.0f} s"
    failure = errors.strip().splitlines()[-1:] if process.returncode else []
    return output, f"failed: {' '.join(failure)}"


def measure_cached(name: str, seed: int, args) -> dict:
    """Return the first call in a process that finds the compiled programs of another."""
    with tempfile.TemporaryDirectory() as folder:
        measure("ais", name, seed + 500, args, folder, calls=1)
        return measure("ais", name, seed, args, folder, calls=1)[0]


def collect(args) -> list[dict]:
    """Run the methods on all models, in turn; return a record for each call."""
    records = []
    runs = range(args.first_seed, args.first_seed + args.seeds)
    for name, seed in itertools.product(args.models, runs):
        for record in run_methods(name, seed, args):
            records.append({"model": name, "seed": seed, **record})
            print_row(records[-1])
        if args.save:
            args.save.write_text("".join(json.dumps(r) + "\n" for r in records))
    return records


def run_methods(name: str, seed: int, args) -> Iterator[dict]:
    """Yield the record of each call for a model and a seed."""
    for method in args.methods:
        for call, record in zip(CALLS, measure(method, name, seed, args), strict=True):
            yield {"method": method, "call": call, **record}
    if args.cached:
        yield {"method": "ais", "call": "cached", **measure_cached(name, seed, args)}


# Report


def error_in_mcse(record: dict) -> float:
    """Return the error of a log evidence, in standard errors; NaN without a reference value."""
    value, mcse = REFERENCES.get(record["model"], (np.nan, 0.0))
    return (record["log_evidence"] - value) / np.hypot(record["mcse"], mcse)


def print_header() -> None:
    print(
        f"{'model':24s}{'method':7s}{'call':7s}{'seed':>5s}{'seconds':>9s}{'CPU s':>8s}"
        f"{'evaluations':>12s}{'log evidence':>14s}{'mcse':>8s}{'error/mcse':>12s}"
    )


def print_row(record: dict) -> None:
    """Print the row of one call, and its verdict if that is not "trust"."""
    title = f"{record['model']:24s}{record['method']:7s}{record['call']:7s}{record['seed']:5d}"
    if "failure" in record:
        print(f"{title} {record['failure']}", flush=True)
        return
    print(
        f"{title}{record['seconds']:9.1f}{record['cpu']:8.1f}{record['evaluations']:12.2e}"
        f"{record['log_evidence']:14.4f}{record['mcse']:8.4f}{error_in_mcse(record):+12.1f}",
        flush=True,
    )
    if record["verdict"] != "trust":
        print(f"    ! {record['verdict']}", flush=True)


def ratios(records: list[dict], call: str, key: str = "seconds") -> dict[str, float]:
    """Return the ratio of the medians of `ais` and `nuts` for each model on which both ended."""

    def median(name: str, method: str, call: str) -> float:
        wanted = (name, method, call)
        values = [r[key] for r in records if (r["model"], r["method"], r["call"]) == wanted]
        return float(np.median(values)) if values else np.nan

    records = [r for r in records if "failure" not in r]
    theirs = "warm" if call == "warm" else "cold"
    names = dict.fromkeys(r["model"] for r in records)
    found = {n: median(n, "ais", call) / median(n, "nuts", theirs) for n in names}
    return {n: ratio for n, ratio in found.items() if np.isfinite(ratio)}


def print_ratios(records: list[dict]) -> None:
    """Print the ratios of `ais` over `nuts` for each model, their means and the largest ones."""
    kinds = [(c, k) for c in (*CALLS, "cached") for k in ("seconds", "cpu")]
    columns = {f"{c} {k}": ratios(records, c, k) for c, k in kinds}
    columns["evaluations"] = ratios(records, "cold", "evaluations")
    columns = {title: column for title, column in columns.items() if column}
    if not columns:
        return
    print(f"\n{'ais / nuts':24s}" + "".join(f"{title:>16s}" for title in columns))
    for name in dict.fromkeys(r["model"] for r in records):
        print(f"{name:24s}" + "".join(f"{c.get(name, np.nan):16.2f}" for c in columns.values()))
    summaries = {"geometric mean": geometric_mean, "largest": max}
    for title, function in summaries.items():
        values = [function(list(c.values())) for c in columns.values()]
        print(f"{title:24s}" + "".join(f"{v:16.2f}" for v in values))


def geometric_mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def print_totals(records: list[dict]) -> None:
    """Print the largest errors of `ais` and the limits."""
    ours = [r for r in records if r["method"] == "ais"]
    ended = [r for r in ours if "failure" not in r]
    if ended:
        known = [r for r in ended if r["model"] in REFERENCES]
        print_largest("|error| in mcse", known, lambda r: abs(error_in_mcse(r)), MAX_ERROR)
        print_largest("mcse", ended, lambda r: r["mcse"], MAX_MCSE)
    missing = sorted({r["model"] for r in records if "failure" in r})
    if missing:
        print(f"without a result, and not in the means: {', '.join(missing)}")
    trusted = sum(r["verdict"] == "trust" for r in ended)
    print(f"ais: {len(ours)} calls, {len(ours) - len(ended)} without a result, {trusted} trusted")
    for call, limit in MAX_MEAN_RATIO.items():
        if found := ratios(records, call):
            mean = geometric_mean(list(found.values()))
            print(f"{call}: geometric mean of the time ratios {mean:.2f} (limit {limit:.2f})")
    if found := ratios(records, "cold"):
        print(f"cold: largest time ratio {max(found.values()):.2f} (limit {MAX_RATIO})")
    if found := ratios(records, "cold", "evaluations"):
        print(f"largest ratio of evaluations {max(found.values()):.1f} (limit {MAX_EVALUATIONS})")


def print_largest(title: str, records: list[dict], key: Callable, limit: float) -> None:
    """Print the largest value of a function of the records and its model."""
    if records:
        worst = max(records, key=key)
        print(f"ais: largest {title} {key(worst):.3f} ({worst['model']}; limit {limit})")


def print_reference(name: str) -> None:
    """Recompute a reference value and print it next to the stored one."""
    if name not in RECOMPUTE:
        sys.exit(f"No reference value for {name!r}; there are {', '.join(RECOMPUTE)}.")
    stored = REFERENCES.get(name, (np.nan, np.nan))
    value, mcse = RECOMPUTE[name]()
    print(f"{name}: stored {stored[0]:.4f} +- {stored[1]:.4f}, now {value:.4f} +- {mcse:.4f}")


def available(names: list[str]) -> list[str]:
    """Return the models whose data are there, and say which are not."""
    kept = []
    for name in names:
        try:
            zoo.MODELS[name]()
        except FileNotFoundError as error:
            print(f"{name}: skipped. {error}")
        else:
            kept.append(name)
    return kept


def main() -> None:
    args = parse()
    if args.data:
        models.data_folders.insert(0, args.data)
    if args.inside:
        run_inside(args.inside, args.models[0], args.first_seed, args.calls)
    elif args.reference:
        print_reference(args.reference)
    else:
        args.models = available(args.models)
        print_header()
        records = collect(args)
        print_ratios(records)
        print_totals(records)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    comma = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("--models", type=comma, default=list(zoo.MODELS))
    parser.add_argument("--methods", type=comma, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--cached", action="store_true", help="also with compiled programs on disk")
    parser.add_argument("--empty", action="store_true", help="with empty PyTensor caches")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds for a process")
    parser.add_argument("--data", type=Path, help="additional folder with data files")
    parser.add_argument("--save", type=Path, help="write one line per call to this file")
    parser.add_argument("--reference", metavar="MODEL", help="recompute a reference value")
    parser.add_argument("--inside", choices=METHODS, help=argparse.SUPPRESS)
    parser.add_argument("--calls", type=int, default=2, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
