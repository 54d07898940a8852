"""A compiled model as nested samplers see it: a likelihood over draws of the prior."""

from dataclasses import dataclass, field
from functools import cached_property

import jax
import numpy as np

from pymc_anneal.base.contracts import NanDensityError, ScreenedTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.nested.prior_transform import PriorTransform

# Share of the evaluated points that round to the end of a variable's support, above which their
# likelihood, counted as zero, matters.
_MAX_OUTSIDE = 1e-3

# Distance from 0 and 1 at which points of the unit cube, which are multiples of 1e-16, no longer
# resolve the prior, and the largest share of the posterior that may lie there.
_UNRESOLVED, _MAX_UNRESOLVED = 1e-12, 1e-3


@dataclass(eq=False)
class NestedProblem:
    """The likelihood of a model over the unit cube, or over unconstrained values.

    Attributes
    ----------
    compiled : CompiledModel
    evaluations : int
        Points that were evaluated.
    outside, rejected : int
        Those of them that are infinite in the unconstrained space, and those whose log likelihood
        is NaN and counts as zero likelihood.

    Raises
    ------
    NotImplementedError
        A variable is discrete.
    """

    compiled: CompiledModel
    evaluations: int = field(default=0, init=False)
    outside: int = field(default=0, init=False)
    rejected: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.compiled.discrete:
            raise NotImplementedError(
                f"Nested sampling needs real numbers, and variable "
                f"'{self.compiled.discrete[0].name}' is discrete. Sum the variable out of the "
                "model (pm.Mixture, pymc_extras.marginalize), or use sample_ais."
            )

    @cached_property
    def transform(self) -> PriorTransform:
        """The map from the unit cube to the unconstrained space."""
        return PriorTransform(self.compiled)

    @double_precision
    def log_likelihood(self, x: np.ndarray) -> np.ndarray:
        """Evaluate the log likelihood at unconstrained values of shape ``(n, d)``.

        Raises
        ------
        NanDensityError
            It is NaN at one of them.
        ValueError
            It is infinite.
        """
        inside = np.isfinite(x).all(axis=1)
        self.evaluations += len(x)
        self.outside += int((~inside).sum())
        # Batches are filled up to powers of two: each size is compiled once.
        size = 1 << max(len(x) - 1, 0).bit_length()
        padded = np.zeros((size, x.shape[1]))
        padded[: len(x)] = np.where(inside[:, None], x, 0.0)
        terms = self._evaluate(padded)
        if isinstance(terms, ScreenedTerms):
            self.rejected += int(np.asarray(terms.rejected)[: len(x)][inside].sum())
        values = np.asarray(terms.log_likelihood)[: len(x)]
        return _checked(np.where(inside, values, -np.inf), x)

    def at(self, u: np.ndarray) -> np.ndarray:
        """Evaluate the log likelihood at points of the unit cube, shape ``(n, d)``."""
        return self.log_likelihood(self.transform(u))

    @cached_property
    def _evaluate(self) -> "jax.stages.Wrapped":
        return jax.jit(jax.vmap(self.compiled.log_terms))

    @property
    def remark(self) -> str:
        """What was counted as zero likelihood; "" if there was nothing."""
        if not self.rejected:
            return ""
        return (
            f"The log likelihood was NaN at {self.rejected} of {self.evaluations} points, and "
            "counts as zero likelihood there."
        )

    def doubts(self, u: np.ndarray, weight: np.ndarray) -> tuple[str, ...]:
        """Name shortcomings of the map from the unit cube.

        Parameters
        ----------
        u : ndarray, shape (n, d)
            Points of the unit cube.
        weight : ndarray, shape (n,)
            Their weights in the posterior, which sum to one.
        """
        found = []
        if self.outside > _MAX_OUTSIDE * self.evaluations:
            found.append(
                f"{self.outside} of {self.evaluations} points round to the end of the support of a "
                "variable, and count as zero likelihood; use sampler='blackjax'"
            )
        edge = np.minimum(u, 1 - u).min(axis=1, initial=1.0) < _UNRESOLVED
        if weight[edge].sum() > _MAX_UNRESOLVED:
            found.append(
                "the posterior lies in a tail of the prior that points of the unit cube do not "
                "resolve; use sampler='blackjax', or sample_ais"
            )
        return tuple(found)


def _checked(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return log likelihoods, or raise if one is NaN or infinite."""
    nan = np.isnan(values)
    if nan.any():
        raise NanDensityError(x[nan.argmax()])
    if np.isposinf(values).any():
        raise ValueError("The log likelihood is +inf at a point: it is not a density there.")
    return values
