"""Models with discrete variables, and functions that sum these out by brute force."""

from collections.abc import Callable
from itertools import product

import jax
import numpy as np
import pymc as pm
import pytensor.tensor as pt

from scipy import special

from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel

POINTS = np.array([-1.9, -2.4, 0.3, 1.8, 2.2])


def mixture() -> pm.Model:
    """Indicators of a mixture of three, with weights."""
    with pm.Model() as model:
        weight = pm.Dirichlet("weight", np.ones(3))
        mean = pm.Normal("mean", 0, 2, shape=3)
        label = pm.Categorical("label", weight, shape=5)
        pm.Normal("y", mean[label], 1, observed=POINTS)
    return model


def chain() -> pm.Model:
    """A hidden chain of two states, one variable for each time."""
    with pm.Model() as model:
        stay = pm.Beta("stay", 8, 2)
        mean = pm.Normal("mean", 0, 2, shape=2)
        states = [pm.Bernoulli("s0", 0.5)]
        for t in range(1, 5):
            states.append(pm.Bernoulli(f"s{t}", pt.switch(pt.eq(states[-1], 1), stay, 1 - stay)))
        pm.Normal("y", mean[pt.stack(states)], 1, observed=POINTS)
    return model


def occupancy() -> pm.Model:
    """Animals that may not exist: the log of ``p z`` is -inf, and its derivative infinite."""
    with pm.Model() as model:
        share, p = pm.Beta("share", 1, 1), pm.Beta("p", 1, 1)
        there = pm.Bernoulli("there", share, shape=6)
        pm.Deterministic("number", there.sum())
        pm.Binomial("y", 4, p * there, observed=[2, 1, 3, 0, 0, 0])
    return model


def slab() -> pm.Model:
    """Real variables whose prior depends on indicators."""
    with pm.Model() as model:
        share = pm.Beta("share", 2, 2)
        on = pm.Bernoulli("on", share, shape=4)
        slope = pm.Normal("slope", 0, pt.switch(on, 2.0, 0.1), shape=4)
        pm.Normal("y", slope, 1, observed=POINTS[:4])
    return model


def magnet() -> pm.Model:
    """Spins on a grid, and nothing else."""
    with pm.Model() as model:
        up = pm.Bernoulli("up", 0.4, shape=(3, 3))
        spin = 2 * up - 1
        pm.Potential("e", 0.6 * ((spin[1:] * spin[:-1]).sum() + (spin[:, 1:] * spin[:, :-1]).sum()))
    return model


def change() -> pm.Model:
    """A change point, and a switch that no term joins with it."""
    with pm.Model() as model:
        when = pm.DiscreteUniform("when", 2, 9)
        rate = pm.Exponential("rate", 1, shape=2)
        pm.Poisson(
            "y",
            pt.switch(np.arange(10) < when, rate[0], rate[1]),
            observed=[4, 3, 5, 4, 0, 1, 0, 2, 0, 1],
        )
    return model


MODELS: dict[str, Callable[[], pm.Model]] = {
    f.__name__: f for f in (mixture, chain, occupancy, slab, magnet, change)
}


@double_precision
def log_joint(compiled: CompiledModel, values: dict[str, np.ndarray]) -> np.ndarray:
    """Log density at values of the free variables, with the Jacobians of the real ones."""
    x = compiled.unconstrain(values)
    terms = jax.jit(jax.vmap(compiled.log_terms))(x)
    return np.asarray(terms.log_prior + terms.log_likelihood)


def configurations(compiled: CompiledModel) -> np.ndarray:
    """All values of the discrete variables, one row each."""
    support = [pair for v in compiled.discrete for pair in v.support or ()]
    return np.array(list(product(*(range(low, high + 1) for low, high in support))))


def log_densities(compiled: CompiledModel, values: dict[str, np.ndarray]) -> np.ndarray:
    """Log densities of all configurations beside one draw of the others, shape ``(m,)``."""
    rows = configurations(compiled)
    own = {k: np.repeat(v[:1], len(rows), axis=0) for k, v in values.items()}
    for v in compiled.discrete:
        start = sum(u.stop - u.start for u in compiled.discrete if u.start < v.start)
        stop = start + v.stop - v.start
        own[v.name] = rows[:, start:stop].reshape(len(rows), *v.shape)
    return log_joint(compiled, own)


def log_sum(compiled: CompiledModel, values: dict[str, np.ndarray]) -> float:
    return float(special.logsumexp(log_densities(compiled, values)))
