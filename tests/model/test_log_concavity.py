"""Log-concavity of likelihoods in their predictor, proved from the graph."""

import jax
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor.graph.replace import graph_replace

import pymc_anneal as pma

from pymc_anneal.model.linear_predictor import linear_predictor
from pymc_anneal.model.log_concavity import is_log_concave_in, is_log_concave_model

COUNT, REAL, POSITIVE = np.array([1, 0, 3]), np.array([0.4, -2.0, 5.0]), np.array([0.4, 1.0, 3.0])
CHOLESKY = np.array([[1.0, 0, 0], [0.5, 0.8, 0], [-0.3, 0.2, 0.6]])
BINARY, TRIALS = np.array([1, 0, 1]), np.array([1, 2, 5])

CONCAVE = {
    "normal": (lambda e: pm.Normal.dist(e, 0.5), REAL),
    "normal, shifted": (lambda e: pm.Normal.dist(3 - (e + 1) / 2, 0.5), REAL),
    "scale of a normal": (lambda e: pm.Normal.dist(0, pm.math.exp(e / 2)), REAL),
    "multivariate normal": (lambda e: pm.MvNormal.dist(1 - 2 * e, chol=CHOLESKY), REAL),
    "laplace": (lambda e: pm.Laplace.dist(e, 0.5), REAL),
    "logistic": (lambda e: pm.Logistic.dist(e, 0.5), REAL),
    "gumbel": (lambda e: pm.Gumbel.dist(e, 0.5), REAL),
    "log-normal": (lambda e: pm.LogNormal.dist(e, 0.5), POSITIVE),
    "exponential": (lambda e: pm.Exponential.dist(lam=pm.math.exp(e)), POSITIVE),
    "gamma": (lambda e: pm.Gamma.dist(2.0, beta=2.0 / pm.math.exp(e)), POSITIVE),
    "inverse gamma": (lambda e: pm.InverseGamma.dist(2.0, beta=pm.math.exp(e)), POSITIVE),
    "weibull": (lambda e: pm.Weibull.dist(1.5, beta=pm.math.sqrt(pm.math.exp(e))), POSITIVE),
    "poisson": (lambda e: pm.Poisson.dist(2.0 * pm.math.exp(e)), COUNT),
    "poisson, indexed": (lambda e: pm.Poisson.dist(pm.math.exp(e)[np.array([2, 0, 1])]), COUNT),
    "negative binomial": (lambda e: pm.NegativeBinomial.dist(pm.math.exp(e), 2.0), COUNT),
    "logit": (lambda e: pm.Bernoulli.dist(logit_p=e), BINARY),
    "inverse logit": (lambda e: pm.Bernoulli.dist(pm.math.invlogit(e)), BINARY),
    "probit": (lambda e: pm.Bernoulli.dist(pm.math.invprobit(e)), BINARY),
    "binomial": (lambda e: pm.Binomial.dist(TRIALS, logit_p=e), BINARY),
    "geometric": (lambda e: pm.Geometric.dist(pm.math.sigmoid(e)), TRIALS),
}
# Some of these are concave; no rule says so.
UNKNOWN = {
    "student t": (lambda e: pm.StudentT.dist(3, mu=e, sigma=0.5), REAL),
    "cauchy": (lambda e: pm.Cauchy.dist(e, 0.5), REAL),
    "sine": (lambda e: pm.Normal.dist(pm.math.sin(e), 0.5), REAL),
    "square": (lambda e: pm.Normal.dist(e**2, 0.5), REAL),
    "mean of the exponential": (lambda e: pm.Normal.dist(pm.math.exp(e), 0.5), REAL),
    "reciprocal": (lambda e: pm.Normal.dist(2.0 / e, 0.5), REAL),
    "sum of scales": (lambda e: pm.Poisson.dist(1.0 + pm.math.exp(e)), COUNT),
    "square of a share": (lambda e: pm.Bernoulli.dist(pm.math.sigmoid(e) ** 2), BINARY),
    "tenth of erfc": (lambda e: pm.Bernoulli.dist(0.1 * pm.math.erfc(e)), BINARY),
    "odds of two counts": (lambda e: pm.NegativeBinomial.dist(n=2.0, p=3 / (3 + e)), COUNT),
    "covariance": (lambda e: pm.MvNormal.dist(np.zeros(3), cov=pt.diag(pm.math.exp(e))), REAL),
    "mean and scale": (lambda e: pm.Normal.dist(e, pm.math.exp(e)), REAL),
    "gamma by its mean": (lambda e: pm.Gamma.dist(mu=pm.math.exp(e), sigma=1.0), POSITIVE),
    "precision of a normal": (lambda e: pm.Normal.dist(0, tau=pm.math.exp(e)), REAL),
    "shape": (lambda e: pm.Gamma.dist(pm.math.exp(e), 1.0), POSITIVE),
    "not random in it": (lambda e: pm.Normal.dist(0.0, 1.0, shape=3), REAL),
}


@pytest.mark.parametrize("name", CONCAVE)
def test_concave(name: str) -> None:
    build, observed = CONCAVE[name]
    eta = pt.vector("eta", shape=(3,))
    rv = build(eta)
    assert is_log_concave_in(rv, eta)
    grid = np.linspace(-4, 4, 161)
    log_density = pytensor.function([eta], pm.logp(rv, observed))
    values = np.array([log_density(np.full(3, e)) for e in grid])
    assert np.diff(values, 2, axis=0).max() < 1e-9


@pytest.mark.parametrize("name", UNKNOWN)
def test_nothing_is_claimed(name: str) -> None:
    eta = pt.vector("eta", shape=(3,))
    assert not is_log_concave_in(UNKNOWN[name][0](eta), eta)


def test_a_comb_that_is_concave_at_draws_of_the_prior() -> None:
    # At the mean of the prior, where second derivatives were taken once, a tooth is.
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=6)
        pm.Normal("y", pm.math.sin(5 * x), 0.05, observed=np.zeros(6))
    compiled = pma.compile_model(model)
    found = linear_predictor(compiled)
    assert found is not None
    at_zero = np.asarray(found.slope_along(np.zeros(6), np.zeros(6), np.ones(6))[1])
    assert (at_zero < 0).all()
    assert not is_log_concave_model(model)


def test_the_predictor_may_be_any_ancestor() -> None:
    eta = pt.vector("eta", shape=(3,))
    rv = pm.Poisson.dist(pm.math.exp(2 * eta - 1))
    inner = rv.owner.op.dist_params(rv.owner)[0].owner.inputs[0]
    assert is_log_concave_in(rv, inner)
    (other,) = graph_replace([rv], {inner: pm.math.sin(eta)})
    assert not is_log_concave_in(other, eta)


def linear_model(**terms) -> pm.Model:
    """Return a regression in which everything is affine, with further terms by their names."""
    x = np.random.default_rng(3).normal(size=(4, 2))
    with pm.Model() as model:
        a, b = pm.Normal("a", 1.0, 2.0), pm.Laplace("b", 0, 1, shape=2)
        c = pm.Normal("c", 2 * a - 1, 0.5, shape=2)
        row = pm.math.stack([a, a + b[0], 1 - b[1], c.sum()])
        eta = a + x @ b + pm.math.dot(x, c) + (x * b).sum(axis=1) + c[[0, 1, 1, 0]] + row
        pm.Poisson("y", pm.math.exp(eta / 3), observed=[1, 0, 2, 3])
        for name, term in terms.items():
            term(name, a, b, c)
    return model


CONCAVE_TERMS = {
    "none": {},
    "another predictor": {"z": lambda n, a, b, c: pm.Normal(n, b[0] - a, 1.0, observed=0.3)},
    "product of scales": {
        "z": lambda n, a, b, c: pm.Exponential(n, pm.math.exp(a) * pm.math.exp(b[0]), observed=0.3)
    },
    "several normal variables at once": {
        "z": lambda n, a, b, c: pm.MvNormal(n, pm.math.stack([a, b[0], 1.0]), chol=CHOLESKY)
    },
    "free of all": {"z": lambda n, a, b, c: pm.Potential(n, pt.constant(1.0))},
}
OTHER_TERMS = {
    "potential": lambda n, a, b, c: pm.Potential(n, a**2),
    "sum of scales": lambda n, a, b, c: pm.Poisson(
        n, pm.math.exp(a) + pm.math.exp(b[0]), observed=2
    ),
    "sum over scales": lambda n, a, b, c: pm.Poisson(n, pm.math.exp(b).sum(), observed=2),
    "product of locations": lambda n, a, b, c: pm.Normal(n, a * b[0], 1.0, observed=0.3),
    "two forms side by side": lambda n, a, b, c: pm.Poisson(
        n, pm.math.stack([pm.math.exp(a), b[0]]), observed=[1, 2]
    ),
    "scale of a prior": lambda n, a, b, c: pm.Normal(n, 0.0, pm.math.exp(a)),
    "covariance of a prior": lambda n, a, b, c: pm.MvNormal(
        n, np.zeros(2), cov=pt.diag(pm.math.exp(b))
    ),
    "a transform": lambda n, a, b, c: pm.HalfNormal(n, 1.0),
    "an ordered vector": lambda n, a, b, c: pm.Normal(
        n, 0, 1, shape=2, transform=pm.distributions.transforms.ordered, initval=[0.0, 1.0]
    ),
    "another prior": lambda n, a, b, c: pm.StudentT(n, 4),
    "one of several": lambda n, a, b, c: pm.Normal(n, pm.math.sin(a) + b[0], 1.0, observed=0.3),
}


@pytest.mark.parametrize("name", CONCAVE_TERMS)
def test_a_posterior_that_is_log_concave(name: str) -> None:
    model = linear_model(**CONCAVE_TERMS[name])
    assert is_log_concave_model(model)
    compiled = pma.compile_model(model)
    ends = np.random.default_rng(1).normal(size=(2, 64, compiled.ndim))
    log_density = jax.vmap(lambda x: compiled.log_terms(x).log_posterior)
    places = ends[0], ends.mean(axis=0), ends[1]
    start, middle, stop = (np.asarray(log_density(x)) for x in places)
    assert (middle >= (start + stop) / 2 - 1e-9).all()


@pytest.mark.parametrize("name", OTHER_TERMS)
def test_a_posterior_of_which_nothing_is_claimed(name: str) -> None:
    assert not is_log_concave_model(linear_model(z=OTHER_TERMS[name]))


def test_a_model_without_variables_has_no_mode() -> None:
    with pm.Model() as model:
        pm.Normal("y", 0, 1, observed=0.3)
    assert not is_log_concave_model(model)
