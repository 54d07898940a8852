"""The pilot: it ends at beta = 1, measures the path, and refuses densities without a path."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.pilot import Pilot, PilotTooLongError, pooled, run_pilot
from pymc_anneal.base.contracts import LogTerms, NanDensityError
from pymc_anneal.base.progress import PilotProgress
from tests.adaptation.normal_path import (
    PARTICLES,
    normal_barrier,
    normal_evidence,
    normal_pilot,
)


@pytest.fixture(scope="module")
def pilot() -> Pilot:
    return normal_pilot(pma.HMC())


class TestPath:
    def test_it_runs_from_zero_to_one(self, pilot: Pilot) -> None:
        assert pilot.betas[0] == 0
        assert pilot.betas[-1] == 1
        assert (np.diff(pilot.betas) > 0).all()
        m = len(pilot.betas) - 1
        for name in ("discrepancy", "tau", "cost", "accept_rate"):
            assert getattr(pilot, name).shape == (m,)
        assert pilot.position.shape == (PARTICLES, 1)

    def test_steps_are_of_equal_discrepancy(self, pilot: Pilot) -> None:
        # Each step but the last, which ends at 1, has the same conditional effective sample size.
        inner, last = pilot.discrepancy[:-1], pilot.discrepancy[-1]
        np.testing.assert_allclose(inner, inner[0], rtol=1e-3)
        assert 0 <= last <= inner[0] * (1 + 1e-3)

    def test_barrier_is_the_length_of_the_path(self, pilot: Pilot) -> None:
        # Its few long steps are chords: they fall short of the curve by a quarter at most.
        exact = normal_barrier(1, 1.0, 3.0, 0.5)
        assert 0.7 * exact < pilot.barrier < 1.05 * exact

    def test_parameters_are_those_of_the_temperatures(self, pilot: Pilot) -> None:
        betas = pilot.transition.betas
        np.testing.assert_array_equal(betas[betas <= 1], pilot.betas[1:])

    def test_error_of_the_evidence_by_hand(self, pilot: Pilot) -> None:
        """Slow moves leave the particles of a step dependent; fast ones do not count as more."""
        made = replace(pilot, discrepancy=np.log([2.0, 3.0, 2.0]), tau=np.array([4.0, 1.0, 0.5]))
        assert made.log_z_mcse == pytest.approx(np.sqrt((4 + 2 + 1) / PARTICLES))

    def test_families_by_hand(self, pilot: Pilot) -> None:
        """Five ancestors, and fewer where moves lag; but one at least."""
        ancestor = np.repeat(np.arange(5), PARTICLES // 5)
        made = replace(pilot, discrepancy=np.log([2.0]), tau=np.array([1.0]), ancestor=ancestor)
        assert made.families == pytest.approx(5)
        assert replace(made, tau=np.array([PARTICLES / 2])).families == pytest.approx(2)
        assert replace(made, tau=np.array([4.0 * PARTICLES])).families == 1

    def test_pooled_by_hand(self, pilot: Pilot) -> None:
        """Shares by the estimates of Z, whose mean is that of the pool; families stay apart."""
        low, high = (
            replace(pilot, log_z=log_z, position=np.full((PARTICLES, 1), log_z), evaluations=i)
            for i, log_z in enumerate((0.0, np.log(3.0)))
        )
        found = pooled([low, high], np.random.default_rng(1))
        assert found.log_z == pytest.approx(np.log(2.0))
        assert (found.position == low.position[0]).mean() == pytest.approx(0.25, abs=1e-3)
        assert found.evaluations == high.evaluations
        of = [set(found.ancestor[found.position[:, 0] == p.log_z]) for p in (low, high)]
        assert not of[0] & of[1]
        assert of[1] <= {a + max(pilot.ancestor) + 1 for a in pilot.ancestor}

    @pytest.mark.parametrize(("accepted", "found"), [(0.5, True), (0.45, False)])
    def test_a_step_size_is_found(self, pilot: Pilot, accepted: float, found: bool) -> None:
        made = replace(pilot, accept_rate=np.array([0.9, accepted]))
        assert made.has_step_size(pma.HMC(target_accept=0.92)) is found
        # A part that moves without gradients says nothing.
        walk = pma.BlockTransition(pma.RandomWalkMetropolis(), [0])
        assert made.has_step_size(pma.Composition([walk, pma.HMC(target_accept=0.92)])) is found
        assert made.has_step_size(walk)

    def test_log_evidence_is_near(self, pilot: Pilot) -> None:
        exact = normal_evidence(1, 1.0, 3.0, 0.5)
        assert 0 < pilot.log_z_mcse < 0.3
        assert abs(pilot.log_z - exact) < 6 * pilot.log_z_mcse

    def test_particles_end_at_the_posterior(self, pilot: Pilot) -> None:
        precision = 1 + 1 / 0.25
        mean, sd = 3.0 / 0.25 / precision, precision**-0.5
        assert pilot.position.mean() == pytest.approx(mean, abs=0.25 * sd)
        assert pilot.position.std() == pytest.approx(sd, rel=0.15)

    def test_all_prior_draws_count(self, pilot: Pilot) -> None:
        assert pilot.log_reference_mass == 0

    def test_the_seed_determines_the_result(self, pilot: Pilot) -> None:
        again = normal_pilot(pma.HMC())
        np.testing.assert_array_equal(again.betas, pilot.betas)
        np.testing.assert_array_equal(again.position, pilot.position)
        assert normal_pilot(pma.HMC(), seed=2).betas[1] != pilot.betas[1]


@pytest.mark.quick_cases("1e-05")
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


def test_every_temperature_is_reported() -> None:
    seen: list[PilotProgress] = []
    pilot = normal_pilot(pma.HMC(), report=seen.append)
    assert [p.beta for p in seen] == pilot.betas.tolist()
    assert seen[-1].log_z == pilot.log_z
    assert [p.cost for p in seen[1:]] == pilot.cost.tolist()
    # Each announces the evaluations of the next temperature, before the kernel is tuned there.
    announced = np.array([p.next_evaluations for p in seen])
    ratio = np.diff([p.evaluations for p in seen]) / announced[:-1]
    assert ratio.min() > 1 / 3
    assert ratio.max() < 3
    assert announced[-1] == 0
    assert seen[-1].evaluations == pilot.evaluations
    assert all(0 <= p.accept_rate <= 1 for p in seen)
    assert seen[-1].completed == 1
    assert "beta 1" in seen[-1].status


def test_evaluations_are_limited(pilot: Pilot) -> None:
    limit = pilot.evaluations / 2
    with pytest.raises(PilotTooLongError, match="took more than .* evaluations, at beta") as caught:
        normal_pilot(pma.HMC(), max_evaluations=limit)
    assert limit < caught.value.evaluations < pilot.evaluations


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


def constant_path(value: float) -> pma.GeometricPath:
    """A normal prior, and the same log likelihood everywhere."""

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
        run_pilot(constant_path(value), pma.HMC(), position, np.random.SeedSequence(5))


def test_a_constant_likelihood() -> None:
    position = np.random.default_rng(6).normal(size=(PARTICLES, 1))
    pilot = run_pilot(constant_path(-2.5), pma.HMC(), position, np.random.SeedSequence(6))
    assert pilot.log_z == pytest.approx(-2.5, abs=1e-12)
    assert pilot.barrier == pytest.approx(0, abs=1e-6)


@pytest.mark.filterwarnings("always:One move takes:UserWarning")
@pytest.mark.slow
def test_an_unbounded_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five equal observations: the density grows without bound as the deviation goes to zero."""
    monkeypatch.setattr("pymc_anneal.adaptation.pilot._SLOW", 300)
    monkeypatch.setattr("pymc_anneal.adaptation.pilot._TOO_SLOW", 3000)
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu", 0.0, 5.0), pm.HalfNormal("sigma", 5.0)
        pm.Normal("y", mu, sigma, observed=np.ones(5))
    compiled = pma.compile_model(model)
    draws = compiled.sample_prior(np.random.SeedSequence(1), 128)
    path = pma.GeometricPath(compiled.log_terms)
    with (
        pytest.warns(UserWarning, match="One move takes .* The run will be slow"),
        pytest.raises(ValueError, match="A run would not end.*evidence may be infinite"),
    ):
        run_pilot(path, pma.HMC(), draws, np.random.SeedSequence(2))
