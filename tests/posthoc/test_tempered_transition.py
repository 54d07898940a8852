"""Tempered transitions: the exact stationary distribution, and PyMC's contract for a step."""

import itertools
import pickle

from functools import cache

import arviz as az
import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc.step_methods import STEP_METHODS
from pymc.step_methods.compound import Competence
from scipy.stats import chisquare, kstest

import pymc_anneal as pma

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.posthoc import tempered_transition
from tests.cases import log_gamma_draws, log_gamma_marginal, log_gamma_terms, normal_model
from tests.problems import ising

CENTRES = np.array([[-8.0, -6.0], [7.0, -8.0], [0.0, 1.0], [9.0, 7.0], [-7.0, 8.0]])
SCALES = np.array([0.4, 0.7, 0.5, 0.9, 0.6])
SHARES = np.array([0.1, 0.15, 0.2, 0.25, 0.3])
PRIOR_SD = 6.0


def five_modes() -> pm.Model:
    """A mixture of five normals in two dimensions, 15 to 30 of their deviations apart."""
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, PRIOR_SD, shape=2)
        distance = ((x - CENTRES) ** 2).sum(axis=1)
        parts = np.log(SHARES) - 2 * np.log(SCALES) - distance / (2 * SCALES**2)
        pm.Potential("mixture", pt.logsumexp(parts))
    return model


def exact_weights() -> np.ndarray:
    """Return the share of each mode; a normal prior times a normal is a normal."""
    variance = PRIOR_SD**2 + SCALES**2
    weight = SHARES * np.exp(-(CENTRES**2).sum(axis=1) / (2 * variance)) / variance
    return weight / weight.sum()


def mode_of(x: np.ndarray) -> np.ndarray:
    """Return the nearest mode of each draw, shape (chains, draws)."""
    scaled = ((x[..., None, :] - CENTRES) ** 2).sum(axis=-1) / SCALES**2
    return scaled.argmin(axis=-1)


def share_scores(label: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the errors of the labels' shares, in standard errors."""
    inside = (label[..., None] == np.arange(len(exact))).astype(float)
    ess = np.array([float(az.ess(inside[..., i])) for i in range(len(exact))])
    return (inside.mean(axis=(0, 1)) - exact) / np.sqrt(exact * (1 - exact) / ess)


@cache
def step() -> pma.TemperedTransition:
    with normal_model():
        return pma.TemperedTransition(rng=1)


class TestExcursion:
    """Exact draws, moved once, are exact draws."""

    KERNELS = {
        "hmc": pma.HMC(0.9, 1, 0.4),
        "generalized_hmc": pma.GeneralizedHMC(0.9, 1, 0.4, momentum_persistence=0.8),
    }
    BETAS = np.array([0.0, 0.3, 0.6, 1.0])

    def move(self, kernel: str, seed: int, draws: int = 20_000, wrong: bool = False):
        rng = np.random.default_rng(seed)
        path = pma.GeometricPath(log_gamma_terms)
        position = log_gamma_draws(1.0, draws, rng)
        fresh = log_gamma_draws(0.5 if wrong else 0.0, draws, rng)
        with jax.enable_x64(True):
            keys = jax.random.split(jax.random.key(seed), draws)
            betas = jnp.asarray(self.BETAS)

            def one(key, position, fresh):
                return tempered_transition._excursion(
                    path, self.KERNELS[kernel], betas, key, position, fresh
                )

            found = jax.jit(jax.vmap(one))(keys, position, fresh)
        assert 0.1 < np.asarray(found.accepted).mean() < 0.99
        return np.asarray(found.position)

    @staticmethod
    def p_values(position: np.ndarray) -> list[float]:
        return [
            kstest(position[:, i], log_gamma_marginal(1.0, i).cdf).pvalue
            for i in range(position.shape[1])
        ]

    @pytest.mark.quick_cases("hmc")
    @pytest.mark.parametrize("kernel", KERNELS)
    def test_invariance(self, kernel: str) -> None:
        assert min(self.p_values(self.move(kernel, 1))) > 1e-4

    @pytest.mark.slow
    def test_draws_of_another_reference_are_noticed(self) -> None:
        assert min(self.p_values(self.move("hmc", 2, draws=40_000, wrong=True))) < 1e-4

    def test_inner_acceptance_is_a_probability(self) -> None:
        path = pma.GeometricPath(log_gamma_terms)
        with jax.enable_x64(True):
            found = tempered_transition._excursion(
                path,
                self.KERNELS["hmc"],
                jnp.array([0.0, 1.0]),
                jax.random.key(0),
                jnp.zeros(2),
                jnp.ones(2),
            )
        assert 0 < float(found.inner_accept) <= 1


class TestStep:
    @pytest.mark.slow
    def test_statistics(self) -> None:
        point, (statistics,) = step().step(normal_model().initial_point())
        assert statistics.keys() == step().stats_dtypes_shapes.keys()
        assert 0 <= statistics["accept"] <= 1
        assert point.keys() == normal_model().initial_point().keys()
        assert point["mu"].shape == ()

    @pytest.mark.slow
    def test_the_schedule_runs_from_0_to_1(self) -> None:
        assert step().betas[[0, -1]].tolist() == [0.0, 1.0]

    @pytest.mark.slow
    def test_it_survives_a_pickle(self) -> None:
        copy = pickle.loads(cloudpickle.dumps(step()))
        point = normal_model().initial_point()
        for each in (copy, step()):
            each.rng = np.random.default_rng(4)
        first, second = copy.step(point)[0], step().step(point)[0]
        assert first["mu"] == second["mu"]

    def test_chains_do_not_share_draws(self) -> None:
        step().rng = np.random.default_rng(1)
        first = step()._next_draw()
        step().rng = np.random.default_rng(2)
        assert (first != step()._next_draw()).all()
        step().rng = np.random.default_rng(1)
        np.testing.assert_array_equal(first, step()._next_draw())

    def test_pymc_does_not_choose_it(self) -> None:
        assert pma.TemperedTransition.competence(None) == Competence.INCOMPATIBLE
        assert pma.TemperedTransition not in STEP_METHODS

    def test_reference_by_hand(self) -> None:
        reference = pma.GaussianReference(np.array([1.0, -0.3]), np.array([0.5, 0.4]))
        kernel = pma.RandomWalkMetropolis(0.5, 3, 0.5)
        with normal_model():
            made = pma.TemperedTransition(
                schedule=[0, 0.5, 1], reference=reference, transition=kernel, rng=1
            )
        point, (statistics,) = made.step(normal_model().initial_point())
        np.testing.assert_array_equal(made.betas, [0, 0.5, 1])
        assert np.isfinite(statistics["log_accept_ratio"])


class TestDiscreteVariables:
    @pytest.mark.quick_cases("reversal")
    @pytest.mark.parametrize("right", [True, False], ids=["reversal", "same order"])
    def test_heating_and_cooling_are_reversals(self, right: bool, monkeypatch) -> None:
        # Heating has to sweep the other way than cooling; three spins in strong fields show it.
        if not right:
            monkeypatch.setattr(pma.Gibbs, "reversal", lambda kernel: kernel)
        coupling = np.array([[-3.0, 5.0, -3.0], [0.0, 1.0, 4.0], [0.0, 0.0, -2.0]])
        path = pma.GeometricPath(lambda x: LogTerms(-3 * jnp.log(2.0), x @ coupling @ x))
        kernel, betas, draws = pma.Gibbs(range(3), [(0, 1)] * 3), jnp.array([0, 0.5, 1]), 300_000
        states = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
        mass = np.exp(np.einsum("ni,ij,nj->n", states, coupling, states))
        mass /= mass.sum()
        rng = np.random.default_rng(0)
        position = states[rng.choice(8, size=draws, p=mass)]
        fresh = states[rng.integers(8, size=draws)]

        def one(key, position, fresh):
            # Without the cache of compiled programs, which does not notice the patch.
            excursion = tempered_transition._excursion.__wrapped__
            return excursion(path, kernel, betas, key, position, fresh).position

        with jax.enable_x64(True):
            keys = jax.random.split(jax.random.key(2), draws)
            end = np.asarray(jax.jit(jax.vmap(one))(keys, position, fresh))
        observed = np.bincount((end @ [4, 2, 1]).astype(int), minlength=8)
        assert (chisquare(observed, mass * draws).pvalue > 1e-6) == right

    @pytest.mark.slow
    def test_a_step_keeps_whole_numbers(self) -> None:
        with ising(2).build() as model:
            step = pma.TemperedTransition(
                schedule=[0, 0.5, 1], transition=pma.Gibbs(range(4), [(0, 1)] * 4), rng=1
            )
        point, (statistics,) = step.step(model.initial_point())
        assert point["up"].dtype == np.int64
        assert 0 <= statistics["accept"] <= 1


class TestErrors:
    def test_some_of_the_variables(self) -> None:
        model = normal_model()
        with model, pytest.raises(ValueError, match="without \\['sigma_log__'\\]"):
            pma.TemperedTransition([model["mu"]])

    def test_references_that_need_a_run(self) -> None:
        with normal_model(), pytest.raises(ValueError, match="Unknown `reference` 'auto'"):
            pma.TemperedTransition(reference="auto")


def sampled(model: pm.Model, draws: int, method=None, chains: int = 2, **kwargs):
    with model:
        return pm.sample(
            draws,
            tune=kwargs.pop("tune", 5),
            chains=chains,
            cores=kwargs.pop("cores", 1),
            step=method,
            random_seed=8,
            progressbar=False,
            compute_convergence_checks=False,
            **kwargs,
        )


class TestSampling:
    @pytest.mark.slow
    def test_discrete_variables(self) -> None:
        prior, centre = np.array([0.2, 0.5, 0.3]), np.array([-9.0, 0.0, 9.0])
        with pm.Model() as model:
            k = pm.Categorical("k", prior)
            mu = pm.Normal("mu", pt.as_tensor(centre)[k], 1.0)
            pm.Normal("y", mu, 8.0, observed=1.0)
            method = pma.TemperedTransition(transition="random_walk", rng=1)
        found = sampled(model, 1000, method)["posterior"]["k"].values
        assert found.dtype.kind == "i"
        exact = prior * np.exp(-((1.0 - centre) ** 2) / (2 * 65.0))
        assert np.abs(share_scores(found, exact / exact.sum())).max() < 4

    def test_statistics_reach_the_container(self) -> None:
        idata = sampled(normal_model(), 20, step())
        statistics = idata["sample_stats"]
        for name in ("accept", "accepted", "log_accept_ratio", "inner_accept"):
            assert statistics[name].shape == (2, 20)
        assert not statistics["tune"].any() if "tune" in statistics else True

    def test_after_another_step(self) -> None:
        model = normal_model()
        with model:
            others = [pm.Metropolis(), pm.NUTS(), step()]
        idata = sampled(model, 10, others)
        assert idata["posterior"]["mu"].shape == (2, 10)

    @pytest.mark.slow
    def test_in_processes(self) -> None:
        idata = sampled(normal_model(), 10, step(), cores=2, mp_ctx="spawn")
        first, second = idata["posterior"]["mu"].values
        assert (first != second).all()

    @pytest.mark.slow
    def test_five_modes(self) -> None:
        model = five_modes()
        with model:
            method = pma.TemperedTransition(rng=3)
        idata = sampled(model, 4000, method, chains=4)
        assert idata["sample_stats"]["accepted"].mean() > 0.1
        visited = mode_of(idata["posterior"]["x"].values)
        assert np.abs(share_scores(visited, exact_weights())).max() < 3

    @pytest.mark.slow
    def test_nuts_fails_on_the_five_modes(self) -> None:
        idata = sampled(five_modes(), 1000, chains=4, tune=500)
        visited = [len(np.unique(row)) for row in mode_of(idata["posterior"]["x"].values)]
        assert max(visited) < 5
