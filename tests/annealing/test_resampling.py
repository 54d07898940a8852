"""Resampling on the way: still unbiased, with an error from independent populations."""

from collections.abc import Iterator
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.annealing import resampling, step
from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.base.arviz_compat import draws_ess
from pymc_anneal.base.contracts import KernelState
from pymc_anneal.evidence.ais import ais, population_means
from pymc_anneal.pipeline.settings import resolve_resample
from tests.cases import COUNT, EXPOSURE, log_gamma_draws, log_gamma_evidence, log_gamma_terms
from tests.pooled import Family, family

PATH = pma.GeometricPath(log_gamma_terms)
KERNEL = pma.RandomWalkMetropolis(0.3, 1, 0.5)  # hardly moves
POPULATIONS, SIZE = 4000, 8
CASES = [(steps, threshold) for steps in (1, 2, 3, 4, 5) for threshold in (0.6, 1.0)]


def first_positions(steps: int, resample: float) -> np.ndarray:
    """Independent draws of the prior for each case."""
    rng = np.random.default_rng([steps, int(10 * resample)])
    return log_gamma_draws(0.0, POPULATIONS * SIZE, rng)


@cache
def populations(steps: int, resample: float) -> np.ndarray:
    """Log mean weights of many small populations, each an unbiased estimate."""
    seed = np.random.SeedSequence([7, steps, int(10 * resample)])
    betas, position = pma.power_schedule(steps, 2.0), first_positions(steps, resample)
    block = Block(PATH, KERNEL, betas, position, POPULATIONS, seed, resample=resample)
    return population_means(run_block(block).log_weight, SIZE).ravel()


def relative_row(steps: int, resample: float) -> tuple[float, float, float]:
    """Return the row of ``E[Z^ / Z] = 1``, less what the first positions explain.

    Particles hardly move, and the mean of ``e^V`` over the first positions, whose expectation is
    ``Z`` as well, explains most of the spread of the estimates.
    """
    found = np.exp(populations(steps, resample) - log_gamma_evidence())
    x = first_positions(steps, resample)
    first = np.exp(x @ COUNT - np.exp(x) @ EXPOSURE - log_gamma_evidence())
    control = first.reshape(-1, SIZE).mean(axis=1) - 1
    rest = found - np.cov(found, control)[0, 1] / control.var() * control
    return float(rest.mean()), 1.0, float(rest.std() / np.sqrt(rest.size))


def all_cases() -> Family:
    rows = {f"{s} steps, below {t}": relative_row(s, t) for s, t in CASES}
    return family("evidence: resampling", rows)


def state_of(x: np.ndarray) -> KernelState:
    return KernelState(jnp.asarray(x)[:, None], (), ())


@pytest.fixture
def run_again(monkeypatch) -> Iterator[pytest.MonkeyPatch]:
    """Run all cases anew, with programs compiled after a patch, and forget them."""
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "populations", populations.__wrapped__)
        jax.clear_caches()
        yield patch
    jax.clear_caches()


class TestUnbiased:
    def test_all_cases(self) -> None:
        found = all_cases()
        assert found.visible_shift < 0.01
        found.check()

    @pytest.mark.slow
    def test_weights_to_the_power_1_05(self, run_again) -> None:
        """The twin: large weights are drawn too often."""
        right = resampling._systematic_rows

        def wrong(key, log_share):
            share = 1.05 * log_share
            return right(key, share - jax.nn.logsumexp(share, axis=1, keepdims=True))

        run_again.setattr(resampling, "_systematic_rows", wrong)
        assert not all_cases().agrees

    @pytest.mark.slow
    def test_weights_that_forget_the_mean(self, run_again) -> None:
        """The twin: resampled particles restart at the largest weight."""
        right = resampling.resample_populations

        def wrong(key, state, log_weight, chains, threshold):
            state, weight = right(key, state, log_weight, chains, threshold)
            largest = log_weight.reshape(chains, -1).max(axis=1, keepdims=True)
            equal = jnp.ptp(weight.reshape(chains, -1), axis=1, keepdims=True) == 0
            spread = jnp.broadcast_to(largest, (chains, SIZE)).ravel()
            return state, jnp.where(jnp.broadcast_to(equal, (chains, SIZE)).ravel(), spread, weight)

        run_again.setattr(step, "resample_populations", wrong)
        assert not all_cases().agrees


class TestSystematic:
    LOG_WEIGHT = np.log([0.5, 0.25, 0.125, 0.125, 1.0, 1.0, 1.0, 1.0])

    def resampled(self, threshold: float, log_weight=LOG_WEIGHT):
        with jax.enable_x64(True):
            state, weight = resampling.resample_populations(
                jax.random.key(0),
                state_of(np.arange(8.0)),
                jnp.asarray(log_weight),
                2,
                threshold,
            )
        return np.asarray(state.position).ravel(), np.asarray(weight)

    def test_only_where_the_weights_are_uneven(self) -> None:
        position, weight = self.resampled(0.9)
        np.testing.assert_array_equal(position[4:], [4, 5, 6, 7])
        np.testing.assert_allclose(weight[:4], np.log(0.25))
        assert sorted(position[:2]) == [0, 0]  # half of the weight: exactly two of four

    def test_not_below_the_threshold(self) -> None:
        position, weight = self.resampled(0.5)
        np.testing.assert_array_equal(position, np.arange(8))
        np.testing.assert_array_equal(weight, self.LOG_WEIGHT)

    def test_whole_shares(self) -> None:
        """Every particle is copied as often as its share, in populations of unequal weights."""
        m, log_scale = 64, np.array([[0.0], [300.0], [-300.0], [5.0]])
        copies = np.zeros((4, m), dtype=int)
        copies[0, 31:], copies[0, 40] = 1, 32  # so uneven that w^1.05 would move whole shares
        copies[1, :4], copies[2, -1], copies[3] = m // 4, m, 1
        with jax.enable_x64(True), np.errstate(divide="ignore"):
            row = jnp.arange(copies.size)
            state, weight = resampling.resample_populations(
                jax.random.key(3),
                KernelState(row[:, None], row, {"momentum": row}),
                jnp.asarray(np.log(copies) + log_scale).ravel(),
                4,
                1.1,
            )
        for leaf in jax.tree.leaves(state):
            np.testing.assert_array_equal(np.ravel(leaf), np.repeat(row, copies.ravel()))
        np.testing.assert_allclose(weight, np.repeat(log_scale, m), atol=1e-12)

    def test_counts_are_right_on_average(self) -> None:
        with jax.enable_x64(True):
            state, weight = state_of(np.arange(8.0)), jnp.asarray(self.LOG_WEIGHT)

            def index(key):
                moved, _ = resampling.resample_populations(key, state, weight, 2, 0.9)
                return moved.position[:4, 0]

            found = jax.jit(jax.vmap(index))(jax.random.split(jax.random.key(0), 1000))
        share = np.bincount(np.asarray(found).ravel().astype(int), minlength=4) / found.size
        np.testing.assert_allclose(share, np.exp(self.LOG_WEIGHT[:4]), atol=0.02)

    def test_a_population_of_no_weight(self) -> None:
        dead = np.where(np.arange(8) < 4, -np.inf, self.LOG_WEIGHT)
        position, weight = self.resampled(0.9, log_weight=dead)
        np.testing.assert_array_equal(position, np.arange(8))
        np.testing.assert_array_equal(weight, dead)


class TestError:
    def test_by_hand(self) -> None:
        log_weight = np.log([[1.0, 3.0, 5.0, 7.0], [2.0, 2.0, 4.0, 4.0]])
        estimate = ais(log_weight, population_size=2)
        means = np.array([2.0, 6.0, 2.0, 4.0])
        assert estimate.log_evidence == pytest.approx(np.log(means.mean()))
        rse_squared = means.var(ddof=1) / 4 / means.mean() ** 2
        assert estimate.mcse == pytest.approx(np.sqrt(np.log1p(rse_squared)))

    def test_it_is_honest(self) -> None:
        """The spread of estimates of sixteen populations is what each says of itself."""
        groups = populations(5, 1.0).reshape(-1, 16, 1)
        weights = np.repeat(groups, 2, axis=2).reshape(len(groups), 16, 2)
        estimates = [ais(w, population_size=2) for w in weights]
        spread = np.std([e.log_evidence for e in estimates])
        stated = np.sqrt(np.mean([e.mcse**2 for e in estimates]))
        assert 0.85 < stated / spread < 1.2

    def test_particles_would_understate_it(self) -> None:
        position = log_gamma_draws(0.0, 160, np.random.default_rng(3))
        seed, betas = np.random.SeedSequence(1), pma.power_schedule(5, 2.0)
        result = run_block(Block(PATH, KERNEL, betas, position, 16, seed, resample=1.0))
        assert ais(result.log_weight).mcse < 0.5 * ais(result.log_weight, population_size=10).mcse


Y = np.array([3.0, 4.0, 5.5])


@cache
def idata():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 3.0)
        pm.Normal("y", mu, 0.5, observed=Y)
    settings = {"steps": 6, "reference": "prior", "resample": "ess", "random_seed": 2}
    return pma.sample_ais(400, model=model, progressbar=False, **settings)


class TestSampleAis:
    @pytest.mark.slow
    def test_evidence(self) -> None:
        found = pma.log_evidence(idata())
        covariance = 0.25 * np.eye(3) + 9.0
        exact = stats.multivariate_normal.logpdf(Y, np.zeros(3), covariance)
        assert abs(found.log_evidence - exact) < 4 * found.mcse
        assert found.interval[0] < found.log_evidence < found.interval[1]
        assert found.mcse > 0.02

    def test_populations_are_marked(self) -> None:
        annealing = idata()["annealing"]
        label = annealing["population"].values
        assert len(np.unique(label)) * 4 == 16
        weight = population_means(annealing["log_weight"].values, 100)
        total = np.logaddexp.reduce(weight, axis=None) - np.log(weight.size)
        assert pma.log_evidence(idata()).log_evidence == pytest.approx(total)

    def test_no_ladder(self) -> None:
        with pytest.raises(ValueError, match="ladder"):
            pma.compare_estimators(idata())

    def test_relatives_are_neighbours(self) -> None:
        for row in idata()["posterior"]["mu"].values:
            distinct, runs = len(np.unique(row)), 1 + np.count_nonzero(np.diff(row))
            assert runs == distinct < len(row)

    def test_posterior(self) -> None:
        mu = idata()["posterior"]["mu"].values
        assert mu.mean() == pytest.approx(Y.sum() * 4 / (12 + 1 / 9), abs=0.2)

    @pytest.mark.parametrize("value", ["often", 0.0, 1.5, -1])
    def test_bad_thresholds(self, value) -> None:
        with pytest.raises(ValueError, match="`resample` is"):
            resolve_resample(value)

    def test_too_few_populations(self) -> None:
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("mu"), observed=1.0)
        with pytest.raises(ValueError, match="leaves 2 independent populations"):
            pma.sample_ais(100, chains=2, resample="ess", model=model)

    def test_not_backwards(self) -> None:
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("mu"), observed=1.0)
        with pytest.raises(ValueError, match="leave out `resample`"):
            pma.sample_ais(resample="ess", reverse_from="draws", model=model)


class TestResample:
    def test_shares(self) -> None:
        # Systematic resampling: every particle comes up its share of the draws, rounded.
        rng = np.random.default_rng(1)
        log_weight = np.log(
            [0.5, 0.2, 0.0, 0.3], where=[True, True, False, True], out=np.full(4, -np.inf)
        )
        counts = np.bincount(resampling.resample(log_weight, 1000, rng), minlength=4)
        assert counts[2] == 0
        assert np.abs(counts - [500, 200, 0, 300]).max() <= 1

    @pytest.mark.parametrize("together", [False, True])
    def test_each_chain_follows_its_own_weights(self, together: bool) -> None:
        share = np.array([[90, 0, 7, 3], [1, 1, 49, 49], [0, 100, 0, 0]])
        with np.errstate(divide="ignore"):
            log_weight = np.log(share) + np.array([[0.0], [700.0], [-700.0]])
        position = np.arange(12.0).reshape(3, 4, 1)
        rng = np.random.default_rng(5)
        drawn = resampling.equal_weights(position, log_weight, 300, rng, together=together)
        for row, (own, wanted) in enumerate(zip(drawn, 3 * share, strict=True)):
            counts = np.bincount(own.ravel().astype(int) - 4 * row, minlength=4)
            np.testing.assert_array_equal(counts, wanted)

    def test_order_is_random(self) -> None:
        rng = np.random.default_rng(2)
        index = resampling.resample(np.zeros(500), 500, rng)
        assert sorted(index) == list(range(500))
        assert abs(np.corrcoef(index, np.arange(500))[0, 1]) < 5 / np.sqrt(500)

    def test_more_draws_than_particles(self) -> None:
        index = resampling.resample(np.array([0.0, -800.0]), 7, np.random.default_rng(3))
        assert index.tolist() == [0] * 7

    def test_copies_are_neighbours(self) -> None:
        rng = np.random.default_rng(4)
        index = resampling.resample(rng.normal(0, 2, 300), 400, rng)
        distinct, runs = len(np.unique(index)), 1 + np.count_nonzero(np.diff(index))
        assert runs == distinct < 300


class TestEffectiveSize:
    """Standard normal draws, resampled from particles of a wider density: ESS by ArviZ."""

    SPREAD, CHAINS, PARTICLES, DRAWS = 5.0, 4, 500, 500

    def variance_ratio(self, order) -> float:
        """Return the variance of the mean that ArviZ's ESS promises, relative to the true one."""
        means, promised = [], []
        for seed in range(300):
            rng = np.random.default_rng(seed)
            x = self.SPREAD * rng.normal(size=(self.CHAINS, self.PARTICLES, 1))
            log_weight = -0.5 * (x[:, :, 0] ** 2) * (1 - self.SPREAD**-2)
            drawn = order(rng, resampling.equal_weights(x, log_weight, self.DRAWS, rng)[:, :, 0])
            means.append(drawn.mean())
            promised.append(drawn.var() / draws_ess(drawn))
        return float(np.mean(promised) / np.var(means))

    def test_it_is_honest(self) -> None:
        # The variance of 300 means is known to 8 %; the ESS is that of a finite chain.
        assert self.variance_ratio(lambda rng, x: x) == pytest.approx(1, abs=0.3)

    def test_shuffled_copies_would_overstate_it(self) -> None:
        assert self.variance_ratio(lambda rng, x: rng.permuted(x, axis=1)) < 0.5
