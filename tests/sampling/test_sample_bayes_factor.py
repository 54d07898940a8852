"""Bayes factors along a direct path: exact values, unbiasedness, wrong twins, refusals."""

from importlib import import_module

import numpy as np
import pymc as pm
import pytest

from jax.scipy import stats as jax_stats
from scipy import stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.between import warp
from pymc_anneal.between.between_models import OwnPriors
from pymc_anneal.between.joint_space import join_models
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.paths.between_models import BetweenModels, EndTerms
from pymc_anneal.results.container import dataset
from tests.sampling import mean_ratio

# The module, which the function of the same name hides.
MODULE = import_module("pymc_anneal.sampling.sample_bayes_factor")
RNG = np.random.default_rng(1)
X = RNG.normal(size=(40, 3)) @ np.array([[1.0, 0.6, 0.2], [0.0, 0.8, 0.4], [0.0, 0.0, 0.9]])
Y = X @ [0.5, -0.4, 0.2] + RNG.normal(size=40)
SCALE = 1.5


def regression(columns: int) -> pm.Model:
    """Normal regression on the first columns, with known error: the evidence is normal."""
    with pm.Model() as model:
        slopes = [pm.Normal(f"slope{j}", 0, SCALE) for j in range(columns)]
        pm.Normal("y", sum(s * X[:, j] for j, s in enumerate(slopes)), 1, observed=Y)
    return model


def log_evidence(columns: int) -> float:
    x = X[:, :columns]
    covariance = np.eye(len(Y)) + SCALE**2 * x @ x.T
    return float(stats.multivariate_normal(np.zeros(len(Y)), covariance).logpdf(Y))


def exact_draws(columns: int, seed: int, shape: tuple[int, int] = (4, 500)) -> object:
    x = X[:, :columns]
    covariance = np.linalg.inv(x.T @ x + np.eye(columns) / SCALE**2)
    rng = np.random.default_rng(seed)
    draws = rng.multivariate_normal(covariance @ x.T @ Y, covariance, shape)
    values = {f"slope{j}": draws[..., j] for j in range(columns)}
    return container({"posterior": dataset(values, ("chain", "draw"))})


SMALL, LARGE = regression(2), regression(3)
EXACT = log_evidence(2) - log_evidence(3)


class TestExactValue:
    @pytest.mark.quick_cases("a")
    @pytest.mark.parametrize("given", ["a", "b", "both"])
    def test_from_draws(self, given: str) -> None:
        draws = {
            "draws_a": None if given == "b" else exact_draws(2, 1),
            "draws_b": None if given == "a" else exact_draws(3, 2),
        }
        found = pma.sample_bayes_factor(
            SMALL, LARGE, **draws, target_mcse=0.03, random_seed=1, progressbar=False
        )
        assert found.verdict.trusted
        assert found.mcse < 0.03
        assert abs(found.log_bayes_factor - EXACT) < 4 * found.mcse
        assert found.evaluations > 0
        assert "evaluations" in repr(found)
        assert "evaluations" in found._repr_html_()

    def test_both_ways_in_several_steps(self) -> None:
        """Weights of the way back are those that a way forth would have had."""
        found = pma.sample_bayes_factor(
            SMALL,
            LARGE,
            draws_a=exact_draws(2, 1),
            draws_b=exact_draws(3, 2),
            steps=5,
            random_seed=1,
            progressbar=False,
        )
        assert found.verdict.trusted
        assert abs(found.log_bayes_factor - EXACT) < 4 * found.mcse

    def test_the_order_of_the_models_sets_the_sign(self) -> None:
        found = pma.sample_bayes_factor(
            LARGE, SMALL, draws_b=exact_draws(2, 1), random_seed=1, progressbar=False
        )
        assert abs(found.log_bayes_factor + EXACT) < 4 * found.mcse

    def test_without_draws(self) -> None:
        found = pma.sample_bayes_factor(SMALL, LARGE, random_seed=1, progressbar=False)
        assert found.verdict.trusted
        assert abs(found.log_bayes_factor - EXACT) < 4 * found.mcse

    def test_against_a_point_null(self) -> None:
        """A model without variables has an exact evidence, and no draws to start from."""
        with pm.Model(name="null") as null:
            pm.Normal("y", 0, 1, observed=Y)
        exact = log_evidence(2) - float(stats.norm.logpdf(Y).sum())
        found = pma.sample_bayes_factor(SMALL, null, random_seed=1, progressbar=False)
        assert found.verdict.trusted
        assert abs(found.log_bayes_factor - exact) < 4 * found.mcse < 0.4
        assert found.models == ("a", "null")
        itself = pma.sample_bayes_factor(null, null, random_seed=1, progressbar=False)
        assert itself.log_bayes_factor == itself.mcse == 0


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_unbiased_at_few_steps(steps: int) -> None:
    """The mean of Z_b / Z_a over runs from exact draws of a, whatever the number of steps."""

    def draw(seed: int):
        return exact_draws(2, seed, (4, 100))

    off, error = mean_ratio.of_runs((SMALL, LARGE), draw, steps, EXACT)
    assert error < 0.1
    assert abs(off) < 4 * error


class TestPseudoPriors:
    """One step between the models, with and without the normaliser of the pseudo-prior."""

    def test_own_priors(self) -> None:
        space = join_models(as_compiled(SMALL), as_compiled(LARGE))
        own = OwnPriors(space)
        z = own.complete_first(np.random.SeedSequence(1), self.draws())
        off, error = mean_ratio.of_weights(own.path, z, -EXACT)
        assert error < 0.1
        assert abs(off) < 4 * error

        def without_normaliser(x: np.ndarray) -> EndTerms:
            # The prior of the slope that the first model lacks, at its mode one.
            log_prior = jax_stats.norm.logpdf(x[2], 0, SCALE)
            kernel = -0.5 * (x[2] / SCALE) ** 2
            return EndTerms(space.log_first(x) - log_prior + kernel, space.log_second(x))

        off, error = mean_ratio.of_weights(BetweenModels(without_normaliser), z, -EXACT)
        assert abs(off) > 10 * error

    def test_warp(self) -> None:
        space = join_models(as_compiled(SMALL), as_compiled(LARGE))
        mapped = warp.fit_warp(space, self.draws(), np.random.SeedSequence(2))
        assert mapped is not None
        z = mapped.complete_first(np.random.SeedSequence(1), self.draws())
        off, error = mean_ratio.of_weights(mapped.path, z, -EXACT)
        assert error < 0.02
        assert abs(off) < 4 * error
        # The twin leaves out the volume of one of the maps.
        halved = mapped.second._replace(root=0.5 * mapped.second.root)
        wrong = warp.Warp(space, mapped.coordinates, mapped.first, halved, 0)
        correct = mean_ratio.of_weights(wrong.path, z, -EXACT)
        assert abs(correct[0]) < 4 * correct[1]
        lost = np.exp(-3 * np.log(2.0))
        assert abs((1 + correct[0]) / lost - 1) > 10 * correct[1]

    def draws(self) -> np.ndarray:
        posterior = exact_draws(2, 3, (1, 2000))["posterior"]
        return np.stack([posterior[f"slope{j}"].values[0] for j in range(2)], axis=1)


@pytest.mark.slow
def test_a_hierarchical_model_has_own_variables_with_parents() -> None:
    """The variables that one model has alone depend on each other and on a shared one."""
    y, sigma = np.array([1.2, -0.3, 0.8, 1.9]), 0.7

    def pooled() -> pm.Model:
        with pm.Model() as model:
            mu = pm.Normal("mu", 0, 2)
            pm.Normal("y", mu, sigma, observed=y)
        return model

    with pm.Model() as hierarchical:
        mu = pm.Normal("mu", 0, 2)
        effect = pm.Normal("effect", mu, 0.5, shape=4)
        pm.Normal("y", effect, sigma, observed=y)
    ones = np.full((4, 4), 4.0)
    log_z = [
        stats.multivariate_normal(np.zeros(4), ones + v * np.eye(4)).logpdf(y)
        for v in (sigma**2, sigma**2 + 0.25)
    ]
    precision = 4 / sigma**2 + 0.25
    rng = np.random.default_rng(4)
    mu = rng.normal(y.sum() / sigma**2 / precision, precision**-0.5, (4, 500))
    draws = container({"posterior": dataset({"mu": mu}, ("chain", "draw"))})
    found = pma.sample_bayes_factor(
        pooled(), hierarchical, draws_a=draws, random_seed=1, progressbar=False
    )
    assert found.verdict.trusted
    assert abs(found.log_bayes_factor - (log_z[0] - log_z[1])) < 4 * found.mcse
    space = join_models(as_compiled(pooled()), as_compiled(hierarchical))
    own = space.only_second.draw(np.random.SeedSequence(1), {"mu": np.full(2000, 3.0)}, 2000)
    assert own.mean() == pytest.approx(3, abs=0.05)
    assert own.std() == pytest.approx(0.5, abs=0.03)


class TestRefused:
    """Before anything runs."""

    @pytest.fixture(autouse=True)
    def _no_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def run(*arguments: object, **options: object) -> None:
            raise AssertionError("A run was started.")

        monkeypatch.setattr(MODULE, "sample_ais", run)

    def model(self, size: int) -> pm.Model:
        with pm.Model() as model:
            x = pm.Normal("s", 0, 1, shape=size)
            pm.Normal("y", pm.math.sum(x), 1, observed=Y)
        return model

    def test_another_shape(self) -> None:
        models = self.model(2), self.model(3)
        with pytest.raises(ValueError, match=r"'s' has unconstrained shape \(2,\)"):
            pma.sample_bayes_factor(*models, progressbar=False)

    def test_another_transform(self) -> None:
        with pm.Model() as other:
            s = pm.HalfNormal("slope0", 1)
            pm.Normal("y", s, 1, observed=Y)
        message = "'slope0' has the transform LogTransform in the first model and None in the sec"
        with pytest.raises(ValueError, match=message):
            pma.sample_bayes_factor(SMALL, other, progressbar=False)

    def test_other_data(self) -> None:
        with pm.Model() as other:
            pm.Normal("y", pm.Normal("slope0", 0, 1), 1, observed=Y[:10])
        with pytest.raises(ValueError, match="different observed data"):
            pma.sample_bayes_factor(SMALL, other, progressbar=False)

    def test_discrete_variables(self) -> None:
        with pm.Model() as other:
            pm.Normal("y", pm.Poisson("k", 2), 1, observed=Y)
        with pytest.raises(NotImplementedError, match="'k' is discrete"):
            pma.sample_bayes_factor(SMALL, other, progressbar=False)


def test_mass_where_the_start_has_none_is_not_trusted() -> None:
    """Draws of the first model all have ``m > 1``; half of the second posterior has not."""
    y = np.array([1.0])

    def model(lower: float) -> pm.Model:
        with pm.Model() as built:
            m = pm.Normal("m", 0, 2)
            pm.Potential("support", pm.math.switch(m > lower, 0.0, -np.inf))
            pm.Normal("y", m, 1, observed=y)
        return built

    posterior = stats.truncnorm((1 - 0.8) / 0.8**0.5, np.inf, 0.8, 0.8**0.5)
    m = posterior.rvs((4, 500), random_state=np.random.default_rng(5))
    draws = container({"posterior": dataset({"m": m}, ("chain", "draw"))})
    found = pma.sample_bayes_factor(
        model(1.0), model(-9.0), draws_a=draws, random_seed=1, progressbar=False, warnings=False
    )
    assert found.verdict.status == "do not trust"
    assert "density at the start is zero" in str(found.verdict)


def test_mass_out_of_reach_of_a_model_without_a_likelihood_is_not_trusted() -> None:
    """Half of the prior is out of reach: a log Bayes factor of 0 was trusted, and is log 1/2."""

    def model(cut: bool) -> pm.Model:
        with pm.Model() as built:
            x = pm.Normal("x", 0, 1)
            if cut:
                pm.Potential("support", pm.math.switch(x > 0, 0.0, -np.inf))
        return built

    x = np.random.default_rng(5).normal(size=(4, 500))
    whole, half = (
        container({"posterior": dataset({"x": v}, ("chain", "draw"))}) for v in (x, np.abs(x))
    )
    quietly = {"random_seed": 1, "progressbar": False, "warnings": False}
    found = pma.sample_bayes_factor(model(True), model(False), draws_a=half, **quietly)
    assert "about 0.5 of the posterior at the end lies where" in str(found.verdict)
    other = pma.sample_bayes_factor(model(True), model(False), draws_b=whole, **quietly)
    assert other.verdict.trusted
    assert abs(other.log_bayes_factor - np.log(0.5)) < 4 * other.mcse
