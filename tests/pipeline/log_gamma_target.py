"""The log-gamma target of `tests/cases.py` as the target of a run, without a PyMC model."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

import pymc_anneal as pma

from pymc_anneal.pipeline.session import Session, open_session
from pymc_anneal.pipeline.settings import Settings
from pymc_anneal.pipeline.target import RunCandidate
from pymc_anneal.results.container import dataset
from tests.cases import log_gamma_draws, log_gamma_terms

KERNEL = pma.HMC(0.8, 3, 0.6)
# A run without a pilot: four steps.
FIXED = {"draws": 50, "chains": 2, "steps": 4, "schedule": pma.linear_schedule, "block_size": 50}


def draw_prior(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
    return log_gamma_draws(0.0, draws, np.random.default_rng(seed))


def draw_posterior(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
    return log_gamma_draws(1.0, draws, np.random.default_rng(seed))


@dataclass(frozen=True)
class LogGammaTarget:
    """The target with its prior as reference."""

    log_reference: float = 0.0
    scalars: Mapping[str, float] = field(default_factory=lambda: {"coordinates": 2.0})
    attrs: Mapping[str, str] = field(default_factory=lambda: {"notes": "log-gamma"})

    def candidate(self, *, reverse: bool = False) -> RunCandidate:
        """Return the run along the geometric path, from either end."""
        path = pma.GeometricPath(log_gamma_terms)
        return RunCandidate("prior", draw_prior, path, draw_posterior if reverse else None)

    def explain_nan(self, position: np.ndarray) -> str:
        return f"the density is NaN at {position.tolist()}"

    def fingerprint(self) -> dict[str, str]:
        return {"target": "log-gamma"}

    def posterior(self, draws: np.ndarray) -> xr.Dataset:
        return dataset({"x": draws}, ("chain", "draw"))

    def extra_groups(
        self, draws: np.ndarray, seed: np.random.SeedSequence
    ) -> dict[str, xr.Dataset]:
        return {"prior": dataset({"x": draw_prior(seed, 3)}, ("draw",))}


@contextmanager
def log_gamma_session(seed: int = 1, checkpoint: Any = None, **settings: Any) -> Iterator[Session]:
    """Open a session with some settings of a run."""
    with open_session(
        LogGammaTarget(),
        Settings(**settings),
        random_seed=seed,
        checkpoint=checkpoint,
        progressbar=False,
    ) as session:
        yield session
