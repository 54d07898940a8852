"""Models with one prior of each kind, and their log terms compared with those of PyMC."""

from collections.abc import Callable

import jax
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pymc.distributions import transforms

import pymc_anneal as pma

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.model.compile import CompiledModel

Y = np.array([0.3, 2.9, 1.1])

# Functions that declare a variable "x" with one kind of prior, by name.
PRIORS: dict[str, Callable[[], object]] = {
    "normal": lambda: pm.Normal("x", 1.0, 2.0),
    "student_t": lambda: pm.StudentT("x", nu=3.0, mu=0.5, sigma=1.5),
    "skew_normal": lambda: pm.SkewNormal("x", mu=0.5, sigma=2.0, alpha=3.0),
    "laplace": lambda: pm.Laplace("x", 0.5, 2.0),
    "gumbel": lambda: pm.Gumbel("x", 0.5, 2.0),
    "exponential": lambda: pm.Exponential("x", 1.7),
    "gamma": lambda: pm.Gamma("x", 2.5, 0.7),
    "inverse_gamma": lambda: pm.InverseGamma("x", 3.5, 2.0),
    "weibull": lambda: pm.Weibull("x", 1.5, 2.0),
    "half_normal": lambda: pm.HalfNormal("x", 2.0),
    "half_cauchy": lambda: pm.HalfCauchy("x", 2.0),
    "half_student_t": lambda: pm.HalfStudentT("x", 4.0, 2.0),
    "log_normal": lambda: pm.LogNormal("x", 0.3, 0.8),
    "pareto": lambda: pm.Pareto("x", 2.5, 1.5),
    "beta": lambda: pm.Beta("x", 2.0, 5.0),
    "kumaraswamy": lambda: pm.Kumaraswamy("x", 2.0, 3.0),
    "uniform": lambda: pm.Uniform("x", -1.0, 3.0),
    "triangular": lambda: pm.Triangular("x", lower=-1.0, c=0.5, upper=3.0),
    "von_mises": lambda: pm.VonMises("x", 2.5, 1.2),
    "dirichlet": lambda: pm.Dirichlet("x", np.array([0.8, 1.5, 3.0])),
    "two_dirichlets": lambda: pm.Dirichlet("x", np.array([[0.8, 1.5, 3.0], [2.0, 2.0, 1.0]])),
    "mv_normal": lambda: pm.MvNormal("x", [1.0, -1.0], cov=[[2.0, 0.6], [0.6, 0.5]]),
    "mv_student_t": lambda: pm.MvStudentT("x", nu=5.0, mu=np.ones(2), scale=np.diag([1.0, 2.0])),
    "zero_sum": lambda: pm.ZeroSumNormal("x", 1.5, shape=4),
    "zero_sum_twice": lambda: pm.ZeroSumNormal("x", 1.5, shape=(3, 4), n_zerosum_axes=2),
    "ordered": lambda: pm.Normal(
        "x", 0.0, 2.0, shape=3, transform=transforms.ordered, initval=[-1.0, 0.0, 1.0]
    ),
    "ordered_unequal": lambda: pm.Normal(
        "x", [-1.0, 1.0], [1.0, 2.0], transform=transforms.ordered, initval=[-1.0, 1.0]
    ),
    "observed_parent": lambda: pm.Normal("x", pm.Normal("seen", 0.0, 1.0, observed=3.0), 0.5),
    "lkj_cholesky": lambda: pm.LKJCholeskyCov(
        "x", n=3, eta=2.0, sd_dist=pm.LogNormal.dist(0.0, 0.5)
    ),
    "truncated": lambda: pm.Truncated("x", pm.Normal.dist(0.5, 2.0), lower=0.0, upper=3.0),
    "truncated_normal": lambda: pm.TruncatedNormal("x", 0.5, 2.0, lower=-1.0),
    "mixture": lambda: pm.NormalMixture("x", [0.3, 0.7], [-2.0, 1.0], [0.5, 1.5]),
    "random_walk": lambda: pm.GaussianRandomWalk(
        "x", mu=0.2, sigma=0.5, init_dist=pm.Normal.dist(0.0, 1.0), steps=3
    ),
    "ar": lambda: pm.AR(
        "x", rho=[0.1, 0.6], sigma=1.0, constant=True, init_dist=pm.Normal.dist(0.0, 2.0), steps=3
    ),
    "matrix": lambda: pm.Gamma("x", np.array([[1.5], [3.0]]), 2.0, shape=(2, 3)),
    "shape_one": lambda: pm.HalfNormal("x", 1.0, shape=(1,)),
    "gaussian_process": lambda: pm.gp.Latent(cov_func=1.3**2 * pm.gp.cov.ExpQuad(1, ls=0.6)).prior(
        "x", np.linspace(0, 1, 4)[:, None], reparameterize=False, jitter=1e-3
    ),
}


def build(name: str) -> pm.Model:
    """A normal likelihood of the sum of a variable with the named prior."""
    with pm.Model() as model:
        x = PRIORS[name]()
        x = x[0] if isinstance(x, tuple) else x
        pm.Normal("y", pt.sum(x), 3.0, observed=Y)
    return model


def evaluate(compiled: CompiledModel, position: np.ndarray) -> LogTerms:
    """Both terms at positions of shape ``(n, d)``."""
    with jax.enable_x64(True):
        terms = jax.jit(jax.vmap(compiled.log_terms))(position)
        return LogTerms(*(np.asarray(t) for t in terms))


def reference(compiled: CompiledModel) -> Callable[[np.ndarray], tuple[float, float]]:
    """Function of one vector that computes both terms by PyTensor."""
    model = compiled.model
    outputs = [
        pt.sum([pt.sum(t) for t in model.logp(vars=group, sum=False)]) if group else pt.zeros(())
        for group in (model.free_RVs, [*model.observed_RVs, *model.potentials])
    ]
    function = pytensor.function(
        model.value_vars, outputs, mode="FAST_COMPILE", on_unused_input="ignore"
    )

    def call(x: np.ndarray) -> tuple[float, float]:
        pairs = zip(compiled.variables, model.value_vars, strict=True)
        values = [x[v.start : v.stop].reshape(v.shape).astype(w.dtype) for v, w in pairs]
        log_prior, log_likelihood = function(*values)
        return float(log_prior), float(log_likelihood)

    return call


def assert_agrees_with_pymc(model: pm.Model, rtol: float = 1e-6) -> CompiledModel:
    """Compare both terms at prior draws with PyMC's; PyTensor folds some constants in float32."""
    compiled = pma.compile_model(model)
    position = compiled.sample_prior(np.random.SeedSequence(1), 4)
    assert position.shape == (4, compiled.ndim)
    terms, expected = evaluate(compiled, position), reference(compiled)
    for i, x in enumerate(position):
        log_prior, log_likelihood = expected(x)
        prior = terms.log_prior[i] + compiled.log_prior_mass
        assert prior == pytest.approx(log_prior, rel=rtol, abs=rtol)
        assert terms.log_likelihood[i] == pytest.approx(log_likelihood, rel=rtol, abs=rtol)
    return compiled
