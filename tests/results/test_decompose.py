"""Fit and information: closed forms of a conjugate regression, coverage of both errors."""

import numpy as np
import pytest
import xarray as xr

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.annealing.resampling import equal_weights
from pymc_anneal.base.arviz_compat import container, group
from pymc_anneal.evidence.ais import ais
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.results.decompose import decompose
from tests.repetitions import (
    REPETITIONS,
    SCALE,
    X,
    Y,
    coverage,
    log_evidence,
    posterior,
    regression,
)

COLUMNS = 2
MODEL = pma.compile_model(regression(COLUMNS))


def exact_fit(columns: int) -> float:
    """Posterior mean of the log likelihood."""
    mean, covariance = posterior(columns)
    x = X[:, :columns]
    residual = Y - x @ mean
    expected = residual @ residual + np.trace(x @ covariance @ x.T)
    return float(-0.5 * expected - len(Y) / 2 * np.log(2 * np.pi))


def exact_information(columns: int) -> float:
    """Divergence of the normal posterior from the normal prior."""
    mean, covariance = posterior(columns)
    d, variance = columns, SCALE**2
    log_ratio = d * np.log(variance) - np.linalg.slogdet(covariance)[1]
    return float(0.5 * ((np.trace(covariance) + mean @ mean) / variance - d + log_ratio))


def importance_run(seed: int, draws: int = 250, particles: int = 400) -> tuple[object, LogEvidence]:
    """Return a run of one step from a wide normal density, and its evidence."""
    rng = np.random.default_rng(seed)
    mean, covariance = posterior(COLUMNS)
    start = stats.multivariate_normal(mean + 0.1, 5 * covariance)
    x = start.rvs((4, particles), random_state=rng).reshape(4, particles, COLUMNS)
    log_joint = stats.norm.logpdf(Y, x @ X[:, :COLUMNS].T).sum(-1)
    log_joint += stats.norm.logpdf(x, 0, SCALE).sum(-1)
    log_weight = log_joint - start.logpdf(x)
    number = np.broadcast_to(np.arange(particles)[:, None], (4, particles, 1))
    copied = equal_weights(number, log_weight, draws, rng)
    drawn = np.take_along_axis(x, copied, axis=1)
    names = ("chain", "draw")
    groups = {
        "posterior": xr.Dataset({f"slope{j}": (names, drawn[:, :, j]) for j in range(COLUMNS)}),
        "sample_stats": xr.Dataset({"particle": (names, copied[:, :, 0])}),
        "annealing": xr.Dataset({"log_weight": (("chain", "particle"), log_weight)}),
    }
    found = ais(log_weight)
    interval = (found.log_evidence, found.log_evidence)
    evidence = LogEvidence(*found[:2], interval, found.ess, 0.0, 0.0, Verdict("trust"))
    return container(groups), evidence


def test_the_parts_of_the_exact_value() -> None:
    for columns in (1, 2, 3):
        difference = exact_fit(columns) - exact_information(columns)
        assert difference == pytest.approx(log_evidence(columns), abs=1e-9)


def test_errors_by_hand() -> None:
    """By the influences of all particles, of which each has its copies among the draws."""
    idata, evidence = importance_run(0)
    found, _ = decompose("model", idata, MODEL, evidence)
    slopes = np.stack([group(idata, "posterior")[f"slope{j}"] for j in range(COLUMNS)], axis=-1)
    fit = stats.norm.logpdf(Y, slopes @ X[:, :COLUMNS].T).sum(-1)
    number = group(idata, "sample_stats")["particle"].values
    weight = np.exp(group(idata, "annealing")["log_weight"].values)
    weight /= weight.mean()
    share = weight.shape[1] / number.shape[1]
    influence = np.array(
        [
            np.bincount(rows, share * (values - fit.mean()), minlength=weight.shape[1])
            for rows, values in zip(number, fit, strict=True)
        ]
    )
    assert np.bincount(number[0]).max() > 1
    n = weight.size
    for error, each in {
        found.fit_mcse: influence,
        found.information_mcse: influence - (weight - 1),
    }.items():
        assert error == pytest.approx(np.sqrt((each**2).sum() / (n * (n - 1))), rel=1e-9)


def scores(repetitions: int) -> dict[str, np.ndarray]:
    """Return scores of fit and information, and of both with errors that are wrong.

    The wrong ones count draws as independent, and both terms of the information as well.
    """
    rows = []
    for seed in range(repetitions):
        idata, evidence = importance_run(seed)
        found, _ = decompose("model", idata, MODEL, evidence)
        fit, information = found.fit - exact_fit(2), found.information - exact_information(2)
        naive = np.sqrt(COLUMNS / 2 / 1000)  # the log likelihood is about -chi-squared / 2
        rows.append(
            {
                "fit": fit / found.fit_mcse,
                "information": information / found.information_mcse,
                "naive": fit / naive,
                "apart": information / np.hypot(found.fit_mcse, evidence.mcse),
            }
        )
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


@pytest.mark.slow
def test_coverage() -> None:
    found = {name: coverage(z) for name, z in scores(REPETITIONS).items()}
    assert 0.92 <= found["fit"] <= 0.98
    assert 0.92 <= found["information"] <= 0.98
    assert found["naive"] < 0.92
    assert found["apart"] > 0.98


@pytest.fixture(scope="module")
def runs():
    settings = {"draws": 1000, "target_mcse": 0.01, "progressbar": False}
    results = {
        name: pma.sample_ais(MODEL, random_seed=seed, **settings)
        for seed, name in enumerate(["once", "twice"])
    }
    return dict.fromkeys(results, MODEL), results


@pytest.mark.slow
def test_compare(runs) -> None:
    models, results = runs
    comparison = pma.compare(results, decompose=True, models=models, warnings=False)
    for _, row in comparison.details.iterrows():
        assert row["fit"] == pytest.approx(exact_fit(COLUMNS), abs=4 * row["fit_mcse"])
        exact = exact_information(COLUMNS)
        assert row["information"] == pytest.approx(exact, abs=4 * row["information_mcse"])
        assert max(row["fit_mcse"], row["information_mcse"]) < 0.02
        assert row["fit"] - row["information"] == pytest.approx(row["log_evidence"], abs=1e-12)
        assert row["dimension"] == COLUMNS
    assert {"fit", "information", "dimension"} < set(comparison.table.columns)
    assert " fit " in repr(comparison)
    assert "information" in comparison._repr_html_()
    plain = pma.compare(results, warnings=False)
    assert "fit" not in plain.details
    assert " fit " not in repr(plain)


def test_resampled_populations() -> None:
    """Particles that share ancestors count as one."""
    idata, evidence = importance_run(0)
    alone, _ = decompose("model", idata, MODEL, evidence)
    annealing = group(idata, "annealing").assign_coords(
        population=("particle", np.arange(400) // 400)
    )
    others = {name: group(idata, name) for name in ("posterior", "sample_stats")}
    joined = container({**others, "annealing": annealing})
    together, _ = decompose("model", joined, MODEL, evidence)
    assert together.fit == alone.fit
    assert together.fit_mcse != pytest.approx(alone.fit_mcse, rel=0.05)


def test_draws_are_copies_of_particles(runs) -> None:
    _, results = runs
    idata = results["once"]
    number = group(idata, "sample_stats")["particle"].values
    draws = group(idata, "posterior")["slope0"].values
    for one, x in zip(number, draws, strict=True):
        assert len(np.unique(x)) == len(np.unique(one))
        assert all(len(np.unique(x[one == k])) == 1 for k in one[:20])


def test_what_is_refused(runs) -> None:
    models, results = runs
    with pytest.raises(ValueError, match=r"pass `models`.*found none for \['once'\]"):
        pma.compare(results, decompose=True, models={"twice": models["twice"]})
    evidences = {name: pma.log_evidence(result) for name, result in results.items()}
    with pytest.raises(ValueError, match="no result of this version's `sample_ais`"):
        pma.compare(evidences, decompose=True, models=models)
