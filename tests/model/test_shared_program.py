"""Models that differ in their data alone share compiled programs."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation import particles


def regression(seed: int = 0, *, n: int = 12, sd: float = 1.0) -> pm.Model:
    rng = np.random.default_rng(seed)
    with pm.Model() as model:
        slope = pm.Normal("slope", 0, sd, shape=2)
        level = pm.Normal("level", 0, sd)
        rate = pt.softplus(rng.normal(size=(n, 2)) @ slope + level)
        pm.Poisson("y", rate, observed=rng.poisson(2, size=n))
    return model


def program(model: pm.Model):
    return pma.compile_model(model).log_terms.func


def test_other_data_are_the_same_program() -> None:
    first, second = program(regression(0)), program(regression(1))
    assert first == second
    assert hash(first) == hash(second)


@pytest.mark.parametrize("other", [{"n": 13}, {"sd": 1 + 1e-15}])
def test_other_shapes_and_numbers_are_another(other) -> None:
    """A number like the scale of a prior is a part of the program, to its last digit."""
    assert program(regression()) != program(regression(**other))


@pytest.mark.parametrize("seed", [0, 1])
def test_each_model_keeps_its_data(seed) -> None:
    model = regression(seed)
    compiled, point = pma.compile_model(model), model.initial_point()
    found = compiled.log_terms(jnp.zeros(compiled.ndim)).log_posterior
    assert float(found) == pytest.approx(float(model.compile_logp()(point)), abs=1e-9)


def test_a_second_data_set_compiles_nothing() -> None:
    run = {"steps": 5, "reference": "prior", "progressbar": False, "random_seed": 1}
    found = []
    for seed in (0, 1):
        idata = pma.sample_ais(50, model=regression(seed), warnings=False, **run)
        found.append((particles_compiled(), float(pma.log_evidence(idata).log_evidence)))
    assert found[0][0] == found[1][0] > 0
    assert len({evidence for _, evidence in found}) == 2


def particles_compiled() -> int:
    """Return the number of programs of the pilot's functions."""
    functions = [f for f in vars(particles).values() if hasattr(f, "_cache_size")]
    return sum(f._cache_size() for f in functions)


def test_black_boxes_are_told_apart() -> None:
    """Python functions of the same shapes look alike in the lowered program."""

    def model(scale: float) -> pm.Model:
        @jax.custom_jvp
        def call(x):
            shape = jax.ShapeDtypeStruct((), "float64")
            return jax.pure_callback(lambda x: scale * x, shape, x, vmap_method="sequential")

        call.defjvp(lambda primals, tangents: (call(*primals), scale * tangents[0]))

        with pm.Model() as built:
            x = pm.Normal("x")
            pm.Potential("data", pytensor_op(call)(x))
        return built

    first, second = (pma.compile_model(model(scale)).log_terms for scale in (1.0, 2.0))
    assert first.func != second.func
    assert float(second(jnp.ones(1)).log_likelihood) == 2.0


def pytensor_op(function):
    """Wrap a JAX function of a scalar as an Op."""
    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op
    from pytensor.link.jax.dispatch import jax_funcify

    class Wrapped(Op):
        def make_node(self, x):
            return Apply(self, [pt.as_tensor(x)], [pt.dscalar()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = np.asarray(function(inputs[0]))

    @jax_funcify.register(Wrapped)
    def _funcify(op, **kwargs):
        return function

    return Wrapped()


def test_a_copy_in_another_process_is_the_same_program() -> None:
    log_terms = pma.compile_model(regression()).log_terms
    with jax.enable_x64(True):
        first, second = (pickle.loads(pickle.dumps(log_terms)) for _ in range(2))
    assert first.func is second.func
    assert first.func == log_terms.func
    x = jnp.full(3, 0.3)
    assert first(x) == log_terms(x)
