"""Priors that cannot be drawn for some values of their parents."""

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma


def test_bounds_that_cross_are_named_with_their_parents() -> None:
    with pm.Model() as model:
        a = pm.HalfNormal("a", 2)
        pm.Normal("other", a, 1)
        pm.Uniform("c", lower=a - 1, upper=1)
    with pytest.raises(ValueError, match=r"'c' cannot be drawn .*high - low < 0.* for 'a' = ") as e:
        pma.compile_model(model)
    words = str(e.value)
    lower, upper = (float(w) for w in words.split("parameters (")[1].split(")")[0].split(", "))
    value = float(words.split("'a' = ")[1].split(".  ")[0].split(" ")[0].rstrip("."))
    assert lower == pytest.approx(value - 1, abs=1e-3)
    assert lower > upper == 1


@pytest.mark.slow
def test_bounds_that_cross_rarely_are_found_when_they_do() -> None:
    """One draw in 3,000 crosses: the first batches are right."""
    with pm.Model() as model:
        a = pm.Normal("a", 0, 1)
        pm.Uniform("c", lower=a, upper=3.4)
    compiled = pma.compile_model(model)
    with pytest.raises(ValueError, match="'c' cannot be drawn .*high - low < 0"):
        compiled.sample_prior(np.random.SeedSequence(1), 40_000)


def test_a_parameter_from_data_needs_no_parent() -> None:
    with pm.Model() as model:
        scale = pm.Data("scale", -1.0)
        pm.Normal("x", 0, scale)
    with pytest.raises(ValueError, match=r"'x' cannot be drawn with the parameters \(0.*-1") as e:
        pma.compile_model(model)
    assert "parameters for" not in str(e.value)


def test_a_variable_without_draws_is_named() -> None:
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.CustomDist("mine", mu, logp=lambda value, mu: -0.5 * (value - mu) ** 2)
    with pytest.raises(NotImplementedError, match="'mine' has no forward draws"):
        pma.compile_model(model)
