"""CPU time that `import pymc_anneal` and its first name add to `import pymc`.

    python benchmarks/imports.py

Each figure is the median over new processes, which load files that are in memory already. The
limit is 0.8 s for the import; names load what they need when they are first used.
"""

import argparse
import statistics
import subprocess
import sys

LIMIT = 0.8
# What is imported, in turn, in one process.
STEPS = {
    "import pymc": "import pymc",
    "import pymc_anneal": "import pymc_anneal",
    "pymc_anneal.sample_ais": "pymc_anneal.sample_ais",
    "all other names": "[getattr(pymc_anneal, name) for name in pymc_anneal.__all__]",
}


def measure() -> list[float]:
    """Return the CPU seconds of the steps in a new process."""
    clock = "import time; start = time.process_time()"
    tell = "now = time.process_time(); print(now - start); start = now"
    code = "\n".join([clock, *(f"{step}\n{tell}" for step in STEPS.values())])
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [float(line) for line in done.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    runs = [measure() for _ in range(1 + parser.parse_args().runs)][1:]  # the first reads the disk
    seconds = dict(zip(STEPS, map(statistics.median, zip(*runs, strict=True)), strict=True))
    for step, value in seconds.items():
        print(f"{step:<24} {value:6.2f} s {value / seconds['import pymc']:6.2f} of import pymc")
    added = seconds["import pymc_anneal"]
    print(f"limit {LIMIT} s: {'reached' if added <= LIMIT else 'MISSED'}")


if __name__ == "__main__":
    main()
