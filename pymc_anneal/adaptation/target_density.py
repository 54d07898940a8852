"""The density of a target at many positions, in batches of one size.

Programs are compiled for a size of batch; what they cost is counted.
"""

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import jax
import numpy as np

from pymc_anneal.adaptation.particles import evaluate, trace_of_gradient, value_and_gradient
from pymc_anneal.base.batches import COSTLY_BATCH, map_batches
from pymc_anneal.base.contracts import NEGLIGIBLE, LogTerms, Path, check_not_nan
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.summands import size_of
from pymc_anneal.paths.geometric import GeometricPath

# Operations of a gradient up to which the usual evaluations take seconds (1e9 take one to two), and
# the least share of these that a longer one is worth. A regression with 100,000 rows and 20
# predictors has 7e6, a Gaussian process of 200 points 5e7.
_CHEAP, _LEAST_SHARE = 1e6, 0.125
# Primitives whose numbers are sums over the last dimension of what they are given.
_SUMS = frozenset({"cholesky", "triangular_solve", "lu", "eigh", "qr", "svd"})


def operations(jaxpr: Any) -> float:
    """Count the operations of a traced function, those in a loop once for each of its turns.

    The turns of a loop without a known number count once, and calls of other libraries not at all.
    """
    total = 0.0
    for equation in jaxpr.eqns:
        parts = (one for one in jax.tree.leaves(equation.params) if hasattr(one, "eqns"))
        inner = equation.params.get("length", 1) * sum(map(operations, parts))
        total += inner + _terms(equation) * sum(map(size_of, equation.outvars))
    return total


@double_precision
def operations_of_density(path: Path, size: int, ndim: int) -> float:
    """Return the operations of the terms of a path at one position of a batch."""
    return operations(evaluate.trace(path, np.zeros((size, ndim))).jaxpr) / size


def _terms(equation: Any) -> int:
    """Return the terms of the sum that each number of an operation is; 1 if it is none."""
    if equation.primitive.name == "dot_general":
        (summed, _), _ = equation.params["dimension_numbers"]
        return prod(equation.invars[0].aval.shape[i] for i in summed)
    return int(equation.invars[0].aval.shape[-1]) if equation.primitive.name in _SUMS else 1


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
    nan_is_zero : bool
        Whether what is no number counts as zero at draws of a reference, since draws of the prior
        have numbers: a fit goes astray to where a precision overflows, and need not end there.
    """

    path: GeometricPath
    size: int
    gradients: bool = True
    evaluations: int = 0
    nan_is_zero: bool = False

    def effort(self, ndim: int) -> float:
        """Return the share of the usual evaluations that those of this density are worth.

        By the operations of a gradient, and not by its time: runs are to be repeatable.
        """
        if not self.gradients:
            return 1.0
        each = operations(trace_of_gradient(self.path, np.zeros((self.size, ndim)))) / self.size
        return float(np.clip(_CHEAP / max(each, 1.0), _LEAST_SHARE, 1.0))

    def evaluate(self, position: np.ndarray) -> LogTerms:
        """Return log prior and log likelihood, shape ``(n,)``, at ``(n, d)`` positions."""
        self.evaluations += len(position)
        found: LogTerms = map_batches(partial(evaluate, self.path), position, self.size)
        return found

    def evaluate_draws(self, position: np.ndarray) -> LogTerms:
        """Evaluate at draws of a reference, where the density has to be a number or zero.

        It may be none where the prior is negligible, which heavy tails reach, or if `nan_is_zero`.
        """
        terms = self.evaluate(position)
        low = np.asarray(terms.log_prior) < np.max(terms.log_prior) - NEGLIGIBLE
        zero = (low | self.nan_is_zero) & np.isnan(terms.log_likelihood)
        log_likelihood: Any = np.where(zero, -np.inf, terms.log_likelihood)
        terms = terms._replace(log_likelihood=log_likelihood)
        check_not_nan(terms.log_posterior, position)
        return terms

    def log_density(self, position: np.ndarray) -> np.ndarray:
        """Return the log density, shape ``(n,)``, at ``(n, d)`` positions."""
        return np.asarray(self.evaluate(position).log_posterior)

    def value_and_gradient(
        self, position: np.ndarray, size: int | None = None, beta: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the log density at `beta` and its gradient, shapes ``(n,)`` and ``(n, d)``."""
        self.evaluations += len(position)
        function = partial(value_and_gradient, self.path, beta=beta)
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
