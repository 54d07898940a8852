"""Normal variables are integrated out exactly, and drawn from their conditional distribution."""

import pickle

from functools import cache

import jax
import numpy as np
import pymc as pm
import pytest

from jax.flatten_util import ravel_pytree
from scipy import stats

from pymc_anneal.model import integrate_out as module
from pymc_anneal.model.compile import compile_model
from pymc_anneal.model.integrate_out import IntegratedModel, are_scaled, integrate_out
from pymc_anneal.model.normal_block import Blocks, Parts, Precision, expand, in_line, solve
from pymc_anneal.model.reduced import evaluate_at_low_cost
from tests.derivatives import derivatives_along

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


def pairs():
    """Pairs of effects of a known correlation and an unknown scale."""
    root = pm.HalfNormal("spread", 1) * np.array([[1.0, 0.0], [0.4, 0.8]])
    pair = pm.MvNormal("pair", np.zeros(2), chol=root, shape=(GROUPS, 2))
    mean = pair[GROUP, 0] + pair[GROUP, 1] * X[:, 0]
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
    steps = pm.Normal("steps", 0, step, shape=12)
    season = pm.Normal("season", 0, 1, shape=2)
    for t in range(12):
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
    pm.AR(
        "y", rho, sigma=pm.HalfNormal("noise", 1), init_dist=start, observed=np.cos(np.arange(30))
    )


def spatial():
    """A random walk on a ring of regions, whose prior PyMC leaves without its constant."""
    ring = np.eye(8)[np.roll(np.arange(8), 1)]
    field = pm.CAR("field", np.zeros(8), ring + ring.T, 0.6, pm.Gamma("tau", 2, 1))
    pm.Normal("y", field, pm.HalfNormal("noise", 1), observed=Y[:8])


TAKEN = {
    centred: {"mean", "effect"},
    non_centred: {"mean", "z"},
    varying_slopes: {"pairs"},
    pairs: {"pair"},
    crossed: {"group", "item"},
    regression: {"slopes"},
    walk: {"level"},
    walk_with_season: {"shift", "steps", "season"},
    one_in_another_role: {"shift"},
    factors: {"factor"},
    autoregression: {"rho"},
    spatial: {"field"},
}


@cache
def build(kind):
    with pm.Model() as model:
        kind()
    return compile_model(model)


def evaluate(function, *arrays):
    """Evaluate a function of each row, in double precision."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, jax.jit(jax.vmap(function))(*arrays))


def by_dense_matrices(compiled, reduced, x):
    """Return log integrals, means and covariances by all second derivatives."""
    own, zero = reduced._own, np.zeros((len(x), compiled.ndim))
    zero[:, reduced._kept] = x

    def total(y):
        return sum(compiled.log_terms(y))

    def derivatives(y):
        slope, along = jax.linearize(jax.grad(total), y)
        return slope[own], jax.vmap(along)(np.eye(len(y))[own])[:, own]

    slope, second = evaluate(derivatives, zero)
    covariance = np.linalg.inv(-second)
    mean = (covariance @ slope[..., None])[..., 0]
    at_mean = evaluate(total, reduced._join(x, mean))
    return at_mean + np.linalg.slogdet(2 * np.pi * covariance)[1] / 2, mean, covariance


# One of each shape of blocks, a prior without its constant, and a variable that stays.
@pytest.mark.quick_cases(
    "non_centred", "pairs", "crossed", "regression", "walk", "one_in_another_role", "spatial"
)
@pytest.mark.parametrize("kind", TAKEN)
def test_integral_and_its_derivatives(kind):
    compiled = build(kind)
    reduced = integrate_out(compiled)
    assert isinstance(reduced, IntegratedModel), compiled.fallbacks
    assert {v.name for v in reduced.taken_out} == TAKEN[kind]

    def total(x):
        return sum(reduced.log_terms(x))

    x = reduced.sample_prior(np.random.SeedSequence(3), 4)
    step = 1e-5 * np.random.default_rng(4).normal(size=reduced.ndim)
    rows = np.concatenate([x, x + step, x - step])
    value, slope, change = (
        found.reshape(3, 4, *found.shape[1:])
        for found in evaluate(derivatives_along(total, step), rows)
    )
    wanted, _, _ = by_dense_matrices(compiled, reduced, x)
    np.testing.assert_allclose(value[0], wanted, rtol=1e-9)
    np.testing.assert_allclose(2 * slope[0] @ step, value[1] - value[2], rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(2 * change[0], slope[1] - slope[2], rtol=1e-3, atol=1e-8)


def test_blocks():
    """The fewest products with vectors: one for each place in a block and each shared variable."""
    shapes = {}
    for kind in (non_centred, pairs, crossed, regression):
        blocks = integrate_out(build(kind))._blocks
        shapes[kind] = len(blocks.shared), *blocks.members.shape
    assert shapes[non_centred] == (1, GROUPS, 1)
    assert shapes[pairs] == (0, GROUPS, 2)
    assert shapes[crossed] == (3, GROUPS, 1)
    assert shapes[regression] in [(8, 0, 0), (0, 1, 8)]
    chain = integrate_out(build(walk))._blocks
    assert len(chain.directions) < 16


def test_a_product_of_sums_joins_all_that_is_in_them():
    def density(u, x):
        return [x[0], -(u**2).sum(), -0.1 * (u[:3].sum() + x[0]) * (u[3:].sum() - 1)]

    blocks, _ = module._blocks_of(density, 6, 1)
    assert len(blocks.directions) == 6


def test_expansion_with_a_shorter_block_and_correlated_shared_variables():
    """Two blocks, of two and of one variable, and two variables that all terms share."""
    blocks = Blocks(5, np.array([3, 4]), np.array([[0, 1], [2, 5]]))
    half = np.random.default_rng(8).normal(size=(5, 5))
    precision, right = 9 * np.eye(5) + half + half.T, np.arange(5.0)
    precision[2, :2] = precision[:2, 2] = 0  # they meet in the shared variables alone

    def log_density(x):
        return right @ x - x @ precision @ x / 2

    with jax.enable_x64(True):
        found = expand(blocks, log_density)
        solution = solve(found.precision, found.slope)
        mean = in_line(blocks, solution.mean)
    np.testing.assert_allclose(found.precision.apart, precision[3:, 3:])
    np.testing.assert_allclose(mean, np.linalg.solve(precision, right))
    np.testing.assert_allclose(solution.log_volume, np.linalg.slogdet(precision)[1] / 2)


def test_solution_and_its_derivatives():
    rng = np.random.default_rng(7)
    members, shared = np.arange(6).reshape(3, 2), np.arange(6, 8)
    root = rng.normal(size=(8, 8)) * np.eye(8) + 3 * np.eye(8)
    root[6:, :6] = rng.normal(size=(2, 6))
    root[[1, 3, 5], [0, 2, 4]] = 1.0
    whole, right = root @ root.T, rng.normal(size=8)
    for i in range(3):  # what joins blocks is zero: as if the shared variables were known
        others = [j for j in range(6) if j // 2 != i]
        whole[np.ix_(members[i], others)] = 0
    parts = Parts(right[members], right[shared])
    precision = Precision(
        np.stack([whole[np.ix_(m, m)] for m in members]), whole[members][..., shared], whole[6:, 6:]
    )

    def symmetric(p, slope):
        halves = p._replace(local=(p.local + p.local.mT) / 2, apart=(p.apart + p.apart.T) / 2)
        return solve(halves, slope)

    with jax.enable_x64(True):
        found = jax.jit(solve)(precision, parts)
        x, unravel = ravel_pytree((precision, parts))
        share = rng.normal(size=len(ravel_pytree(found)[0]))
        step = 1e-5 * rng.normal(size=len(x))
        value, slope, change = evaluate(
            derivatives_along(lambda y: share @ ravel_pytree(symmetric(*unravel(y)))[0], step),
            np.stack([x, x + step, x - step]),
        )
    mean = np.linalg.solve(whole, right)
    np.testing.assert_allclose(found.mean.of_blocks, mean[members], rtol=1e-10)
    np.testing.assert_allclose(found.mean.of_shared, mean[shared], rtol=1e-10)
    np.testing.assert_allclose(found.log_volume, np.linalg.slogdet(whole)[1] / 2, rtol=1e-10)
    np.testing.assert_allclose(2 * slope[0] @ step, value[1] - value[2], rtol=1e-4)
    np.testing.assert_allclose(2 * change[0], slope[1] - slope[2], rtol=1e-4, atol=1e-10)


def test_draws_have_mean_and_covariance():
    compiled = build(crossed)
    reduced = integrate_out(compiled)
    x = reduced.sample_prior(np.random.SeedSequence(0), 1)
    _, (mean,), (covariance,) = by_dense_matrices(compiled, reduced, x)
    drawn = reduced.constrain(np.repeat(x, 20_000, axis=0))
    u = np.concatenate([drawn["group"], drawn["item"]], axis=1)
    root = np.linalg.cholesky(np.linalg.inv(covariance))
    whitened = (u - mean) @ root
    assert stats.kstest(whitened.ravel(), "norm").pvalue > 1e-4
    np.testing.assert_allclose(np.cov(whitened.T), np.eye(len(mean)), atol=0.05)


def test_the_same_positions_give_the_same_draws():
    reduced = integrate_out(build(centred))
    x = reduced.sample_prior(np.random.SeedSequence(0), 3)
    first, second = reduced.constrain(x), reduced.constrain(x)
    np.testing.assert_array_equal(first["effect"], second["effect"])
    assert set(first) >= {"mean", "effect", "spread", "noise"}
    assert reduced.pointwise_log_likelihood(x)["y"].shape == (3, len(Y))
    values = {**first, "spread": first["spread"]}
    np.testing.assert_allclose(reduced.unconstrain(values), x)


def test_pickled():
    reduced = integrate_out(build(non_centred))
    again = pickle.loads(pickle.dumps(reduced))
    x = reduced.sample_prior(np.random.SeedSequence(5), 1)
    assert reduced.log_terms(x[0]) == again.log_terms(x[0])
    np.testing.assert_array_equal(reduced.constrain(x)["z"], again.constrain(x)["z"])


def test_other_data_and_other_groups_are_no_part_of_the_program():
    """Models share a program: its derivatives are those of the data that it is given."""

    def model(group, y):
        with pm.Model() as model:
            effect = pm.Normal("effect", 0, pm.HalfNormal("spread", 1), shape=6)
            pm.Normal("y", effect[group], pm.HalfNormal("noise", 1), observed=y)
        return integrate_out(compile_model(model))

    y = RNG.normal(size=12)
    one = model(np.arange(12) % 6, y)
    other = model(np.repeat(np.arange(6), 2), 2 * y)
    assert one.log_terms.func == other.log_terms.func
    x = one.sample_prior(np.random.SeedSequence(6), 3)
    for reduced in (other, one):
        density = jax.value_and_grad(lambda x, r=reduced: sum(r.log_terms(x)))
        sums, slope = evaluate(density, np.concatenate([x + 1e-6, x - 1e-6, x]))
        np.testing.assert_allclose(slope[6:].sum(axis=1), (sums[:3] - sums[3:6]) / 2e-6, rtol=1e-4)


def with_potential():
    u = pm.Normal("u", shape=8)
    pm.Potential("widened", 0.6 * (u**2).sum())
    pm.Normal("y", u[GROUP], 1, observed=Y)


def with_heavy_tails():
    u = pm.Normal("u", shape=8)
    pm.StudentT("y", nu=3, mu=u[GROUP], sigma=1, observed=Y)


def with_counts():
    pm.Poisson("y", pm.math.exp(pm.Normal("u", shape=8)[GROUP]), observed=np.arange(len(GROUP)))


def with_edge():
    """Linear but for values that no draw of the prior has."""
    u = pm.Normal("u", shape=8)
    mean = pm.math.switch(pm.math.gt(u, 9), 9 + (u - 9) ** 2, u)
    pm.Normal("y", mean[GROUP], 1, observed=Y)


def with_absolute_value():
    pm.Normal("y", abs(pm.Normal("u", 50, 1, shape=8))[GROUP], 1, observed=Y)


def as_scale():
    pm.Normal("y", 0, pm.math.exp(pm.Normal("u", shape=8))[GROUP], observed=Y)


def with_products():
    u = pm.Normal("u", shape=8)
    pm.Normal("y", u[GROUP] * u[0], 1, observed=Y)


def above_a_scale():
    u = pm.Normal("u", shape=8)
    pm.Normal("y", u[GROUP], pm.HalfNormal("noise", pm.math.exp(u[0])), observed=Y)


def above_a_curve():
    """Normal, but so is what is around its square."""
    u = pm.Normal("u", shape=8)
    pm.Normal("around", u**2, 1, shape=8)
    pm.Normal("y", u[GROUP], 1, observed=Y)


def few():
    pm.Normal("y", pm.Normal("u", shape=3)[GROUP % 3], pm.HalfNormal("noise", 1), observed=Y)


@pytest.mark.parametrize(
    "kind",
    [
        with_potential,
        with_heavy_tails,
        with_counts,
        with_edge,
        with_absolute_value,
        as_scale,
        with_products,
        above_a_scale,
        few,
    ],
)
def test_what_is_not_normal_stays(kind):
    compiled = build(kind)
    assert integrate_out(compiled) is compiled
    assert not compiled.fallbacks


def test_what_is_around_a_curve_is_normal_and_the_curve_is_not():
    assert {v.name for v in integrate_out(build(above_a_curve)).taken_out} == {"around"}


def test_a_gradient_that_is_none_is_found():
    """By whatever program the density is evaluated."""
    wanted = integrate_out(build.__wrapped__(centred))
    assert wanted.taken_out
    compiled = build.__wrapped__(centred)

    def without_gradient(model, x):
        value, gradient = evaluate_at_low_cost(model, x)
        return value, np.full_like(gradient, np.nan)

    assert integrate_out(compiled, without_gradient) is compiled
    assert "the gradient is NaN" in compiled.fallbacks[0]


@pytest.mark.parametrize(
    ("effects", "scaled"),
    [
        pytest.param(lambda: pm.Normal("effect", 0, 2, shape=9), False, id="known scale"),
        pytest.param(
            lambda: pm.Normal("effect", pm.Normal("mean", 0, 1), 2, shape=9), False, id="mean"
        ),
        pytest.param(
            lambda: pm.Normal("effect", 0, pm.HalfNormal("scale", 1), shape=9), True, id="centred"
        ),
        pytest.param(
            lambda: pm.Normal("effect", 0, 1, shape=9) * pm.HalfNormal("scale", 1),
            True,
            id="non-centred",
        ),
    ],
)
def test_effects_of_unknown_scale_are_told_from_coefficients(effects, scaled: bool):
    rng = np.random.default_rng(4)
    with pm.Model() as model:
        mean = rng.normal(size=(30, 9)) @ effects()
        pm.Normal("y", mean, pm.HalfNormal("noise", 1), observed=rng.normal(size=30))
    assert are_scaled(compile_model(model)) == scaled


def test_a_wrong_integral_is_found(monkeypatch):
    """The check fails where the volume is wrong, and the model stays as it was."""
    right = module.solve

    def wrong(precision, slope):
        found = right(precision, slope)
        return found._replace(log_volume=1.01 * found.log_volume)

    compiled = build.__wrapped__(centred)
    monkeypatch.setattr(module, "solve", wrong)
    monkeypatch.setattr(module, "_draw", _drawing_by(right))
    assert integrate_out(compiled) is compiled
    assert "not that of normal variables" in compiled.fallbacks[0]


def _drawing_by(solve):
    def draw(density, blocks, row):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "solve", solve)
            return own(density, blocks, row)

    own = module._draw
    return draw
