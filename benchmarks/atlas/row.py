"""Measure one posterior by one method, in a process of its own.

    python -m benchmarks.atlas.row NAME METHOD SEED LIMIT

prints one line of JSON for each call, and ends after LIMIT CPU seconds. `ais` is
`pymc_anneal.sample_ais` with defaults, called twice: cold, which includes building the model and
compilation but no imports, and warm, with another seed. Each posterior has random seeds of its own,
made of its name and the seed: under one seed for all, errors of small models were alike. `bridge`
is `pymc.sample` with four chains, then `pymc_anneal.bridge_evidence`.
"""

import json
import logging
import math
import resource
import sys
import time
import warnings
import zlib

from collections.abc import Callable, Iterator

import pymc as pm

import pymc_anneal as pma

from benchmarks.atlas import moments
from benchmarks.atlas.registry import ALL

WARM = 1000  # is added to the seed for the second call
NOT_BEGUN = "not begun: the cold call took more than half of the limit"


def own_seed(name: str, seed: int) -> int:
    """Return the random seed of a posterior, so that errors of rows are independent."""
    return (zlib.crc32(name.encode()) + seed) % 2**31


def ais(name: str, seed: int, limit: float) -> Iterator[dict]:
    """Yield the records of a cold and of a warm call."""
    model = None
    for call, shift in (("cold", 0), ("warm", WARM)):
        clock, random_seed = Clock(), own_seed(name, seed + shift)
        model = ALL[name].model() if model is None else model
        idata = pma.sample_ais(model=model, random_seed=random_seed, progressbar=False)
        found = pma.log_evidence(idata)
        evaluations = float(idata["evidence"]["evaluations"])
        record = {"call": call, "random_seed": random_seed, **as_record(found), **clock.read()}
        record |= {"evaluations": evaluations, "stages": found.stages}
        yield record | {"moments": moments.worst(idata["posterior"], name, found.ess)}
        if call == "cold" and record["cpu"] > limit / 2:
            yield {"call": "warm", "failure": NOT_BEGUN}
            return


def bridge(name: str, seed: int, limit: float) -> Iterator[dict]:
    """Yield the record of NUTS and a bridge on its draws."""
    clock, random_seed = Clock(), own_seed(name, seed)
    model = ALL[name].model()
    with model:
        idata = pm.sample(chains=4, random_seed=random_seed, progressbar=False, quiet=True)
    found = pma.bridge_evidence(idata, model=model, random_seed=random_seed)
    yield {"call": "cold", "random_seed": random_seed, **as_record(found), **clock.read()}


METHODS: dict[str, Callable[[str, int, float], Iterator[dict]]] = {"ais": ais, "bridge": bridge}


class Clock:
    """Seconds and CPU seconds since it was made, children included."""

    def __init__(self) -> None:
        self.begin, self.cpu = time.perf_counter(), cpu_seconds()

    def read(self) -> dict[str, float]:
        seconds, cpu = time.perf_counter() - self.begin, cpu_seconds() - self.cpu
        return {"seconds": round(seconds, 2), "cpu": round(cpu, 2)}


def cpu_seconds() -> float:
    usages = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usages)


def as_record(found: pma.LogEvidence) -> dict:
    """Return the numbers of an estimate and its verdict."""
    return {
        "log_evidence": found.log_evidence,
        "mcse": found.mcse,
        "pareto_k": found.pareto_k,
        "ess": found.ess,
        "verdict": found.verdict.status,
        "reasons": list(found.verdict.reasons),
    }


def end_after(limit: float) -> None:
    """Let the kernel end this process, and each of its children, after so many CPU seconds."""
    begun = resource.getrusage(resource.RUSAGE_SELF)
    allowed = math.ceil(begun.ru_utime + begun.ru_stime + limit)
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, allowed + 10))


def main() -> None:
    name, method, seed, limit = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    end_after(limit)
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    for record in METHODS[method](name, seed, limit):
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
