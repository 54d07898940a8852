"""Bridge sampling: exact answers, draws of every kind, verdicts and errors."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.adaptation.fit_mixture import fit_mixture
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base import LogTerms
from pymc_anneal.base.arviz_compat import container
from pymc_anneal.base.contracts import NanDensityError
from pymc_anneal.evidence import bridge_sampling
from pymc_anneal.evidence.bridge_proposals import from_mixture, from_normal
from pymc_anneal.evidence.bridge_sampling import bridge_evidence
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.results.container import dataset
from tests.problems import by_name


def posterior(**values) -> object:
    """Return a container of draws given as arrays of shape (chain, draw, ...)."""
    return container({"posterior": dataset(values, ("chain", "draw"))})


def normal_model(y=(1.0, 2.5, 0.3)):
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2)
        pm.Normal("y", mu, 1, observed=list(y))
    return model


def normal_draws(seed: int, draws: int = 500, autocorrelation: float = 0.0) -> object:
    """Draw from the posterior of the model above, as an autoregressive chain."""
    rng = np.random.default_rng(seed)
    precision = 1 / 4 + 3
    noise = rng.normal(size=(4, draws))
    for t in range(1, draws):
        innovation = np.sqrt(1 - autocorrelation**2) * noise[:, t]
        noise[:, t] = autocorrelation * noise[:, t - 1] + innovation
    return posterior(mu=3.8 / precision + noise / np.sqrt(precision))


NORMAL_LOG_EVIDENCE = float(
    -1.5 * np.log(2 * np.pi)
    - 0.5 * np.log(1 + 3 * 4)
    - 0.5 * (1 + 2.5**2 + 0.3**2 - 3.8**2 / (3 + 1 / 4))
)


# PyTensor compiles a sampler for each, which takes most of the time.
@pytest.fixture(
    scope="module",
    params=[
        "beta_binomial",
        pytest.param("dirichlet_multinomial", marks=pytest.mark.slow),
        pytest.param("eight_schools", marks=pytest.mark.slow),
    ],
)
def sampled(request):
    """Draws by NUTS of a model whose evidence is known."""
    problem = by_name(request.param)
    model = problem.build()
    idata = pm.sample(
        500,
        tune=500,
        chains=4,
        cores=1,
        model=model,
        progressbar=False,
        random_seed=3,
        compute_convergence_checks=False,
    )
    return problem, pma.compile_model(model), idata


class TestExact:
    @pytest.mark.slow
    @pytest.mark.parametrize("method", ["normal", "warp3"])
    def test_on_draws_of_nuts(self, sampled, method) -> None:
        problem, model, idata = sampled
        found = bridge_evidence(idata, model=model, method=method, random_seed=4)
        assert abs(found.log_evidence - problem.log_evidence) < 4 * found.mcse
        assert found.mcse < 0.1

    @pytest.mark.slow
    def test_on_draws_of_annealing(self) -> None:
        """Resampled particles repeat: none may be in the fit and in the estimate."""
        problem = by_name("nig_regression_10")
        model = problem.build()
        idata = pma.sample_ais(model=model, progressbar=False, random_seed=1)
        found = bridge_evidence(idata, model=model, random_seed=2)
        assert abs(found.log_evidence - problem.log_evidence) < 4 * found.mcse

    @pytest.mark.slow
    @pytest.mark.parametrize("autocorrelation", [0.0, 0.9])
    def test_error(self, autocorrelation) -> None:
        """The spread over data sets of draws is the error reported, autocorrelated or not."""
        model, found = pma.compile_model(normal_model()), []
        for seed in range(60):
            idata = normal_draws(seed, autocorrelation=autocorrelation)
            estimate = bridge_evidence(idata, model=model, random_seed=[7, seed])
            found.append((estimate.log_evidence - NORMAL_LOG_EVIDENCE, estimate.mcse))
        error, mcse = np.transpose(found)
        assert abs(error.mean()) < 4 * error.std() / np.sqrt(60)
        assert error.std() == pytest.approx(np.sqrt((mcse**2).mean()), rel=0.4)

    def test_scalars_and_zero_size(self) -> None:
        with pm.Model() as model:
            mu = pm.Normal("mu", 0, 2)
            pm.Normal("none", shape=0)
            pm.Normal("y", mu, 1, observed=[1.0, 2.5, 0.3])
        draws = normal_draws(1)
        mu = draws["posterior"]["mu"].values
        found = bridge_evidence(posterior(mu=mu, none=np.zeros((4, 500, 0))), model=model)
        assert abs(found.log_evidence - NORMAL_LOG_EVIDENCE) < 5 * found.mcse


class TestHalves:
    """The proposal knows the first half of the chains alone, and the second half is averaged."""

    draws = 60

    @pytest.fixture
    def seen(self, monkeypatch) -> dict[str, np.ndarray]:
        """Record the draws to which a mixture is fitted, and the log ratios at posterior draws."""
        seen, fit, combine = {}, bridge_sampling.fit_to_particles, bridge_sampling.bar

        def spy_on_fit(compiled, draws, seed):
            seen["fitted"], seen["path"] = draws, (found := fit(compiled, draws, seed)).path
            return found

        def spy_on_bar(log_forward, log_reverse, *args):
            seen["forward"], seen["reverse"] = log_forward, log_reverse
            return combine(log_forward, log_reverse, *args)

        monkeypatch.setattr(bridge_sampling, "fit_to_particles", spy_on_fit)
        monkeypatch.setattr(bridge_sampling, "bar", spy_on_bar)
        return seen

    def halves(self, idata) -> tuple[np.ndarray, np.ndarray]:
        mu = np.asarray(idata["posterior"]["mu"].values)
        return mu[:, : self.draws // 2], mu[:, self.draws // 2 :]

    def log_posterior(self, mu: np.ndarray) -> np.ndarray:
        data = np.array([1.0, 2.5, 0.3]).reshape(3, *(1,) * mu.ndim)
        return stats.norm(0, 2).logpdf(mu) + stats.norm(mu, 1).logpdf(data).sum(axis=0)

    @pytest.mark.parametrize("method", ["normal", "warp3", "mixture"])
    def test_by_hand(self, method: str, seen) -> None:
        idata = normal_draws(1, self.draws)
        first, second = self.halves(idata)
        bridge_evidence(idata, model=normal_model(), method=method, random_seed=1, warnings=False)
        np.testing.assert_array_equal(np.sort(seen["fitted"].ravel()), np.sort(first.ravel()))
        if method == "mixture":
            with jax.enable_x64(True):
                log_q = np.asarray(seen["path"].evaluate(second.reshape(-1, 1)).log_reference)
            expected = self.log_posterior(second) - log_q.reshape(second.shape)
        else:
            centre, spread = first.mean(), first.std(ddof=1)
            expected = self.log_posterior(second)
            if method == "warp3":
                other = self.log_posterior(2 * centre - second)
                expected = np.logaddexp(expected, other) - np.log(2)
            expected = expected - stats.norm(centre, spread).logpdf(second)
        np.testing.assert_allclose(seen["reverse"], expected, rtol=1e-9, atol=1e-9)
        assert seen["forward"].size == second.size


@pytest.mark.parametrize("symmetric", [False, True])
def test_correlated_draws_by_hand(symmetric: bool) -> None:
    """Log ratios of a normal posterior and its proposal, at the second half of the draws."""
    rng, root = np.random.default_rng(1), np.array([[2.0, 0.0], [1.5, 0.5]])
    posterior = stats.multivariate_normal([1.0, -1.0], root @ root.T)
    first, second = 1 + rng.normal(size=(2, 2, 30, 2)) @ root.T
    _, found = from_normal(posterior.logpdf, first, second, rng, symmetric)
    centre, covariance = first.reshape(-1, 2).mean(axis=0), np.cov(first.reshape(-1, 2).T)
    expected = posterior.logpdf(second)
    if symmetric:
        mirrored = posterior.logpdf(2 * centre - second)
        expected = np.logaddexp(expected, mirrored) - np.log(2)
    expected -= stats.multivariate_normal(centre, covariance).logpdf(second)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


class TestVerdict:
    def test_trust(self) -> None:
        found = bridge_evidence(normal_draws(1), model=normal_model(), random_seed=1)
        assert found.verdict == Verdict("trust")
        assert np.isnan(found.barrier)
        assert "barrier" not in repr(found)

    def test_chains_that_disagree(self) -> None:
        mu = normal_draws(1)["posterior"]["mu"].values + np.array([[0], [0], [2.0], [2.0]])
        found = bridge_evidence(posterior(mu=mu), model=normal_model(), random_seed=1)
        assert found.verdict.status == "do not trust"
        assert "have not converged" in str(found.verdict)

    def test_error_above_the_target(self) -> None:
        found = bridge_evidence(
            normal_draws(1), model=normal_model(), target_mcse=1e-5, random_seed=1
        )
        assert found.verdict.status == "more draws needed"
        assert "the error" in found.verdict.reasons[0]


class TestErrors:
    def test_no_posterior(self) -> None:
        with pytest.raises(ValueError, match="group 'posterior', found dict"):
            bridge_evidence({}, model=normal_model())

    def test_draws_of_another_model(self) -> None:
        with pytest.raises(ValueError, match="'mu' of the model is not among"):
            bridge_evidence(posterior(beta=np.zeros((2, 50))), model=normal_model())

    def test_draws_of_another_shape(self) -> None:
        with pytest.raises(ValueError, match="'mu' has 1 dimensions in the draws and 0"):
            bridge_evidence(posterior(mu=np.zeros((2, 50, 3))), model=normal_model())

    def test_too_few_draws(self) -> None:
        with pytest.raises(ValueError, match="takes at least 12"):
            bridge_evidence(posterior(mu=np.ones((1, 16))), model=normal_model())

    def test_chains_that_are_too_short(self) -> None:
        with pytest.raises(ValueError, match="chains of 6 draws, expected 16 or more"):
            bridge_evidence(posterior(mu=np.ones((200, 6))), model=normal_model())

    def test_chains_that_stand_still(self) -> None:
        with pytest.raises(ValueError, match=r"singular \(constant coordinates: \[0\]\)"):
            bridge_evidence(posterior(mu=np.ones((2, 50))), model=normal_model())

    def test_draws_of_zero_density(self) -> None:
        with pm.Model() as model:
            mu = pm.Normal("mu", 0, 2)
            pm.Potential("positive", pm.math.switch(mu > 0, 0.0, -np.inf))
        with pytest.raises(ValueError, match="density of zero under `model`"):
            bridge_evidence(normal_draws(1), model=model)

    def test_nan(self) -> None:
        with pm.Model() as model:
            mu = pm.Normal("mu", 0, 2)
            pm.Potential("root", pm.math.sqrt(mu - 1))
        with pytest.raises(ValueError, match=r"NaN in the term\(s\) \['root'\]"):
            bridge_evidence(normal_draws(1), model=model)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [({"method": "warp4"}, "warp4"), ({"target_mcse": 0}, "target_mcse")],
    )
    def test_arguments(self, arguments, message) -> None:
        with pytest.raises(ValueError, match=message):
            bridge_evidence(normal_draws(1), model=normal_model(), **arguments)

    def test_priors_without_a_normaliser(self) -> None:
        with pm.Model() as model:
            pm.VonMises("angle", 0, 1)
        with pytest.raises(NotImplementedError, match="'angle' is not: its circular transform"):
            bridge_evidence(posterior(angle=np.zeros((2, 50))), model=model)


# Share of the first of two modes, and the number of coordinates.
WEIGHT, D = 0.7, 3


@pytest.fixture(scope="module")
def modes() -> pma.CompiledModel:
    """A model with a normal mode at 3 and one at -3 in each coordinate."""
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 3.0, shape=D)
        first = np.log(WEIGHT) - 0.5 * ((x - 3.0) ** 2).sum() / 0.09
        second = np.log(1 - WEIGHT) - 0.5 * ((x + 3.0) ** 2).sum() / 0.09
        pm.Potential("modes", pm.math.logaddexp(first, second))
    return pma.compile_model(model)


class TestModes:
    @property
    def log_evidence(self) -> float:
        return D * (0.5 * np.log(0.09 / 9.09) - 0.5 * 9 / 9.09)

    def draws(self, share: list[float]) -> object:
        """Draw four chains, each with a share of the first mode."""
        rng = np.random.default_rng(2)
        sign = np.where(rng.uniform(size=(4, 500)) < np.array(share)[:, None], 1, -1)
        centre = 3.0 * sign[..., None] * 9 / 9.09
        return posterior(x=centre + rng.normal(size=(4, 500, D)) * np.sqrt(0.09 * 9 / 9.09))

    def test_a_mixture_is_the_proposal(self, modes) -> None:
        draws = self.draws([WEIGHT] * 4)
        found = bridge_evidence(draws, model=modes, random_seed=1)
        assert abs(found.log_evidence - self.log_evidence) < 4 * found.mcse
        assert found.verdict.trusted
        normal = bridge_evidence(draws, model=modes, method="normal", random_seed=1)
        assert found.mcse < normal.mcse / 2

    def test_a_mode_that_the_chains_missed(self, modes) -> None:
        found = bridge_evidence(self.draws([1.0] * 4), model=modes, random_seed=1)
        assert found.verdict.status == "do not trust"
        assert "a mode at x = [-2.97" in str(found.verdict)
        assert "the chains missed it" in str(found.verdict)

    def test_chains_that_disagree(self, modes) -> None:
        found = bridge_evidence(self.draws([1.0, 1.0, 0.0, 1.0]), model=modes, random_seed=1)
        assert "the chains disagree on the share of the mode" in str(found.verdict)

    def test_nan_at_a_draw_of_the_mixture(self, modes) -> None:
        def undefined(x: jax.Array) -> LogTerms:
            return LogTerms(-0.5 * (x**2).sum(), jnp.nan * x.sum())

        target = TargetDensity(pma.GeometricPath(modes.log_terms), 64)
        position = np.random.default_rng(1).normal(2.97, 0.3, size=(64, D))
        fitted = fit_mixture(target, position, modes.sample_prior, np.random.SeedSequence(1))
        broken = replace(fitted, path=replace(fitted.path, log_terms=undefined))
        with pytest.raises(NanDensityError):
            from_mixture(modes, broken, position[None], np.random.SeedSequence(2))
