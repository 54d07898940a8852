"""Normal variables are integrated out exactly, and drawn from their conditional distribution."""

import pickle

import jax
import numpy as np
import pymc as pm
import pytest

from scipy import stats

from pymc_anneal.model import integrate_out as module
from pymc_anneal.model.compile import compile_model
from pymc_anneal.model.integrate_out import IntegratedModel, integrate_out

RNG = np.random.default_rng(0)
GROUPS = 7
GROUP = np.repeat(np.arange(GROUPS), 3)
ITEM = np.tile(np.arange(3), GROUPS)
X = RNG.normal(size=(len(GROUP), 2))
Y = RNG.normal(size=len(GROUP)) + GROUP


def centred():
    """Effects of groups around a mean, both of which are normal given the scales."""
    mean, spread = pm.Normal("mean", 1, 2), pm.HalfNormal("spread", 1)
    effect = pm.Normal("effect", mean, spread, shape=GROUPS)
    pm.Normal("y", effect[GROUP], pm.HalfNormal("noise", 1), observed=Y)


def non_centred():
    mean, spread = pm.Normal("mean", 1, 2), pm.HalfNormal("spread", 1)
    z = pm.Normal("z", shape=GROUPS)
    pm.Normal("y", mean + spread * z[GROUP], pm.HalfNormal("noise", 1), observed=Y)


def varying_slopes():
    """Pairs of effects with a covariance of their own."""
    root, *_ = pm.LKJCholeskyCov("root", n=2, eta=2.0, sd_dist=pm.HalfNormal.dist(1, shape=2))
    pairs = pm.MvNormal("pairs", np.zeros(2), chol=root, shape=(GROUPS, 2))
    mean = pairs[GROUP, 0] + pairs[GROUP, 1] * X[:, 0]
    pm.Normal("y", mean, pm.HalfNormal("noise", 1), observed=Y)


def crossed():
    """Effects of groups and of items, which few share."""
    group = pm.Normal("group", 0, pm.HalfNormal("spread", 1), shape=GROUPS)
    item = pm.Normal("item", 0, pm.Exponential("other", 1), shape=3)
    pm.Normal("y", group[GROUP] + item[ITEM], 0.5, observed=Y)


def regression():
    """Coefficients, all of which are in all terms."""
    noise = pm.HalfCauchy("noise", 1)
    slopes = pm.Normal("slopes", 0, noise, shape=8)
    pm.Normal("y", np.tile(X, 4) @ slopes, noise, observed=Y)


def walk():
    """A chain, long enough to be cut."""
    step = pm.HalfNormal("step", 1)
    start = pm.Normal.dist(0, 3)
    level = pm.GaussianRandomWalk("level", sigma=step, init_dist=start, steps=39)
    pm.Normal("y", level, pm.HalfNormal("noise", 1), observed=np.sin(np.arange(40)))


def walk_with_season():
    """A chain and what all of it shares, in a loop."""
    step, shift = pm.HalfNormal("step", 1), pm.Normal("shift", 0, 1)
    steps = pm.Normal("steps", 0, step, shape=24)
    season = pm.Normal("season", 0, 1, shape=2)
    for t in range(24):
        pm.Normal(f"y_{t}", shift + steps[: t + 1].sum() + season[t % 2], 0.3, observed=t % 5)


def one_in_another_role():
    """A variable that is normal, and sets a scale too, stays."""
    shift, log_scale = pm.Normal("shift", 0, 1, shape=8), pm.Normal("log_scale", 0, 1)
    mean = shift[GROUP % 8] + log_scale
    pm.Normal("y", mean, pm.math.exp(log_scale), observed=Y)


def factors():
    """Loadings times factors: either is normal given the other, and the larger one is taken."""
    loading = pm.Normal("loading", 0, 1, shape=3)
    factor = pm.Normal("factor", 0, 1, shape=GROUPS)
    pm.Normal("y", loading[ITEM] * factor[GROUP], pm.HalfNormal("noise", 1), observed=Y)


def autoregression():
    """Coefficients of lags, and the series that they are those of."""
    rho = pm.Normal("rho", 0, 0.3, shape=6)
    start = pm.Normal.dist(0, 1, shape=6)
    pm.AR("y", rho, sigma=pm.HalfNormal("noise", 1), init_dist=start, observed=np.cos(np.arange(30)))


def spatial():
    """A random walk on a ring of regions, whose prior PyMC leaves without its constant."""
    ring = np.eye(8)[np.roll(np.arange(8), 1)]
    field = pm.CAR("field", np.zeros(8), ring + ring.T, 0.6, pm.Gamma("tau", 2, 1))
    pm.Normal("y", field, pm.HalfNormal("noise", 1), observed=Y[:8])


TAKEN = {
    centred: {"mean", "effect"},
    non_centred: {"mean", "z"},
    varying_slopes: {"pairs"},
    crossed: {"group", "item"},
    regression: {"slopes"},
    walk: {"level"},
    walk_with_season: {"shift", "steps", "season"},
    one_in_another_role: {"shift"},
    factors: {"factor"},
    autoregression: {"rho"},
    spatial: {"field"},
}


def build(kind):
    with pm.Model() as model:
        kind()
    return compile_model(model)


def dense(compiled, reduced, position):
    """Return log integral, mean and covariance by the whole matrix of second derivatives."""
    own = reduced._own

    def log_density(u, rest):
        whole = jax.numpy.zeros(compiled.ndim).at[own].set(u).at[reduced._kept].set(rest)
        return sum(compiled.log_terms(whole))

    zero = np.zeros(len(own))
    slope = np.asarray(jax.grad(log_density)(zero, position))
    covariance = np.linalg.inv(-np.asarray(jax.hessian(log_density)(zero, position)))
    mean = covariance @ slope
    constant = np.linalg.slogdet(2 * np.pi * covariance)[1] / 2
    return float(log_density(mean, position)) + constant, mean, covariance


@pytest.mark.parametrize("kind", TAKEN)
def test_integral_and_its_derivatives(kind):
    compiled = build(kind)
    reduced = integrate_out(compiled)
    assert isinstance(reduced, IntegratedModel), compiled.fallbacks
    assert {v.name for v in reduced.taken_out} == TAKEN[kind]
    with jax.enable_x64(True):
        for x in reduced.sample_prior(np.random.SeedSequence(3), 4):
            found = jax.jit(lambda x: sum(reduced.log_terms(x)))
            wanted = dense(compiled, reduced, x)[0]
            np.testing.assert_allclose(found(x), wanted, rtol=1e-9)
            step = 1e-5 * np.eye(len(x))
            slope = [float(found(x + h) - found(x - h)) / 2e-5 for h in step]
            np.testing.assert_allclose(jax.grad(found)(x), slope, rtol=1e-4, atol=1e-4)
            curvature = [(jax.grad(found)(x + h) - jax.grad(found)(x - h)) / 2e-5 for h in step]
            np.testing.assert_allclose(jax.hessian(found)(x), curvature, rtol=1e-3, atol=1e-3)
