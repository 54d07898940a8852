"""Measure the time from a new process to the evidence of eight schools, including compilation.

    python benchmarks/cold_start.py

Each run has its own process. The time includes building the model and calling `sample_ais` with
default settings, but not the imports. Half of the runs start with an empty PyTensor compile cache,
as does the first run after an installation; their time includes the C compiler. JAX keeps no cache
between processes. The limit is 15 s.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

LIMIT = 15.0


def run() -> None:
    """Time the first estimate in this process and print the measurements as JSON."""
    begin = time.perf_counter()
    import models

    import pymc_anneal

    assert pymc_anneal.sample_ais  # loaded when it is first used

    imported, cpu = time.perf_counter(), time.process_time()
    with models.build_schools():
        idata = pymc_anneal.sample_ais(random_seed=1, progressbar=False)
    estimate = pymc_anneal.log_evidence(idata)
    figures = {
        "import": imported - begin,
        "seconds": time.perf_counter() - imported,
        "cpu": time.process_time() - cpu,
        "error": estimate.log_evidence - models.MODELS["schools"].log_evidence,
    }
    print(json.dumps(figures))


def measure(empty_cache: bool) -> dict[str, float]:
    """Return the measurements of one run in a new process."""
    environment = dict(os.environ)
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    with tempfile.TemporaryDirectory() as folder:
        if empty_cache:
            flags = [environment.get("PYTENSOR_FLAGS", ""), f"base_compiledir={folder}"]
            environment["PYTENSOR_FLAGS"] = ",".join(filter(None, flags))
        command = [sys.executable, "-W", "ignore", __file__, "--inside"]
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env=environment
        )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="runs of each kind")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        run()
        return
    measure(empty_cache=False)  # fills the compile cache and the file system cache
    rows = [(kind, measure(kind)) for _ in range(args.runs) for kind in (False, True)]
    worst = 0.0
    for kind, title in ((False, "PyTensor cache filled"), (True, "PyTensor cache empty")):
        seconds = [r["seconds"] for k, r in rows if k == kind]
        cpu = statistics.median(r["cpu"] for k, r in rows if k == kind)
        worst = max(worst, statistics.median(seconds))
        print(
            f"{title:22s} median {statistics.median(seconds):5.1f} s, {cpu:.1f} CPU s, "
            f"all {[round(s, 1) for s in seconds]} (limit {LIMIT:.0f} s)"
        )
    imports = statistics.median(r["import"] for _, r in rows)
    print(f"{'import, not counted':22s} median {imports:5.1f} s")
    if worst > LIMIT:
        sys.exit("Above the limit.")


if __name__ == "__main__":
    main()
