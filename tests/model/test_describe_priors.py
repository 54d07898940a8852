"""Priors in words: numbers, names, dependence; data with which a model was compiled."""

import numpy as np
import pymc as pm
import pytest

from pymc_anneal.model import describe_priors as module
from pymc_anneal.model.compile import compile_model
from pymc_anneal.model.describe_priors import describe_priors
from pymc_anneal.model.family import ModelFamily


def model() -> pm.Model:
    with pm.Model(coords={"group": range(3)}) as built:
        scale = pm.Data("scale", 2.0)
        mu = pm.Normal("mu", 0, scale)
        tau = pm.Gamma("tau", 2, 0.5)
        pm.Normal("b", mu, tau, dims="group")
        pm.Normal("c", 0, [1.0, 2.5])
        pm.Dirichlet("w", np.ones(5))
        pm.Uniform("u", 0, pm.math.exp(scale))
        pm.Normal("x", mu + tau, 1)
        pm.Mixture("mix", [0.2, 0.8], [pm.Normal.dist(0, 1), pm.Normal.dist(3, 1)])
    return built


@pytest.mark.slow
def test_words() -> None:
    assert describe_priors(compile_model(model())).split("; ") == [
        "mu ~ Normal(0, 2)",
        "tau ~ Gamma(2, scale 2)",
        "b ~ Normal(mu, tau), dims (group)",
        "c ~ Normal(0, [1, 2.5]), shape (2,)",
        "w ~ Dirichlet(1 in shape (5,)), shape (5,)",
        "u ~ Uniform(0, 7.389)",
        "x ~ Normal(f(tau, mu), 1)",
        "mix ~ Mixture([0.2, 0.8], Normal(0, 1), Normal(3, 1))",
    ]


def test_data_are_those_of_the_compilation() -> None:
    with pm.Model() as built:
        pm.Normal("mu", 0, pm.Data("scale", 2.0))
    compiled = compile_model(built)
    with built:
        pm.set_data({"scale": 9.0})
    assert describe_priors(compiled).startswith("mu ~ Normal(0, 2)")
    member = ModelFamily(compile_model(built), ("scale",)).member({"scale": 4.0})
    assert describe_priors(member).startswith("mu ~ Normal(0, 4)")


@pytest.mark.slow
def test_what_cannot_be_described_keeps_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(value: np.ndarray) -> str:
        raise RuntimeError

    monkeypatch.setattr(module, "_describe_number", fail)
    assert describe_priors(compile_model(model())).startswith("mu ~ Normal; tau ~ Gamma")
