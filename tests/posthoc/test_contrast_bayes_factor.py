"""Nulls on contrasts: normal posteriors in closed form, priors of every kind, what is refused."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.posthoc.contrast_bayes_factor import _linear, _prior_density
from pymc_anneal.posthoc.density_at_point import posterior_density_at
from pymc_anneal.results.container import dataset
from tests.repetitions import REPETITIONS, coverage

SEED = np.random.SeedSequence(1)
# Two groups of known variance: y_i ~ N(m_i, 1), and their means under a normal prior.
Y = np.array([[0.9, 1.6, 0.4, 1.3], [0.1, -0.6, 0.5, 0.2]])


def build() -> pm.Model:
    with pm.Model() as model:
        mean = pm.Normal("mean", [0.5, 0.0], [1.0, 2.0], shape=2)
        scale = pm.HalfNormal("scale", 1.0)
        skewed = pm.Logistic("skewed", 0.0, 1.0)
        other = pm.Normal("other", skewed, 0.5)
        pm.Deterministic("difference", mean[0] - mean[1])
        pm.Deterministic("square", mean[0] ** 2)
        pm.Normal("y", mean[:, None], 1, observed=Y)
        pm.Normal("z", other, scale, observed=[0.3])
    return model


MODEL = pma.compile_model(build())
PRIOR = np.array([0.5, 0.0]), np.array([1.0, 4.0])
VARIANCE = 1 / (1 / PRIOR[1] + Y.shape[1])
MEAN = VARIANCE * (PRIOR[0] / PRIOR[1] + Y.sum(axis=1))


def draws() -> object:
    rng = np.random.default_rng(3)
    x = MODEL.sample_prior(SEED, 2000)
    values = {name: v.reshape(4, 500, *v.shape[1:]) for name, v in MODEL.constrain(x).items()}
    values["mean"] = rng.normal(MEAN, np.sqrt(VARIANCE), size=(4, 500, 2))
    # The rest by importance resampling from the prior.
    weight = np.exp(stats.norm.logpdf(0.3, values["other"], values["scale"])).ravel()
    index = rng.choice(2000, 2000, p=weight / weight.sum())
    for name in ("other", "scale", "skewed"):
        values[name] = values[name].ravel()[index].reshape(4, 500)
    names = ("mean", "scale", "skewed", "other")
    return container({"posterior": dataset({n: values[n] for n in names}, ("chain", "draw"))})


def test_a_difference_of_means() -> None:
    """Against the closed form; as a function and as a deterministic variable."""
    value, of_posterior = 0.7, draws()
    found = pma.contrast_bayes_factor(of_posterior, "difference", value, model=MODEL)
    prior = stats.norm.logpdf(value, PRIOR[0] @ [1, -1], np.sqrt(PRIOR[1].sum()))
    exact = prior - stats.norm.logpdf(value, MEAN @ [1, -1], np.sqrt(VARIANCE.sum()))
    assert found.log_bayes_factor == pytest.approx(exact, abs=4 * found.mcse)
    assert found.mcse < 0.03
    assert f"difference = {value:g}" in repr(found)
    same = pma.contrast_bayes_factor(
        of_posterior, lambda v: v["mean"][:, 0] - v["mean"][:, 1], value, model=MODEL
    )
    assert same.log_bayes_factor == found.log_bayes_factor
    # Twice the contrast and one is another density, and the same Bayes factor.
    twice = pma.contrast_bayes_factor(
        of_posterior,
        lambda v: 2 * (v["mean"][:, 0] - v["mean"][:, 1]) + 1,
        2 * value + 1,
        model=MODEL,
    )
    assert twice.log_bayes_factor == pytest.approx(found.log_bayes_factor, abs=1e-9)


@pytest.mark.slow
def test_coverage() -> None:
    linear = _linear(MODEL, "difference", MODEL.sample_prior(SEED, 8).reshape(1, 8, -1))
    two = replace(linear, slope=linear.slope[:2])  # the means come first
    scores, exact = [], stats.norm.logpdf(0.0, MEAN @ [1, -1], np.sqrt(VARIANCE.sum()))
    for seed in range(REPETITIONS):
        x = MEAN + np.sqrt(VARIANCE) * np.random.default_rng(seed).normal(size=(4, 500, 2))
        found = posterior_density_at(
            two.to_coordinates(x),
            two.density_of(lambda y: stats.norm.logpdf(y, MEAN, np.sqrt(VARIANCE)).sum(axis=1)),
            np.array([two.pivot]),
            np.zeros(1),
        ).density
        scores.append((found.log_mean - exact) / found.mcse)
    assert 0.92 <= coverage(scores) <= 0.98


def test_a_prior_density_that_is_not_normal() -> None:
    """The sum of a logistic variable and a normal one around another, by quadrature."""
    flat = MODEL.sample_prior(SEED, 8).reshape(1, 8, -1)
    linear = _linear(MODEL, lambda v: v["skewed"] + v["other"], flat)
    found, verdict = _prior_density(MODEL, linear, 1.0, SEED)
    grid = np.linspace(-20, 20, 40001)
    density = stats.logistic.pdf(grid) * stats.norm.pdf(1.0, 2 * grid, 0.5)
    exact = np.log(density.sum() * (grid[1] - grid[0]))
    assert found.log_mean == pytest.approx(exact, abs=4 * found.mcse)
    assert 0 < found.mcse < 0.05
    assert verdict.trusted
    normal, _ = _prior_density(MODEL, _linear(MODEL, "difference", flat), 0.0, SEED)
    assert normal.mcse == 0
    assert normal.log_mean == pytest.approx(stats.norm.logpdf(0, 0.5, np.sqrt(5)))


@pytest.mark.parametrize(
    ("contrast", "message"),
    [
        ("square", "not linear"),
        (lambda v: v["scale"] - v["other"], "not linear"),
        (lambda v: np.zeros(len(v["scale"])), "depends on no parameter"),
        (lambda v: v["mean"], "expected a number for each"),
        ("nothing", "expected a variable of the model"),
    ],
)
def test_errors(contrast, message: str) -> None:
    flat = MODEL.sample_prior(SEED, 8).reshape(1, 8, -1)
    with pytest.raises(ValueError, match=message):
        _linear(MODEL, contrast, flat)


def test_log_ratios_are_linear() -> None:
    flat = MODEL.sample_prior(SEED, 8).reshape(1, 8, -1)
    linear = _linear(MODEL, lambda v: np.log(v["scale"]) + 1, flat)
    assert linear.start == pytest.approx(1.0)
    assert np.count_nonzero(linear.slope) == 1


def test_a_prior_that_is_cut_off_is_not_normal() -> None:
    with pm.Model() as model:
        pm.Normal("s", 0, 1, transform=pm.distributions.transforms.log)
    compiled = pma.compile_model(model)
    flat = compiled.sample_prior(SEED, 8).reshape(1, 8, -1)
    linear = _linear(compiled, lambda v: np.log(v["s"]), flat)
    found, _ = _prior_density(compiled, linear, np.log(0.8), SEED)
    exact = np.log(0.8) + stats.halfnorm.logpdf(0.8)
    assert found.log_mean == pytest.approx(exact, abs=4 * found.mcse)
    assert found.mcse < 0.05
