"""Programs with batched operations have the values and derivatives of those without."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

from jax import lax
from jax.extend.core import jaxpr_as_fun
from jax.scipy.special import logsumexp, xlogy

from pymc_anneal.model import operation_batching
from pymc_anneal.model.compile import compile_model
from pymc_anneal.model.operation_batching import batch_operations
from tests.derivatives import derivatives_along

GROUPS = 18
DATA = np.random.default_rng(0).normal(size=(GROUPS, 3))
SIZES = np.random.default_rng(1).permutation(GROUPS) + 1.0


def normal(y, location, scale):
    return (-0.5 * ((y - location) / scale) ** 2 - jnp.log(scale)).sum()


def groups(x):
    scale = jnp.exp(x[0])
    return sum(normal(y, x[g + 1], scale) for g, y in enumerate(DATA))


def two_sorts_of_groups(x):
    return sum(
        normal(y, x[g + 1], 2.0) if g % 3 else jax.nn.softplus(x[g + 1] * y[0])
        for g, y in enumerate(DATA)
    )


def pairs_of_variables(x):
    return sum(normal(DATA[g, 0], x[2 * g], jnp.exp(x[2 * g + 1])) for g in range(GROUPS // 2))


def blocks_of_unequal_distance(x):
    starts = np.cumsum(np.random.default_rng(2).integers(1, 3, size=12))
    return sum(normal(x[s : s + 2], x[0], 1.0 + i) for i, s in enumerate(starts))


def numbers_of_their_own(x):
    return sum(xlogy(n, jnp.exp(x[g])) - lax.lgamma(n + 1.0) for g, n in enumerate(SIZES.tolist()))


def in_another_order(x):
    order = np.random.default_rng(3).permutation(GROUPS)
    return sum(jnp.arctan2(jnp.exp(x[g]), jnp.sin(x[order[g]]) + 2) for g in range(GROUPS))


def collected(x):
    levels = jnp.stack([jnp.sin(x[g]) for g in range(GROUPS)])
    return normal(levels @ jnp.ones((GROUPS, 2)), 0.0, 3.0) + (levels * SIZES).sum()


def collected_in_rows(x):
    pairs = jnp.concatenate([jnp.exp(x[g : g + 2])[None] for g in range(0, GROUPS, 2)], axis=0)
    wide = jnp.concatenate([jnp.cos(x[g : g + 2])[:, None] for g in range(0, GROUPS, 2)], axis=1)
    squares = sum(x[g] ** 2 for g in range(GROUPS))
    return (pairs * wide.T).sum() + (pairs[:, 0] * SIZES[::2]).sum() + squares


def same_again(x):
    return sum(jnp.exp(x[0] * 0.5) * (g + x[1]) for g in range(GROUPS))


def several_outputs(x):
    found = 0.0
    for g in range(GROUPS // 2):
        sign, log_det = jnp.linalg.slogdet(jnp.eye(2) * (3 + x[g]) + 0.1 * x[g + 1])
        found = found + sign * log_det
    return found


def loops_and_choices(x):
    found = 0.0
    for g in range(GROUPS):
        if g < 3:
            found = found + lax.fori_loop(0, 3, lambda _, y: jnp.sin(y) + 0.1, x[g])
            found = found + lax.cond(x[g] > 0, jnp.exp, jnp.cos, x[g + 1])
        found = found + jnp.where(x[g] > 0.3, x[g] ** 2, x[g + 1])
    return found


def whole_numbers(x):
    counts = [jnp.round(x[g] * 3).astype(int) for g in range(GROUPS)]
    data = jnp.asarray(DATA[0])
    return sum(data[jnp.clip(c, 0, 2)] for c in counts) + x.sum() * sum(counts)


def with_derivative(rate):
    """Return a function that holds an array, and has a rule for its derivative."""

    @jax.custom_jvp
    def scaled(x):
        return (jnp.sin(x) * np.array([rate, 1.0])).sum()

    @scaled.defjvp
    def rule(primals, tangents):
        (x,), (direction,) = primals, tangents
        return scaled(x), direction * jnp.cos(x) * (1 + rate)

    return scaled


def own_derivatives(x):
    apart = sum(with_derivative(float(n))(x[g] * x[g + 1]) for g, n in enumerate(SIZES))
    return apart + sum(jnp.exp(-(jnp.cos(x[g]) ** 2) * n / 9) for g, n in enumerate(SIZES.tolist()))


def sums_of_sums(x):
    inner = [x[g] + x[g + 1] + x[g + 2] for g in range(GROUPS)]
    long = sum(jnp.exp(x[g]) for g in range(9)) * sum(jnp.exp(x[g]) for g in range(9, 18))
    return sum(i * j for i, j in zip(inner, reversed(inner), strict=True)) + long


def sums_that_are_used_twice(x):
    pair, found = x[0] + x[1], 0.0
    total = pair + x[2]
    for g in range(1, GROUPS):
        terms = (jnp.exp(x[g]), jnp.sin(x[g + 1]))[:: 1 if g % 2 else -1]
        found = found + (terms[0] + terms[1]) * jnp.cos(x[g]) ** 2 / g
    return found + total * pair


def blocks_of_blocks(x):
    cells = [jnp.exp(x[g : g + 2]).reshape(1, 2) for g in range(GROUPS)]
    rows = [jnp.concatenate(cells[g : g + 2], axis=1) for g in range(0, GROUPS, 2)]
    squares = [jnp.concatenate(rows[g : g + 3], axis=0) for g in range(0, GROUPS // 2, 3)]
    return sum((s * s[::-1]).sum() for s in squares)


def mixtures(x):
    return sum(logsumexp(jnp.array([x[g], 2 * x[g + 1], 0.3])) for g in range(GROUPS))


LOOPS = [
    groups,
    two_sorts_of_groups,
    pairs_of_variables,
    blocks_of_unequal_distance,
    numbers_of_their_own,
    in_another_order,
    collected,
    collected_in_rows,
    same_again,
    several_outputs,
    loops_and_choices,
    whole_numbers,
    own_derivatives,
    sums_of_sums,
    sums_that_are_used_twice,
    blocks_of_blocks,
    mixtures,
]
NDIM = GROUPS + 2


def batch(function):
    """Return the batched program; of the fewest groups that serve, two loops are rather short."""
    return batch_operations(function, np.zeros(NDIM), fewest=60)


def length(program):
    return len(program.jaxpr.eqns)


@pytest.mark.parametrize("function", LOOPS)
def test_values_and_derivatives(function):
    with jax.enable_x64(True):
        program = jaxpr_as_fun(batch(function))
        *x, step = np.random.default_rng(4).normal(size=(4, NDIM))
        found, wanted = (
            jax.jit(jax.vmap(derivatives_along(f, step)))(np.array(x))
            for f in (lambda x: program(x)[0], function)
        )
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("function", LOOPS)
def test_the_program_is_no_longer_than_that_of_few_groups(function):
    with jax.enable_x64(True):
        batched = batch(function)
        assert length(batched) <= 0.5 * length(jax.make_jaxpr(function)(np.zeros(NDIM)))


@pytest.mark.parametrize("function", LOOPS)
def test_the_program_does_not_depend_on_addresses(function, monkeypatch):
    with jax.enable_x64(True):
        found = str(batch(function))
        monkeypatch.setattr(operation_batching, "id", lambda x: -id(x), raising=False)
        assert found == str(batch(function))


def test_a_program_with_a_short_loop_stays_as_it_is():
    def long(x):
        y = sum(jnp.exp(x[g]) for g in range(3))
        for name in ("sin", "exp", "tanh", "cos", "sqrt", "log1p") * 30:
            x = getattr(jnp, name)(x) + 0.5
        return x.sum() + y

    with jax.enable_x64(True):
        assert str(batch_operations(long, np.zeros(3))) == str(jax.make_jaxpr(long)(np.zeros(3)))


def test_what_has_effects_is_carried_out_once_for_each():
    seen = []

    def watched(x):
        for g in range(GROUPS):
            jax.debug.callback(seen.append, x[g])
        return sum(jnp.exp(x[g] * 2) for g in range(GROUPS))

    with jax.enable_x64(True):
        program = jaxpr_as_fun(batch_operations(watched, np.zeros(GROUPS)))
        jax.block_until_ready(program(np.arange(float(GROUPS))))
        jax.effects_barrier()
    assert sorted(map(float, seen)) == list(range(GROUPS))


def with_loop():
    with pm.Model() as model:
        level, scale = pm.Normal("level", 0, 1), pm.HalfNormal("scale", 1)
        for g, y in enumerate(DATA):
            mean = pm.Normal(f"mean_{g}", level, 0.5)
            pm.Normal(f"y_{g}", mean, scale, observed=y)
            pm.Poisson(f"n_{g}", pm.math.exp(mean), observed=g % 4)
    return model


def with_vectors():
    with pm.Model() as model:
        level, scale = pm.Normal("level", 0, 1), pm.HalfNormal("scale", 1)
        mean = pm.Normal("mean", level, 0.5, shape=GROUPS)
        pm.Normal("y", mean[:, None], scale, observed=DATA)
        pm.Poisson("n", pm.math.exp(mean), observed=np.arange(GROUPS) % 4)
    return model


def test_a_model_in_a_loop_has_the_density_of_one_in_vectors():
    loop, vectors = compile_model(with_loop()), compile_model(with_vectors())
    x = vectors.sample_prior(np.random.SeedSequence(5), 6)
    for one in x:
        np.testing.assert_allclose(loop.log_terms(one), vectors.log_terms(one), rtol=1e-12)
    lengths = [length(jax.make_jaxpr(m.log_terms)(x[0])) for m in (loop, vectors)]
    assert lengths[0] <= 3 * lengths[1]


def test_pickled_with_its_model():
    loop = compile_model(with_loop())
    x = loop.sample_prior(np.random.SeedSequence(5), 1)[0]
    again = pickle.loads(pickle.dumps(loop))
    assert loop.log_terms(x) == again.log_terms(x)
    assert hash(loop.log_terms.func) == hash(again.log_terms.func)
