"""Every exported transition, and targets on which they can be checked exactly.

The first target is asymmetric and solvable at every ``beta``: with ``r_i = exp(x_i)``,

    r_i ~ Gamma(a_i, b_i),    V(x) = sum_i s_i x_i - n_i exp(x_i),

so that under ``f_beta`` the ``r_i`` are independent ``Gamma(a_i + beta s_i, b_i + beta n_i)``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

from scipy import special, stats

import pymc_anneal as pma

from pymc_anneal.base.contracts import KernelState, LogTerms, Path, Transition
from pymc_anneal.transitions.by_temperature import TunedTransition
from tests.transitions.barker import Barker

PRIOR_SHAPE, PRIOR_RATE = np.array([2.0, 3.5]), np.array([1.5, 0.8])
COUNT, EXPOSURE = np.array([2.5, 1.0]), np.array([1.0, 1.6])


def log_gamma_terms(x: jax.Array) -> LogTerms:
    """Terms of the target of this module at one position of shape ``(2,)``."""
    rate = jnp.exp(x)
    constant = PRIOR_SHAPE * np.log(PRIOR_RATE) - special.gammaln(PRIOR_SHAPE)
    log_prior = (PRIOR_SHAPE * x - PRIOR_RATE * rate + constant).sum()
    return LogTerms(log_prior, (COUNT * x - EXPOSURE * rate).sum())


def log_gamma_marginal(beta: float, coordinate: int) -> stats.rv_continuous:
    """Distribution of ``x_i`` under ``f_beta``."""
    shape = PRIOR_SHAPE[coordinate] + beta * COUNT[coordinate]
    rate = PRIOR_RATE[coordinate] + beta * EXPOSURE[coordinate]
    return stats.loggamma(shape, loc=-np.log(rate))


def log_gamma_draws(beta: float, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Exact draws under ``f_beta``, shape ``(draws, 2)``."""
    shape, rate = PRIOR_SHAPE + beta * COUNT, PRIOR_RATE + beta * EXPOSURE
    return np.log(rng.gamma(shape, 1 / rate, size=(draws, 2)))


def log_gamma_evidence(beta: float = 1.0) -> float:
    """Log normaliser of ``f_beta``."""
    shape, rate = PRIOR_SHAPE + beta * COUNT, PRIOR_RATE + beta * EXPOSURE
    prior = PRIOR_SHAPE * np.log(PRIOR_RATE) - special.gammaln(PRIOR_SHAPE)
    return float((special.gammaln(shape) - shape * np.log(rate) + prior).sum())


# A target of discrete and continuous coordinates ``x = (a, c, log r, k, b)``, with exact marginals.
CATEGORIES = np.array([0.2, 0.5, 0.3])  # of c = 3, 4, 5
MIXED_SUPPORT = ((0, 1), (3, 5), (0, 1))  # of a, c, b
MIXED_COORDINATES = (0, 1, 4)
MIXED_SHAPE, MIXED_RATE, MIXED_COUNT, MIXED_MEAN = 2.0, 1.5, 2.5, 2.5


def _discrete_terms(a, c, k, b, module):
    """Return the log prior of the discrete coordinates, and their own part of V."""
    log_prior = module.where(a == 1, np.log(0.3), np.log(0.7))
    log_prior += module.where(b == 1, np.log(0.6), np.log(0.4))
    inside = (c >= 3) & (c <= 5)
    for value, share in enumerate(CATEGORIES, start=3):
        log_prior += module.where(c == value, np.log(share), 0.0)
    factorial = jax.scipy.special.gammaln if module is jnp else special.gammaln
    log_prior += k * np.log(MIXED_MEAN) - MIXED_MEAN - factorial(module.maximum(k, 0) + 1.0)
    inside &= (a >= 0) & (a <= 1) & (b >= 0) & (b <= 1) & (k >= 0)
    v = 0.9 * a * b - 0.7 * a * (c - 4) + 0.5 * b * (c == 3) + 0.3 * k * (a - 0.4 * b) - 0.06 * k**2
    return module.where(inside, log_prior, -np.inf), v


def _exposure(a, k):
    return 0.6 + 0.8 * a + 0.15 * k


def mixed_terms(x: jax.Array) -> LogTerms:
    """Terms of the mixed target at one position of shape ``(5,)``.

    ``a, b`` binary, ``c`` in {3, 4, 5}, ``k`` Poisson, ``r`` Gamma; all depend on each other
    through V.
    """
    a, c, log_rate, k, b = x
    log_prior, v = _discrete_terms(a, c, k, b, jnp)
    constant = MIXED_SHAPE * np.log(MIXED_RATE) - special.gammaln(MIXED_SHAPE)
    rate = jnp.exp(log_rate)
    log_prior += MIXED_SHAPE * log_rate - MIXED_RATE * rate + constant
    return LogTerms(log_prior, v + MIXED_COUNT * log_rate - _exposure(a, k) * rate)


# Every discrete state, a, c, k, b; larger k have mass below 1e-20.
MIXED_STATES = np.array(
    [(a, c, k, b) for a in (0, 1) for c in (3, 4, 5) for k in range(40) for b in (0, 1)],
    dtype=float,
)


def mixed_log_mass(beta: float) -> np.ndarray:
    """Unnormalised log mass of each of ``MIXED_STATES`` under ``f_beta``, the rate integrated."""
    a, c, k, b = MIXED_STATES.T
    log_prior, v = _discrete_terms(a, c, k, b, np)
    shape, rate = MIXED_SHAPE + beta * MIXED_COUNT, MIXED_RATE + beta * _exposure(a, k)
    constant = MIXED_SHAPE * np.log(MIXED_RATE) - special.gammaln(MIXED_SHAPE)
    return log_prior + beta * v + special.gammaln(shape) - shape * np.log(rate) + constant


def mixed_evidence(beta: float = 1.0) -> float:
    """Log normaliser of ``f_beta``."""
    return float(special.logsumexp(mixed_log_mass(beta)))


def mixed_draws(beta: float, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Exact draws under ``f_beta``, shape ``(draws, 5)``."""
    mass = np.exp(mixed_log_mass(beta) - mixed_evidence(beta))
    a, c, k, b = MIXED_STATES[rng.choice(len(mass), size=draws, p=mass / mass.sum())].T
    shape = MIXED_SHAPE + beta * MIXED_COUNT
    rate = rng.gamma(shape, 1 / (MIXED_RATE + beta * _exposure(a, k)))
    return np.column_stack([a, c, np.log(rate), k, b])


def start(path: Path, transition: Transition, key: jax.Array, position: np.ndarray) -> KernelState:
    """Return the state of particles that have not moved yet."""
    position = jnp.asarray(position)
    return KernelState(position, path.evaluate(position), transition.init(key, position))


def take(kernel: Transition, key: jax.Array, state: KernelState, path: Path, beta):
    """Take a step as the engine does."""
    return kernel.at(beta).step(key, state, path, beta)


compiled_take = jax.jit(take)


@cache
def normal_model() -> pm.Model:
    """Mean and scale of four numbers."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 2.0)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", mu, sigma, observed=np.array([0.3, 1.4, 2.2, 0.9]))
    return model


@dataclass(frozen=True)
class Case:
    """An object of the package.

    Attributes
    ----------
    name : str
    exported : str
        Its name in ``pymc_anneal``; of one that is not exported, that of its class.
    make : Callable
        Schedules: takes a number of steps and returns the array. Paths: takes the terms and returns
        the path. References: returns it. Transitions: returns the kernel, its parameters set for
        ``log_gamma_terms``.
    """

    name: str
    exported: str
    make: Callable


SCALE = np.array([[0.5, 0.0], [0.1, 0.6]])
BETAS = np.array([0.0, 0.4, 1.0])


def _tuned() -> TunedTransition:
    kernels = pma.HMC(
        step_size=jnp.array([0.9, 0.8, 0.6]),
        n_steps=jnp.array([3, 2, 4]),
        scale=jnp.stack([jnp.asarray(SCALE)] * 3),
    )
    return TunedTransition(jnp.asarray(BETAS), kernels)


def _blackjax() -> pma.BlackJAXKernel:
    hmc = pytest.importorskip("blackjax").hmc
    mass = np.array([0.3, 0.5])
    parameters = {"step_size": 0.6, "num_integration_steps": 3, "inverse_mass_matrix": mass}
    return pma.BlackJAXKernel(hmc, parameters)


TRANSITIONS = [
    Case("hmc", "HMC", lambda: pma.HMC(0.8, 3, SCALE)),
    Case("hmc_single", "HMC", lambda: pma.HMC(0.8, 3, SCALE, single_precision=True)),
    Case("hmc_one_long_step", "HMC", lambda: pma.HMC(1.6, 1, np.array([0.5, 0.7]), jitter=0.2)),
    Case(
        "generalized_hmc",
        "GeneralizedHMC",
        lambda: pma.GeneralizedHMC(1.3, 2, SCALE, momentum_persistence=0.7),
    ),
    Case("mala", "MALA", lambda: pma.MALA(1.1, 2, SCALE)),
    Case("mala_scalar", "MALA", lambda: pma.MALA(0.9, 1, 0.6)),
    Case("random_walk", "RandomWalkMetropolis", lambda: pma.RandomWalkMetropolis(1.5, 3, SCALE)),
    Case(
        "independence",
        "IndependenceMetropolis",
        lambda: pma.IndependenceMetropolis(
            pma.MixtureReference(
                np.array([0.7, 0.3]),
                (
                    pma.GaussianReference(np.array([0.5, 1.0]), 1.2 * SCALE),
                    pma.StudentTReference(np.array([0.2, 0.8]), np.array([0.9, 0.8]), 5.0),
                ),
            )
        ),
    ),
    Case("tuned", "HMC", _tuned),
    Case("blackjax_hmc", "BlackJAXKernel", _blackjax),
]
# Written as users write kernels.
USER_TRANSITIONS = [Case("barker", "Transition", lambda: Barker(1.2, SCALE))]


GIBBS = pma.Gibbs(MIXED_COORDINATES, MIXED_SUPPORT)
WALK = pma.DiscreteRandomWalk([3], 1.0, 2, 1.5)
ON_RATE = pma.BlockTransition(pma.HMC(0.9, 2, 0.7), [2])


FLIP = pma.JointFlip(MIXED_COORDINATES, MIXED_SUPPORT, [2], n_steps=2)
FLIP_ALONE = pma.JointFlip([4, 0, 1], [(0, 1), (0, 1), (3, 5)], n_steps=1)


# On the mixed target.
DISCRETE_TRANSITIONS = [
    Case("gibbs", "Gibbs", lambda: GIBBS),
    Case("discrete_walk", "DiscreteRandomWalk", lambda: WALK),
    Case(
        "discrete_walk_on_all",
        "DiscreteRandomWalk",
        lambda: pma.DiscreteRandomWalk([4, 0, 3, 1], 1.3, 1, np.array([0.5, 0.8, 1.5, 1.0])),
    ),
    Case("joint_flip", "JointFlip", lambda: FLIP),
    Case("flip_alone", "JointFlip", lambda: FLIP_ALONE),
    # Fewer values than the variables have.
    Case("gibbs_of_some", "Gibbs", lambda: pma.Gibbs([3, 1], [(2, 6), (4, 5)])),
    Case("gibbs_of_real", "Gibbs", lambda: pma.Gibbs([4, 2], [(0, 1), (-1, 1)])),
    Case("flip_some", "JointFlip", lambda: pma.JointFlip([3, 1], [(2, 6), (4, 5)], [2], 2)),
    Case("on_coordinates", "BlockTransition", lambda: ON_RATE),
    Case("composition", "Composition", lambda: pma.Composition([ON_RATE, GIBBS, WALK])),
    Case(
        "composition_with_momentum",
        "Composition",
        lambda: pma.Composition([GIBBS, pma.BlockTransition(pma.GeneralizedHMC(0.9, 2, 0.7), [2])]),
    ),
]


@dataclass(frozen=True)
class Target:
    """A path with exact draws at every temperature.

    Attributes
    ----------
    path : Path
    draw : Callable
        Takes a temperature, a number and a generator, and returns draws of shape ``(n, d)``.
    """

    path: Path
    draw: Callable[[float, int, np.random.Generator], np.ndarray]


LOG_GAMMA = Target(pma.GeometricPath(log_gamma_terms), log_gamma_draws)
MIXED = Target(pma.GeometricPath(mixed_terms), mixed_draws)


def target_of(case: Case) -> Target:
    """Return the target on which a kernel is tested."""
    return MIXED if case in DISCRETE_TRANSITIONS else LOG_GAMMA


def parametrize(argument: str, cases: list[Case]) -> pytest.MarkDecorator:
    """Run a test for every case of a list."""
    return pytest.mark.parametrize(argument, cases, ids=lambda case: case.name)
