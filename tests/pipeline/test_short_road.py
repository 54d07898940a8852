"""Runs from a mixture at the tops of climbs, without a survey."""

from typing import Any

import numpy as np
import pymc as pm
import pytest

from scipy import integrate, stats

import pymc_anneal as pma

from pymc_anneal.adaptation import fit_at_tops
from pymc_anneal.pipeline import short_road

ROWS, SD, PRIOR_SD = 30, 0.7, 2.0
X = np.random.default_rng(4).standard_normal((ROWS, 3))
Y = X @ [1.0, -0.5, 0.0] + SD * np.random.default_rng(5).standard_normal(ROWS)
COVARIANCE = SD**2 * np.eye(ROWS) + PRIOR_SD**2 * X @ X.T
EXACT = stats.multivariate_normal(np.zeros(ROWS), COVARIANCE).logpdf(Y)


def conjugate() -> pm.Model:
    with pm.Model() as model:
        b = pm.Normal("b", 0, PRIOR_SD, shape=3)
        pm.Normal("y", pm.math.dot(X, b), SD, observed=Y)
    return model


def gamma_poisson() -> pm.Model:
    """Return a model of one skewed coordinate, with the evidence of `GAMMA_POISSON`."""
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2.0, 1.0)
        pm.Poisson("y", rate, observed=[0, 1])
    return model


# Gamma(3) / (Gamma(2) 3^3): the integral of rate e^-rate times e^(-2 rate) rate.
GAMMA_POISSON = np.log(2 / 27)


def stages(idata: Any) -> set[str]:
    return set(pma.log_evidence(idata).stages)


def run(model: pm.Model, seed: int = 1, **options: Any) -> Any:
    return pma.sample_ais(model=model, random_seed=seed, progressbar=False, **options)


def test_a_simple_posterior_takes_no_survey() -> None:
    idata = run(conjugate())
    found = pma.log_evidence(idata)
    assert stages(idata) >= {"Climbs", "Annealing"}
    assert not stages(idata) & {"Survey", "Pilot", "Trial"}
    assert idata["evidence"].attrs["transition"] == "Stay"
    assert found.verdict.trusted
    assert abs(found.log_evidence - EXACT) < 4 * found.mcse
    assert found.mcse < 0.03
    assert sum(reading.evaluations for reading in found.stages.values()) < 8_000


def test_draws_are_those_of_the_posterior_without_copies() -> None:
    draws = run(gamma_poisson())["posterior"]["rate"].values
    assert stats.kstest(draws.ravel(), stats.gamma(3, scale=1 / 3).cdf).pvalue > 1e-4
    assert len(np.unique(draws)) > 0.95 * draws.size


def test_more_particles_for_a_smaller_error() -> None:
    found = pma.log_evidence(run(gamma_poisson(), target_mcse=0.002))
    assert found.mcse < 0.003
    assert found.verdict.trusted


def spread_of_schools() -> tuple[pm.Model, float]:
    """Return a model of a spread whose posterior falls off like a power, and its evidence."""
    effect, error = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]) - 8, np.array([15.0, 10, 16, 11, 9])
    error = np.append(error, [11.0, 10, 18])
    with pm.Model() as model:
        spread = pm.HalfCauchy("spread", 5.0)
        pm.Normal("y", 0.0, pm.math.sqrt(spread**2 + error**2), observed=effect)

    def density(spread: float) -> float:
        likelihood = stats.norm.pdf(effect, 0, np.sqrt(spread**2 + error**2)).prod()
        return float(likelihood * stats.halfcauchy.pdf(spread, scale=5))

    total, _ = integrate.quad(density, 0, np.inf, epsabs=0, epsrel=1e-10)
    return model, float(np.log(total))


def test_proposals_leave_a_tail_without_large_weights() -> None:
    model, exact = spread_of_schools()
    idata = run(model, seed=3)
    found = pma.log_evidence(idata)
    assert idata["evidence"].attrs["transition"].startswith("IndependenceMetropolis")
    assert not stages(idata) & {"Survey", "Pilot"}
    assert found.verdict.trusted
    assert found.mcse < 0.01
    assert abs(found.log_evidence - exact) < 4 * found.mcse
    draws = idata["posterior"]["spread"].values.ravel()
    assert len(np.unique(draws)) > 0.8 * draws.size


def test_a_step_without_moves_leaves_the_tail_in_the_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(short_road, "has_light_tail", lambda fitted: True)
    monkeypatch.setattr(fit_at_tops, "has_light_tail", lambda fitted: True)
    model, _ = spread_of_schools()
    found = [pma.log_evidence(run(model, seed=seed, warnings=False)) for seed in (1, 2, 3)]
    assert max(one.pareto_k for one in found) > 0.7


@pytest.mark.parametrize(
    "options",
    [
        {"transition": pma.HMC()},
        {"audit": "levels"},
        {"nan": "reject"},
        {"reference": "pilot"},
        {"steps": 4},
    ],
    ids=str,
)
def test_what_takes_a_survey(options: dict[str, Any]) -> None:
    idata = run(gamma_poisson(), draws=60, warnings=False, **options)
    assert "Survey" in stages(idata)
    assert "Climbs" not in stages(idata)


def test_a_likelihood_that_jumps_is_surveyed() -> None:
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1)
        pm.Normal("y", x + pm.math.switch(x > 3, 0.5, 0.0), 1.0, observed=0.3)
    idata = run(model, draws=60, warnings=False)
    assert "Survey" in stages(idata)
    assert "Climbs" not in stages(idata)


@pytest.mark.slow
def test_a_posterior_that_is_not_simple_is_surveyed() -> None:
    with pm.Model() as model:
        x = pm.Normal("x", 0, 3, shape=2)
        pm.Normal("y", x**2, 0.3, observed=[4.0, 4.0])  # four modes
        pm.Normal("z", pm.math.sin(4 * x), 0.3, observed=[0.0, 0.0])
    idata = run(model, draws=60, warnings=False)
    assert stages(idata) >= {"Climbs", "Survey"}
    assert pma.log_evidence(idata).stages["Climbs"].evaluations > 0


@pytest.mark.slow
def test_the_evidence_is_unbiased_and_its_interval_covers() -> None:
    model, errors, covered = gamma_poisson(), [], []
    for seed in range(200):
        found = pma.log_evidence(run(model, seed, draws=50))
        errors.append(found.log_evidence - GAMMA_POISSON)
        low, high = found.interval
        covered.append(low <= GAMMA_POISSON <= high)
    ratio = np.exp(errors)
    assert abs(ratio.mean() - 1) < 3 * ratio.std() / np.sqrt(len(ratio))
    assert 0.91 <= np.mean(covered) <= 0.985  # the 0.5 % quantiles of 200 at 95 %
