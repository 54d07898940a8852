"""Hashes of the log weights of small runs: a guard for refactorings.

A change that moves code must not move a number; one that changes random streams or plans must move
none beyond its error. Write the hashes before it, check them after it, on the same machine (XLA
rounds differently on another one) and with the same packages:

    python benchmarks/reproducibility.py --write before.json
    python benchmarks/reproducibility.py --check before.json

The runs cover defaults, every path, reference, transition, resampling, reverse runs, discrete
variables, direct Bayes factors and restricted Boltzmann machines; a name on the command line runs
only those that contain it. "changed" stands beside other hashes, "DIFFERS" beside log evidences
more than four errors apart; the exit status is 1 for the former and 2 for the latter.
"""

import argparse
import hashlib
import json
import sys

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm

import pymc_anneal as pma

from pymc_anneal import rbm

# Standard errors by which a log evidence may change where streams or plans do.
MAX_ERRORS = 4.0
SETTINGS = {"random_seed": 1, "progressbar": False, "cores": 2}
SCHOOLS_Y = [28.0, 8, -3, 7, -1, 1, 18, 12]
SCHOOLS_SE = [15.0, 10, 16, 11, 9, 11, 10, 18]
SMALL = {"draws": 64, "chains": 2, "max_minutes": np.inf, **SETTINGS}


def regression() -> pm.Model:
    """Mean and scale of skewed data: two coordinates, one of them transformed."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 3.0)
        sigma = pm.HalfNormal("sigma", 2.0)
        pm.Normal("y", mu, sigma, observed=np.array([0.3, 2.9, 1.1, 4.2, 1.7, 0.8, 6.3]))
    return model


def mixed() -> pm.Model:
    """A switch, an unbounded count and a rate."""
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2.0, 1.0)
        switch = pm.Bernoulli("switch", 0.3)
        count = pm.Poisson("count", 3.0)
        pm.Poisson("y", rate * (1 + 2 * switch) + 0.1 * count, observed=[3, 5, 2, 7])
    return model


def machine() -> rbm.RBM:
    """A restricted Boltzmann machine of 12 visible and 6 hidden units."""
    rng = np.random.default_rng(3)
    return rbm.RBM(rng.normal(size=12), rng.normal(size=6), rng.normal(scale=0.7, size=(12, 6)))


def peaks() -> pm.Model:
    """Two squares whose roots are equally good."""
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=2)
        pm.Normal("y", x**2, 0.2, observed=[1.0, 1.0])
    return model


def schools() -> pm.Model:
    """Eight schools, centred."""
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 10), pm.HalfCauchy("tau", 5)
        theta = pm.Normal("theta", mu, tau, shape=8)
        pm.Normal("y", theta, SCHOOLS_SE, observed=SCHOOLS_Y)
    return model


def default(model: Callable[[], pm.Model]) -> Any:
    """Run `sample_ais` with its defaults."""
    return pma.sample_ais(model=model(), **SETTINGS)


def pooled() -> pm.Model:
    """Eight schools with one effect."""
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0, 10), SCHOOLS_SE, observed=SCHOOLS_Y)
    return model


def factor() -> Any:
    """Run directly between two models."""
    return pma.sample_bayes_factor(schools(), pooled(), **SETTINGS)


def sample(model: Callable[[], pm.Model] = regression, **settings: Any) -> Any:
    """Run `sample_ais` small, from the prior unless told otherwise."""
    quiet = {"reference": "prior", "warnings": False}
    return pma.sample_ais(model=model(), **SMALL | quiet | settings)


def squared() -> Any:
    """Run along a custom path, quadratic in beta."""
    compiled = pma.compile_model(regression())

    def log_density(x, beta):
        log_prior, log_likelihood = compiled.log_terms(x)
        return log_prior + beta**2 * log_likelihood

    return pma.sample_ais(model=compiled, path=pma.CustomPath(log_density), **SMALL)


def from_student_t() -> Any:
    """Run from a reference object."""
    reference = pma.StudentTReference(np.array([2.0, 0.8]), np.array([1.0, 0.4]))
    return sample(reference=reference, steps=20)


def fixed() -> Any:
    """Run without a pilot: kernel and schedule are given."""
    kernel = pma.HMC(0.5, 3, np.array([1.0, 0.4]))
    return sample(transition=kernel, schedule=np.linspace(0, 1, 41) ** 3)


def blackjax() -> Any:
    """Run a kernel of BlackJAX."""
    from blackjax import hmc

    parameters = {
        "step_size": 0.3,
        "num_integration_steps": 3,
        "inverse_mass_matrix": np.ones(2),
    }
    return sample(transition=pma.BlackJAXKernel(hmc, parameters), steps=30)


def annealed_machine(**settings: Any) -> Any:
    """Run `rbm.sample_ais` small."""
    return rbm.sample_ais(machine(), draws=50, chains=2, **SETTINGS | {"steps": 200} | settings)


def along_spline() -> Any:
    """Run along a moment-average spline of a machine."""
    reference = rbm.uniform_reference(12, 6)
    spline = rbm.moment_spline(machine(), reference, method="exact", random_seed=2)
    schedule = spline.optimal_binned_schedule(200)
    return annealed_machine(path=spline, schedule=schedule)


RUNS: dict[str, Callable[[], Any]] = {
    "default": lambda: default(regression),
    "default_hierarchy": lambda: default(schools),
    "default_peaks": lambda: default(peaks),
    "bayes_factor": factor,
    "path_geometric": sample,
    "path_moment": lambda: sample(path="moment"),
    "path_q": lambda: sample(path=pma.QPath()),
    "path_auto": lambda: sample(path="auto", target_mcse=0.01),
    "path_custom": squared,
    "reference_laplace": lambda: sample(reference="laplace"),
    "reference_pilot": lambda: sample(reference="pilot"),
    "reference_auto": lambda: sample(reference="auto"),
    "reference_student_t": from_student_t,
    "transition_generalized_hmc": lambda: sample(transition=pma.GeneralizedHMC()),
    "transition_mala": lambda: sample(transition=pma.MALA()),
    "transition_random_walk": lambda: sample(transition="random_walk"),
    "transition_fixed": fixed,
    "transition_blackjax": blackjax,
    "resampled": lambda: sample(resample="ess", chains=8, steps=30),
    "planned": lambda: sample(target_mcse=0.02, steps="auto", draws=16),
    "reverse": lambda: sample(reverse_from="draws", steps=30),
    "discrete": lambda: sample(mixed),
    "rbm_geometric": annealed_machine,
    "rbm_spline": along_spline,
    "rbm_reverse": lambda: annealed_machine(direction="reverse"),
    "rbm_perfect": lambda: annealed_machine(transition="perfect", schedule="optimal_binned"),
}


def digest(*arrays: Any) -> str:
    """Hash arrays to twelve hexadecimal digits."""
    content = b"".join(np.ascontiguousarray(a, dtype=np.float64).tobytes() for a in arrays)
    return hashlib.sha256(content).hexdigest()[:12]


def record(result: Any) -> dict[str, Any]:
    """Return log evidence (or log Bayes factor) of a run, its error, and a hash of the weights."""
    if isinstance(result, pma.LogBayesFactor):
        value, mcse = result.log_bayes_factor, result.mcse
        return {"log_evidence": value, "mcse": mcse, "hash": digest(value, mcse)}
    found, log_weight = pma.log_evidence(result), np.asarray(result["annealing"]["log_weight"])
    return {
        "log_evidence": found.log_evidence,
        "mcse": found.mcse,
        "hash": digest(log_weight),
    }


def judge(expected: dict[str, Any], found: dict[str, Any]) -> int:
    """Return 0 for the same bits, 1 for the same answer within its error, 2 otherwise."""
    if expected["hash"] == found["hash"]:
        return 0
    error = np.hypot(expected["mcse"], found["mcse"])
    return 1 if abs(expected["log_evidence"] - found["log_evidence"]) <= MAX_ERRORS * error else 2


def main() -> int:
    """Run, print, and write or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="file for the hashes")
    parser.add_argument("--check", type=Path, help="file with the hashes to compare with")
    parser.add_argument("names", nargs="*", help="parts of the names of runs; default: all")
    arguments = parser.parse_args()
    expected = json.loads(arguments.check.read_text()) if arguments.check else {}
    found: dict[str, Any] = {}
    worst = 0
    for name, run in RUNS.items():
        if arguments.names and not any(part in name for part in arguments.names):
            continue
        found[name] = record(run())
        worst = max(worst, judged := judge(expected.get(name, found[name]), found[name]))
        words = ("", "  changed", "  DIFFERS")[judged]
        value, mcse, code = (found[name][key] for key in ("log_evidence", "mcse", "hash"))
        print(f"{name:32}{value:14.6f} +- {mcse:.2g}  {code}{words}", flush=True)
    if arguments.write:
        arguments.write.write_text(json.dumps(found, indent=1) + "\n")
    return worst


if __name__ == "__main__":
    sys.exit(main())
