"""The contract of RBM paths: a path written by a user, through every part that takes paths."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scipy.special import expit

import pymc_anneal as pma

from pymc_anneal import rbm
from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.base.arviz_compat import group
from pymc_anneal.base.contracts import KernelState
from pymc_anneal.rbm.exact import log_partition_function
from tests.rbm import small_paths
from tests.rbm_cases import (
    enumerate_states,
    exact_draws,
    frequencies_agree,
    independent_units,
    mean_agrees,
    random_rbm,
    states,
)

SHAPE = 4, 3
TARGET = random_rbm(*SHAPE, scale=1.8)
MIDDLE = random_rbm(*SHAPE, seed=5, scale=0.7)
REFERENCE = independent_units(*SHAPE)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class SquaredPath(rbm.RBMPath):
    """Geometric path from the uniform distribution, with the parameters times ``beta^2``."""

    model: rbm.RBM

    def evaluate(self, position):
        return position @ self.model.visible_bias, self.model.hidden_field(position)

    def log_density(self, terms, beta):
        linear, field = terms
        return beta**2 * linear + jnp.logaddexp(0, beta**2 * field).sum(axis=-1)

    def log_ratio(self, terms, start, stop):
        linear, field = terms
        step = (stop - start) * (stop + start)
        hidden = rbm.softplus_increment(start**2 * field, step * field).sum(axis=-1)
        return step * linear + hidden

    def velocity(self, terms, beta):
        linear, field = terms
        hidden = jax.nn.sigmoid(beta**2 * field)
        return 2 * beta * (linear + (hidden * field).sum(axis=-1))

    def hidden_field(self, terms, beta):
        return beta**2 * terms[1]

    def model_at(self, beta):
        return jax.tree.map(lambda x: beta**2 * x, self.model)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class WrongHiddenField(SquaredPath):
    """The same path with the hidden units of another temperature."""

    def hidden_field(self, terms, beta):
        return 0.1 * beta**2 * terms[1]


SQUARED = SquaredPath(TARGET)
SPLINE = rbm.SplineRBMPath.through(np.array([0.0, 0.35, 1.0]), [REFERENCE, MIDDLE, TARGET])
PATHS = {
    "squared": SQUARED,
    "geometric": rbm.GeometricRBMPath(REFERENCE.visible_bias, TARGET),
    "spline": SPLINE,
}
each_path = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


class TestContract:
    @each_path
    def test_is_an_rbm_path(self, path: rbm.RBMPath) -> None:
        assert isinstance(path, rbm.RBMPath)
        assert not isinstance(TARGET, rbm.RBMPath)

    def test_missing_methods(self) -> None:
        class Incomplete(rbm.RBMPath):
            def hidden_field(self, terms, beta):
                return terms

        with pytest.raises(TypeError, match="model_at"):
            Incomplete()

    @each_path
    def test_terms_have_a_particle_axis(self, path: rbm.RBMPath) -> None:
        visible = jnp.asarray(states(SHAPE[0]))
        for terms in (path.evaluate(visible), path.evaluate_at(visible, 0.6)):
            assert {leaf.shape[0] for leaf in jax.tree.leaves(terms)} == {len(visible)}
            rows = jnp.array([3, 3, 0, 15])
            some = jax.tree.map(lambda leaf, rows=rows: leaf[rows], terms)
            np.testing.assert_allclose(
                path.log_density(some, 0.6), path.log_density(terms, 0.6)[rows], rtol=1e-14
            )

    @each_path
    @pytest.mark.parametrize("beta", [0.0, 0.2, 0.6, 1.0])
    def test_the_methods_describe_one_rbm(self, path: rbm.RBMPath, beta: float) -> None:
        visible, hidden = (jnp.asarray(states(n)) for n in SHAPE)
        model = jax.tree.map(np.asarray, path.model_at(beta))
        terms = path.at(path.evaluate(visible), beta)
        np.testing.assert_allclose(
            path.log_density(terms, beta), model.log_density(visible), rtol=1e-12, atol=1e-13
        )
        np.testing.assert_allclose(
            expit(path.hidden_field(terms, beta)), model.hidden_probability(visible), rtol=1e-12
        )
        np.testing.assert_allclose(
            expit(path.visible_field(hidden, beta)), model.visible_probability(hidden), rtol=1e-12
        )


@pytest.mark.parametrize("ends", [(0.0, 1.0), (0.2, 0.7), (0.9, 0.3), (0.4, 0.401), (0.5, 0.5)])
def test_the_ratio_is_that_of_the_densities(ends: tuple[float, float]) -> None:
    """Of the exact RBMs at both temperatures."""
    visible, path = states(SHAPE[0]), small_paths.GEOMETRIC
    with jax.enable_x64(True):
        found = path.log_ratio(path.evaluate(jnp.asarray(visible)), *ends)
    machines = [small_paths.expected_rbm_at(path, beta) for beta in ends]
    first, last = (machine.log_density(visible) for machine in machines)
    np.testing.assert_allclose(found, last - first, rtol=1e-10, atol=1e-13)


class TestUserPath:
    terms = staticmethod(lambda: SQUARED.evaluate(jnp.asarray(states(SHAPE[0]))))

    def test_ratio_and_velocity(self) -> None:
        terms = self.terms()
        upper, lower = (SQUARED.log_density(terms, beta) for beta in (0.7, 0.2))
        np.testing.assert_allclose(SQUARED.log_ratio(terms, 0.2, 0.7), upper - lower, rtol=1e-12)
        slope = jax.jvp(lambda beta: SQUARED.log_density(terms, beta), (0.6,), (1.0,))[1]
        np.testing.assert_allclose(SQUARED.velocity(terms, 0.6), slope, rtol=1e-12)

    @pytest.mark.parametrize(
        ("path", "right"),
        [(SQUARED, True), (WrongHiddenField(TARGET), False)],
        ids=["right", "wrong"],
    )
    def test_gibbs_sampling_is_invariant(self, path: rbm.RBMPath, right: bool) -> None:
        model = jax.tree.map(np.asarray, path.model_at(0.9))
        position = jnp.asarray(exact_draws(model, 20_000, np.random.default_rng(1)))
        state = KernelState(position, path.evaluate(position), ())
        key = jax.random.key(2, impl="threefry2x32")
        moved, _ = rbm.BlockedGibbs().step(key, state, path, 0.9)
        assert frequencies_agree(moved.position, enumerate_states(model).probability) is right

    @pytest.mark.parametrize("kernel", [rbm.BlockedGibbs(), rbm.PerfectTransition()])
    def test_weights_are_unbiased(self, kernel: Any) -> None:
        uniform = rbm.uniform_reference(*SHAPE)
        position = exact_draws(uniform, 20_000, np.random.default_rng(3))
        betas, seed = np.linspace(0, 1, 4), np.random.SeedSequence(4)
        result = run_block(Block(SQUARED, kernel, betas, position, 2, seed))
        log_ratio = enumerate_states(TARGET).log_z - enumerate_states(uniform).log_z
        assert mean_agrees(np.exp(result.log_weight.ravel() - log_ratio), 1.0)

    @pytest.mark.parametrize("direction", ["forward", "reverse"])
    def test_sample_ais(self, direction: str) -> None:
        result = rbm.sample_ais(
            TARGET,
            100,
            chains=2,
            steps=300,
            path=SQUARED,
            schedule="linear",
            direction=direction,
            random_seed=5,
            progressbar=False,
        )
        found = pma.log_evidence(result)
        assert found.ess > 50
        assert abs(found.log_evidence - log_partition_function(TARGET)) < 4 * found.mcse
        assert group(result, "evidence").attrs["path"] == "SquaredPath"


@pytest.mark.quick_cases("spline")
@each_path
def test_resampled_runs(path: rbm.RBMPath) -> None:
    # Resampling takes rows of all leaves of the terms.
    reference = jax.tree.map(np.asarray, path.model_at(0.0))
    position = exact_draws(reference, 20_000, np.random.default_rng(6))
    betas, seed = np.linspace(0, 1, 9), np.random.SeedSequence(7)
    chains, always = 100, 1.1
    block = Block(path, rbm.BlockedGibbs(), betas, position, chains, seed, resample=always)
    log_z = run_block(block).log_weight[:, 0]
    log_ratio = enumerate_states(TARGET).log_z - enumerate_states(reference).log_z
    assert mean_agrees(np.exp(log_z - log_ratio), 1.0)
