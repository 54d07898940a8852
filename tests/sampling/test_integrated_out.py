"""Runs without the normal variables of a model: evidence, draws, and what is left."""

import numpy as np
import pymc as pm
import pytest

from scipy import stats
from scipy.special import logsumexp

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from pymc_anneal.model.compile import compile_model
from pymc_anneal.pipeline import choose_start
from pymc_anneal.pipeline import integrated_start as module
from pymc_anneal.pipeline.integrated_start import effects_start, few_are_left, integrated_start
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.options import Options
from pymc_anneal.pipeline.session import open_session
from pymc_anneal.pipeline.settings import Settings
from pymc_anneal.pipeline.short_road import short_road
from pymc_anneal.pipeline.start import Request

SETTINGS = {"random_seed": 1, "progressbar": False}
COUNTIES, HOUSES = 60, 3
COUNTY = np.repeat(np.arange(COUNTIES), HOUSES)
NOISE = np.random.default_rng(0).normal(size=(2, COUNTIES * HOUSES))
RADON = 1.5 + 0.6 * NOISE[0, COUNTY] + 0.8 * NOISE[1]


def counties(spread: float | None = None, noise: float | None = None) -> pm.Model:
    """Levels of counties around a mean; scales that are not given have priors."""
    with pm.Model() as model:
        mean = pm.Normal("mean", 0, 2)
        if spread is None:
            spread, noise = pm.HalfNormal("spread", 1), pm.HalfNormal("noise", 1)
        level = pm.Normal("level", mean, spread, shape=COUNTIES)
        pm.Normal("y", level[COUNTY], noise, observed=RADON)
    return model


def given_scales(spread: float, noise: float) -> tuple[float, float]:
    """Return log evidence and posterior mean of ``mean`` in closed form."""
    of_counties = RADON.reshape(COUNTIES, HOUSES)
    covariance = noise**2 * np.eye(HOUSES) + spread**2
    precision = np.linalg.inv(covariance)
    root = stats.multivariate_normal(np.zeros(HOUSES), covariance)
    weight, sums = COUNTIES * precision.sum(), (of_counties @ precision).sum()
    variance = 1 / (weight + 1 / 4)
    log_evidence = root.logpdf(of_counties).sum() + sums**2 * variance / 2
    return log_evidence + np.log(variance / 4) / 2, sums * variance


def exact() -> tuple[float, float]:
    """Return log evidence and posterior mean of ``spread`` by quadrature."""
    spreads, noises = np.linspace(0.01, 2, 160), np.linspace(0.4, 1.6, 160)
    log_joint = (
        np.array([[given_scales(s, n)[0] for n in noises] for s in spreads])
        + stats.halfnorm.logpdf(spreads)[:, None]
        + stats.halfnorm.logpdf(noises)
    )
    cell = (spreads[1] - spreads[0]) * (noises[1] - noises[0])
    weight = np.exp(log_joint - logsumexp(log_joint))
    return float(logsumexp(log_joint) + np.log(cell)), float(weight.sum(axis=1) @ spreads)


@pytest.mark.slow
def test_levels_of_counties():
    idata = pma.sample_ais(model=counties(), **SETTINGS)
    found, (log_evidence, spread) = pma.log_evidence(idata), exact()
    assert found.verdict.trusted
    assert abs(found.log_evidence - log_evidence) < 4 * found.mcse
    assert found.mcse < 0.02
    assert "Integrated out exactly: 'mean' (1), 'level' (60)." in str(found)
    draws = group(idata, "posterior")
    assert draws["level"].shape == (4, 500, COUNTIES)
    assert abs(draws["spread"].values.mean() - spread) < 4 * draws["spread"].values.std() / 40
    # Given the scales, mean and levels are normal: ranks of the draws among those in closed form.
    scales = np.stack([draws["spread"].values.ravel(), draws["noise"].values.ravel()], axis=1)[::20]
    wanted = np.array([given_scales(*pair)[1] for pair in scales])
    weight = HOUSES / (scales[:, 1] ** 2 + HOUSES * scales[:, 0] ** 2)
    sd = (COUNTIES * weight + 1 / 4) ** -0.5
    z = (draws["mean"].values.ravel()[::20] - wanted) / sd
    assert stats.kstest(z, "norm").pvalue > 1e-4


def test_where_all_are_integrated_out(monkeypatch):
    """With known scales nothing is left: the evidence is exact, and draws are independent."""
    offers = tuple(offer for offer in choose_start.OFFERS if offer is not short_road)
    monkeypatch.setattr(choose_start, "OFFERS", offers)
    idata = pma.sample_ais(model=counties(0.6, 0.8), **SETTINGS)
    found, (log_evidence, mean) = pma.log_evidence(idata), given_scales(0.6, 0.8)
    assert found.mcse == 0
    np.testing.assert_allclose(found.log_evidence, log_evidence, rtol=1e-10)
    draws = group(idata, "posterior")["mean"].values
    assert len(np.unique(draws)) == draws.size
    assert abs(draws.mean() - mean) < 4 * draws.std() / np.sqrt(draws.size)


@pytest.mark.parametrize("scaled", [True, False])
def test_effects_come_before_the_short_road_and_coefficients_after(monkeypatch, scaled: bool):
    known = (None, None) if scaled else (0.6, 0.8)
    request = Request(ModelTarget(compile_model(counties(*known))), Options(pma.HMC()), True)
    monkeypatch.setattr(module, "_start", lambda *_: "a start")
    with open_session(
        request.target, Settings(500, 4, free_transition=True), progressbar=False
    ) as session:
        offered = [offer(session, request) for offer in (effects_start, integrated_start)]
    assert offered == (["a start", None] if scaled else [None, "a start"])
    order = [choose_start.OFFERS.index(o) for o in (effects_start, short_road, integrated_start)]
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("left", "before", "few"),
    [(10, 12, True), (11, 12, False), (13, 93, True), (25, 100, True), (26, 100, False)],
)
def test_few_are_left(left: int, before: int, few: bool) -> None:
    assert few_are_left(left, before) == few


@pytest.mark.slow
def test_factors_of_forty_people():
    """The same model twice: with the factor of each person, and with these integrated out."""
    rng = np.random.default_rng(3)
    people, items = 40, 11
    loading = rng.normal(size=items)
    y = rng.normal(size=(people, 1)) * loading + rng.normal(0, 0.5, size=(people, items))
    runs = []
    for marginal in (False, True):
        with pm.Model() as model:
            load, noise = pm.Normal("load", 0, 1, shape=items), pm.HalfNormal("noise", 1)
            if marginal:
                covariance = load[:, None] * load + noise**2 * np.eye(items)
                pm.MvNormal("y", np.zeros(items), covariance, observed=y)
            else:
                factor = pm.Normal("factor", 0, 1, shape=people)
                pm.Normal("y", factor[:, None] * load, noise, observed=y)
        runs.append(pma.log_evidence(pma.sample_ais(model, **SETTINGS)))
    assert "Integrated out exactly: 'factor' (40)." in str(runs[0])
    difference = runs[0].log_evidence - runs[1].log_evidence
    assert abs(difference) < 4 * np.hypot(runs[0].mcse, runs[1].mcse)
    assert all(run.verdict.trusted and run.mcse < 0.05 for run in runs)
