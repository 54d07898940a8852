"""Priors in conflict with the draws: right where the mean of the ratios is far too low."""

import numpy as np
import pymc as pm
import pytest

from scipy import integrate, stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.evidence.mean_ratio import MeanRatio, mean_ratio
from pymc_anneal.evidence.posterior_density import grouped_draws
from pymc_anneal.posthoc import moved_to_prior
from pymc_anneal.posthoc.moved_to_prior import move_to_prior, obstacle_to_moves
from pymc_anneal.posthoc.prior_change import change_distribution
from pymc_anneal.results.container import dataset

Y, NOISE = np.array([2.0, -1.0, 0.5, 9.0]), 2.0
NEW = {"normal": (pm.HalfNormal.dist(10.0), stats.halfnorm(scale=10.0))} | {
    "cauchy": (pm.HalfCauchy.dist(5.0), stats.halfcauchy(scale=5.0))
}


def groups(scale: float = 1.0) -> pm.Model:
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", scale)
        pm.Normal("y", pm.Normal("b", 0, tau, shape=len(Y)), NOISE, observed=Y)
    return model


def log_joint(log_tau: np.ndarray, prior: object) -> np.ndarray:
    tau = np.exp(log_tau)
    data = stats.norm(0, np.hypot(tau, NOISE)).logpdf(Y[:, None]).sum(axis=0)
    return prior.logpdf(tau) + log_tau + data  # type: ignore[attr-defined]


GRID = np.linspace(-14, 9, 40001)


def log_evidence(prior: object) -> float:
    return float(np.log(integrate.trapezoid(np.exp(log_joint(GRID, prior)), GRID)))


def draws(seed: int, scale: float = 1.0) -> object:
    """Return exact draws of the posterior."""
    rng = np.random.default_rng(seed)
    mass = np.exp(log_joint(GRID, stats.halfnorm(scale=scale)))
    tau = np.exp(np.interp(rng.random((4, 1000)), np.cumsum(mass) / mass.sum(), GRID))
    variance = 1 / (tau**-2 + NOISE**-2)
    noise = rng.normal(size=(4, 1000, len(Y)))
    b = (variance / NOISE**2)[..., None] * Y + np.sqrt(variance)[..., None] * noise
    return container({"posterior": dataset({"tau": tau, "b": b}, ("chain", "draw"))})


def exact(name: str) -> float:
    return log_evidence(NEW[name][1]) - log_evidence(stats.halfnorm(scale=1.0))


@double_precision
def moved(seed: int, name: str) -> tuple[MeanRatio, str, MeanRatio]:
    """Return the estimate, the doubt, and the mean of the ratios alone."""
    compiled = pma.compile_model(groups())
    change = change_distribution(compiled, "tau", NEW[name][0])
    own = grouped_draws(draws(seed), compiled)
    values = compiled.constrain(own.reshape(-1, compiled.ndim))
    log_ratio = change.log_ratio(values).reshape(len(own), -1)
    found = move_to_prior(compiled, change, own, log_ratio, np.random.SeedSequence(seed))
    return found.ratio, found.doubt, mean_ratio(log_ratio)


def test_a_wider_scale_in_conflict() -> None:
    row = pma.prior_sensitivity(draws(1), {"tau": NEW["normal"][0]}, model=groups()).iloc[0]
    assert row["verdict"] == "trust"
    assert abs(row["log_ratio"] - exact("normal")) < 4 * row["mcse"]
    assert row["mcse"] < 0.08


@pytest.mark.slow
@pytest.mark.parametrize("name", NEW)
def test_scores_over_seeds(name) -> None:
    found = [moved(seed, name) for seed in range(20)]
    score = np.array([(ratio.log_mean - exact(name)) / ratio.mcse for ratio, _, _ in found])
    assert abs(score.mean()) < 4 / np.sqrt(20)
    assert score.std() < 1.5
    assert not any(doubt for _, doubt, _ in found)
    # The twin: the mean of the ratios, by which each of these was judged before.
    alone = np.array([ratio.log_mean - exact(name) for _, _, ratio in found])
    assert np.median(alone) < -0.4


def test_walkers_that_have_not_arrived_are_not_trusted(monkeypatch) -> None:
    monkeypatch.setattr(moved_to_prior, "_SWEEPS", 6)
    monkeypatch.setattr(moved_to_prior, "_TURNS", 1)
    ratio, doubt, _ = moved(1, "normal")
    assert abs(ratio.log_mean - exact("normal")) > 4 * ratio.mcse
    assert "disagree by" in doubt


def test_a_prior_within_reach_takes_no_further_draws(monkeypatch) -> None:
    monkeypatch.setattr(moved_to_prior, "stretch", None)
    near = {"tau": pm.HalfNormal.dist(0.8)}
    row = pma.prior_sensitivity(draws(1), near, model=groups()).iloc[0]
    assert row["verdict"] == "trust"


@double_precision
def test_obstacles() -> None:
    with pm.Model() as counts:
        pm.Poisson("n", 3.0)
        pm.Normal("y", pm.Normal("x"), 1, observed=0.5)
    with pm.Model() as wide:
        x = pm.Normal("x", shape=4000)
        pm.Normal("y", pm.math.exp(x).sum() ** 2, 1, observed=0.5)
    compiled = pma.compile_model(groups())
    assert obstacle_to_moves(compiled, 4000) == ""
    assert "'n' is discrete" in obstacle_to_moves(pma.compile_model(counts), 4000)
    assert "10 draws are few" in obstacle_to_moves(compiled, 10)
    assert "costly" in obstacle_to_moves(pma.compile_model(wide), 10**6)


def test_what_cannot_be_moved_is_not_trusted() -> None:
    with pm.Model() as model:
        n = pm.Poisson("n", 3.0)
        pm.Normal("y", n, 4.0, observed=9.0)
    n = np.random.default_rng(1).poisson(4.0, (4, 2000))
    found = container({"posterior": dataset({"n": n}, ("chain", "draw"))})
    row = pma.prior_sensitivity(found, {"n": pm.Poisson.dist(9.0)}, model=model).iloc[0]
    assert row["verdict"].startswith("do not trust")
    assert "variable 'n' is discrete" in row["verdict"]
