"""Annealed optimisation: the highest mode, and the share of particles that end there."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_anneal as pma

Y = np.array([2.1, 3.0, 3.9, 2.6])
QUIET = {"random_seed": 2, "progressbar": False}
WALK = {"transition": "random_walk", **QUIET}


def two_peaks() -> pm.Model:
    """A broad hill that holds the mass, and a needle that is higher."""
    with pm.Model() as model:
        x = pm.Uniform("x", -10.0, 10.0, shape=2)
        hill = -((x - 3.0) ** 2).sum() / 2
        needle = 1.0 - ((x + 4.0) ** 2).sum() / (2 * 0.2**2)
        pm.Potential("peaks", pt.logaddexp(hill, needle))
    return model


def two_equal_modes() -> pm.Model:
    """Two modes of the same height, at -3 and 3."""
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 5.0)
        pm.Normal("y", x**2, 1.0, observed=9.0)
    return model


def mixture() -> pm.Model:
    """A label and a mean; given the label the mode of the mean is conjugate."""
    with pm.Model() as model:
        k = pm.Categorical("k", [0.6, 0.3, 0.1])
        mu = pm.Normal("mu", 0.0, 2.0)
        pm.Normal("y", mu + 4.0 * k, 0.5, observed=5.0)
    return model


def mixture_height(k: int, share: float) -> float:
    """Return the log posterior of ``mixture`` at the best mean given the label."""
    rest, variance = 5.0 - 4.0 * k, 0.25
    mu = rest * 4 / (4 + variance)
    terms = mu**2 / 4 + (rest - mu) ** 2 / variance
    return float(np.log(share) - 0.5 * terms - np.log(2 * np.pi * 2 * 0.5))


@pytest.mark.slow
def test_the_higher_of_two_modes() -> None:
    found = pma.find_map(1000, model=two_peaks(), **WALK)
    np.testing.assert_allclose(found.point["x"], -4.0, atol=1e-3)
    assert found.log_posterior == pytest.approx(1.0 - 2 * np.log(20), abs=1e-4)
    # The needle's share of the posterior's mass: e 0.04 / (1 + e 0.04) = 0.098.
    assert 0.04 < found.agreement < 0.2
    assert "reached by" in repr(found)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`find_MAP` will:FutureWarning")
def test_the_only_mode_is_that_of_pymc() -> None:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 2.0)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Deterministic("twice", 2 * mu)
        pm.Normal("y", mu, sigma, observed=Y)
    found = pma.find_map(model=model, **QUIET)
    with model:
        expected = pm.find_MAP(progressbar=False)
    for name in ("mu", "sigma", "twice"):
        np.testing.assert_allclose(found.point[name], expected[name], rtol=1e-3)
    at = {v.name: expected[v.name] for v in model.value_vars}
    value = float(model.compile_logp(jacobian=False)(at))
    assert found.log_posterior == pytest.approx(value, abs=1e-4)
    assert found.agreement > 0.95


@pytest.mark.slow
def test_two_equal_modes_share_the_particles() -> None:
    found = pma.find_map(model=two_equal_modes(), **WALK)
    assert abs(found.point["x"]) == pytest.approx(3.0, abs=0.01)
    assert 0.3 < found.agreement < 0.7


@pytest.mark.slow
def test_whole_numbers() -> None:
    found = pma.find_map(model=mixture(), **WALK)
    height = [mixture_height(k, share) for k, share in enumerate([0.6, 0.3, 0.1])]
    assert found.point["k"] == int(np.argmax(height)) == 1
    assert found.log_posterior == pytest.approx(max(height), abs=1e-6)
    assert 0 < found.agreement <= 1


@pytest.mark.parametrize(
    ("draws", "block_size"), [(30, None), (300, 100), (700, None)], ids=["few", "blocks", "many"]
)
@pytest.mark.slow
def test_as_many_particles_as_asked_for(draws: int, block_size: int | None) -> None:
    found = pma.find_map(draws, block_size=block_size, model=two_equal_modes(), **WALK)
    assert found.draws == draws


@pytest.mark.slow
def test_the_model_on_the_context_stack() -> None:
    with two_equal_modes():
        found = pma.find_map(50, **WALK)
    assert abs(found.point["x"]) == pytest.approx(3.0, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"power": 1.0}, "`power` is 1.0, expected a number above 1"),
        ({"power": np.inf}, "`power` is inf"),
        ({"draws": 0}, "`draws` is 0"),
        ({"transition": "gibbs"}, "Unknown `transition` 'gibbs'"),
    ],
)
def test_bad_arguments(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pma.find_map(model=two_peaks(), **arguments)
