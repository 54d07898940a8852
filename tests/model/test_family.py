"""Members of a family are the models that would have been compiled one by one."""

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.model.family import ModelFamily
from tests.model.models import evaluate

SEED = np.random.SeedSequence(1)


def build(scale: float = 1.0, mask: tuple[float, ...] = (1.0, 1.0), y=(0.5, -1.0)) -> pm.Model:
    with pm.Model() as model:
        data = pm.Data("scale", scale)
        switch = pm.Data("mask", np.array(mask))
        mean = pm.Normal("mean", 0, data, shape=2)
        sigma = pm.Gamma("sigma", 2, 1)
        product = pm.Deterministic("product", switch * mean)
        pm.Normal("y", product, sigma, observed=pm.Data("data", np.array(y)))
    return model


VALUES = {"scale": 3.0, "mask": np.array([1.0, 0.0]), "data": np.array([2.0, 2.5])}


def family(*names: str) -> ModelFamily:
    return ModelFamily(pma.compile_model(build()), names)


class TestMembers:
    @pytest.mark.parametrize("names", [("mask",), ("scale",), ("data", "mask", "scale")])
    def test_equal_models_compiled_one_by_one(self, names) -> None:
        values = {name: VALUES[name] for name in names}
        found = family(*names).member(values)
        arguments = {"y" if name == "data" else name: value for name, value in values.items()}
        expected = pma.compile_model(build(**arguments))
        draws = expected.sample_prior(SEED, 50)
        np.testing.assert_array_equal(found.sample_prior(SEED, 50), draws)
        for a, b in zip(evaluate(found, draws), evaluate(expected, draws), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
        for name, value in expected.constrain(draws).items():
            np.testing.assert_allclose(found.constrain(draws)[name], value, rtol=1e-12)
        assert found.observed_data()["y"].tolist() == expected.observed_data()["y"].tolist()
        for name in values:
            np.testing.assert_array_equal(
                found.constant_data().get(name, values[name]), values[name]
            )

    def test_a_prior_that_depends_on_what_is_observed(self) -> None:
        with pm.Model() as model:
            data = pm.Data("data", np.array([1.0, 2.0]))
            seen = pm.Normal("seen", 0, 1, shape=2, observed=data)
            pm.Normal("y", pm.Normal("latent", seen, 0.5), 1, observed=[0.5, -1.0])
        made = ModelFamily(pma.compile_model(model), ("data",))
        draws = made.member({"data": np.array([7.0, -3.0])}).sample_prior(SEED, 400)
        np.testing.assert_allclose(draws.mean(axis=0), [7, -3], atol=4 * 0.5 / 400**0.5)
        np.testing.assert_allclose(draws.std(axis=0), 0.5, rtol=0.15)

    def test_the_model_keeps_its_data(self) -> None:
        made = family("scale")
        made.member({"scale": 7.0})
        assert made.compiled.model["scale"].get_value() == 1.0

    def test_members_share_one_function(self) -> None:
        made = family("mask")
        functions = {made.member({"mask": m}).log_terms.func for m in ([1.0, 0.0], [0.0, 1.0])}
        assert len(functions) == 1

    def test_a_mask_that_is_ignored_would_be_seen(self) -> None:
        made = family("mask")
        draws = made.compiled.sample_prior(SEED, 5)
        with_all, without = (
            evaluate(made.member({"mask": m}), draws).log_likelihood for m in ([1, 1], [0, 0])
        )
        assert (with_all != without).all()


def test_models_that_cannot_share_are_compiled_one_by_one() -> None:
    """The number of trials is a support of the prior: another one is another program."""
    with pm.Model() as model:
        n = pm.Data("n", 5)
        k = pm.Binomial("k", n.astype("int64"), 0.5)
        pm.Normal("y", k, 1, observed=3.0)
    member = ModelFamily(pma.compile_model(model), ("n",)).member({"n": 9})
    assert member.variables[0].support == ((0, 9),)
    (note,) = member.fallbacks
    assert note.endswith("not with its family, because a support may depend on the data.")


@pytest.mark.parametrize(
    ("names", "values", "message"),
    [
        (("sigma",), {}, r"\['sigma'\] are not pm.Data of the model; expected some of \['data'"),
        (("mask",), {"scale": 1.0}, r"Expected values of \['mask'\], found \['scale'\]"),
        (("mask",), {"mask": [1, 0, 1]}, r"'mask' has shape \(3,\), expected \(2,\)"),
    ],
)
def test_values_that_make_no_sense(names, values, message) -> None:
    with pytest.raises(ValueError, match=message):
        family(*names).member(values)


def test_integers_stay_those_that_were_given() -> None:
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("x", 0, pm.Data("scale", np.array(1))), 1, observed=0.0)
    with pytest.raises(ValueError, match="'scale' of the model is of type int"):
        ModelFamily(pma.compile_model(model), ("scale",)).member({"scale": 2.9})


def test_a_model_without_free_variables() -> None:
    with pm.Model() as null:
        pm.Normal("y", 0, 1, observed=pm.Data("data", np.zeros(2)))
    member = ModelFamily(pma.compile_model(null), ("data",)).member({"data": np.ones(2)})
    assert member.constrain(np.empty((3, 0))) == {}
    expected = -1 - np.log(2 * np.pi)
    assert float(member.log_terms(np.empty(0)).log_likelihood) == pytest.approx(expected)
