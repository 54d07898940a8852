"""Occam factors by block: closed forms of conjugate regressions, coverage of their errors."""

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.results.decompose import decompose
from pymc_anneal.results.occam import _log_wishart, blocks_of
from tests.repetitions import REPETITIONS, SCALE, X, Y, coverage, posterior
from tests.results.test_decompose import MODEL, exact_information, importance_run


def exact_occam(column: int) -> float:
    """Log ratio of the posterior to the prior volume of one slope among two."""
    mean, covariance = posterior(2)
    square = covariance[column, column] + mean[column] ** 2
    log_prior = -0.5 * square / SCALE**2 - 0.5 * np.log(2 * np.pi * SCALE**2)
    return float(log_prior + 0.5 * np.log(2 * np.pi * np.e * covariance[column, column]))


def exact_dependence() -> float:
    _, covariance = posterior(2)
    correlation = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    return float(-0.5 * np.log(1 - correlation**2))


def test_the_parts_add_up() -> None:
    total = exact_dependence() - exact_occam(0) - exact_occam(1)
    assert total == pytest.approx(exact_information(2), abs=1e-12)


def scores(repetitions: int) -> dict[str, np.ndarray]:
    """Return scores of the first block and of the dependence, and of two that are wrong.

    The wrong ones leave out the part of the posterior volume, and that of all blocks.
    """
    rows = []
    for seed in range(repetitions):
        idata, evidence = importance_run(seed)
        parts, blocks = decompose("model", idata, MODEL, evidence)
        block = blocks.loc["slope0"]
        error = block["log_occam"] - exact_occam(0)
        shared = parts.dependence - exact_dependence()
        rows.append(
            {
                "block": error / block["log_occam_mcse"],
                "dependence": shared / parts.dependence_mcse,
                "prior alone": error / parts.log_prior_volume_mcse,
                "no blocks": shared / parts.information_mcse,
            }
        )
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


@pytest.mark.slow
def test_coverage() -> None:
    found = {name: coverage(z) for name, z in scores(REPETITIONS).items()}
    assert 0.92 <= found["block"] <= 0.98
    assert 0.92 <= found["dependence"] <= 0.98
    assert found["prior alone"] < 0.92
    assert found["no blocks"] < 0.92


@pytest.mark.slow
def test_conjugate_regression_to_two_hundredths() -> None:
    settings = {"draws": 4000, "target_mcse": 0.005, "progressbar": False}
    runs = {str(seed): pma.sample_ais(MODEL, random_seed=seed, **settings) for seed in (1, 2)}
    found = pma.compare(runs, decompose=True, models=dict.fromkeys(runs, MODEL), warnings=False)
    assert found.occam is not None
    for name in runs:
        for column in (0, 1):
            row = found.occam.loc[name, f"slope{column}"]
            assert row["log_occam"] == pytest.approx(exact_occam(column), abs=0.02)
            assert row["dimension"] == 1
        parts = found.details.loc[name]
        assert parts["dependence"] == pytest.approx(exact_dependence(), abs=0.02)
        volumes = found.occam.loc[name, "log_prior_volume"].sum()
        assert parts["log_prior_volume"] == pytest.approx(volumes, abs=1e-9)
    assert "log prior volume" in repr(found)


def test_mean_log_determinant() -> None:
    rng, d, n = np.random.default_rng(1), 4, 12
    draws = rng.normal(size=(20_000, n, d))
    centred = draws - draws.mean(axis=1, keepdims=True)
    log_det = np.linalg.slogdet(np.einsum("rni,rnj->rij", centred, centred) / n)[1]
    assert _log_wishart(n, d) == pytest.approx(log_det.mean(), abs=4 * log_det.std() / 20_000**0.5)
    assert _log_wishart(n, d) < -1  # without it the volume would be too small by half of this


def test_parents_scales_and_discrete_variables() -> None:
    """A prior volume is that given the parents, in unconstrained coordinates."""
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 2.0)
        b = pm.Normal("b", 0, tau, shape=3)
        pm.Poisson("k", 2.0)
        pm.Normal("y", b[0] + X[:, 0] * b[1], 1, observed=Y)
    compiled = pma.compile_model(model)
    x = compiled.sample_prior(np.random.SeedSequence(1), 2000)
    blocks = {block.name: block for block in blocks_of(compiled, x, 2000.0)}
    scale = np.exp(x[:, [0]])
    log_prior = -0.5 * (x[:, 1:4] / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)
    assert blocks["b"].log_prior_volume == pytest.approx(-log_prior.sum(1).mean())
    assert blocks["b"].dimension == 3
    # Of log tau: at draws of the prior itself the volumes differ by the normal approximation.
    assert 0 < blocks["tau"].log_posterior_volume - blocks["tau"].log_prior_volume < 0.3
    assert np.isnan(blocks["k"].log_posterior_volume)
    assert np.isfinite(blocks["k"].log_prior_volume)


def test_too_few_draws_have_no_volume() -> None:
    x = MODEL.sample_prior(np.random.SeedSequence(1), 50)
    assert all(np.isnan(block.log_posterior_volume) for block in blocks_of(MODEL, x, 1.9))
    assert all(np.isnan(block.influence).all() for block in blocks_of(MODEL, np.ones((9, 2)), 9))


def test_influence_is_a_derivative() -> None:
    """Of the log Occam factor by the weight of a draw."""
    mean, covariance = posterior(2)
    x = np.random.default_rng(3).multivariate_normal(mean, covariance, size=60)
    block = blocks_of(MODEL, x, 60.0)[1]

    def log_occam(weight: np.ndarray) -> float:
        share = weight / weight.sum()
        variance = share @ x[:, 1] ** 2 - (share @ x[:, 1]) ** 2
        log_prior = -0.5 * x[:, 1] ** 2 / SCALE**2 - 0.5 * np.log(2 * np.pi * SCALE**2)
        return float(share @ log_prior + 0.5 * np.log(2 * np.pi * np.e * variance))

    change = 1e-5 * np.eye(60)
    slope = [(log_occam(1 + c) - log_occam(1 - c)) / 2e-5 * 60 for c in change]
    np.testing.assert_allclose(block.influence, slope, atol=1e-6)
    bias = 0.5 * _log_wishart(60, 1)
    volumes = block.log_posterior_volume - block.log_prior_volume
    assert volumes == pytest.approx(log_occam(np.ones(60)) - bias, abs=1e-9)
