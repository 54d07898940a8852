"""Models whose log evidence is known exactly, by kind.

The tests compare every estimate of the marginal likelihood with this list. Each problem is one
function: it fixes the data, computes the evidence by a closed form or a one-dimensional quadrature,
and returns both with a builder of the PyMC model. The data are asymmetric throughout, because an
error of sign or of direction can cancel on symmetric data.

Symbols: ``y`` data, ``n`` their number, ``Z`` evidence, ``N(y; m, S)`` normal density with mean
``m`` and covariance ``S``, ``1`` the vector of ones, ``I`` the identity. A scalar second argument
of a normal distribution after ``~`` is a standard deviation. Logarithms are natural.
"""

from tests.problems.conjugate import (
    beta_binomial,
    conjugate_normal,
    dirichlet_multinomial,
    gamma_poisson,
    imputed_missing,
    initval,
    observed_parents,
    several_observed,
)
from tests.problems.constrained import (
    half_space,
    half_space_data,
    ordered_transform,
    uniform_exponential,
    von_mises_circular,
)
from tests.problems.difficult import informative, student_t_conflict, two_modes
from tests.problems.discrete import (
    change_point,
    ising,
    mixture_indicators,
    outlier_effects,
    unknown_trials,
)
from tests.problems.hierarchical import eight_schools, half_cauchy_scale, zero_sum
from tests.problems.problem import Problem, log_evidence_normal_mean
from tests.problems.regression import gp_regression, nig_regression
from tests.problems.without_data import lkj_prior_only, no_observed, potential_only

__all__ = [
    "PROBLEMS",
    "Problem",
    "by_name",
    "change_point",
    "ising",
    "log_evidence_normal_mean",
    "mixture_indicators",
    "outlier_effects",
    "unknown_trials",
]

PROBLEMS: list[Problem] = [
    conjugate_normal(),
    initval(),
    nig_regression(n_rows=60, n_coefficients=10),
    nig_regression(n_rows=150, n_coefficients=50),
    beta_binomial(),
    gamma_poisson(),
    dirichlet_multinomial(),
    gp_regression(),
    student_t_conflict(),
    informative(exponent=3),
    informative(exponent=5),
    half_space(),
    half_space_data(),
    two_modes(),
    half_cauchy_scale(),
    ordered_transform(),
    eight_schools(),
    uniform_exponential(),
    lkj_prior_only(),
    no_observed(),
    potential_only(),
    imputed_missing(),
    observed_parents(),
    several_observed(),
    von_mises_circular(),
    zero_sum(),
    ising(),
    mixture_indicators(),
    unknown_trials(),
    change_point(),
    outlier_effects(),
]


def by_name(name: str) -> Problem:
    """Return the problem of a name; `KeyError` if there is none.

    Parameters
    ----------
    name : str

    Returns
    -------
    Problem
    """
    return {problem.name: problem for problem in PROBLEMS}[name]
