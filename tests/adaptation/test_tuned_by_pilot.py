"""Kernels tuned by the pilot, alone and as parts of a composition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.pilot import Pilot, run_pilot
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.transitions.by_temperature import TunedTransition
from tests.adaptation.normal_path import normal_pilot
from tests.cases import (
    GIBBS,
    TRANSITIONS,
    Case,
    log_gamma_draws,
    log_gamma_terms,
    mixed_draws,
    mixed_evidence,
    mixed_terms,
    parametrize,
)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


class TestOneKernel:
    @pytest.mark.quick_cases("HMC")
    @pytest.mark.parametrize(
        "kernel",
        [pma.HMC(), pma.GeneralizedHMC(), pma.MALA(), pma.RandomWalkMetropolis()],
        ids=lambda kernel: type(kernel).__name__,
    )
    def test_acceptance_is_near_its_target(self, kernel) -> None:
        pilot = normal_pilot(kernel, dim=10)
        later = pilot.accept_rate[len(pilot.accept_rate) // 3 :]
        assert np.mean(later) == pytest.approx(kernel.target_accept, abs=0.15)

    @pytest.mark.slow
    def test_a_higher_target_gives_a_smaller_step(self) -> None:
        """Not of HMC, whose acceptance oscillates with the length of the trajectory."""
        kernels = [pma.RandomWalkMetropolis(n_steps=4, target_accept=t) for t in (0.2, 0.5)]
        pilots = [normal_pilot(kernel, dim=10) for kernel in kernels]
        low, high = (float(p.transition.at(1.0).step_size) for p in pilots)
        assert low > 1.4 * high

    @pytest.mark.slow
    def test_the_scale_follows_the_density(self) -> None:
        pilot = normal_pilot(pma.HMC(), sigma=0.01, dim=2)
        early, late = (pilot.transition.at(jnp.asarray(b)) for b in (pilot.betas[1], 1.0))
        reach = [
            float(np.abs(np.asarray(k.step_size) * np.asarray(k.scale)).max())
            for k in (early, late)
        ]
        assert reach[0] > 10 * reach[1]

    def test_free_parameters_are_set(self) -> None:
        pilot = normal_pilot(pma.HMC())
        assert isinstance(pilot.transition, TunedTransition)
        kernel = pilot.transition.at(jnp.asarray(0.3))
        assert isinstance(kernel, pma.HMC)
        assert float(kernel.step_size) > 0
        assert int(kernel.n_steps) >= 1
        assert (np.asarray(kernel.scale) >= 0).all()

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "value"), [("step_size", 0.37), ("n_steps", 5), ("scale", 0.8)]
    )
    def test_given_parameters_stay(self, name: str, value: float) -> None:
        pilot = normal_pilot(pma.HMC(**{name: value}))
        for beta in (0.0, 0.1, 1.0):
            kernel = pilot.transition.at(jnp.asarray(beta))
            np.testing.assert_allclose(np.asarray(getattr(kernel, name)), value, rtol=1e-6)
        if name == "n_steps":
            assert (pilot.cost == 2 * 5 + 1).all()

    @parametrize("case", [c for c in TRANSITIONS if c.name in ("hmc", "blackjax_hmc")])
    def test_a_kernel_without_free_parameters_is_used_as_it_is(self, case: Case) -> None:
        kernel = case.make()
        position = log_gamma_draws(0.0, 500, np.random.default_rng(3))
        path, seed = pma.GeometricPath(log_gamma_terms), np.random.SeedSequence(3)
        pilot = run_pilot(path, kernel, position, seed)
        assert pilot.transition is kernel
        assert pilot.betas[-1] == 1


PATH = pma.GeometricPath(mixed_terms)


def mixed_pilot(parts: list) -> Pilot:
    position = mixed_draws(0.0, 2000, np.random.default_rng(0))
    return run_pilot(PATH, pma.Composition(parts), position, np.random.SeedSequence(0))


class TestComposition:
    @pytest.fixture(scope="class")
    @classmethod
    def pilot(cls) -> Pilot:
        rest, walk = pma.BlockTransition(pma.HMC(), [2]), pma.DiscreteRandomWalk([3])
        return mixed_pilot([rest, GIBBS, walk])

    @pytest.mark.slow
    def test_free_parameters_of_every_part_are_set(self, pilot: Pilot) -> None:
        rest, gibbs, walk = pilot.transition.at(jnp.asarray(0.7)).kernels
        for kernel in (rest.kernel, walk):
            assert float(kernel.step_size) > 0
            assert int(kernel.n_steps) >= 1
            assert kernel.scale.shape == (1,)  # of its own coordinate alone
        assert gibbs == GIBBS

    @pytest.mark.slow
    def test_scales_are_those_of_the_coordinates(self, pilot: Pilot) -> None:
        rest, _, walk = pilot.transition.at(jnp.asarray(1.0)).kernels
        draws = mixed_draws(1.0, 100_000, np.random.default_rng(1))
        assert float(rest.kernel.scale[0]) == pytest.approx(draws[:, 2].std(), rel=0.2)
        assert float(walk.scale[0]) == pytest.approx(draws[:, 3].std(), rel=0.2)

    def test_cost_is_that_of_all_parts(self, pilot: Pilot) -> None:
        np.testing.assert_array_equal(pilot.transition.cost(pilot.betas[1:]), pilot.cost)
        for beta, cost in zip(pilot.betas[1:], pilot.cost, strict=True):
            rest, _, walk = pilot.transition.at(jnp.asarray(beta)).kernels
            assert cost == 2 * int(rest.kernel.n_steps) + 1 + 6 + int(walk.n_steps)

    def test_log_evidence_is_near(self, pilot: Pilot) -> None:
        assert abs(pilot.log_z - mixed_evidence()) < 6 * pilot.log_z_mcse

    def test_given_parameters_stay(self) -> None:
        rest = pma.BlockTransition(pma.HMC(np.asarray(0.3), np.asarray(2)), [2])
        pilot = mixed_pilot([rest, GIBBS, pma.DiscreteRandomWalk([3], np.asarray(1.1))])
        rest, _, walk = pilot.transition.at(jnp.asarray(0.5)).kernels
        assert float(rest.kernel.step_size) == pytest.approx(0.3)
        assert int(rest.kernel.n_steps) == 2
        assert float(walk.step_size) == pytest.approx(1.1)
        assert float(walk.scale[0]) > 0


def test_a_walk_is_as_wide_as_the_density() -> None:
    def terms(x: jax.Array) -> LogTerms:
        log_prior = jnp.where(x[0] >= 0, -0.001 * x[0] + jnp.log1p(-jnp.exp(-0.001)), -jnp.inf)
        return LogTerms(log_prior, -0.5 * ((x[0] - 300.0) / 4.0) ** 2)

    position = np.random.default_rng(2).geometric(1 - np.exp(-0.001), size=(2000, 1)) - 1.0
    seed, kernel = np.random.SeedSequence(2), pma.DiscreteRandomWalk([0])
    pilot = run_pilot(pma.GeometricPath(terms), kernel, position, seed)
    early, late = (pilot.transition.at(jnp.asarray(b)) for b in (pilot.betas[1], 1.0))
    reach = [float(k.step_size * k.scale[0]) for k in (early, late)]
    assert reach[0] > 20 * reach[1]
    assert pilot.accept_rate[-1] == pytest.approx(kernel.target_accept, abs=0.15)
    assert abs(pilot.position.std() - 4.0) < 0.5
    assert (pilot.position == pilot.position.round()).all()
