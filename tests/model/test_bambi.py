"""Models of Bambi, by a stand-in with its three attributes."""

from types import SimpleNamespace

import pymc as pm
import pytest

from pymc_anneal.model.bambi import unwrap_bambi
from pymc_anneal.model.compile import compile_model
from pymc_anneal.model.recent import as_compiled


def model() -> pm.Model:
    with pm.Model() as built:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, 1, observed=[1.0])
    return built


class Model:
    """A model of Bambi: `backend` is None until it is built."""

    def __init__(self) -> None:
        self.built, self.backend, self.builds = False, None, 0

    def build(self) -> None:
        self.built, self.backend = True, SimpleNamespace(model=model())
        self.builds += 1


Model.__module__ = "bambi.models"


def test_a_model_is_built_once() -> None:
    wrapped = Model()
    assert unwrap_bambi(wrapped) is unwrap_bambi(wrapped) is wrapped.backend.model
    assert wrapped.builds == 1


def test_everything_else_stays() -> None:
    for value in (None, 3, model()):
        assert unwrap_bambi(value) is value


def test_it_is_compiled_once() -> None:
    wrapped = Model()
    assert as_compiled(wrapped) is as_compiled(wrapped)
    assert compile_model(wrapped).ndim == 1


def test_other_objects_of_bambi_are_refused() -> None:
    prior = type("Prior", (), {"__module__": "bambi.priors"})()
    with pytest.raises(TypeError, match="`model` is a Prior, expected a pymc.Model or a model of"):
        compile_model(prior)
