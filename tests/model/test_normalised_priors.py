"""Every prior of PyMC: whether its density integrates to one, and what is done if it does not."""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytest

from pymc.distributions import continuous, discrete, multivariate, timeseries

import pymc_anneal as pma

from tests.model.models import evaluate
from tests.model.test_prior_draws import narrower_normal

LINE = pm.__version__.split(".")[0]

ON_THE_LINE: dict[str, dict[str, object]] = {
    "AsymmetricLaplace": {"kappa": 1.5, "mu": 0.3, "b": 2.0},
    "Beta": {"alpha": 0.7, "beta": 3.0},
    "Cauchy": {"alpha": 0.5, "beta": 2.0},
    "ChiSquared": {"nu": 3.0},
    "ExGaussian": {"mu": 0.2, "sigma": 0.7, "nu": 1.5},
    "Exponential": {"lam": 1.7},
    "Gamma": {"alpha": 0.4, "beta": 2.0},
    "Gumbel": {"mu": 0.5, "beta": 2.0},
    "HalfCauchy": {"beta": 2.0},
    "HalfNormal": {"sigma": 2.0},
    "HalfStudentT": {"nu": 4.0, "sigma": 2.0},
    "InverseGamma": {"alpha": 1.5, "beta": 2.0},
    "Kumaraswamy": {"a": 2.0, "b": 3.0},
    "Laplace": {"mu": 0.5, "b": 2.0},
    "LogNormal": {"mu": 0.3, "sigma": 0.8},
    "Logistic": {"mu": 0.5, "s": 2.0},
    "LogitNormal": {"mu": 0.3, "sigma": 1.5},
    "Moyal": {"mu": 0.5, "sigma": 2.0},
    "Normal": {"mu": 1.0, "sigma": 2.0},
    "Pareto": {"alpha": 2.5, "m": 1.5},
    "PolyaGamma": {"h": 1.0, "z": 0.5},
    "Rice": {"nu": 1.0, "sigma": 2.0},
    "SkewNormal": {"mu": 0.5, "sigma": 2.0, "alpha": 3.0},
    "SkewStudentT": {"a": 2.0, "b": 3.0, "mu": 0.5, "sigma": 2.0},
    "StudentT": {"nu": 3.0, "mu": 0.5, "sigma": 1.5},
    "Triangular": {"lower": -1.0, "c": 0.5, "upper": 3.0},
    "TruncatedNormal": {"mu": 0.5, "sigma": 2.0, "lower": -1.0},
    "Uniform": {"lower": -1.0, "upper": 3.0},
    "Wald": {"mu": 1.5, "lam": 2.0},
    "Weibull": {"alpha": 1.5, "beta": 2.0},
}
# What stands elsewhere: improper, tables of numbers, periodic.
OTHER_CONTINUOUS = {"Flat", "HalfFlat", "Interpolated", "VonMises"}

WHOLE: dict[str, tuple[dict[str, object], range]] = {
    "Bernoulli": ({"p": 0.3}, range(2)),
    "BetaBinomial": ({"alpha": 2.0, "beta": 3.0, "n": 7}, range(8)),
    "Binomial": ({"n": 7, "p": 0.3}, range(8)),
    "Categorical": ({"p": [0.2, 0.3, 0.5]}, range(3)),
    "DiscreteUniform": ({"lower": 2, "upper": 9}, range(12)),
    "DiscreteWeibull": ({"q": 0.8, "beta": 1.2}, range(400)),
    "Geometric": ({"p": 0.2}, range(400)),
    "HyperGeometric": ({"N": 20, "k": 8, "n": 6}, range(7)),
    "NegativeBinomial": ({"mu": 3.0, "alpha": 2.0}, range(400)),
    "OrderedLogistic": ({"eta": 0.3, "cutpoints": [-1.0, 0.5]}, range(3)),
    "OrderedProbit": ({"eta": 0.3, "cutpoints": [-1.0, 0.5]}, range(3)),
    "Poisson": ({"mu": 3.0}, range(200)),
}

VECTORS: dict[str, Callable[[], object]] = {
    "Interpolated": lambda: pm.Interpolated("x", np.arange(-1.0, 3), np.array([0.1, 1, 0.5, 0.2])),
    "StickBreakingWeights": lambda: pm.StickBreakingWeights("x", alpha=2.0, K=3),
    "MatrixNormal": lambda: pm.MatrixNormal(
        "x", np.zeros((2, 2)), rowcov=np.array([[1.0, 0.3], [0.3, 2.0]]), colcov=np.eye(2)
    ),
    "KroneckerNormal": lambda: pm.KroneckerNormal(
        "x", np.zeros(4), covs=[np.array([[1.0, 0.3], [0.3, 2.0]]), np.eye(2)]
    ),
    "MvGaussianRandomWalk": lambda: pm.MvGaussianRandomWalk(
        "x",
        mu=np.zeros(2),
        cov=np.eye(2),
        init_dist=pm.MvNormal.dist(np.zeros(2), np.eye(2)),
        steps=2,
    ),
    "RandomWalk": lambda: pm.RandomWalk(
        "x", innovation_dist=pm.Laplace.dist(0, 1), init_dist=pm.Normal.dist(), steps=2
    ),
    "GARCH11": lambda: pm.GARCH11(
        "x", omega=0.5, alpha_1=0.2, beta_1=0.3, initial_vol=1.0, steps=3
    ),
}
# Those of `tests/model/models.py` and `tests/model/test_spatial.py`, and what is refused: counts
# with a fixed sum (no transition moves them), and symmetric matrices (no transform of PyMC).
ELSEWHERE = {"AR", "CAR", "Dirichlet", "GaussianRandomWalk", "ICAR", "LKJCholeskyCov"}
ELSEWHERE |= {"MvNormal", "MvStudentT", "ZeroSumNormal"}
REFUSED = {"DirichletMultinomial", "Multinomial", "OrderedMultinomial"}
NOT_TRIED = {"EulerMaruyama", "LKJCorr", "MvStudentTRandomWalk", "Wishart", "WishartBartlett"}


def compiled_prior(declare: Callable[[], object]) -> pma.CompiledModel:
    with pm.Model() as model:
        declare()
        pm.Normal("y", 0.0, 1.0, observed=0.3)
    return pma.compile_model(model)


def test_all_distributions_of_pymc_are_listed() -> None:
    listed = {*ON_THE_LINE, *OTHER_CONTINUOUS, *WHOLE, *VECTORS, *ELSEWHERE, *REFUSED, *NOT_TRIED}
    modules = continuous, discrete, multivariate, timeseries
    assert {name for module in modules for name in module.__all__} <= listed


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_THE_LINE)
def test_densities_on_the_line_integrate_to_one(name: str) -> None:
    """By quadrature over ``x = sinh(t)`` in the unconstrained space, where tails vanish."""
    if name == "PolyaGamma":
        pytest.importorskip("polyagamma")
    compiled = compiled_prior(lambda: getattr(pm, name)("x", **ON_THE_LINE[name]))
    t, step = np.linspace(-20, 20, 80_001, retstep=True)
    log_prior = evaluate(compiled, np.sinh(t)[:, None]).log_prior
    density = np.exp(np.where(np.isnan(log_prior), -np.inf, log_prior) + np.log(np.cosh(t)))
    assert density.sum() * step == pytest.approx(1, abs=1e-3 if name == "PolyaGamma" else 2e-5)


@pytest.mark.parametrize("name", WHOLE)
def test_masses_of_whole_numbers_add_up_to_one(name: str) -> None:
    parameters, support = WHOLE[name]
    logp = pm.logp(getattr(pm, name).dist(**parameters), np.array(support))
    # PyMC has logarithms of factorials of whole numbers in single precision.
    assert np.exp(logp.eval()).sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of PyMC, for Ops of PyTensor
@pytest.mark.parametrize("name", VECTORS)
def test_densities_of_vectors_integrate_to_one(name: str) -> None:
    """``E_p[q/p] = 1`` for a normal density ``q`` that is narrower than ``p``, within 5 SE."""
    compiled = compiled_prior(VECTORS[name])
    draws = compiled.sample_prior(np.random.SeedSequence(2), 20_000)
    ratio = np.exp(narrower_normal(draws) - evaluate(compiled, draws).log_prior)
    error = ratio.std() / np.sqrt(len(ratio))
    assert error < 0.1
    assert abs(ratio.mean() - 1) < 5 * error
    wrong = 1.5 * ratio  # a density without the constant 1.5 is seen
    assert abs(wrong.mean() - 1) > 5 * wrong.std() / np.sqrt(len(ratio))


@pytest.mark.skipif(LINE != "5", reason="PyMC 6 normalises the LKJ distribution")
def test_lkj_of_pymc_5_is_run_from_the_prior_alone() -> None:
    compiled = compiled_prior(
        lambda: pm.LKJCholeskyCov("x", n=3, eta=2.0, sd_dist=pm.LogNormal.dist(0.0, 0.5))
    )
    assert "lacks its constant" in compiled.lacking


def test_a_prior_by_a_normal_density_is_not_lacking() -> None:
    compiled = compiled_prior(
        lambda: pm.CAR("x", np.zeros(2), np.array([[0, 1], [1, 0]]), 0.5, 1.0)
    )
    assert compiled.lacking == ""
