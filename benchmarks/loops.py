"""Measure what a model in a loop costs beside the same model in vectors.

    python benchmarks/loops.py [groups ...]

Groups with a mean and an observed variable each, ``mu_g ~ N(level, 0.5)``, ``y_g ~ N(mu_g, 1)``: as
scalars of their own, and as one vector. Each run has its own process, with this package's cache
off and PyTensor's filled. Imports are not counted. Both evidences are compared with the exact one.
"""

import json
import os
import subprocess
import sys
import time

import numpy as np

ROWS, SPREAD = 3, 0.5


def observed(groups: int) -> np.ndarray:
    """Return the data, shape ``(groups, 3)``."""
    rng = np.random.default_rng(28)
    return rng.normal(0.3, SPREAD, size=(groups, 1)) + rng.normal(size=(groups, ROWS))


def exact(y: np.ndarray) -> float:
    """Return the log evidence: rows of a group have covariance ``I + SPREAD^2``, all share 1."""
    from scipy.stats import multivariate_normal

    groups = np.repeat(np.arange(len(y)), ROWS)
    covariance = np.eye(y.size) + SPREAD**2 * (groups[:, None] == groups) + 1
    return float(multivariate_normal.logpdf(y.ravel(), np.zeros(y.size), covariance))


def run(form: str, groups: int) -> None:
    """Time one call in this process and print the measurements as JSON."""
    import pymc as pm

    import pymc_anneal

    assert pymc_anneal.sample_ais  # loaded when it is first used
    y, begin = observed(groups), time.perf_counter()
    with pm.Model():
        level = pm.Normal("level", 0, 1)
        if form == "vectors":
            mu = pm.Normal("mu", level, SPREAD, shape=groups)
            pm.Normal("y", mu[:, None], 1, observed=y)
        else:
            for g in range(groups):
                pm.Normal(f"y_{g}", pm.Normal(f"mu_{g}", level, SPREAD), 1, observed=y[g])
        idata = pymc_anneal.sample_ais(random_seed=0, progressbar=False)
    seconds, found = time.perf_counter() - begin, pymc_anneal.log_evidence(idata)
    z = (found.log_evidence - exact(y)) / found.mcse
    print(json.dumps({"seconds": seconds, "z": z, "status": found.verdict.status}))


def measure(form: str, groups: int) -> dict:
    """Return the measurements of a process of its own."""
    command = [sys.executable, "-W", "ignore", __file__, form, str(groups)]
    environment = {**os.environ, "PYMC_ANNEAL_CACHE": "off"}
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(output.stdout.splitlines()[-1])


def main() -> None:
    for groups in [int(argument) for argument in sys.argv[1:]] or [30, 100, 250]:
        loop, vectors = measure("loop", groups), measure("vectors", groups)
        ratio = loop["seconds"] / vectors["seconds"]
        for form, found in (("loop", loop), ("vectors", vectors)):
            figures = f"{found['seconds']:6.1f} s, z {found['z']:+.1f}, {found['status']}"
            print(f"{groups:4d} {form:8s} {figures}")
        print(f"{groups:4d} groups: the loop takes {ratio:.1f} times as long", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] in (["loop"], ["vectors"]):
        run(sys.argv[1], int(sys.argv[2]))
    else:
        main()
