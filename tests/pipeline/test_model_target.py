"""A compiled model as a target: names, groups, and the fingerprint."""

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.pipeline.model_target import ModelTarget


@pytest.fixture(scope="module")
def compiled() -> pma.CompiledModel:
    with pm.Model(coords={"site": ["a", "b"]}) as model:
        offset = pm.Data("offset", np.array([0.5, 1.5]), dims="site")
        mu = pm.Normal("mu", 0, 2, dims="site")
        pm.Deterministic("total", mu.sum())
        pm.Potential("soft", -0.01 * mu.sum() ** 2)
        pm.Normal("y", mu + offset, 1, observed=[0.3, 1.2], dims="site")
    return pma.compile_model(model)


DRAWS = np.arange(24.0).reshape(3, 4, 2)


class TestPosterior:
    def test_variables_and_deterministics(self, compiled) -> None:
        found = ModelTarget(compiled).posterior(DRAWS)
        assert found["mu"].dims == ("chain", "draw", "site")
        np.testing.assert_array_equal(found["mu"], DRAWS)
        np.testing.assert_array_equal(found["total"], DRAWS.sum(axis=2))
        assert found["site"].values.tolist() == ["a", "b"]

    def test_coords_of_the_user(self, compiled) -> None:
        options = {"coords": {"place": [1, 2]}, "dims": {"mu": ["place"]}}
        found = ModelTarget(compiled, options).posterior(DRAWS)
        assert found["mu"].dims == ("chain", "draw", "place")


class TestExtraGroups:
    seed = np.random.SeedSequence(1)

    def test_data(self, compiled) -> None:
        groups = ModelTarget(compiled).extra_groups(DRAWS, self.seed)
        assert groups.keys() == {"observed_data", "constant_data"}
        np.testing.assert_array_equal(groups["constant_data"]["offset"], [0.5, 1.5])

    def test_log_likelihood_and_prior_on_request(self, compiled) -> None:
        options = {"log_likelihood": True, "prior": True}
        groups = ModelTarget(compiled, options).extra_groups(DRAWS, self.seed)
        assert groups["prior"]["mu"].shape == (3, 4, 2)
        residual = np.array([0.3, 1.2]) - DRAWS - np.array([0.5, 1.5])
        expected = -0.5 * residual**2 - 0.5 * np.log(2 * np.pi)
        np.testing.assert_allclose(groups["log_likelihood"]["y"], expected, rtol=1e-5)

    def test_unknown_options(self, compiled) -> None:
        with pytest.raises(ValueError, match=r"Unknown `idata_kwargs` \['posterior'\]; expected"):
            ModelTarget(compiled, {"posterior": True})


def test_notes_name_the_potential(compiled) -> None:
    attrs = ModelTarget(compiled).attrs
    assert "'soft' is tempered with the likelihood" in attrs["notes"]
    assert pm.__version__ in attrs["versions"]


@pytest.mark.parametrize("options", [5, ["prior"], {"coords": 5}, {"dims": ["x"]}], ids=str)
def test_options_that_are_no_mapping(compiled, options) -> None:
    with pytest.raises(TypeError, match=r"`\w+` is a \w+, expected a dict"):
        ModelTarget(compiled, options)


def test_the_candidate_starts_at_the_prior(compiled) -> None:
    candidate = ModelTarget(compiled).candidate()
    assert candidate.reference == "prior"
    assert candidate.draw_reference(np.random.SeedSequence(1), 5).shape == (5, 2)
    assert candidate.pilot is None


def test_the_fingerprint_tells_models_apart(compiled) -> None:
    with pm.Model() as other:
        pm.Normal("y", pm.Normal("mu", 0, 2, shape=2), 1, observed=[0.3, 1.2])
    first, second = ModelTarget(compiled).fingerprint(), ModelTarget(compiled).fingerprint()
    assert first == second
    assert first != ModelTarget(pma.compile_model(other)).fingerprint()
