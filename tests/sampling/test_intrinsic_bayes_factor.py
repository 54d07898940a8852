"""Intrinsic Bayes factors: normal means and regressions in closed form, coverage, errors."""

import math

from itertools import combinations

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.sampling.intrinsic_bayes_factor import _averages, _training_samples
from tests.repetitions import REPETITIONS

TRUST = Verdict("trust")
Y = np.array([0.9, 1.7, -0.2, 1.1, 0.4, 1.3])
SIGMA = 1.2
X = np.random.default_rng(4).normal(size=(7, 2))
Z = X @ [0.8, -0.3] + np.random.default_rng(5).normal(0, SIGMA, 7)


def normal_mean(width: float | None) -> pm.Model:
    with pm.Model() as model:
        y = pm.Data("y", np.zeros(2))
        pm.Normal("obs", 0.0 if width is None else pm.Normal("mu", 0, width), SIGMA, observed=y)
    return model


def regression(width: float | None) -> pm.Model:
    """Return a model with both slopes, or with the first alone; ``None`` for the null."""
    with pm.Model() as model:
        x, z = pm.Data("x", X), pm.Data("z", Z)
        b = pm.Normal("b", 0, width or 1e4, shape=1 if width is None else 2)
        pm.Normal("obs", x[:, : 1 if width is None else 2] @ b, SIGMA, observed=z)
    return model


def log_flat(x: np.ndarray, z: np.ndarray) -> float:
    """Log evidence of a regression with flat priors of density 1 and known error."""
    n, d = x.shape
    coefficients = np.linalg.lstsq(x, z, rcond=None)[0] if d else np.zeros(0)
    residual = z - x @ coefficients
    log_det = np.linalg.slogdet(x.T @ x)[1] if d else 0.0
    constant = -(n - d) / 2 * np.log(2 * np.pi * SIGMA**2) - residual @ residual / 2 / SIGMA**2
    return float(constant - 0.5 * log_det)


def exact(x: np.ndarray, small: np.ndarray, z: np.ndarray, size: int) -> dict[str, float]:
    """Intrinsic Bayes factors of ``x`` against ``small`` (Berger & Pericchi 1996, eq. 9-11)."""
    whole = log_flat(x, z) - log_flat(small, z)
    rows = [list(r) for r in combinations(range(len(z)), size)]
    r = np.array([log_flat(small[i], z[i]) - log_flat(x[i], z[i]) for i in rows])
    averages = {
        "arithmetic": np.log(np.exp(r).mean()),
        "geometric": r.mean(),
        "median": np.median(r),
    }
    return {name: float(whole + value) for name, value in averages.items()}


def test_the_closed_form_of_a_mean() -> None:
    """``n^-1/2 exp(z^2 / 2)`` times the mean of ``exp(-y_l^2 / 2 sigma^2)``, as in section 4."""
    n, root = len(Y), Y.mean() * np.sqrt(len(Y)) / SIGMA
    by_hand = -0.5 * np.log(n) + root**2 / 2 + np.log(np.exp(-((Y / SIGMA) ** 2) / 2).mean())
    ones, none = np.ones((n, 1)), np.zeros((n, 0))
    assert exact(ones, none, Y, 1)["arithmetic"] == pytest.approx(by_hand)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1e2, 1e4])
def test_normal_means(width: float) -> None:
    models = {"effect": normal_mean(width), "null": normal_mean(None)}
    found = pma.intrinsic_bayes_factor(models, {"y": Y}, training=1, random_seed=1)
    expected = exact(np.ones((6, 1)), np.zeros((6, 0)), Y, 1)
    for name, factor in found._asdict().items():
        assert factor.log_bayes_factor == pytest.approx(expected[name], abs=4 * factor.mcse + 1e-3)
        assert factor.mcse < 0.1
        assert factor.verdict.trusted
        assert factor.models == ("effect", "null")
    # The Bayes factor itself is far from that, and depends on the width.
    plain = [
        pma.log_evidence(pma.sample_ais(m, progressbar=False))
        for m in (normal_mean_of(Y, width), normal_mean_of(Y, None))
    ]
    factor = pma.log_bayes_factor(*plain)
    assert abs(factor.log_bayes_factor - expected["arithmetic"]) > 2.0


def normal_mean_of(y: np.ndarray, width: float | None) -> pm.Model:
    model = normal_mean(width)
    model["y"].set_value(y)
    return model


@pytest.mark.slow
def test_regressions() -> None:
    models = {"both": regression(1e4), "first": regression(None)}
    found = pma.intrinsic_bayes_factor(models, {"x": X, "z": Z}, training=2, random_seed=2)
    expected = exact(X, X[:, :1], Z, 2)
    for name, factor in found._asdict().items():
        assert factor.log_bayes_factor == pytest.approx(expected[name], abs=4 * factor.mcse + 1e-3)
        assert factor.mcse < 0.1


def evidence(value: float, error: float, verdict: Verdict = TRUST) -> LogEvidence:
    interval = (value - 1.96 * error, value + 1.96 * error)
    return LogEvidence(value, error, interval, 500.0, 0.1, 2.0, verdict)


ROWS = 14
LONG = np.random.default_rng(6).normal(0.5, SIGMA, ROWS)
PAIRS = [list(r) for r in combinations(range(ROWS), 2)]
RATIOS = np.array(
    [log_flat(np.zeros((2, 0)), LONG[r]) - log_flat(np.ones((2, 1)), LONG[r]) for r in PAIRS]
)


def simulated(seed: int, number: int, noise: float = 0.1) -> pma.IntrinsicBayesFactors:
    """Average some of all training samples of size two, with noise in every evidence."""
    rng = np.random.default_rng(seed)
    whole = pma.LogBayesFactor(rng.normal(0, 0.05), 0.05, (-0.1, 0.1), TRUST)
    chosen = rng.choice(len(RATIOS), number, replace=False)
    second = [evidence(r, noise) for r in RATIOS[chosen] + rng.normal(0, noise, number)]
    return _averages(whole, [evidence(0.0, 0.0)] * number, second, number / len(RATIOS))


@pytest.mark.parametrize("number", [30, 60, len(RATIOS)])
def test_coverage(number: int) -> None:
    exact_averages = (np.log(np.exp(RATIOS).mean()), RATIOS.mean(), np.median(RATIOS))
    runs = [simulated(seed, number) for seed in range(REPETITIONS)]
    for k, value in enumerate(exact_averages):
        hits = [run[k].interval[0] < value < run[k].interval[1] for run in runs]
        assert 0.92 <= np.mean(hits) <= 0.98
    # With the errors of the evidences alone, the choice of the training samples is left out.
    noise = np.hypot(0.05, 0.1 / np.sqrt(number))
    apart = [abs(run.geometric.log_bayes_factor - RATIOS.mean()) < 1.96 * noise for run in runs]
    assert (np.mean(apart) < 0.92) == (number < len(RATIOS))


def test_training_samples() -> None:
    seed = np.random.SeedSequence(1)
    every, population = _training_samples(2, 50, 5, seed)
    assert every == list(combinations(range(5), 2))
    assert population == 10
    some, population = _training_samples(2, 7, 9, seed)
    assert len(set(some)) == 7
    assert population == 36
    many, population = _training_samples(4, 20, 60, seed)
    assert population == math.comb(60, 4)
    assert len(set(many)) == 20
    assert all(len(set(s)) == 4 for s in many)
    given, population = _training_samples([[0, 1], [2, 4]], 50, 5, seed)
    assert (given, population) == ([(0, 1), (2, 4)], 2)


def test_doubts() -> None:
    whole = pma.LogBayesFactor(0.0, 0.05, (-0.1, 0.1), TRUST)
    bad = evidence(0.0, 0.1, Verdict("do not trust", ("Pareto k",)))
    found = _averages(whole, [evidence(0.0, 0.1), bad], [evidence(0.0, 0.1)] * 2, 1.0)
    assert str(found.median.verdict) == (
        "do not trust: training samples: 1 of 4 evidences, the first because Pareto k"
    )


@pytest.mark.parametrize(
    ("training", "data", "message"),
    [
        (6, {"y": Y}, "`training` is 6, expected fewer rows than the data have, 1 to 5"),
        (0, {"y": Y}, "`training` is 0"),
        ([[0, 9]], {"y": Y}, "rows that are no different ones of 0 to 5"),
        ([[0], [1, 2]], {"y": Y}, "samples of different sizes"),
        (1, {"y": Y, "x": Y[:3]}, "`data` has rows"),
        (1, {"x": Y}, r"\['x'\] are not pm.Data"),
    ],
)
def test_errors(training, data, message: str) -> None:
    models = {"effect": normal_mean(10.0), "null": normal_mean(None)}
    with pytest.raises(ValueError, match=message):
        pma.intrinsic_bayes_factor(models, data, training=training)


@pytest.mark.parametrize("training", [2.0, None, [0, 1], [[0.5]], "all"])
def test_training_samples_that_are_none(training) -> None:
    models = {"effect": normal_mean(10.0), "null": normal_mean(None)}
    with pytest.raises(TypeError, match="`training` is .*, expected a whole number of rows"):
        pma.intrinsic_bayes_factor(models, {"y": Y}, training=training)


def test_other_errors() -> None:
    models = {"effect": normal_mean(10.0), "null": normal_mean(None)}
    with pytest.raises(TypeError, match="A checkpoint holds one run"):
        pma.intrinsic_bayes_factor(models, {"y": Y}, training=1, checkpoint="file")
    with pytest.raises(ValueError, match="expected a dict of two models"):
        pma.intrinsic_bayes_factor({"effect": models["effect"]}, {"y": Y}, training=1)
