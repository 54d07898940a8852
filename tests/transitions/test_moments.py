"""Means and variances after moves of exact draws, in 1 and 20 dimensions, tested together.

Kernels are taken at the acceptance at which they run. The target is that of `tests/cases.py`, as a
product in more dimensions; each coordinate is mapped to a standard normal one by its exact
distribution function, ``z = Phi^-1(F(x))``, so that all means and variances are independent.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scipy import special

import pymc_anneal as pma

from pymc_anneal.base.contracts import LogTerms, Transition
from pymc_anneal.transitions import hmc, mala
from tests.cases import COUNT, EXPOSURE, PRIOR_RATE, PRIOR_SHAPE, start, take
from tests.pooled import family
from tests.transitions.barker import Barker

DIMENSIONS, BETAS = (1, 20), (0.0, 0.6, 1.0)
PARTICLES, MOVES = 10_000, 3


def parameters(beta: float, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return shapes and rates of the gamma distributions under ``f_beta``."""
    return np.resize(PRIOR_SHAPE + beta * COUNT, d), np.resize(PRIOR_RATE + beta * EXPOSURE, d)


def product_terms(x: jax.Array) -> LogTerms:
    d, rate = len(x), jnp.exp(x)
    shape, prior_rate = parameters(0.0, d)
    constant = shape * np.log(prior_rate) - special.gammaln(shape)
    likelihood = np.resize(COUNT, d) * x - np.resize(EXPOSURE, d) * rate
    return LogTerms((shape * x - prior_rate * rate + constant).sum(), likelihood.sum())


def proposal(d: int) -> pma.GaussianReference:
    """Return a density near the target in the middle of the path."""
    shape, rate = parameters(0.6, d)
    return pma.GaussianReference(special.digamma(shape) - np.log(rate), 1.3 * sd(d))


def sd(d: int) -> np.ndarray:
    """Return the standard deviations of the coordinates in the middle of the path."""
    return np.sqrt(special.polygamma(1, parameters(0.6, d)[0]))


KERNELS = {
    "HMC": lambda d: pma.HMC(2.0 * d**-0.15, 3, sd(d)),
    "GeneralizedHMC": lambda d: pma.GeneralizedHMC(2.1 * d**-0.16, 2, sd(d)),
    "MALA": lambda d: pma.MALA(1.1 * d ** (-1 / 6), 2, sd(d)),
    "RandomWalkMetropolis": lambda d: pma.RandomWalkMetropolis(2.0 * d**-0.5, 4, sd(d)),
    "IndependenceMetropolis": lambda d: pma.IndependenceMetropolis(proposal(d), 3),
    "Barker": lambda d: Barker(1.4 * d ** (-1 / 6), sd(d)),
}
# Acceptance in the middle of the path: that at which the pilot tunes, and what is usual elsewhere.
ACCEPTANCE = {"HMC": (0.85, 0.98), "GeneralizedHMC": (0.85, 0.98)}


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def standard_normal(kernel: Transition, d: int, betas=BETAS, seed: int = 0) -> dict[float, tuple]:
    """Return the coordinates of moved draws as normal ones, and the acceptance, by temperature."""
    path, step = pma.GeometricPath(product_terms), jax.jit(lambda *args: take(*args))
    found = {}
    for beta in betas:
        own = np.random.SeedSequence([seed, d, int(10 * beta)])  # scores are independent
        rng, (shape, rate) = np.random.default_rng(own), parameters(beta, d)
        position = np.log(rng.gamma(shape, 1 / rate, size=(PARTICLES, d)))
        key_start, key = jax.random.split(jax.random.key(own.generate_state(1)[0]))
        state = start(path, kernel, key_start, position)
        for i in range(MOVES):
            key_move = jax.random.fold_in(key, i)
            state, info = step(kernel, key_move, state, path, jnp.asarray(beta))
        uniform = special.gammainc(shape, rate * np.exp(state.position))
        found[beta] = special.ndtri(uniform), float(info.accept_rate.mean())
    return found


def rows(name: str, d: int, moved: dict[float, tuple]) -> tuple[dict, dict]:
    """Return the rows of means and of variances, one for each temperature and coordinate."""
    means, variances = {}, {}
    for beta, (z, _) in moved.items():
        for i in range(d):
            case = f"{name}, d = {d}, beta = {beta}, coordinate {i}"
            means[case] = z[:, i].mean(), 0.0, PARTICLES**-0.5
            variances[case] = z[:, i].var(ddof=1), 1.0, np.sqrt(2 / (PARTICLES - 1))
    return means, variances


def test_means_and_variances() -> None:
    means, variances = {}, {}
    for number, (name, make) in enumerate(KERNELS.items()):
        for d in DIMENSIONS:
            moved = standard_normal(make(d), d, seed=number)
            low, high = ACCEPTANCE.get(name, (0.1, 0.9))
            assert low < moved[0.6][1] < high, (name, d)
            for total, new in zip((means, variances), rows(name, d, moved), strict=True):
                total |= new
    of_means, of_variances = (
        family("invariance: means", means),
        family("invariance: variances", variances),
    )
    of_means.check()
    of_variances.check()
    assert of_means.visible_shift < 0.005  # standard deviations
    assert of_variances.visible_shift < 0.02


class TestBrokenKernels:
    """Errors of the size that the families promise to see."""

    def sees(self, kernel: Transition, d: int) -> bool:
        means, variances = rows("broken", d, standard_normal(kernel, d, (0.6,)))
        found = family("invariance: means", means), family("invariance: variances", variances)
        return not all(f.agrees for f in found)

    def test_a_temperature_that_is_a_twentieth_off(self) -> None:
        class Stale(pma.HMC):
            def step(self, key, state, path, beta):
                return super().step(key, state, path, 1.05 * beta)

        stale = jax.tree_util.register_dataclass(Stale)
        assert self.sees(stale(2.0 * 20**-0.15, 3, sd(20)), 20)

    @pytest.mark.parametrize(
        ("module", "kernel"),
        [(hmc, "HMC"), (mala, "MALA")],
    )
    def test_no_rejection_at_the_tuned_acceptance(self, module, kernel, monkeypatch) -> None:
        def always(uniform, log_accept, proposal, current):
            return proposal, jnp.ones(len(log_accept))

        monkeypatch.setattr(module, "accept_reject", always)
        assert self.sees(KERNELS[kernel](20), 20)
