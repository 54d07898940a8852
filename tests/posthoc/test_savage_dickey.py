"""Savage-Dickey ratios: exact Bayes factors, and what is refused."""

import numpy as np
import pymc as pm
import pytest

from pymc.distributions import transforms
from scipy import integrate, special, stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.evidence.mean_ratio import MeanRatio
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.posthoc.density_at_point import ratio_of_densities
from pymc_anneal.posthoc.savage_dickey import savage_dickey
from pymc_anneal.results.container import dataset
from tests.results import jzs


def posterior(**values: np.ndarray) -> object:
    """Return a container of draws given as arrays of shape (chain, draw, ...)."""
    return container({"posterior": dataset(values, ("chain", "draw"))})


def check(found: pma.LogBayesFactor, exact: float, error: float = 0.02) -> None:
    assert found.verdict.trusted
    assert found.mcse < error
    assert abs(found.log_bayes_factor - exact) < 4 * found.mcse
    assert found.interval[0] < found.log_bayes_factor < found.interval[1]


def test_errors_of_both_densities_count() -> None:
    prior = MeanRatio(0.5, 0.3, 100.0, 0.1, 1.0)
    posterior = MeanRatio(1.2, 0.4, 100.0, 0.1, 1.0)
    found = ratio_of_densities(prior, posterior, Verdict("trust"), ("the model", "the null"))
    assert found.log_bayes_factor == pytest.approx(-0.7)
    assert found.mcse == pytest.approx(0.5)
    np.testing.assert_allclose(found.interval, -0.7 + 1.959964 * 0.5 * np.array([-1, 1]))


class TestSleepData:
    def test_bayes_factor(self) -> None:
        assert jzs.log_bayes_factor(np.sqrt(0.5)) == pytest.approx(jzs.LOG_BAYES_FACTOR, abs=1e-5)
        found = savage_dickey(jzs.exact_draws(1), {"delta": 0}, model=jzs.model())
        check(found, jzs.LOG_BAYES_FACTOR, 0.03)
        assert found.models == ("the model", "the null (delta = 0)")

    def test_draws_of_another_prior_are_off(self) -> None:
        draws = jzs.exact_draws(1, r=0.2)
        found = savage_dickey(draws, {"delta": 0}, model=jzs.model())
        assert abs(found.log_bayes_factor - jzs.LOG_BAYES_FACTOR) > 4 * found.mcse
        assert "do not count" in str(found.verdict)


X = np.random.default_rng(1).normal(size=(30, 2)) @ [[1.0, 0.9], [0.0, 0.5]]
Y = X @ [0.3, 0.2] + np.random.default_rng(2).normal(size=30)


def regression() -> pm.Model:
    with pm.Model() as model:
        slope = pm.Normal("slope", 0, 1.5, shape=2)
        pm.Normal("y", X @ slope, 1, observed=Y)
    return model


def slopes(seed: int) -> object:
    covariance = np.linalg.inv(X.T @ X + np.eye(2) / 1.5**2)
    rng = np.random.default_rng(seed)
    return posterior(slope=rng.multivariate_normal(covariance @ X.T @ Y, covariance, (4, 500)))


@pytest.mark.parametrize(("null", "rows"), [(0.0, [0, 1]), ([np.nan, 0.0], [1])])
def test_regression(null, rows) -> None:
    """A null on all slopes, and on one of them, by the marginal normal densities of the data."""

    def log_evidence(columns: list[int]) -> float:
        x = X[:, columns]
        return stats.multivariate_normal(np.zeros(30), np.eye(30) + 2.25 * x @ x.T).logpdf(Y)

    left = [i for i in (0, 1) if i not in rows]
    found = savage_dickey(slopes(3), {"slope": null}, model=regression())
    check(found, log_evidence([0, 1]) - log_evidence(left))


def test_a_transformed_variable() -> None:
    with pm.Model() as model:
        p = pm.Beta("p", 2, 1)
        pm.Binomial("y", 20, p, observed=14)
    draws = np.random.default_rng(4).beta(16, 7, size=(4, 1000))
    exact = special.betaln(16, 7) - special.betaln(2, 1) - 20 * np.log(0.5)
    check(savage_dickey(posterior(p=draws), {"p": 0.5}, model=model), exact)


class TestRandomParents:
    """``b ~ N(0, tau)`` with ``tau`` log-normal: the prior density is a mean over ``tau``."""

    def draws(self) -> object:
        log_tau = np.linspace(-3, 3, 4001)
        log_density = stats.norm.logpdf(log_tau, 0, 0.5) + stats.norm.logpdf(
            1.3, 0, np.sqrt(1 + np.exp(2 * log_tau))
        )
        mass = np.cumsum(np.exp(log_density))
        rng = np.random.default_rng(5)
        tau = np.exp(log_tau[np.searchsorted(mass, rng.uniform(size=(4, 2000)) * mass[-1])])
        variance = 1 / (1 + 1 / tau**2)
        return posterior(tau=tau, b=rng.normal(1.3 * variance, np.sqrt(variance)))

    def model(self, dist) -> pm.Model:
        with pm.Model() as model:
            tau = dist("tau")
            b = pm.Normal("b", 0, tau)
            pm.Normal("y", b, 1, observed=1.3)
        return model

    def test_value(self) -> None:
        def density(log_tau: float, with_data: bool) -> float:
            tau = np.exp(log_tau)
            scale = np.sqrt(1 + tau**2)
            value = stats.norm.pdf(1.3, 0, scale) if with_data else stats.norm.pdf(0, 0, tau)
            return stats.norm.pdf(log_tau, 0, 0.5) * value

        evidence, prior = (integrate.quad(density, -5, 5, args=(w,))[0] for w in (True, False))
        # p(b_0 | y) = p(b_0) p(y | b_0) / p(y), and p(y | b_0) does not depend on tau.
        exact = np.log(evidence) - stats.norm.logpdf(1.3, 0, 1)
        assert prior > 0
        model = self.model(lambda name: pm.LogNormal(name, 0, 0.5))
        check(savage_dickey(self.draws(), {"b": 0}, model=model, random_seed=1), exact, 0.05)

    def test_an_infinite_prior_density(self) -> None:
        model = self.model(lambda name: pm.HalfNormal(name, 1))
        with pytest.raises(ValueError, match="The prior density at the null is infinite"):
            savage_dickey(self.draws(), {"b": 0}, model=model, random_seed=1)

    def test_a_null_that_depends_on_another_part(self) -> None:
        model = self.model(lambda name: pm.LogNormal(name, 0, 0.5))
        with pytest.raises(NotImplementedError, match="'b' depends on 'tau'"):
            savage_dickey(self.draws(), {"b": 0, "tau": 1}, model=model)


@pytest.mark.parametrize(
    ("null", "message"),
    [
        ({}, "expected a dict of variables"),
        ({"slope": [np.nan, np.nan]}, "expected a dict of variables"),
        ({"effect": 0}, r"'effect' of `null` is not a free variable: \['slope'\]"),
        ({"slope": [0.0, 0.0, 0.0]}, r"expected a number or an array of shape \(2,\)"),
        ({"slope": "zero"}, "expected a number"),
    ],
)
def test_values_that_make_no_sense(null, message) -> None:
    with pytest.raises(ValueError, match=message):
        savage_dickey(slopes(1), null, model=regression())


@pytest.mark.parametrize(
    ("prior", "value", "message"),
    [
        (lambda: pm.HalfNormal("b", pm.HalfNormal("scale")), 0.0, "at its edge"),
        (lambda: pm.HalfNormal("b", 1), -1.0, "outside of the support"),
        (
            lambda: pm.Mixture(
                "b",
                [0.5, 0.5],
                [pm.Uniform.dist(0, 1), pm.Uniform.dist(0.3, 0.7)],
                default_transform=None,
            ),
            0.3,
            "The prior density jumps at the null",
        ),
    ],
)
def test_priors_that_are_not_continuous(prior, value, message) -> None:
    with pm.Model() as model:
        pm.Normal("y", prior(), 1, observed=0.5)
    draws = posterior(b=np.random.default_rng(1).uniform(0.2, 0.8, size=(2, 50)))
    with pytest.raises(ValueError, match=message):
        savage_dickey(draws, {"b": value}, model=model)


def test_discrete_variables_are_refused() -> None:
    with pm.Model() as model:
        pm.Normal("y", pm.Bernoulli("b", 0.5), 1, observed=0.5)
    with pytest.raises(NotImplementedError, match="'b' is discrete"):
        savage_dickey(posterior(b=np.zeros((2, 50))), {"b": 0}, model=model)


def test_draws_of_other_data_are_refused() -> None:
    data = dataset({"y": Y + 1}, ())
    draws = container({"posterior": slopes(1)["posterior"], "observed_data": data})
    with pytest.raises(ValueError, match="The draws are of other observed data"):
        savage_dickey(draws, {"slope": 0}, model=regression())


@pytest.mark.slow
def test_sleep_data_from_runs() -> None:
    """Two runs, the ratio and the direct path agree with the exact value; so does a curve."""
    with pm.Model() as null:
        sigma = pm.math.exp(pm.Uniform("log_sigma", -5, 5))
        pm.Normal("y", 0, sigma, observed=jzs.SLEEP)
    settings = {"draws": 20_000, "target_mcse": 0.003, "progressbar": False, "random_seed": 1}
    full = pma.sample_ais(model=jzs.model(), **settings)
    two_runs = pma.log_bayes_factor(full, pma.sample_ais(model=null, **settings))
    ratio = savage_dickey(full, {"delta": 0}, model=jzs.model())
    direct = pma.sample_bayes_factor(
        jzs.model(), null, draws_a=full, target_mcse=0.003, random_seed=2, progressbar=False
    )
    for found in (two_runs, ratio, direct):
        assert abs(found.log_bayes_factor - jzs.LOG_BAYES_FACTOR) < min(0.01, 4 * found.mcse)
    scales = np.geomspace(0.1, 2, 10)
    curve = pma.prior_sensitivity(full, {"r": scales}, model=jzs.model())
    exact = [jzs.log_bayes_factor(r) - jzs.LOG_BAYES_FACTOR for r in scales]
    assert (np.abs(curve["log_ratio"] - exact) < 4 * curve["mcse"]).all()


class TestPriorsThatAreCutOff:
    """The density of what is left of a prior is larger: by how much is not known in general."""

    def model(self, **transform) -> pm.Model:
        with pm.Model() as model:
            s = pm.Uniform("s", -9, 9, **transform)
            pm.Normal("other", 0, 1)
            pm.Normal("below", pm.Normal("parent", 0, 1), 1, **transform)
            pm.Normal("y", s, 1, observed=1.0)
        return model

    def draws(self) -> object:
        rng = np.random.default_rng(7)
        others = {name: rng.normal(size=(4, 500)) for name in ("other", "parent")}
        return posterior(
            s=rng.uniform(0.1, 2, (4, 500)), below=rng.uniform(size=(4, 500)), **others
        )

    @pytest.mark.parametrize(("name", "cut"), [("s", "s"), ("parent", "below")])
    @pytest.mark.parametrize(
        "transform",
        [{"transform": transforms.log}, {"default_transform": transforms.Interval(0.0, 9.0)}],
    )
    def test_they_are_refused(self, name: str, cut: str, transform) -> None:
        with pytest.raises(NotImplementedError, match=f"transform of '{cut}' may cut off"):
            savage_dickey(self.draws(), {name: 0.8}, model=self.model(**transform))

    def test_at_the_edge_too(self) -> None:
        with pytest.raises(NotImplementedError, match="transform of 's' may cut off"):
            savage_dickey(self.draws(), {"s": 0}, model=self.model(transform=transforms.log))

    def test_another_variable_is_not_concerned(self) -> None:
        found = savage_dickey(
            self.draws(), {"other": 0}, model=self.model(transform=transforms.log)
        )
        check(found, 0.0, 0.05)

    def test_entries_in_order_go_together(self) -> None:
        with pm.Model() as model:
            pm.Normal("mu", 0, 1, shape=2, transform=transforms.ordered, initval=[-1.0, 1.0])
        # Transforms of PyMC 5 do not tell on how many axes they act.
        message = "entries can be fixed together only|transform of 'mu' may cut off"
        with pytest.raises(NotImplementedError, match=message):
            savage_dickey(posterior(mu=np.zeros((2, 50, 2))), {"mu": [0.0, np.nan]}, model=model)


def test_a_prior_that_is_narrow_given_some_parents() -> None:
    """The density jumps from draw to draw of the parents, and its mean does not."""
    rng, size = np.random.default_rng(8), 400_000
    mean, scale = rng.normal(size=size), abs(rng.normal(size=size))
    b = rng.normal(mean, scale)
    weight = stats.norm.pdf(1.0, b, 0.3)
    draws = rng.choice(size, (4, 2000), p=weight / weight.sum())
    with pm.Model() as model:
        pm.Normal("b", pm.Normal("mean", 0, 1), pm.HalfNormal("scale", 1))
        pm.Normal("y", model["b"], 0.3, observed=1.0)
    given = posterior(mean=mean[draws], scale=scale[draws], b=b[draws])
    found = savage_dickey(given, {"b": 0}, model=model, random_seed=1)
    # p(b_0) / p(b_0 | y) = p(y) / p(y | b_0)
    exact = np.log(weight.mean()) - stats.norm.logpdf(1.0, 0, 0.3)
    assert found.log_bayes_factor == pytest.approx(exact, abs=4 * found.mcse)
    assert found.mcse < 0.1
