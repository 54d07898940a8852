"""The density of a target at many positions, in batches of one size.

Programs are compiled for a size of batch; what they cost is counted.
"""

from dataclasses import dataclass

import jax
import numpy as np

from pymc_anneal.adaptation.particles import evaluate, value_and_gradient
from pymc_anneal.base.contracts import LogTerms, check_not_nan
from pymc_anneal.paths.geometric import GeometricPath

# Positions in a batch of a costly density: of more, memory takes longer than arithmetic.
COSTLY_BATCH = 32


@dataclass
class TargetDensity:
    """Densities of a target, counted.

    Attributes
    ----------
    path : GeometricPath
        The path from the prior; its end is the target.
    size : int
        Positions in a batch.
    gradients : bool
        Whether the density has gradients.
    evaluations : int
        Evaluations of gradient or density up to now.
    """

    path: GeometricPath
    size: int
    gradients: bool = True
    evaluations: int = 0

    def evaluate(self, position: np.ndarray) -> LogTerms:
        """Return log prior and log likelihood, shape ``(n,)``, at ``(n, d)`` positions."""
        self.evaluations += len(position)
        batches = [evaluate(self.path, batch) for batch in _batches(position, self.size)]
        joined: LogTerms = jax.tree.map(lambda *b: np.concatenate(b)[: len(position)], *batches)
        return joined

    def evaluate_draws(self, position: np.ndarray) -> LogTerms:
        """Evaluate at draws of a reference, where the density has to be a number or zero."""
        terms = self.evaluate(position)
        check_not_nan(terms.log_posterior, position)
        return terms

    def log_density(self, position: np.ndarray) -> np.ndarray:
        """Return the log density, shape ``(n,)``, at ``(n, d)`` positions."""
        return np.asarray(self.evaluate(position).log_posterior)

    def value_and_gradient(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log density and its gradient, shapes ``(n,)`` and ``(n, d)``."""
        self.evaluations += len(position)
        found = [value_and_gradient(self.path, b, 1.0) for b in _batches(position, self.size)]
        value, slope = (np.concatenate(part)[: len(position)] for part in zip(*found, strict=True))
        return value, slope

    def gradient(self, position: np.ndarray) -> np.ndarray:
        """Return the gradient, shape ``(n, d)``; NaN where the density has none."""
        if not self.gradients:
            return np.full(position.shape, np.nan)
        return self.value_and_gradient(position)[1]


def _batches(position: np.ndarray, size: int) -> list[np.ndarray]:
    """Cut positions into batches, the last one filled up with its last row."""
    padded = np.pad(position, ((0, -len(position) % size), (0, 0)), mode="edge")
    return np.split(padded, len(padded) // size)
