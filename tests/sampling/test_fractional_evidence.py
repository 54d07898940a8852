"""Fractional evidences of normal means in closed form, and roots of g-priors."""

from importlib import import_module

import jax
import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.model.power_of_likelihood import raise_likelihood
from pymc_anneal.sampling.fractional_evidence import _ratio

Y = np.array([0.6, 1.9, 0.2, 1.4, 0.8, 1.1])
SIGMA, FRACTION = 1.3, 0.25


def normal_mean(width: float | None) -> pm.Model:
    with pm.Model() as model:
        mu = 0.0 if width is None else pm.Normal("mu", 0, width)
        pm.Normal("y", mu, SIGMA, observed=Y)
    return model


def limit() -> float:
    """Log fractional evidence under a flat prior (O'Hagan 1995, section 2.3)."""
    n, b = len(Y), FRACTION
    square = ((Y - Y.mean()) ** 2).sum() / SIGMA**2
    return float(0.5 * np.log(b) - (1 - b) * (n / 2 * np.log(2 * np.pi * SIGMA**2) + square / 2))


@pytest.mark.slow
def test_the_width_of_the_prior_does_not_matter() -> None:
    found = [
        pma.fractional_evidence(normal_mean(w), fraction=FRACTION, random_seed=1, target_mcse=0.02)
        for w in (1e2, 1e5)
    ]
    for one in found:
        assert one.log_evidence == pytest.approx(limit(), abs=4 * one.mcse + 1e-3)
        assert one.verdict.trusted
    null = pma.fractional_evidence(normal_mean(None), fraction=FRACTION, random_seed=2)
    exact = (1 - FRACTION) * stats.norm.logpdf(Y, 0, SIGMA).sum()
    assert null.log_evidence == pytest.approx(exact)
    factor = pma.log_bayes_factor(found[0], null)
    assert factor.log_bayes_factor == pytest.approx(limit() - exact, abs=0.1)
    # The evidence itself falls by log 1000.
    plain = [pma.log_evidence(pma.sample_ais(normal_mean(w), random_seed=1)) for w in (1e2, 1e5)]
    assert plain[0].log_evidence - plain[1].log_evidence == pytest.approx(np.log(1e3), abs=0.2)
    with pytest.raises(ValueError, match="different observed data"):
        pma.log_bayes_factor(found[0], plain[0])


def test_a_power_of_the_likelihood() -> None:
    model = normal_mean(2.0)
    with model:
        pm.Potential("soft", -(model["mu"] ** 2))
        pm.Potential("edge", pm.math.switch(model["mu"] > 5, -np.inf, 0.0))
    whole = pma.compile_model(model)
    part = pma.compile_model(raise_likelihood(model, 0.3))
    for x in (0.7, -1.2):
        terms = whole.log_terms(np.array([x])), part.log_terms(np.array([x]))
        assert float(terms[1].log_prior) == pytest.approx(float(terms[0].log_prior))
        expected = 0.3 * float(terms[0].log_likelihood)
        assert float(terms[1].log_likelihood) == pytest.approx(expected)
    assert np.isneginf(part.log_terms(np.array([6.0])).log_likelihood)
    assert "rest_of_the_likelihood" not in [p.name for p in model.potentials]


def test_the_ratio_by_hand() -> None:
    trust = Verdict("trust")
    whole = LogEvidence(-5.0, 0.3, (-5.5, -4.7), 800, 0.1, 1.0, trust, data_hash="abc")
    part = LogEvidence(-2.0, 0.4, (-2.6, -1.5), 500, 0.4, 1.0, trust)
    found = _ratio(whole, part, 0.2)
    assert found.log_evidence == -3.0
    assert found.mcse == pytest.approx(0.5)
    assert found.interval == pytest.approx((-3 - np.hypot(0.5, 0.5), -3 + np.hypot(0.3, 0.6)))
    assert (found.ess, found.pareto_k) == (500, 0.4)
    assert found.data_hash == "abc to the power 0.8"
    doubtful = _ratio(
        whole, LogEvidence(*([0.0] * 2), (0, 0), 1, 0, 0, Verdict("do not trust")), 0.2
    )
    assert doubtful.verdict.status == "do not trust"
    assert "a share 0.2 of the likelihood" in str(doubtful.verdict)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, np.nan])
def test_shares_that_are_none(fraction: float) -> None:
    with pytest.raises(ValueError, match="expected a share of the likelihood between 0 and 1"):
        pma.fractional_evidence(normal_mean(1.0), fraction=fraction)


def test_a_checkpoint_holds_one_run() -> None:
    with pytest.raises(TypeError, match="A checkpoint holds one run"):
        pma.fractional_evidence(normal_mean(1.0), fraction=0.5, checkpoint="file")


@pytest.mark.parametrize("given", ["draws", object()])
def test_draws_of_the_posterior_are_none_of_the_part(given, monkeypatch) -> None:
    runs = []

    def run(model, **settings):
        runs.append(settings.get("reverse_from"))
        return sample_ais(model, **{**settings, "reverse_from": None, "draws": 20})

    sample_ais = pma.sample_ais
    monkeypatch.setattr(
        import_module("pymc_anneal.sampling.fractional_evidence"), "sample_ais", run
    )
    settings = {"fraction": 0.5, "random_seed": 1, "warnings": False, "audit": "off"}
    pma.fractional_evidence(normal_mean(1.0), reverse_from=given, **settings)
    assert runs == [given, given if given == "draws" else None]


class TestGPrior:
    X = np.random.default_rng(1).normal(size=(12, 3)) @ np.array(
        [[1, 0.5, 0], [0, 1, 2], [1, 0, 1]]
    )

    @pytest.mark.parametrize("g", [None, 4.0])
    def test_root(self, g: float | None) -> None:
        root = pma.g_prior(self.X, g)
        centred = self.X - self.X.mean(axis=0)
        expected = (g or 12.0) * np.linalg.inv(centred.T @ centred)
        np.testing.assert_allclose(root @ root.T, expected, rtol=1e-10)
        np.testing.assert_array_equal(root, np.tril(root))
        assert (np.diag(root) > 0).all()

    def test_evidence_of_liang_and_others(self) -> None:
        """Eq. 6: the Bayes factor against the null, with flat priors of intercept and log sigma."""
        y = self.X @ [0.3, 0.0, -0.2] + np.random.default_rng(2).normal(size=12)
        n, p, g = 12, 3, 12.0
        centred, residual = self.X - self.X.mean(axis=0), y - y.mean()
        fit = centred @ np.linalg.lstsq(centred, residual, rcond=None)[0]
        r2 = (fit @ fit) / (residual @ residual)
        expected = (n - 1 - p) / 2 * np.log1p(g) - (n - 1) / 2 * np.log1p(g * (1 - r2))
        root = pma.g_prior(self.X)
        # Given sigma, y - mean is normal in the n - 1 dimensions orthogonal to the intercept; with
        # d sigma / sigma the integral leaves |V|^-1/2 (r' V^-1 r)^(-(n - 1) / 2).
        v = np.eye(n) + centred @ root @ root.T @ centred.T
        found = -0.5 * np.linalg.slogdet(v)[1]
        found -= (
            (n - 1) / 2 * np.log(residual @ np.linalg.solve(v, residual) / (residual @ residual))
        )
        assert found == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("x", "g", "message"),
        [
            (np.ones(4), None, "expected a matrix"),
            (np.full((4, 1), np.nan), None, "expected a matrix of finite numbers"),
            (np.ones((4, 1)), None, "not linearly independent"),
            (np.arange(8.0).reshape(4, 2), -1.0, "`g` is -1.0"),
        ],
    )
    def test_errors(self, x, g, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            pma.g_prior(x, g)


def test_the_power_of_what_pymc_leaves_out() -> None:
    """A CAR density lacks a constant, which belongs to the likelihood that is raised."""
    path = np.eye(4, k=1) + np.eye(4, k=-1)
    with pm.Model() as model:
        tau = pm.Gamma("tau", 2, 1)
        pm.CAR("y", mu=np.zeros(4), W=path, alpha=0.5, tau=tau, observed=[0.3, 0.8, 0.1, -0.5])
    whole = pma.compile_model(model)
    part = pma.compile_model(raise_likelihood(model, FRACTION))
    x = np.linspace(-1, 1, 5)[:, None]
    with jax.enable_x64(True):
        each = [np.array([float(c.log_terms(v).log_likelihood) for v in x]) for c in (whole, part)]
    np.testing.assert_allclose(each[1], FRACTION * each[0], rtol=1e-10)


GAPS = np.ma.masked_invalid([[1.0, np.nan], [0.5, 0.2], [-0.3, 0.7]])


def partly_missing(kind: str) -> pm.Model:
    """Return a model with a missing entry that is integrated out, or a parameter."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1, shape=2)
        if kind == "MvNormal":
            pm.MvNormal("y", mu, np.eye(2) + 0.5, observed=GAPS)
        elif kind == "Mixture":
            parts = [pm.Normal.dist(mu, 1), pm.Normal.dist(mu + 1, 1)]
            pm.Mixture("y", w=[0.5, 0.5], comp_dists=parts, observed=GAPS)
        else:
            pm.Normal("y", mu, 1, observed=GAPS)
    return model


@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
@pytest.mark.parametrize("kind", ["MvNormal", "Mixture", "Normal"])
def test_the_power_of_a_likelihood_with_missing_values(kind: str) -> None:
    """It is that of the observed entries alone."""
    model = partly_missing(kind)
    whole, part = (pma.compile_model(m) for m in (model, raise_likelihood(model, FRACTION)))
    x = np.random.default_rng(1).normal(size=(5, whole.ndim))
    with jax.enable_x64(True):
        each = [[c.log_terms(v) for v in x] for c in (whole, part)]
    like = [np.array([float(t.log_likelihood) for t in terms]) for terms in each]
    prior = [np.array([float(t.log_prior) for t in terms]) for terms in each]
    np.testing.assert_allclose(like[1], FRACTION * like[0], rtol=1e-10)
    np.testing.assert_allclose(prior[1], prior[0], rtol=1e-10)
