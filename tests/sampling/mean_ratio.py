"""The mean of ``Z_b / Z_a``, over its exact value, by runs and by weights between two models."""

from collections.abc import Callable
from typing import Any

import numpy as np

import pymc_anneal as pma

from pymc_anneal.between.from_draws import log_ratios
from pymc_anneal.paths.between_models import BetweenModels

RUNS = 12


def of_runs(
    models: tuple[Any, Any], draw: Callable[[int], Any], steps: int, exact: float
) -> tuple[float, float]:
    """Return the mean over runs from exact draws of the first model, minus 1, and its error.

    ``draw`` takes a seed; ``exact`` is the log Bayes factor for the first model.
    """
    found = [
        pma.sample_bayes_factor(
            *models,
            draws_a=draw(100 + seed),
            steps=steps,
            transition=pma.RandomWalkMetropolis(step_size=0.5, scale=1.0),
            random_seed=seed,
            progressbar=False,
            warnings=False,
        )
        for seed in range(RUNS)
    ]
    return _off(np.exp([exact - run.log_bayes_factor for run in found]), ddof=1)


def of_weights(path: BetweenModels, z: np.ndarray, exact: float) -> tuple[float, float]:
    """Return the mean weight of one step at draws ``z``, minus 1, and its error.

    ``exact`` is the log ratio of the evidences at the end and at the start of the path.
    """
    return _off(np.exp(log_ratios(path, z) - exact), ddof=0)


def _off(ratio: np.ndarray, ddof: int) -> tuple[float, float]:
    return ratio.mean() - 1, ratio.std(ddof=ddof) / np.sqrt(len(ratio))
