"""Choices are made late: what is chosen from is computed once for all values."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pymc_anneal.model.dependence import dependences, flat_program
from pymc_anneal.model.late_choice import replay_late

TIME, VALUES = np.arange(5.0), np.arange(7.0)[:, None]
X = np.array([0.3, 1.2])


def program_of(function: Callable[..., jax.Array]) -> Callable[[jax.Array], jax.Array]:
    """Return the function of z, given x, by its program with late choices."""
    program = flat_program(function, np.zeros(1), X)
    masks = dependences(program, [0])
    return lambda z: replay_late(program, (z, jnp.asarray(X)), masks, {})[0]


def sizes_of(function: Callable[..., jax.Array], name: str) -> list[int]:
    """Return the sizes of the arrays that a primitive makes, for all values together."""
    program = jax.make_jaxpr(jax.vmap(program_of(function)))(VALUES)
    return [eqn.outvars[0].aval.size for eqn in program.eqns if eqn.primitive.name == name]


def change(z: jax.Array, x: jax.Array) -> jax.Array:
    rate = jnp.where(z[0] > TIME, x[0], x[1])
    return 3 * jnp.log(rate) - jnp.exp(rate)


def nested(z: jax.Array, x: jax.Array) -> jax.Array:
    rate = jnp.where(z[0] > TIME, x[0], x[1])
    return jnp.where(rate > 1, jnp.exp(rate), rate)


def two(z: jax.Array, x: jax.Array) -> jax.Array:
    """Two choices meet."""
    rate, width = jnp.where(z[0] > TIME, x[0], x[1]), jnp.where(z[0] > 2 * TIME, x[1], x[0])
    return jnp.exp(rate * width)


def inside(z: jax.Array, x: jax.Array) -> jax.Array:
    """What is chosen from depends on z itself."""
    return jnp.exp(jnp.where(z[0] > TIME, x[0] * z[0], x[1]))


def beside(z: jax.Array, x: jax.Array) -> jax.Array:
    """Another input depends on z."""
    return jnp.exp(z[0] * jnp.where(z[0] > TIME, x[0], x[1]))


def summed(z: jax.Array, x: jax.Array) -> jax.Array:
    """A sum is not entry by entry."""
    return jnp.exp(jnp.where(z[0] > TIME, x[0], x[1]).sum())


@pytest.mark.parametrize("function", [change, nested, two, inside, beside, summed])
def test_values_stay(function: Callable[..., jax.Array]) -> None:
    late = jax.vmap(program_of(function))(VALUES)
    np.testing.assert_allclose(late, jax.vmap(lambda z: function(z, X))(VALUES), rtol=1e-14)


@pytest.mark.parametrize("function", [change, nested])
def test_what_is_chosen_from_is_computed_once(function: Callable[..., jax.Array]) -> None:
    assert sizes_of(function, "exp") == [len(TIME), len(TIME)]  # in both cases


@pytest.mark.parametrize("function", [inside, beside, two])
def test_what_varies_is_computed_for_each_value(function: Callable[..., jax.Array]) -> None:
    assert sizes_of(function, "exp") == [len(VALUES) * len(TIME)]
