"""`sample_ais`: arguments that make no sense."""

from inspect import signature
from typing import get_type_hints

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from pymc_anneal.sampling.run_arguments import SeededArguments
from tests.sampling.small_model import QUICK, small_model


def test_other_calls_hand_on_every_argument() -> None:
    expected = get_type_hints(pma.sample_ais)
    own = set(signature(pma.sample_ais).parameters) - {"model_or_draws", "model"}
    assert get_type_hints(SeededArguments) == {name: expected[name] for name in own}


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("draws", 0, "`draws` is 0, expected a positive whole number"),
        ("draws", 10.0, "`draws` is 10.0"),
        ("draws", True, "`draws` is True"),
        ("chains", -1, "`chains` is -1"),
        ("max_minutes", 0, "`max_minutes` is 0, expected a positive number of minutes"),
        ("max_minutes", np.nan, "`max_minutes` is nan"),
        ("cores", 0, "`cores` is 0"),
        ("block_size", 0, "`block_size` is 0"),
        ("steps", 0, '`steps` is 0, expected a positive whole number or "auto"'),
        ("steps", "many", "`steps` is 'many'"),
        ("steps", 2.5, "`steps` is 2.5"),
        ("target_mcse", 0.0, "`target_mcse` is 0.0, expected a positive number of nats"),
        ("target_mcse", -1.0, "`target_mcse` is -1.0"),
        ("target_mcse", np.inf, "`target_mcse` is inf"),
        ("target_mcse", np.nan, "`target_mcse` is nan"),
        (
            "path",
            "arithmetic",
            r"Unknown `path` 'arithmetic'; expected one of \['auto',",
        ),
        ("schedule", "cubic", "Unknown `schedule` 'cubic'.*'linear'.*'variational'"),
        ("schedule", [0.0, 0.5, 0.4, 1.0], "not increasing"),
        ("schedule", [0.1, 1.0], "starts at 0.1"),
        ("schedule", np.array([0.0, 0.9]), "ends at 0.9"),
        ("schedule", [1.0], "shape"),
        ("transition", "gibbs", "Unknown `transition` 'gibbs'.*'hmc'.*'random_walk'"),
        ("random_seed", "lucky", "`random_seed` is 'lucky', expected a non-negative int"),
        ("random_seed", -1, "`random_seed` is -1"),
        ("idata_kwargs", {"posterior": True}, r"Unknown `idata_kwargs` \['posterior'\]"),
        ("idata_kwargs", {"log_prior": True}, r"PyMC adds more: pm.compute_log_prior\("),
    ],
)
def test_values_that_make_no_sense(argument, value, message) -> None:
    arguments = {**QUICK, "model": small_model(), argument: value}
    if argument == "schedule":
        arguments["steps"] = "auto"
    with pytest.raises(ValueError, match=message):
        pma.sample_ais(**arguments)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("path", 3, r"`path` is a int without the methods \['evaluate'"),
        ("transition", object(), r"`transition` is a object without the methods \['step'"),
        ("model", "a model", "`model` is a str, expected a pymc.Model"),
    ],
)
def test_objects_of_the_wrong_kind(argument, value, message) -> None:
    with pytest.raises(TypeError, match=message):
        pma.sample_ais(**{**QUICK, "model": small_model(), argument: value})


def test_no_model() -> None:
    with pytest.raises(TypeError, match="[Nn]o model on context stack"):
        pma.sample_ais(**QUICK)


def test_draws_alone_is_positional() -> None:
    with pytest.raises(TypeError, match="positional argument"):
        pma.sample_ais(10, 2, model=small_model())


def test_the_model_may_come_first() -> None:
    result = pma.sample_ais(small_model(), draws=30, **QUICK)
    assert group(result, "posterior").sizes["draw"] == 30


def test_draws_may_come_first() -> None:
    result = pma.sample_ais(30, model=small_model(), **QUICK)
    assert group(result, "posterior").sizes["draw"] == 30


def test_arguments_given_twice() -> None:
    with pytest.raises(TypeError, match="takes one model; for several call `sample_models`"):
        pma.sample_ais([small_model(), small_model()])
    with pytest.raises(TypeError, match="`model` is given twice"):
        pma.sample_ais(small_model(), model=small_model())
    with pytest.raises(TypeError, match="`draws` is given twice"):
        pma.sample_ais(30, draws=40, model=small_model())


def test_steps_against_an_array() -> None:
    arguments = {**QUICK, "schedule": [0.0, 0.5, 1.0], "steps": 3}
    with pytest.raises(ValueError, match="`steps` is 3, but the schedule has 2 steps"):
        pma.sample_ais(model=small_model(), **arguments)


def test_a_schedule_function_that_fails_the_contract() -> None:
    arguments = {**QUICK, "schedule": lambda steps: np.linspace(0.0, 0.5, steps + 1)}
    with pytest.raises(ValueError, match="ends at 0.5"):
        pma.sample_ais(model=small_model(), **arguments)


def test_max_step_out_of_reach() -> None:
    arguments = {**QUICK, "schedule": "variational", "max_step": 0.1}
    with pytest.raises(ValueError, match="`max_step` is 0.1 and the schedule has 5 steps"):
        pma.sample_ais(20, model=small_model(), **arguments)


def test_max_step_holds() -> None:
    arguments = {**QUICK, "schedule": "variational", "max_step": 0.25}
    result = pma.sample_ais(20, model=small_model(), **arguments)
    betas = group(result, "annealing")["beta"].values[0]
    assert np.diff([0.0, *betas]).max() <= 0.25 * (1 + 1e-9)
