"""Ctrl-C in one of several runs ends the call, and keeps what does not need the others."""

from importlib import import_module

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.sampling.several_runs import is_interrupted, unless_interrupted

Y = np.array([1.2, 0.3, 0.8, 1.5])
QUICK = {"random_seed": 1, "steps": 2, "transition": pma.HMC(0.5, 2, 1.0), "warnings": False}


def normal_mean(effect: bool, width: float = 1.0) -> pm.Model:
    with pm.Model() as model:
        scale = pm.Data("scale", width)
        y = pm.Data("y", Y)
        mu = pm.Normal("mu", 0.0, scale) if effect else 0.0
        pm.Normal("obs", mu, 1.0, observed=y)
    return model


@pytest.fixture
def stop(monkeypatch):
    """Return a function that lets a run, by its number, come back as interrupted."""

    def stop_at(module: str, number: int) -> list:
        made = []

        def run(*args, **settings):
            made.append(sample_ais(*args, draws=20, **settings))
            if len(made) == number:
                made[-1]["evidence"].attrs["interruption"] = "some are kept"
            return made[-1]

        sample_ais = pma.sample_ais
        monkeypatch.setattr(import_module(f"pymc_anneal.sampling.{module}"), "sample_ais", run)
        return made

    return stop_at


def whole_run():
    return pma.sample_ais(20, model=MODELS["effect"], progressbar=False, **QUICK)


MODELS = {"effect": normal_mean(True), "null": normal_mean(False)}
NEEDED = {
    "fractional_evidence": lambda: pma.fractional_evidence(MODELS["effect"], fraction=0.5, **QUICK),
    "intrinsic_bayes_factor": lambda: pma.intrinsic_bayes_factor(
        MODELS, {"y": Y}, training=2, **QUICK
    ),
    "robustness": lambda: pma.robustness(
        whole_run(), {"mu": "scale"}, [0.01, 1.0, 100.0], model=MODELS["effect"], **QUICK
    ),
    "sequential": lambda: pma.sequential(MODELS, [{"y": Y}], **QUICK),
}


@pytest.mark.parametrize("name", NEEDED)
def test_a_run_that_is_needed_ends_the_call(name: str, stop) -> None:
    made = stop(name, 1)
    with pytest.raises(KeyboardInterrupt, match="Stopped in one of several runs"):
        NEEDED[name]()
    assert len(made) == 1


def test_looks_before_the_one_that_was_stopped_are_kept(stop) -> None:
    made = stop("sequential", 3)
    found = pma.sequential(MODELS, [{"y": Y[:2]}, {"y": Y[2:]}], **QUICK)
    assert len(made) == 3
    assert found.table["rows"].tolist() == [2]


def test_numbers_up_to_the_one_that_was_stopped_are_kept(stop) -> None:
    made = stop("count", 2)
    found = pma.count(lambda k: normal_mean(k > 0), [0, 1, 2, 3], **QUICK)
    assert len(made) == 2
    assert list(found.results) == ["0", "1"]
    assert found.left_out == (2, 3)


def test_a_whole_run_is_returned() -> None:
    idata = whole_run()
    assert not is_interrupted(idata)
    assert unless_interrupted(idata) is idata
