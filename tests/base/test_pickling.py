"""Objects that a process unpickles once."""

import pickle

from functools import cache

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.base.pickling import SharedPickle
from pymc_anneal.model.pickling import PicklableFunction
from tests.cases import normal_model


@cache
def compiled() -> pma.CompiledModel:
    return pma.compile_model(normal_model())


def send(value):
    """Return the object that another process would receive."""
    return pickle.loads(pickle.dumps(value))


class TestSharedPickle:
    def test_it_is_one_object_in_a_process(self) -> None:
        shared = SharedPickle(lambda x: x + 1)
        first, second = send(shared), send(shared)
        assert first is second
        assert first.value(1) == 2

    def test_shared_objects_in_a_shared_object(self) -> None:
        inner = SharedPickle(["inner"])
        assert send(SharedPickle((inner, 1))).value[0] is send(inner)

    def test_double_precision_is_kept(self) -> None:
        with jax.enable_x64(True):
            shared = SharedPickle(jnp.ones(2))
        with jax.enable_x64(False):
            assert send(shared).value.dtype == np.float64


class TestPicklableFunction:
    def test_it_is_one_object_in_a_process(self) -> None:
        function = PicklableFunction(lambda x: x + 1)
        first, second = (pickle.loads(pickle.dumps(function)) for _ in range(2))
        assert first is second
        assert first(1) == 2

    def test_it_computes_the_same(self) -> None:
        position = compiled().sample_prior(np.random.SeedSequence(2), 1)[0]
        with jax.enable_x64(True):
            copy = pickle.loads(pickle.dumps(compiled().log_terms))
        assert copy(position) == compiled().log_terms(position)

    def test_a_model_keeps_its_precision(self) -> None:
        """In a process that has not switched 64-bit numbers on, as those of Dask."""
        position = compiled().sample_prior(np.random.SeedSequence(2), 1)[0]
        with jax.enable_x64(False):
            copy = pickle.loads(cloudpickle.dumps(compiled()))
        assert copy.log_terms(position) == compiled().log_terms(position)
        assert copy.ndim == compiled().ndim

    def test_in_single_precision_nothing_is_computed(self) -> None:
        """JAX rounds the arrays without a word."""
        with jax.enable_x64(False):
            copy = pickle.loads(pickle.dumps(compiled().log_terms))
        with pytest.raises(TypeError, match="lost precision"):
            copy(np.zeros(compiled().ndim))

    def test_the_data_are_those_of_the_time_of_compiling(self) -> None:
        with pm.Model() as model:
            y = pm.Data("y", np.array([1.0]))
            pm.Normal("observed", pm.Normal("mu"), 1.0, observed=y)
        made = pma.compile_model(model)
        before = made.log_terms(jnp.zeros(1))
        with model:
            pm.set_data({"y": np.array([5.0])})
        assert pickle.loads(pickle.dumps(made.log_terms))(jnp.zeros(1)) == before
