"""The density of a target at many positions, in batches of one size.

Programs are compiled for a size of batch; what they cost is counted.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from pymc_anneal.adaptation.particles import evaluate, value_and_gradient
from pymc_anneal.base.batches import COSTLY_BATCH, map_batches
from pymc_anneal.base.contracts import LogTerms, check_not_nan
from pymc_anneal.paths.geometric import GeometricPath


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
        found: LogTerms = map_batches(partial(evaluate, self.path), position, self.size)
        return found

    def evaluate_draws(self, position: np.ndarray) -> LogTerms:
        """Evaluate at draws of a reference, where the density has to be a number or zero."""
        terms = self.evaluate(position)
        check_not_nan(terms.log_posterior, position)
        return terms

    def log_density(self, position: np.ndarray) -> np.ndarray:
        """Return the log density, shape ``(n,)``, at ``(n, d)`` positions."""
        return np.asarray(self.evaluate(position).log_posterior)

    def value_and_gradient(
        self, position: np.ndarray, size: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the log density and its gradient, shapes ``(n,)`` and ``(n, d)``."""
        self.evaluations += len(position)
        function = partial(value_and_gradient, self.path, beta=1.0)
        found: tuple[np.ndarray, np.ndarray] = map_batches(function, position, size or self.size)
        return found

    def value_and_gradient_singly(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return `value_and_gradient` of one position after another.

        A small batch takes less time than the compiler for one position.
        """
        return self.value_and_gradient(position, self.size if self.size <= COSTLY_BATCH else 1)

    def gradient(self, position: np.ndarray) -> np.ndarray:
        """Return the gradient, shape ``(n, d)``; NaN where the density has none."""
        if not self.gradients:
            return np.full(position.shape, np.nan)
        return self.value_and_gradient(position)[1]
