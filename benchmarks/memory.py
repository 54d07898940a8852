"""Measure the peak memory of a run: 5,000 particles, 100 dimensions, 100,000 temperatures.

    python benchmarks/memory.py

The target is cheap, a standard normal prior and one normal observation of each coordinate, and the
kernel is fixed, so that only the annealing takes time. The run has its own process; the result is
its peak resident set size, including imports and compilation. The limit is 1.5 GB.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

LIMIT = 1.5e9


def run(args) -> None:
    """Run `sample_ais` and print the measurements as JSON."""
    import jax
    import numpy as np
    import pymc as pm

    import pymc_anneal

    imported = peak_bytes()
    y = np.linspace(-1, 2, args.dimension)
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=args.dimension)
        pm.Normal("y", x, 2, observed=y)
    exact = -0.5 * (y**2 / 5 + np.log(2 * np.pi * 5)).sum()
    begin = time.perf_counter()
    with jax.enable_x64(True):
        kernel = pymc_anneal.HMC(0.5, 1, np.ones(args.dimension))
    idata = pymc_anneal.sample_ais(
        args.particles // args.chains,
        chains=args.chains,
        steps=args.steps,
        schedule=args.schedule,
        transition=kernel,
        model=model,
        random_seed=0,
        progressbar=False,
    )
    estimate = pymc_anneal.log_evidence(idata)
    figures = {
        "seconds": time.perf_counter() - begin,
        "imported": imported,
        "peak": peak_bytes(),
        "error": estimate.log_evidence - float(exact),
        "mcse": estimate.mcse,
        "particles": int(idata["evidence"]["particles"]),
        "steps": int(idata["evidence"]["steps"]),
    }
    print(json.dumps(figures))


def peak_bytes() -> int:
    """Return the peak resident set size; `ru_maxrss` is in kB on Linux, in bytes on macOS."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--particles", type=int, default=5_000)
    parser.add_argument("--dimension", type=int, default=100)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--schedule", default="linear")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        run(args)
        return
    command = [sys.executable, "-W", "ignore", __file__, *sys.argv[1:], "--inside"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    figures = json.loads(output.splitlines()[-1])
    print(f"N = {figures['particles']}, d = {args.dimension}, K = {figures['steps']}")
    print(f"seconds               {figures['seconds']:10.1f}")
    print(f"memory after imports  {figures['imported'] / 1e9:10.2f} GB")
    print(f"peak memory           {figures['peak'] / 1e9:10.2f} GB  (limit {LIMIT / 1e9} GB)")
    print(f"log Z^ - log Z        {figures['error']:+10.4f} +- {figures['mcse']:.2g}")
    if figures["peak"] > LIMIT:
        sys.exit("Above the limit.")


if __name__ == "__main__":
    main()
