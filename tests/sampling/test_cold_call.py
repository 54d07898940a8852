"""The first call of a process compiles the large programs, and few others."""

import subprocess
import sys

SCRIPT = """
import jax
import numpy as np
import pymc as pm
import pymc_anneal as pma

with pm.Model() as model:
    mu, sigma = pm.Normal("mu", 0, 2), pm.HalfNormal("sigma", 1)
    pm.Normal("y", mu, sigma, observed=np.linspace(-1, 3, 20))
programs = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, _, **info: "backend_compile" in event and programs.append(info)
)
pma.sample_ais(model=model, random_seed=1, progressbar=False)
first = len(programs)
pma.sample_ais(model=model, random_seed=2, progressbar=False)
print(first, len(programs) - first)
"""

# An operation that runs outside of a program is one for each shape of its arrays: there were 126.
MOST_PROGRAMS = 35


def test_few_programs_are_compiled() -> None:
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    first, second = map(int, found.stdout.split())
    assert 5 < first <= MOST_PROGRAMS
    assert second == 0
