"""What cannot be stored is named before the run and left out; the evidence is kept."""

import warnings

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from pymc_anneal.pipeline.model_target import ModelTarget

KERNEL = pma.HMC(0.5, 2, 1.0)


def run(compiled: pma.CompiledModel, **arguments: Any) -> Any:
    return pma.sample_ais(
        16,
        chains=2,
        steps=3,
        schedule="linear",
        transition=KERNEL,
        model=compiled,
        random_seed=1,
        progressbar=False,
        **arguments,
    )


def build(declare: Callable[[pt.TensorVariable], object], coords: Any = None) -> pm.Model:
    with pm.Model(coords=coords) as model:
        x = pm.Normal("x")
        pm.Normal("y", x, 1.0, observed=[0.3, 1.1])
        declare(x)
    return model


def _declare_unstorable(x: pt.TensorVariable) -> None:
    pm.Deterministic("dynamic", pt.arange(10.0)[pt.arange(10.0) > x])
    pm.Deterministic("unique", pt.unique(pt.round(pt.stack([x, 2 * x, 0.0]))))
    pm.Deterministic("random", pm.Normal.dist(x, 1.0))
    pm.Normal("draw", x)
    pm.Deterministic("chain", x + 1)
    pm.Normal("z", shape=2)
    pm.Deterministic("z_dim_0", 2 * x)
    pm.Deterministic(".", x + 1)
    pm.Deterministic("fine", x + 1)


OMITTED = {
    "dynamic": "'dynamic' is left out of results: its shape depends on the values",
    "unique": "'unique' is left out of results: its shape depends on the values",
    "random": "'random' is left out of results: it depends on random numbers",
    "draw": "'draw' is left out of results: its name is that of a dimension",
    "chain": "'chain' is left out of results: its name is that of a dimension",
    "z_dim_0": "'z_dim_0' is left out of results: its name is that of a dimension",
    ".": "'.' is left out of results: files cannot hold its name",
}


def test_variables(tmp_path) -> None:
    model = build(_declare_unstorable)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = pma.compile_model(model)
    texts = [str(warning.message) for warning in caught]
    for name, message in OMITTED.items():
        assert sum(message in text for text in texts) == 1, name
    idata = run(compiled)
    assert np.isfinite(pma.log_evidence(idata).log_evidence)
    stored = set(group(idata, "posterior").data_vars)
    assert stored == {v.name for v in model.unobserved_RVs} - set(OMITTED)
    idata.to_netcdf(tmp_path / "run.nc")


def test_a_variable_without_a_jax_form_beside_others() -> None:
    def declare(x: pt.TensorVariable) -> None:
        pm.Deterministic("count", pt.unique(pt.stack([x, x + 1.0, x])).shape[0] + 0.0 * x)
        pm.Deterministic("twice", 2 * x)

    idata = run(pma.compile_model(build(declare)))
    posterior = group(idata, "posterior")
    assert (posterior["count"] == 2).all()
    np.testing.assert_allclose(posterior["twice"], 2 * posterior["x"])


COORDS = {
    "tuples": [(1, "a"), (2, "b")],
    "multi_index": pd.MultiIndex.from_tuples([(1, "a"), (2, "b")]),
    "mixed": [1, "a"],
    "dates_with_zone": pd.date_range("2020-01-01", periods=2, tz="UTC"),
}


@pytest.mark.parametrize("kind", COORDS)
def test_coordinates(kind: str, tmp_path) -> None:
    model = build(lambda x: pm.Normal("z", dims="k"), {"k": COORDS[kind]})
    idata = run(pma.compile_model(model))
    labels = group(idata, "posterior")["k"].values
    assert [str(v) for v in labels] == [str(v) for v in COORDS[kind]]
    idata.to_netcdf(tmp_path / "run.nc")


def test_dimensions_of_the_user_that_do_not_fit() -> None:
    model = build(lambda x: (pm.Normal("a", shape=2), pm.Normal("b", shape=3)))
    options = {"dims": {"a": ["k"], "b": ["k"], "x": ["draw"]}, "coords": {"k": None}}
    idata = run(pma.compile_model(model), idata_kwargs=options)
    assert dict(group(idata, "posterior").sizes) == {"chain": 2, "draw": 16, "k": 2, "b_dim_0": 3}


def test_a_group_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("no such thing")

    compiled = pma.compile_model(build(lambda x: None))
    monkeypatch.setattr(ModelTarget, "data_groups", fail)
    with pytest.warns(UserWarning, match="data and further groups are left out .*no such thing"):
        idata = run(compiled)
    assert np.isfinite(pma.log_evidence(idata).log_evidence)
    assert "x" in group(idata, "posterior")


def test_a_shape_that_changes_late_is_left_out() -> None:
    compiled = pma.compile_model(build(_rarely_longer))
    position = np.array([[0.0], [1.0], [9.0]])
    with pytest.warns(UserWarning, match="'rare' is left out: its shape depends"):
        values = compiled.constrain(position)
    assert set(values) == {"x"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled.constrain(position[:2])["rare"].shape == (2, 1)


def _rarely_longer(x: pt.TensorVariable) -> None:
    values = pt.stack([x, pt.maximum(x, 8.0)])
    pm.Deterministic("rare", values[values > 7.0])
