"""`sample_ais(nan=...)`: likelihoods that are NaN, or raise an exception, on a part of a prior."""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pytensor.compile.ops import wrap_py
from scipy import integrate, stats

import pymc_anneal as pma

from pymc_anneal.pipeline.rejected_nan import RejectedNan

pytestmark = [
    pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning"),
    pytest.mark.filterwarnings("ignore:The model has no gradient:UserWarning"),
]

DATA, PRIOR_SD = np.array([0.3, 1.2, -0.4]), 2.0
EDGE = float(stats.norm.ppf(0.95, scale=PRIOR_SD))  # 5 % of the prior lies above


def log_likelihood(mu: float) -> float:
    return float(stats.norm.logpdf(DATA, mu, 1.0).sum())


def exact_log_evidence(edge: float) -> float:
    """Log evidence of the model without the region above the edge."""

    def integrand(mu: float) -> float:
        return float(stats.norm.pdf(mu, scale=PRIOR_SD) * np.exp(log_likelihood(mu)))

    return float(np.log(integrate.quad(integrand, -20.0, edge, epsabs=1e-12)[0]))


@wrap_py(itypes=[pt.dscalar, pt.dscalar], otypes=[pt.dscalar])
def nan_above(mu, edge):
    return np.asarray(np.nan if mu > edge else log_likelihood(mu))


@wrap_py(itypes=[pt.dscalar, pt.dscalar], otypes=[pt.dscalar])
def fails_above(mu, edge):
    if mu > edge:
        raise ArithmeticError("the solver does not converge")
    return np.asarray(log_likelihood(mu))


def switched(mu, edge):
    """The same in PyTensor."""
    return pt.switch(mu > edge, np.nan, pm.logp(pm.Normal.dist(mu, 1.0), DATA).sum())


KINDS = {"jax": switched, "nan": nan_above, "exception": fails_above}


def model_of(kind: str, edge: float = EDGE) -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, PRIOR_SD)
        pm.Potential("likelihood", KINDS[kind](mu, pt.constant(edge)))
    return model


def run(model: pm.Model, **settings: Any) -> Any:
    return pma.sample_ais(200, model=model, random_seed=1, progressbar=False, **settings)


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.slow] * (k != "nan")) for k in KINDS]
)
def test_a_region_without_likelihood_is_left_out(kind: str) -> None:
    idata = run(model_of(kind), nan="reject")
    estimate, evidence = pma.log_evidence(idata), idata["evidence"]
    assert abs(estimate.log_evidence - exact_log_evidence(EDGE)) < 4 * estimate.mcse
    assert estimate.verdict.trusted
    assert float(evidence["nan_share_prior"]) == pytest.approx(0.05, abs=0.04)
    share = 100 * float(evidence["nan_share_prior"])
    assert f"NaN at {share:.2g} % of the draws of the prior" in str(estimate.verdict)


@pytest.mark.slow
def test_the_evidence_without_the_region_is_another() -> None:
    """At an edge inside the posterior the whole evidence is far off: the test above can fail."""
    idata = run(model_of("jax", 0.3), nan="reject", reference="prior")
    estimate = pma.log_evidence(idata)
    assert abs(estimate.log_evidence - exact_log_evidence(0.3)) < 4 * estimate.mcse
    assert exact_log_evidence(EDGE) - estimate.log_evidence > 10 * estimate.mcse


@pytest.mark.slow
def test_a_region_inside_the_posterior_is_doubted() -> None:
    kernel = pma.RandomWalkMetropolis(2.0, 2, 1.0)
    idata = run(model_of("jax", 0.3), nan="reject", steps=10, schedule="linear", transition=kernel)
    verdict = pma.log_evidence(idata).verdict
    assert verdict.status == "do not trust"
    assert "may hold a part of the posterior" in str(verdict)


def test_the_share_is_recorded_by_temperature() -> None:
    # Of thirty proposals at each temperature the first few still start from the one before.
    kernel = pma.RandomWalkMetropolis(2.0, 30, 1.0)
    idata = run(model_of("jax"), nan="reject", steps=10, schedule="linear", transition=kernel)
    share = np.asarray(idata["annealing"]["nan_share"]).mean(axis=0)
    # A proposal from x is above the edge with the probability P(x + 2 z > EDGE).
    precision = PRIOR_SD**-2 + len(DATA) * np.linspace(0.1, 1.0, 10)
    mean = np.linspace(0.1, 1.0, 10) * DATA.sum() / precision
    expected = stats.norm.sf((EDGE - mean) / np.sqrt(1 / precision + 4.0))
    np.testing.assert_allclose(share, expected, atol=0.015)
    assert float(idata["evidence"]["nan_share_posterior"]) == pytest.approx(share[-1])


def test_nan_is_an_error_by_default() -> None:
    with pytest.raises(ValueError, match=r"NaN in the term\(s\) \['likelihood'\].*nan='reject'"):
        run(model_of("nan"))


def test_an_exception_is_an_error_by_default() -> None:
    with pytest.raises(ValueError, match=r"raised ArithmeticError .*does not conv") as caught:
        run(model_of("exception"))
    assert isinstance(caught.value.__cause__, ArithmeticError)


@pytest.mark.slow
def test_the_first_traceback_is_kept() -> None:
    evidence = run(model_of("exception"), nan="reject")["evidence"]
    assert "in fails_above" in evidence.attrs["first_error"]
    assert 0 < float(evidence["call_failures"]) < 0.1 * float(evidence["calls"])


@pytest.mark.slow
def test_exceptions_of_a_gradient_are_doubted() -> None:
    verdict = RejectedNan(prior=0.0, posterior=0.0, failures=3, allowed=False)
    assert "3 calls of the likelihood or its gradient raised" in verdict.doubts[0]
    assert not verdict._replace(allowed=True).doubts


@pytest.mark.parametrize("kernel", [pma.HMC, pma.MALA, pma.GeneralizedHMC])
def test_kernels_with_gradients(kernel: type) -> None:
    settings = {"reference": "prior", "schedule": "power", "steps": 40}
    transition = kernel(step_size=0.5, n_steps=2, scale=1.0)
    idata = run(model_of("jax"), nan="reject", transition=transition, **settings)
    estimate = pma.log_evidence(idata)
    assert abs(estimate.log_evidence - exact_log_evidence(EDGE)) < 4 * estimate.mcse


@pytest.mark.slow
@pytest.mark.parametrize("transition", ["hmc", pma.MALA(), pma.GeneralizedHMC()], ids=str)
def test_kernels_with_gradients_that_are_tuned(transition: Any) -> None:
    idata = run(model_of("jax"), nan="reject", reference="prior", transition=transition, steps=40)
    estimate = pma.log_evidence(idata)
    assert abs(estimate.log_evidence - exact_log_evidence(EDGE)) < 4 * estimate.mcse


def test_discrete_variables() -> None:
    with pm.Model() as model:
        count = pm.Binomial("count", 4, 0.5)
        switch = pt.switch(pt.eq(count, 4), np.nan, 0.1 * count)
        pm.Potential("likelihood", switch)
    idata = run(model, nan="reject", steps=10, schedule="linear")
    mass = stats.binom.pmf(np.arange(4), 4, 0.5) * np.exp(0.1 * np.arange(4))
    estimate = pma.log_evidence(idata)
    assert abs(estimate.log_evidence - np.log(mass.sum())) < 4 * estimate.mcse
    assert float(idata["evidence"]["nan_share_posterior"]) > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"nan": "ignore"}, "`nan` is 'ignore', expected \"raise\""),
        ({"nan": "reject", "path": pma.CustomPath(lambda x, beta: x.sum())}, "CustomPath: return"),
    ],
)
def test_settings_that_make_no_sense(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(model_of("jax"), **settings)
