"""Kernels of discrete variables: invariance, reversal and unbiasedness on the mixed target.

The states are few enough to be counted: a chi-square test against exact probabilities, and of the
pairs before and after a move against those of the reversed kernel. Broken twins fail either.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.adaptation.pilot import Pilot, run_pilot
from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.base.contracts import KernelState, LogTerms, StepInfo, Transition
from pymc_anneal.transitions import composition, discrete_walk, gibbs
from tests.cases import (
    DISCRETE_TRANSITIONS,
    GIBBS,
    MIXED_COUNT,
    MIXED_RATE,
    MIXED_SHAPE,
    MIXED_STATES,
    ON_RATE,
    WALK,
    Case,
    compiled_take,
    mixed_draws,
    mixed_evidence,
    mixed_log_mass,
    mixed_terms,
    parametrize,
    start,
    take,
)

PARTICLES = 20_000
LEVEL = 1e-7  # as in test_transitions
BETA = 0.6
PATH = pma.GeometricPath(mixed_terms)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def exact_start(kernel: Transition, beta: float, seed: int = 0) -> KernelState:
    """Return exact draws of ``f_beta``."""
    position = mixed_draws(beta, PARTICLES, np.random.default_rng(seed))
    return start(PATH, kernel, jax.random.key(seed), position)


def moved(kernel: Transition, beta: float, moves: int, step=compiled_take) -> KernelState:
    """Move exact draws of ``f_beta``."""
    state = exact_start(kernel, beta)
    for i in range(moves):
        state, _ = step(kernel, jax.random.key(100 + i), state, PATH, jnp.asarray(beta))
    return state


def moved_afresh(kernel: Transition, beta: float, moves: int) -> KernelState:
    """Move by a kernel that was broken after others of its kind were compiled."""
    return moved(kernel, beta, moves, jax.jit(lambda *args: take(*args)))


def codes(position: jax.Array) -> np.ndarray:
    """Index in ``MIXED_STATES`` of each discrete state; raises where a value is not whole."""
    a, c, _, k, b = np.asarray(position).T
    index = ((a * 3 + c - 3) * 40 + k) * 2 + b
    whole = index.astype(int)
    np.testing.assert_array_equal(MIXED_STATES[whole], np.column_stack([a, c, k, b]))
    return whole


def invariant(state: KernelState, beta: float) -> bool:
    """Whether the particles are draws of ``f_beta``."""
    index = codes(state.position)
    expected = np.exp(mixed_log_mass(beta) - mixed_evidence(beta)) * PARTICLES
    observed = np.bincount(index, minlength=len(expected))
    rare = expected < 10
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    a, _, log_rate, k, _ = np.asarray(state.position).T
    rate = MIXED_RATE + beta * (0.6 + 0.8 * a + 0.15 * k)
    uniform = stats.gamma(MIXED_SHAPE + beta * MIXED_COUNT, scale=1 / rate).cdf(np.exp(log_rate))
    levels = [
        stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue,
        stats.kstest(uniform, "uniform").pvalue,
        *(stats.spearmanr(uniform, column).pvalue for column in (a, k)),
    ]
    return min(levels) > LEVEL


@pytest.mark.parametrize("beta", [0.0, 0.05, BETA, 1.0])
@parametrize("case", DISCRETE_TRANSITIONS)
def test_invariance(case: Case, beta: float) -> None:
    assert invariant(moved(case.make(), beta, 3), beta)


def test_moves_towards_the_density() -> None:
    # From the prior, many moves at beta = 1 end at the target: every coordinate moves.
    kernel = pma.Composition([ON_RATE, GIBBS, WALK])
    state = exact_start(kernel, 0.0)
    assert not invariant(state, 1.0)
    for i in range(40):
        state, _ = compiled_take(kernel, jax.random.key(i), state, PATH, jnp.asarray(1.0))
    assert invariant(state, 1.0)


class TestBrokenTwins:
    """The check of invariance is able to fail."""

    def test_gibbs_that_draws_at_another_temperature(self, monkeypatch) -> None:
        class Cold(pma.GeometricPath):
            def log_density(self, terms, beta):
                return terms.log_prior + jnp.where(beta == 0, 0.0, 1.4 * beta) * terms[1]

        def step(kernel, key, state, path, beta):
            return kernel.step(key, state, Cold(path.log_terms), beta)

        jax.tree_util.register_dataclass(Cold, [], ["log_terms"])
        assert not invariant(moved(GIBBS, BETA, 3, jax.jit(step)), BETA)

    def test_gibbs_that_forgets_a_value(self, monkeypatch) -> None:
        kernel = pma.Gibbs([1], [(3, 4)])
        state = exact_start(kernel, BETA)
        new, _ = compiled_take(kernel, jax.random.key(1), state, PATH, jnp.asarray(BETA))
        assert not invariant(new, BETA)

    def test_gibbs_with_the_terms_of_the_old_value(self, monkeypatch) -> None:
        # The next coordinate is then drawn given a value that this one no longer has.
        def stale(move, key, state, *args):
            def wrong(key, state, i):
                new, info = move(key, state, i)
                return new._replace(terms=state.terms), info

            return sweep_as_it_is(wrong, key, state, *args)

        sweep_as_it_is = gibbs.sweep
        monkeypatch.setattr(gibbs, "sweep", stale)
        assert not invariant(moved_afresh(GIBBS, BETA, 3), BETA)

    @pytest.mark.parametrize("sign", [0.0, -1.0])
    def test_walk_that_accepts_wrongly(self, sign: float, monkeypatch) -> None:
        def wrong(key, log_accept, proposal, current):
            log_accept = jnp.where(jnp.isfinite(log_accept), sign * log_accept, log_accept)
            return original_accept_reject(key, log_accept, proposal, current)

        original_accept_reject = discrete_walk.accept_reject
        monkeypatch.setattr(discrete_walk, "accept_reject", wrong)
        assert not invariant(moved_afresh(WALK, BETA, 2), BETA)

    def test_walk_that_is_not_symmetric(self, monkeypatch) -> None:
        class Drifting:
            def __getattr__(self, name):
                return getattr(jnp, name)

            def ceil(self, z):
                return jnp.ceil(z - 0.3) + 1.0

            def sign(self, z):
                return jnp.where(z > 0.2, 1.0, -1.0)

        monkeypatch.setattr(discrete_walk, "jnp", Drifting())
        assert not invariant(moved_afresh(WALK, BETA, 3), BETA)

    def test_composition_of_kernels_at_different_temperatures(self, monkeypatch) -> None:
        def stale(transition, key, state, path, beta):
            state, infos = step_as_it_is(transition, key, state, path, 0.7 * beta)
            return state, infos

        step_as_it_is = composition.step_by_parts
        monkeypatch.setattr(composition, "step_by_parts", stale)
        assert not invariant(moved_afresh(pma.Composition([GIBBS, WALK]), BETA, 3), BETA)


def pairs(kernel: Transition, seed: int) -> np.ndarray:
    """Draw ``(before, after)`` of one move in equilibrium, as indices of the small states."""
    state = exact_start(kernel, BETA, seed)
    new, _ = compiled_take(kernel, jax.random.key(seed), state, PATH, jnp.asarray(BETA))
    # States of a, c, b alone: 12 of them, 144 pairs; k, r are what they are.
    small = [c // 80 * 2 + c % 2 for c in (codes(state.position), codes(new.position))]
    return np.stack(small)


def is_reversal(kernel: Transition, other: Transition) -> bool:
    """Whether pairs of a kernel in equilibrium are those of the other one, swapped."""
    forward, backward = pairs(kernel, 1), pairs(other, 2)[::-1]
    table = np.stack([np.bincount(12 * x + y, minlength=144) for x, y in (forward, backward)])
    table = table[:, table.sum(axis=0) >= 20]
    return stats.chi2_contingency(table).pvalue > LEVEL


@parametrize("case", [c for c in DISCRETE_TRANSITIONS if c.name != "on_coordinates"])
def test_reversal(case: Case) -> None:
    kernel = case.make()
    assert is_reversal(kernel, kernel.reversal())


@pytest.mark.parametrize("kernel", [GIBBS, pma.Composition([ON_RATE, GIBBS])], ids=["one", "two"])
def test_sweeps_are_not_their_own_reversal(kernel: Transition) -> None:
    assert not is_reversal(kernel, kernel)


@parametrize("case", DISCRETE_TRANSITIONS)
def test_reversal_of_the_reversal(case: Case) -> None:
    kernel = case.make()
    assert repr(kernel.reversal().reversal()) == repr(kernel)


@parametrize("case", DISCRETE_TRANSITIONS)
class TestContract:
    def test_step(self, case: Case) -> None:
        kernel = case.make()
        state = exact_start(kernel, BETA)
        new, info = compiled_take(kernel, jax.random.key(6), state, PATH, jnp.asarray(BETA))
        assert isinstance(new, KernelState)
        assert isinstance(info, StepInfo)
        assert jax.tree.structure(new) == jax.tree.structure(state)
        same = jax.tree.map(lambda a, b: a.shape == b.shape and a.dtype == b.dtype, new, state)
        assert all(jax.tree.leaves(same))
        assert ((info.accept_rate >= 0) & (info.accept_rate <= 1 + 1e-12)).all()
        assert info.nan.shape == (PARTICLES,)
        assert not info.nan.any()
        assert info.nan_position.shape == (PARTICLES, 5)
        assert (new.position != state.position).any()

    def test_terms_belong_to_the_position(self, case: Case) -> None:
        kernel = case.make()
        new = moved(kernel, BETA, 1)
        for left, right in zip(new.terms, PATH.evaluate(new.position), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12)

    def test_particles_are_independent(self, case: Case) -> None:
        kernel = case.make()
        state = exact_start(kernel, BETA)
        position = state.position.at[0].set(jnp.array([1.0, 5.0, -1.0, 0.0, 1.0]))
        other = KernelState(position, PATH.evaluate(position), state.auxiliary)
        first, second = (
            compiled_take(kernel, jax.random.key(11), s, PATH, jnp.asarray(BETA))[0].position
            for s in (state, other)
        )
        np.testing.assert_array_equal(first[1:], second[1:])


@parametrize("case", DISCRETE_TRANSITIONS)
def test_unbiased(case: Case) -> None:
    for steps in range(1, 6):
        position = mixed_draws(0.0, PARTICLES, np.random.default_rng(steps))
        betas, seed = pma.power_schedule(steps, 2.0), np.random.SeedSequence(steps)
        log_weight = run_block(Block(PATH, case.make(), betas, position, 2, seed)).log_weight
        weight = np.exp(log_weight.ravel() - mixed_evidence())
        assert weight.sum() ** 2 / (weight**2).sum() > 0.02 * PARTICLES
        assert abs(weight.mean() - 1) < 5 * weight.std() / np.sqrt(PARTICLES)


class TestTuning:
    @pytest.fixture(scope="class")
    @classmethod
    def pilot(cls) -> Pilot:
        open_parts = [pma.BlockTransition(pma.HMC(), [2]), GIBBS, pma.DiscreteRandomWalk([3])]
        position = mixed_draws(0.0, 2000, np.random.default_rng(0))
        seed = np.random.SeedSequence(0)
        with jax.enable_x64(True):
            return run_pilot(PATH, pma.Composition(open_parts), position, seed)

    def test_everything_open_is_set(self, pilot: Pilot) -> None:
        rest, gibbs, walk = pilot.transition.at(jnp.asarray(0.7)).kernels
        for kernel in (rest.kernel, walk):
            assert float(kernel.step_size) > 0
            assert int(kernel.n_steps) >= 1
            assert kernel.scale.shape == (1,)  # of its own coordinate alone
        assert gibbs == GIBBS

    def test_scales_are_those_of_the_coordinates(self, pilot: Pilot) -> None:
        rest, _, walk = pilot.transition.at(jnp.asarray(1.0)).kernels
        draws = mixed_draws(1.0, 100_000, np.random.default_rng(1))
        assert float(rest.kernel.scale[0]) == pytest.approx(draws[:, 2].std(), rel=0.2)
        assert float(walk.scale[0]) == pytest.approx(draws[:, 3].std(), rel=0.2)

    def test_cost_is_that_of_all_parts(self, pilot: Pilot) -> None:
        for beta, cost in zip(pilot.betas[1:], pilot.cost, strict=True):
            rest, _, walk = pilot.transition.at(jnp.asarray(beta)).kernels
            steps = int(rest.kernel.n_steps), int(walk.n_steps)
            assert cost == pma.HMC().cost(steps[0]) + GIBBS.cost() + walk.cost(steps[1])

    def test_log_evidence_is_near(self, pilot: Pilot) -> None:
        assert abs(pilot.log_z - mixed_evidence()) < 6 * pilot.log_z_mcse

    def test_what_is_fixed_stays(self) -> None:
        rest = pma.HMC(np.asarray(0.3), np.asarray(2))
        parts = [
            pma.BlockTransition(rest, [2]),
            GIBBS,
            pma.DiscreteRandomWalk([3], np.asarray(1.1)),
        ]
        position = mixed_draws(0.0, 2000, np.random.default_rng(0))
        pilot = run_pilot(PATH, pma.Composition(parts), position, np.random.SeedSequence(0))
        rest, _, walk = pilot.transition.at(jnp.asarray(0.5)).kernels
        assert float(rest.kernel.step_size) == pytest.approx(0.3)
        assert int(rest.kernel.n_steps) == 2
        assert float(walk.step_size) == pytest.approx(1.1)
        assert float(walk.scale[0]) > 0

    def test_a_walk_is_as_wide_as_the_density(self) -> None:
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


def terms_that_end(x: jax.Array) -> LogTerms:
    """Three values; zero likelihood at the second, NaN at the third where ``x_1`` is 1."""
    inside = (x[0] >= 0) & (x[0] <= 2) & (x[1] >= 0) & (x[1] <= 1)
    bad = jnp.where((x[0] == 2) & (x[1] == 1), jnp.nan, 0.0)
    log_likelihood = jnp.where(x[0] == 1, -jnp.inf, bad)
    # Outside the prior's support the likelihood may be anything.
    log_likelihood = jnp.where(inside, log_likelihood, jnp.nan)
    return LogTerms(jnp.where(inside, -jnp.log(6.0), -jnp.inf), log_likelihood)


ENDING = [
    pma.Gibbs([0], [(0, 2)]),
    pma.DiscreteRandomWalk([0], 2.0, 3, 1.0),
]


@pytest.mark.parametrize("kernel", ENDING, ids=["gibbs", "discrete_walk"])
def test_zero_likelihood_and_nan(kernel: Transition) -> None:
    path = pma.GeometricPath(terms_that_end)
    position = np.zeros((400, 2))
    position[200:, 1] = 1.0
    state = start(path, kernel, jax.random.key(0), position)
    new, info = compiled_take(kernel, jax.random.key(1), state, path, jnp.asarray(1.0))
    assert set(np.unique(new.position[:200, 0])) == {0.0, 2.0}  # never the forbidden value
    assert not info.nan[:200].any()
    assert info.nan[200:].any()  # and said where
    np.testing.assert_array_equal(info.nan_position[info.nan], [[2.0, 1.0]] * int(info.nan.sum()))


def test_a_particle_of_density_zero_stays() -> None:
    path = pma.GeometricPath(lambda x: LogTerms(jnp.zeros(()), jnp.where(x[0] < 9, -jnp.inf, 0.0)))
    kernel = pma.Gibbs([0], [(0, 2)])
    state = start(path, kernel, jax.random.key(0), np.array([[0.0], [1.0], [2.0]]))
    new, info = compiled_take(kernel, jax.random.key(1), state, path, jnp.asarray(0.5))
    np.testing.assert_array_equal(new.position, state.position)
    np.testing.assert_array_equal(info.accept_rate, 0.0)


@pytest.mark.parametrize("values", [9, 10, 20])
def test_many_values(values: int) -> None:
    # One draw from the conditional of the only coordinate is a draw of the density.
    path = pma.GeometricPath(lambda x: LogTerms(jnp.zeros(()), -0.07 * (x[0] - 6.0) ** 2))
    kernel = pma.Gibbs([0], [(2, 1 + values)])
    state = start(path, kernel, jax.random.key(0), np.full((PARTICLES, 1), 3.0))
    new, _ = compiled_take(kernel, jax.random.key(1), state, path, jnp.asarray(0.5))
    support = np.arange(2, 2 + values)
    mass = np.exp(-0.035 * (support - 6.0) ** 2)
    observed = np.bincount(np.asarray(new.position[:, 0]).astype(int), minlength=2 + values)[2:]
    expected = PARTICLES * mass / mass.sum()
    assert stats.chisquare(observed, expected).pvalue > LEVEL
    np.testing.assert_allclose(new.terms.log_likelihood, -0.07 * (new.position[:, 0] - 6) ** 2)


def test_a_single_value() -> None:
    kernel = pma.Gibbs([0, 1], [(4, 4), (0, 1)])
    path = pma.GeometricPath(lambda x: LogTerms(-x.sum(), x[1]))
    state = start(path, kernel, jax.random.key(0), np.tile([4.0, 0.0], (50, 1)))
    new, _ = compiled_take(kernel, jax.random.key(1), state, path, jnp.asarray(0.5))
    assert (new.position[:, 0] == 4).all()
    assert set(np.unique(new.position[:, 1])) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [(0, 1)]), "`support` has 1 entries for 2 coordinates"),
        (([2], [(3, 1)]), "support of coordinate 2 is empty: 3 to 1"),
    ],
)
def test_gibbs_arguments(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pma.Gibbs(*arguments)


def test_costs() -> None:
    assert pma.Gibbs(range(5), [(0, 1)] * 5).cost() == 5
    assert GIBBS.cost() == 3 * 2  # three coordinates, three values at most
    assert pma.Gibbs([0], [(0, 8)]).cost() == 8
    assert pma.Gibbs([0], [(0, 9)]).cost() == 16  # two batches
    assert pma.DiscreteRandomWalk([0, 2]).cost(3) == 6
