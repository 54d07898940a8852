"""The pilot: it reaches beta = 1, measures the path, and tunes what is left open."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scipy import integrate, stats

import pymc_anneal as pma

from pymc_anneal.adaptation.pilot import Pilot, run_pilot
from pymc_anneal.base.contracts import LogTerms, NanDensityError
from pymc_anneal.base.progress import PilotProgress
from pymc_anneal.transitions.by_temperature import TunedTransition
from tests.cases import TRANSITIONS, Case, log_gamma_draws, log_gamma_terms, parametrize

PARTICLES = 2000


def normal_path(dim: int, prior_sd: float, y: float, sigma: float) -> pma.GeometricPath:
    """Prior N(0, prior_sd^2 I), likelihood N(y; x_i, sigma) in each of ``dim`` coordinates."""

    def terms(x: jax.Array) -> LogTerms:
        prior = -0.5 * (x / prior_sd) ** 2 - np.log(prior_sd * np.sqrt(2 * np.pi))
        likelihood = -0.5 * ((x - y) / sigma) ** 2 - np.log(sigma * np.sqrt(2 * np.pi))
        return LogTerms(prior.sum(), likelihood.sum())

    return pma.GeometricPath(terms)


def normal_evidence(dim: int, prior_sd: float, y: float, sigma: float) -> float:
    """Log evidence of ``normal_path``."""
    return float(dim * stats.norm.logpdf(y, 0.0, np.hypot(prior_sd, sigma)))


def normal_barrier(dim: int, prior_sd: float, y: float, sigma: float) -> float:
    """Length of ``normal_path``, ``int sqrt(Var_beta[V]) dbeta``, by quadrature over log beta."""

    def speed(log_beta: float) -> float:
        beta = np.exp(log_beta)
        variance = 1 / (prior_sd**-2 + beta / sigma**2)
        mean = variance * beta * y / sigma**2
        fisher = variance**2 / (2 * sigma**4) + variance * (y - mean) ** 2 / sigma**4
        return np.sqrt(dim * fisher) * beta

    return float(integrate.quad(speed, np.log(1e-16), 0.0, limit=500)[0])


def normal_pilot(kernel, dim=1, prior_sd=1.0, y=3.0, sigma=0.5, seed=1, **kwargs) -> Pilot:
    rng = np.random.default_rng(seed)
    position = rng.normal(0.0, prior_sd, size=(PARTICLES, dim))
    path = normal_path(dim, prior_sd, y, sigma)
    return run_pilot(path, kernel, position, np.random.SeedSequence(seed), **kwargs)


@pytest.fixture(scope="module")
def survey() -> Pilot:
    return normal_pilot(pma.HMC())


class TestSurvey:
    def test_runs_from_zero_to_one(self, survey: Pilot) -> None:
        assert survey.betas[0] == 0
        assert survey.betas[-1] == 1
        assert (np.diff(survey.betas) > 0).all()
        m = len(survey.betas) - 1
        for name in ("discrepancy", "tau", "cost", "accept_rate"):
            assert getattr(survey, name).shape == (m,)
        assert survey.position.shape == (PARTICLES, 1)

    def test_steps_are_of_equal_discrepancy(self, survey: Pilot) -> None:
        # Each step but the last, which stops at 1, has the same conditional effective sample size.
        inner, last = survey.discrepancy[:-1], survey.discrepancy[-1]
        np.testing.assert_allclose(inner, inner[0], rtol=1e-3)
        assert 0 <= last <= inner[0] * (1 + 1e-3)

    def test_barrier_is_the_length_of_the_path(self, survey: Pilot) -> None:
        # Its few long steps are chords: they fall short of the curve by a quarter at most.
        exact = normal_barrier(1, 1.0, 3.0, 0.5)
        assert 0.7 * exact < survey.barrier < 1.05 * exact

    def test_log_evidence_is_near(self, survey: Pilot) -> None:
        exact = normal_evidence(1, 1.0, 3.0, 0.5)
        assert 0 < survey.log_z_mcse < 0.3
        assert abs(survey.log_z - exact) < 6 * survey.log_z_mcse

    def test_particles_end_at_the_posterior(self, survey: Pilot) -> None:
        precision = 1 + 1 / 0.25
        mean, sd = 3.0 / 0.25 / precision, precision**-0.5
        assert survey.position.mean() == pytest.approx(mean, abs=0.25 * sd)
        assert survey.position.std() == pytest.approx(sd, rel=0.15)

    def test_all_prior_draws_count(self, survey: Pilot) -> None:
        assert survey.log_reference_mass == 0

    def test_a_seed_is_a_result(self, survey: Pilot) -> None:
        again = normal_pilot(pma.HMC())
        np.testing.assert_array_equal(again.betas, survey.betas)
        np.testing.assert_array_equal(again.position, survey.position)
        assert normal_pilot(pma.HMC(), seed=2).betas[1] != survey.betas[1]


@pytest.mark.parametrize("sigma", [1e-3, 1e-5])
def test_first_steps_may_be_tiny(sigma: float) -> None:
    pilot = normal_pilot(pma.HMC(), prior_sd=100.0, y=4.2, sigma=sigma)
    # Var_0[V] is about 2 (100/sigma)^4 / 4: the first step is of the order of (sigma/100)^2.
    assert 0 < pilot.betas[1] < 10 * (sigma / 100) ** 2
    if sigma == 1e-5:
        assert pilot.betas[1] < 1e-10
    exact = normal_evidence(1, 100.0, 4.2, sigma)
    assert abs(pilot.log_z - exact) < 6 * pilot.log_z_mcse
    assert 0.65 * normal_barrier(1, 100.0, 4.2, sigma) < pilot.barrier
    assert pilot.barrier < 1.05 * normal_barrier(1, 100.0, 4.2, sigma)


class TestTuning:
    @pytest.mark.parametrize(
        "kernel",
        [pma.HMC(), pma.GeneralizedHMC(), pma.MALA(), pma.RandomWalkMetropolis()],
        ids=lambda kernel: type(kernel).__name__,
    )
    def test_acceptance_is_near_its_target(self, kernel) -> None:
        pilot = normal_pilot(kernel, dim=10)
        later = pilot.accept_rate[len(pilot.accept_rate) // 3 :]
        assert np.mean(later) == pytest.approx(kernel.target_accept, abs=0.15)

    def test_another_target_is_another_step_size(self) -> None:
        low, high = (
            normal_pilot(pma.HMC(n_steps=2, target_accept=target), dim=10) for target in (0.6, 0.95)
        )
        sizes = [float(p.transition.at(jnp.asarray(1.0)).step_size) for p in (low, high)]
        assert sizes[0] > 1.1 * sizes[1]

    def test_scale_follows_the_density(self) -> None:
        pilot = normal_pilot(pma.HMC(), sigma=0.01, dim=2)
        early, late = (pilot.transition.at(jnp.asarray(b)) for b in (pilot.betas[1], 1.0))
        reach = [
            float(np.abs(np.asarray(k.step_size) * np.asarray(k.scale)).max())
            for k in (early, late)
        ]
        assert reach[0] > 10 * reach[1]

    def test_everything_open_is_set(self) -> None:
        pilot = normal_pilot(pma.HMC())
        assert isinstance(pilot.transition, TunedTransition)
        kernel = pilot.transition.at(jnp.asarray(0.3))
        assert isinstance(kernel, pma.HMC)
        assert float(kernel.step_size) > 0
        assert int(kernel.n_steps) >= 1
        assert (np.asarray(kernel.scale) >= 0).all()

    @pytest.mark.parametrize(
        ("name", "value"), [("step_size", 0.37), ("n_steps", 5), ("scale", 0.8)]
    )
    def test_what_is_fixed_stays(self, name: str, value: float) -> None:
        pilot = normal_pilot(pma.HMC(**{name: value}))
        for beta in (0.0, 0.1, 1.0):
            kernel = pilot.transition.at(jnp.asarray(beta))
            np.testing.assert_allclose(np.asarray(getattr(kernel, name)), value, rtol=1e-6)
        if name == "n_steps":
            assert (pilot.cost == pma.HMC().cost(5)).all()

    @parametrize("case", TRANSITIONS)
    def test_a_kernel_without_open_parameters_is_used_as_it_is(self, case: Case) -> None:
        kernel = case.make()
        position = log_gamma_draws(0.0, 500, np.random.default_rng(3))
        path, seed = pma.GeometricPath(log_gamma_terms), np.random.SeedSequence(3)
        pilot = run_pilot(path, kernel, position, seed)
        assert pilot.transition is kernel
        assert pilot.betas[-1] == 1


def test_reports() -> None:
    seen: list[PilotProgress] = []
    pilot = normal_pilot(pma.HMC(), report=seen.append)
    assert [p.beta for p in seen] == pilot.betas[1:].tolist()
    assert seen[-1].log_z == pilot.log_z
    assert all(p.n_steps >= 1 and 0 <= p.accept_rate <= 1 for p in seen)


def test_zero_likelihood_at_a_share_of_the_draws() -> None:
    def terms(x: jax.Array) -> LogTerms:
        log_prior = -0.5 * x[0] ** 2 - 0.5 * np.log(2 * np.pi)
        return LogTerms(log_prior, jnp.where(x[0] > 0, 0.0, -jnp.inf))

    position = np.random.default_rng(4).normal(size=(PARTICLES, 1))
    seed = np.random.SeedSequence(4)
    pilot = run_pilot(pma.GeometricPath(terms), pma.HMC(), position, seed)
    share = (position > 0).mean()
    assert pilot.log_reference_mass == pytest.approx(np.log(share))
    assert pilot.log_z == pytest.approx(np.log(share), abs=1e-12)
    np.testing.assert_allclose(pilot.discrepancy, 0, atol=1e-12)
    assert (pilot.position > 0).all()


def _flat(value: float):
    def terms(x: jax.Array) -> LogTerms:
        return LogTerms(-0.5 * (x**2).sum(), jnp.where(x[0] > 0, value, value))

    return pma.GeometricPath(terms)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (-np.inf, ValueError, "likelihood is zero at all of 2000 prior draws"),
        (np.inf, ValueError, r"log likelihood is \+inf at a prior draw"),
        (np.nan, NanDensityError, "NaN at x"),
    ],
)
def test_densities_that_cannot_be_annealed(value: float, error: type, message: str) -> None:
    position = np.random.default_rng(5).normal(size=(PARTICLES, 1))
    with pytest.raises(error, match=message):
        run_pilot(_flat(value), pma.HMC(), position, np.random.SeedSequence(5))


def test_a_constant_likelihood() -> None:
    position = np.random.default_rng(6).normal(size=(PARTICLES, 1))
    pilot = run_pilot(_flat(-2.5), pma.HMC(), position, np.random.SeedSequence(6))
    assert pilot.log_z == pytest.approx(-2.5, abs=1e-12)
    assert pilot.barrier == pytest.approx(0, abs=1e-6)
