"""Independent estimates of all cases of a kind, tested together.

A test of one case with a level of its own either fails too often or sees too little: with a hundred
cases at five standard errors each, an error of four in every one of them passes. Here the scores
``z_i = (x_i - mu_i) / s_i`` of a family of ``n`` cases give three p-values,

- of a common shift in units of the estimates: ``sum_i z_i / s_i`` over ``(sum_i s_i^-2)^(1/2)`` is
  standard normal;
- of the spread: ``sum_i z_i^2`` is chi-squared with ``n`` degrees of freedom, too small if errors
  are too large;
- of the largest: ``max |z_i|`` exceeds ``t`` with a probability of ``1 - (1 - 2 Phi(-t))^n``.

All families together fail a correct package once in 10,000 choices of their seeds.
"""

from dataclasses import dataclass, replace

import numpy as np

from scipy import stats

# Probability that any family of a correct package fails.
SUITE_LEVEL = 1e-4
# Every family of the suite; each may fail with an equal part of the level.
FAMILIES = (
    "evidence: kernels",
    "evidence: paths",
    "evidence: schedules",
    "evidence: models",
    "evidence: resampling",
    "evidence: default calls",
    "evidence: estimators",
    "invariance: means",
    "invariance: variances",
    "invariance: discrete",
    "invariance: machines",
    "invariance: reversals",
    "draws: references",
    "draws: prior means",
    "draws: prior variances",
    "draws: posterior means",
    "draws: posterior variances",
)
_STATISTICS = 3
POWER = 0.95


@dataclass(frozen=True)
class Family:
    """Independent estimates of known values, with their standard errors.

    Attributes
    ----------
    name : str
        One of ``FAMILIES``.
    cases : list of str
        What each estimate is of; one name for each.
    estimate, exact, error : ndarray, shape (n,)
        The errors in the unit of the estimates: for one common *relative* error, all are relative.
    """

    name: str
    cases: list[str]
    estimate: np.ndarray
    exact: np.ndarray
    error: np.ndarray

    def __post_init__(self) -> None:
        assert self.name in FAMILIES, f"add {self.name!r} to the families of tests/pooled.py"
        shapes = {np.shape(a) for a in (self.cases, self.estimate, self.exact, self.error)}
        assert len(shapes) == 1, f"{self.name}: cases and estimates differ in number: {shapes}"

    @property
    def scores(self) -> np.ndarray:
        """Distances from the exact values, in standard errors."""
        return (np.asarray(self.estimate) - self.exact) / self.error

    @property
    def p_values(self) -> dict[str, float]:
        """Probability, for correct estimates, of a statistic as extreme as that found."""
        z, n = self.scores, len(self.cases)
        precision = 1 / np.asarray(self.error)
        shift = (z * precision).sum() / np.sqrt((precision**2).sum())
        squares = stats.chi2(n)
        tails = squares.sf((z**2).sum()), squares.cdf((z**2).sum())
        return {
            "common shift": float(2 * stats.norm.sf(abs(shift))),
            "spread": float(min(1.0, 2 * min(tails))),
            "largest": float(-np.expm1(n * np.log1p(-2 * stats.norm.sf(np.abs(z).max())))),
        }

    @property
    def agrees(self) -> bool:
        """Whether the estimates are right, at the level of the family."""
        return min(self.p_values.values()) > level()

    @property
    def visible_shift(self) -> float:
        """Common shift of the estimates that is seen with a probability of 95 %."""
        error = np.sum(np.asarray(self.error) ** -2.0) ** -0.5
        return float((stats.norm.isf(level() / 2) + stats.norm.isf(1 - POWER)) * error)

    def shifted(self, shift: float | np.ndarray) -> "Family":
        """Return the wrong twin whose estimates are off, shape ``()`` or ``(n,)``."""
        return replace(self, estimate=self.estimate + shift)

    def check(self) -> None:
        """Fail with the worst cases unless the estimates are right."""
        z = self.scores
        worst = [f"{self.cases[i]}: {z[i]:+.2f}" for i in np.argsort(-np.abs(z))[:8]]
        p_values = {name: f"{p:.2g}" for name, p in self.p_values.items()}
        assert self.agrees, f"{self.name}: {p_values}, level {level():.1e}; worst {worst}"


def level() -> float:
    """Level of each statistic of each family."""
    return SUITE_LEVEL / len(FAMILIES) / _STATISTICS


def family(name: str, rows: dict[str, tuple[float, float, float]]) -> Family:
    """Return the family of rows ``case: (estimate, exact, error)``."""
    estimate, exact, error = np.array(list(rows.values()), dtype=float).T
    return Family(name, list(rows), estimate, exact, error)


def relative_mean(log_weight: np.ndarray, log_evidence: float) -> tuple[float, float, float]:
    """Return the row of ``E[w / Z] = 1``: the mean, one, and its standard error."""
    ratio = np.exp(np.ravel(log_weight) - log_evidence)
    return float(ratio.mean()), 1.0, float(ratio.std(ddof=1) / np.sqrt(ratio.size))


def whitened_rows(
    name: str, values: np.ndarray, table: np.ndarray, probability: np.ndarray
) -> dict[str, tuple[float, float, float]]:
    """Return independent rows of the means of dependent columns, in standard deviations.

    Parameters
    ----------
    name
        Beginning of the names of the rows.
    values : ndarray, shape (n, m)
        Functions of independent draws of a state.
    table, probability : ndarray, shapes (s, m) and (s,)
        The functions at every state, and the probabilities of the states.
    """
    mean = probability @ table
    covariance = (probability[:, None] * (table - mean)).T @ (table - mean)
    z = np.linalg.solve(np.linalg.cholesky(covariance), values.mean(axis=0) - mean)
    return {f"{name}, {i}": (float(x), 0.0, len(values) ** -0.5) for i, x in enumerate(z)}
