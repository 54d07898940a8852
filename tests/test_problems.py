"""Independent checks of the exact log evidences in `tests.problems`.

PyMC's joint density in the unconstrained space is integrated without the formulas of the problems:
by Gauss-Legendre quadrature over the coordinates in ``QUADRATURE``, by summation over the values of
the discrete coordinates in ``SUMS``, and exactly over all other coordinates, in which the log
density is quadratic.

The agreement is limited to about 1e-7: PyTensor stores a Python number that float32 represents
exactly (1.5, 2.0) as a float32 constant and folds its logarithm in that precision.
"""

import itertools
import math

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor
import pytest

from pytensor.graph.replace import vectorize_graph
from scipy import special, stats

from tests.problems import PROBLEMS, Problem, by_name

# PyTensor warns if it finds no BLAS to link to, which does not affect the densities.
pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning")

LogDensity = Callable[[np.ndarray], np.ndarray]

# Limits by coordinate of the flattened unconstrained parameters; the mass outside is below 1e-9.
QUADRATURE: dict[str, dict[int, tuple[float, float]]] = {
    "conjugate_normal": {},
    "initval": {},
    "nig_regression_10": {0: (-2.5, 2.0)},
    "nig_regression_50": {0: (-2.0, 1.5)},
    "beta_binomial": {0: (-6.0, 7.0)},
    "gamma_poisson": {0: (-2.0, 4.0)},
    "dirichlet_multinomial": {0: (-2.0, 3.5), 1: (-5.5, 2.5), 2: (-2.5, 3.0)},
    "gp_regression": {},
    "student_t_conflict": {0: (0.0, 15.0)},
    "informative_1e3": {0: (4.19, 4.21)},
    "informative_1e5": {0: (4.1999, 4.2001)},
    "half_space": {0: (0.0, 10.0)},
    "half_space_data": {0: (0.0, 10.0)},
    "two_modes": {0: (-8.0, 9.0), 1: (-8.0, 9.0)},
    "half_cauchy_scale": {0: (-2.0, 6.0)},
    "ordered_transform": {1: (-25.0, 3.0), 2: (-25.0, 3.0)},
    "eight_schools": {1: (-25.0, 8.0)},
    "uniform_exponential": {0: (-28.0, 28.0)},
    "no_observed": {0: (-9.0, 3.5)},
    "potential_only": {0: (-12.0, 3.0)},
    "imputed_missing": {},
    "observed_parents": {},
    "several_observed": {0: (-5.0, 4.0)},
    "von_mises_circular": {0: (-np.pi, np.pi)},
    "zero_sum": {},
    "ising": {},
    "mixture_indicators": {},
    "unknown_trials": {1: (-9.0, 8.0)},
    "change_point": {1: (-8.0, 4.0), 2: (-8.0, 4.0)},
    "outlier_effects": {0: (-14.0, 6.0)},
}

# Values of discrete coordinates; the mass outside is below 1e-9.
BIT = range(2)
SUMS: dict[str, dict[int, range]] = {
    "ising": dict.fromkeys(range(16), BIT),
    "mixture_indicators": dict.fromkeys(range(12), BIT),
    "unknown_trials": {0: range(9, 70)},
    "change_point": {0: range(19), 3: range(30)},
    "outlier_effects": dict.fromkeys(range(1, 7), BIT),
}

# Gauss-Legendre nodes in each coordinate, by the number of coordinates.
NODES = {0: 1, 1: 200, 2: 100, 3: 48}

# int det(R)^(eta - 1) dR over 3 x 3 correlation matrices, eta = 2: the partial correlations are
# independent, (1 + r)/2 distributed as Beta(5/2, 5/2) twice and Beta(2, 2) once.
LOG_LKJ_INTEGRAL = 2.0 * (math.log(16.0) + special.betaln(2.5, 2.5)) + math.log(8.0 / 6.0)

# Log of the integral of PyMC's prior density, if it is not normalised.
LOG_PRIOR_MASS = {
    "ordered_transform": -math.log(6.0),
    "lkj_prior_only": 2.0 * LOG_LKJ_INTEGRAL if pm.__version__.startswith("5.") else 0.0,
}


def joint_log_density(model: pm.Model) -> tuple[LogDensity, int]:
    """Return a function from rows of unconstrained parameters to joint log densities, and ``d``."""
    value_vars = model.value_vars
    initial_point = model.initial_point()
    shapes = [initial_point[value_var.name].shape for value_var in value_vars]
    splits = np.cumsum([math.prod(shape) for shape in shapes])
    batched = [
        pytensor.tensor.tensor(value_var.name, dtype=value_var.dtype, shape=(None, *shape))
        for value_var, shape in zip(value_vars, shapes, strict=True)
    ]
    log_density = vectorize_graph(model.logp(), dict(zip(value_vars, batched, strict=True)))
    compiled = pytensor.function(batched, log_density, mode="FAST_COMPILE")

    def evaluate(points: np.ndarray) -> np.ndarray:
        columns = np.split(points, splits[:-1], axis=1)
        return compiled(
            *(
                c.reshape(-1, *s).astype(v.dtype)
                for c, s, v in zip(columns, shapes, value_vars, strict=True)
            )
        )

    return evaluate, int(splits[-1])


def log_integral(
    log_density: LogDensity,
    dim: int,
    limits: dict[int, tuple[float, float]],
    sums: dict[int, range],
) -> float:
    """Return the log integral, summed over the values in ``sums``."""
    states = np.array(list(itertools.product(*sums.values())), dtype=float)
    rows = NODES[len(limits)] ** len(limits)
    parts = np.array_split(states, len(states) * rows // 200_000 + 1)
    return float(
        special.logsumexp([log_integral_at(log_density, dim, limits, list(sums), p) for p in parts])
    )


def log_integral_at(
    log_density: LogDensity,
    dim: int,
    limits: dict[int, tuple[float, float]],
    discrete: list[int],
    states: np.ndarray,
) -> float:
    """Return the log integral by quadrature over ``limits``, exact in the other coordinates.

    The integral is summed over the states of the discrete coordinates, one in each row.
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES[len(limits)])
    axes = [lower + 0.5 * (upper - lower) * (nodes + 1.0) for lower, upper in limits.values()]
    log_weights = [np.log(0.5 * (upper - lower) * weights) for lower, upper in limits.values()]
    n_grid = nodes.size ** len(limits)
    grid = np.zeros((n_grid, dim))
    log_grid_weight = np.zeros(n_grid)
    if limits:
        grid[:, list(limits)] = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(n_grid, -1)
        log_grid_weight = sum(np.meshgrid(*log_weights, indexing="ij")).ravel()
    grid, log_grid_weight = (np.concatenate([a] * len(states)) for a in (grid, log_grid_weight))
    grid[:, discrete] = np.repeat(states, n_grid, axis=0)
    n_grid = len(grid)

    normal = [column for column in range(dim) if column not in limits and column not in discrete]
    unit = np.eye(dim)[normal]
    row, column = np.triu_indices(len(normal))
    stencil = np.concatenate([np.zeros((1, dim)), unit, unit[row] + unit[column]])
    points = (grid[:, None, :] + stencil).reshape(-1, dim)
    chunks = np.array_split(points, points.shape[0] // 40_000 + 1)
    values = np.concatenate([log_density(chunk) for chunk in chunks]).reshape(n_grid, -1)

    # f = c + g'x - x'Hx/2 follows from its values at 0, e_i and e_i + e_j.
    origin, single, pair = np.split(values, [1, 1 + len(normal)], axis=1)
    precision = np.zeros((n_grid, len(normal), len(normal)))
    precision[:, row, column] = single[:, row] + single[:, column] - origin - pair
    precision[:, column, row] = precision[:, row, column]
    gradient = single - origin + 0.5 * np.diagonal(precision, axis1=1, axis2=2)
    mode = np.linalg.solve(precision, gradient[:, :, None])[:, :, 0]
    log_determinant = np.linalg.slogdet(precision)[1]
    log_normal = 0.5 * ((gradient * mode).sum(axis=1) - log_determinant)
    log_normal += 0.5 * len(normal) * np.log(2.0 * np.pi)
    return float(special.logsumexp(log_grid_weight + origin[:, 0] + log_normal))


# Grids of so many points that they take as long as all others together.
LARGE = ("dirichlet_multinomial", "change_point")


@pytest.mark.parametrize(
    "problem",
    [
        pytest.param(by_name(name), id=name, marks=[pytest.mark.slow] * (name in LARGE))
        for name in QUADRATURE
    ],
)
def test_integral_of_the_joint_density(problem: Problem) -> None:
    log_density, dim = joint_log_density(problem.build())
    expected = problem.log_evidence + LOG_PRIOR_MASS.get(problem.name, 0.0)
    sums = SUMS.get(problem.name, {})
    measured = log_integral(log_density, dim, QUADRATURE[problem.name], sums)
    assert measured == pytest.approx(expected, abs=1e-6, rel=0.0)


def test_lkj_prior_by_importance_sampling() -> None:
    problem = by_name("lkj_prior_only")
    log_density, dim = joint_log_density(problem.build())
    diagonal = np.array([True, False, True, False, False, True])
    proposal = stats.t(10.0, np.where(diagonal, -0.2, 0.0), 0.6)
    n_draws = 100_000
    points = proposal.rvs((n_draws, dim), random_state=np.random.default_rng(7))
    log_ratio = log_density(points) - proposal.logpdf(points).sum(axis=1)
    ratio = np.exp(log_ratio - problem.log_evidence - LOG_PRIOR_MASS[problem.name])
    standard_error = ratio.std() / math.sqrt(n_draws)
    assert standard_error < 0.01
    assert abs(ratio.mean() - 1.0) < 4.0 * standard_error


def test_every_problem_is_checked_once() -> None:
    names = [problem.name for problem in PROBLEMS]
    assert sorted(names) == sorted([*QUADRATURE, "lkj_prior_only"])


@pytest.mark.parametrize("name", ["half_space", "half_space_data"])
def test_the_forbidden_half_has_zero_density(name: str) -> None:
    log_density, _ = joint_log_density(by_name(name).build())
    values = log_density(np.array([[-1e-6], [1e-6]]))
    assert values[0] == -np.inf
    assert np.isfinite(values[1])


@pytest.mark.parametrize(
    ("name", "value", "tolerance"),
    [
        # The priors of posteriordb; a separate quadrature, confirmed by 4e6 prior draws.
        ("eight_schools", -31.3113474, 1e-7),
        # log N(0; 0, 100) is -5.524; the observation subtracts 0.001.
        ("informative_1e3", -5.525, 1e-4),
        ("informative_1e5", -5.525, 1e-4),
        ("half_space", -math.log(2.0), 1e-15),
    ],
)
def test_known_values(name: str, value: float, tolerance: float) -> None:
    assert by_name(name).log_evidence == pytest.approx(value, abs=tolerance, rel=0.0)


def test_initval_does_not_change_the_evidence() -> None:
    assert by_name("initval").log_evidence == by_name("conjugate_normal").log_evidence
    assert by_name("initval").build().initial_point()["mu"] == 4.0


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_build_returns_a_new_model(problem: Problem) -> None:
    first, second = problem.build(), problem.build()
    assert first is not second
    assert [rv.name for rv in first.free_RVs] == [rv.name for rv in second.free_RVs]


def test_unknown_name() -> None:
    with pytest.raises(KeyError, match="no_such_problem"):
        by_name("no_such_problem")
