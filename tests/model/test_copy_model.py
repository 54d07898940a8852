"""Copies of a model: data of their own, and nothing written to the user's."""

import numpy as np
import pymc as pm
import pytensor

import pymc_anneal as pma

from pymc_anneal.model.copy_model import copy_model, set_own_data
from pymc_anneal.model.family import ModelFamily
from pymc_anneal.model.location_scale import location_scale_model

EFFECTS = np.array([2.0, -1.0, 0.5])


def schools(**arguments) -> pm.Model:
    """A hierarchical model with data, a dimension and, by default, no initial values."""
    with pm.Model(coords={"school": range(3)}) as model:
        error = pm.Data("error", np.ones(3), dims="school")
        tau = pm.HalfNormal("tau", 1, **arguments)
        theta = pm.Normal("theta", 0, tau, dims="school")
        pm.Normal("y", theta, error, observed=pm.Data("effect", EFFECTS), dims="school")
    return model


def test_nothing_is_written_to_the_shared_variables_of_the_user(monkeypatch) -> None:
    """Coordinates and members of a family have data of their own."""
    model = schools()
    compiled = pma.compile_model(model)
    theirs = {id(v.container) for v in [*model.data_vars, *model.dim_lengths.values()]}
    written = []
    set_value = pytensor.compile.sharedvalue.SharedVariable.set_value

    def record(self, value, borrow=False):
        written.append(id(self.container))
        set_value(self, value, borrow=borrow)

    monkeypatch.setattr(pytensor.compile.sharedvalue.SharedVariable, "set_value", record)
    assert location_scale_model(compiled) is not None
    ModelFamily(compiled, ("error",)).member({"error": np.full(3, 2.0)})
    assert written
    assert not theirs & set(written)


def test_a_copy_has_the_recorded_data() -> None:
    model = schools()
    recorded = pma.compile_model(model)._data.values
    with model:
        pm.set_data({"effect": np.zeros(3)})
    copy = copy_model(model)
    assert copy["effect"].get_value().tolist() == [0.0, 0.0, 0.0]
    set_own_data(copy, model, recorded)
    assert copy["effect"].get_value().tolist() == EFFECTS.tolist()
    assert model["effect"].get_value().tolist() == [0.0, 0.0, 0.0]


def test_initial_values_are_no_reason_to_keep_the_coordinates() -> None:
    model = schools(initval=0.3)
    compiled = pma.compile_model(model)
    assert location_scale_model(compiled) is not None
    assert not compiled.fallbacks
    assert model.rvs_to_initial_values[model["tau"]] == 0.3


def test_other_shared_variables_have_to_keep_their_values() -> None:
    """They have no copy, and nothing is written to them: the coordinates stay, with a note."""
    width = pytensor.shared(1.0, name="width")
    with pm.Model() as model:
        theta = pm.Normal("theta", 0, pm.HalfNormal("tau", width), shape=3)
        pm.Normal("y", theta, 1, observed=EFFECTS)
    compiled = pma.compile_model(model)
    width.set_value(2.0)
    assert location_scale_model(compiled) is None
    assert "shared variable width has changed" in compiled.fallbacks[0]
    assert width.get_value() == 2.0
    width.set_value(1.0)
    assert location_scale_model(pma.compile_model(model)) is not None
