"""Models in the scores of their variables of small shape."""

import numpy as np
import pymc as pm
import pytest

from scipy import stats
from scipy.special import digamma, gammaln, polygamma

import pymc_anneal as pma

from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.model import small_shapes
from pymc_anneal.model.small_shapes import score_model
from pymc_anneal.pipeline import choose_start

COUNTS = np.array([20, 10, 1, 0, 0])


def counts(shape: float = 0.1) -> tuple[pm.Model, float]:
    """Return counts with a Dirichlet prior, and the log evidence."""
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.full(5, shape))
        pm.Multinomial("y", COUNTS.sum(), p, observed=COUNTS)
    total = COUNTS.sum()
    coefficient = gammaln(total + 1) - gammaln(COUNTS + 1).sum()
    ratio = gammaln(5 * shape) - gammaln(5 * shape + total)
    return model, float(coefficient + ratio + (gammaln(shape + COUNTS) - gammaln(shape)).sum())


def rates(shape: float = 0.1, number: int = 4) -> pm.Model:
    with pm.Model() as model:
        rate = pm.Gamma("rate", shape, 2.0, shape=number)
        pm.Poisson("y", rate, observed=np.arange(number))
    return model


def proportions(first: float, second: float) -> pm.Model:
    with pm.Model() as model:
        share = pm.Beta("share", first, second, shape=4)
        pm.Binomial("y", 5, share, observed=np.arange(4))
    return model


class TestWhichVariables:
    @pytest.mark.quick_cases("0.5-True", "0.6-False")
    @pytest.mark.parametrize(("shape", "taken"), [(0.1, True), (0.5, True), (0.6, False)])
    def test_small_shapes(self, shape: float, taken: bool) -> None:
        assert (score_model(pma.compile_model(proportions(shape, 2.0))) is not None) == taken
        assert (score_model(pma.compile_model(proportions(2.0, shape))) is not None) == taken
        assert (score_model(pma.compile_model(rates(shape))) is not None) == taken
        assert (score_model(pma.compile_model(counts(shape)[0])) is not None) == taken

    def test_not_a_few(self) -> None:
        assert score_model(pma.compile_model(rates(number=3))) is None

    def test_not_a_shape_that_varies(self) -> None:
        with pm.Model() as model:
            pm.Gamma("rate", pm.HalfNormal("shape", 0.1), 1.0, shape=5)
        assert score_model(pma.compile_model(model)) is None

    def test_not_a_transform_of_the_user(self) -> None:
        with pm.Model() as model:
            pm.Gamma("rate", 0.1, 1.0, shape=5, default_transform=None)
        assert score_model(pma.compile_model(model)) is None


class TestDensity:
    """The prior in scores has the mass one, and its draws have its density."""

    @pytest.mark.parametrize("shape", [0.02, 0.1, 0.4])
    def test_gamma(self, shape: float, monkeypatch) -> None:
        monkeypatch.setattr(small_shapes, "_LEAST", 1)
        with pm.Model() as model:
            pm.Gamma("rate", shape, 2.0)
        self.check(score_model(pma.compile_model(model)))

    @pytest.mark.parametrize("shape", [[0.02, 0.3], [0.3, 5.0]])
    def test_beta(self, shape, monkeypatch) -> None:
        monkeypatch.setattr(small_shapes, "_LEAST", 1)
        with pm.Model() as model:
            pm.Beta("share", *shape)
        self.check(score_model(pma.compile_model(model)))

    @pytest.mark.parametrize("shape", [[0.02, 0.3], [0.2, 0.1, 0.3], [0.3, 2.0, 0.4]])
    def test_dirichlet(self, shape, monkeypatch) -> None:
        monkeypatch.setattr(small_shapes, "_LEAST", 1)
        with pm.Model() as model:
            pm.Dirichlet("p", shape)
        self.check(score_model(pma.compile_model(model)))

    def check(self, scores: pma.CompiledModel) -> None:
        grid = np.linspace(-9, 9, 181)
        points = np.stack(np.meshgrid(*[grid] * scores.ndim), axis=-1).reshape(-1, scores.ndim)
        target = TargetDensity(pma.GeometricPath(scores.log_terms), len(points))
        density = np.exp(np.asarray(target.evaluate(points).log_prior))
        step = (grid[1] - grid[0]) ** scores.ndim
        assert density.sum() * step == pytest.approx(1, abs=1e-4)
        draws = scores.sample_prior(np.random.SeedSequence(1), 20_000)
        mean, square = (density @ points**power * step for power in (1, 2))
        assert np.abs(draws.mean(axis=0) - mean).max() < 5 / np.sqrt(20_000)
        assert np.abs((draws**2).mean(axis=0) - square).max() < 10 / np.sqrt(20_000)


def test_counts_in_few_of_several_categories() -> None:
    model, exact = counts()
    idata = pma.sample_ais(model=model, random_seed=1, progressbar=False)
    found = pma.log_evidence(idata)
    assert found.verdict.trusted
    assert found.mcse < 0.015  # 0.018 in the coordinates of the model
    assert abs(found.log_evidence - exact) < 4 * found.mcse
    draws = np.asarray(idata["posterior"]["p"]).reshape(-1, 5)
    np.testing.assert_allclose(draws.sum(axis=1), 1)
    marginals = stats.beta(0.1 + COUNTS, (0.1 + COUNTS).sum() - 0.1 - COUNTS)
    error = (draws.mean(axis=0) - marginals.mean()) / marginals.std()
    assert np.abs(error).max() < 5 / np.sqrt(found.ess)


@pytest.mark.slow
def test_proportions_of_small_shape() -> None:
    shapes, n, y = np.array([0.3, 0.3]), 5, np.array([0, 0, 1, 2, 5, 5, 0, 3])
    with pm.Model() as model:
        pm.Binomial("y", n, pm.Beta("share", *shapes, shape=len(y)), observed=y)
    found = pma.log_evidence(pma.sample_ais(model=model, random_seed=1, progressbar=False))
    exact = stats.betabinom(n, *shapes).logpmf(y).sum()
    assert found.verdict.trusted
    assert abs(found.log_evidence - exact) < 4 * found.mcse


@pytest.mark.quick_cases("False")
@pytest.mark.parametrize("named", [True, False])
def test_a_reference_that_is_given_keeps_the_coordinates(named: bool, monkeypatch) -> None:
    monkeypatch.setattr(choose_start, "score_model", lambda _: pytest.fail("Others are taken."))
    counts, shape, rate = np.array([3, 5, 8, 2]), 0.4, 0.5
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("mean", shape, rate, shape=4), observed=counts)
    mean, variance = digamma(shape + counts) - np.log(rate + 1), polygamma(1, shape + counts)
    normal = pma.GaussianReference(mean, np.sqrt(variance))
    reference = "prior" if named else normal
    found = pma.log_evidence(
        pma.sample_ais(model=model, reference=reference, random_seed=1, progressbar=False)
    )
    ratio = gammaln(shape + counts) - gammaln(shape) - gammaln(counts + 1)
    odds = shape * np.log(rate / (1 + rate)) - counts * np.log(1 + rate)
    assert abs(found.log_evidence - (ratio + odds).sum()) < 4 * found.mcse
    assert found.verdict.trusted


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
def test_fifty_categories(seed: int) -> None:
    """In the coordinates of the model two seeds of five had no end in 240 s."""
    y, shape = np.zeros(50, dtype=int), 0.05
    y[[2, 11, 30, 44]] = 40, 25, 8, 1
    with pm.Model() as model:
        pm.Multinomial("y", y.sum(), pm.Dirichlet("p", np.full(50, shape)), observed=y)
    coefficient = gammaln(y.sum() + 1) - gammaln(y + 1).sum()
    ratio = gammaln(50 * shape) - gammaln(50 * shape + y.sum())
    exact = coefficient + ratio + (gammaln(shape + y) - gammaln(shape)).sum()
    found = pma.log_evidence(pma.sample_ais(model=model, random_seed=seed, progressbar=False))
    assert found.verdict.trusted
    assert abs(found.log_evidence - exact) < 4 * found.mcse
