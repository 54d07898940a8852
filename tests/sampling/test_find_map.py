"""Annealed optimisation: the highest mode, and how many particles end there."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_anneal as pma

Y = np.array([2.1, 3.0, 3.9, 2.6])
QUIET = {"random_seed": 2, "progressbar": False}


def two_peaks() -> pm.Model:
    """A broad hill that holds the mass, and a needle that is higher."""
    with pm.Model() as model:
        x = pm.Uniform("x", -10.0, 10.0, shape=2)
        hill = -((x - 3.0) ** 2).sum() / 2
        needle = 1.0 - ((x + 4.0) ** 2).sum() / (2 * 0.2**2)
        pm.Potential("peaks", pt.logaddexp(hill, needle))
    return model


class TestFindMode:
    def test_the_higher_of_two_modes(self) -> None:
        found = pma.find_map(two_peaks(), particles=1000, transition="random_walk", **QUIET)
        np.testing.assert_allclose(found.point["x"], -4.0, atol=1e-3)
        assert found.log_posterior == pytest.approx(1.0 - 2 * np.log(20), abs=1e-4)
        # The needle's share of the posterior's mass: e 0.04 / (1 + e 0.04) = 0.098.
        assert 0.04 < found.agreement < 0.2
        assert "reached by" in repr(found)

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore:`find_MAP` will:FutureWarning")
    def test_where_all_agree(self) -> None:
        with pm.Model() as model:
            mu = pm.Normal("mu", 0.0, 2.0)
            sigma = pm.HalfNormal("sigma", 1.0)
            pm.Deterministic("twice", 2 * mu)
            pm.Normal("y", mu, sigma, observed=Y)
        found = pma.find_map(model, **QUIET)
        with model:
            expected = pm.find_MAP(progressbar=False)
        for name in ("mu", "sigma", "twice"):
            np.testing.assert_allclose(found.point[name], expected[name], rtol=1e-3)
        at = {v.name: expected[v.name] for v in model.value_vars}
        value = float(model.compile_logp(jacobian=False)(at))
        assert found.log_posterior == pytest.approx(value, abs=1e-4)
        assert found.agreement > 0.95

    def test_two_equal_modes_share_the_particles(self) -> None:
        with pm.Model() as model:
            x = pm.Normal("x", 0.0, 5.0)
            pm.Normal("y", x**2, 1.0, observed=9.0)
        found = pma.find_map(model, transition="random_walk", **QUIET)
        assert abs(found.point["x"]) == pytest.approx(3.0, abs=0.01)
        assert 0.3 < found.agreement < 0.7

    @pytest.mark.slow
    def test_whole_numbers(self) -> None:
        with pm.Model() as model:
            k = pm.Categorical("k", [0.6, 0.3, 0.1])
            mu = pm.Normal("mu", 0.0, 2.0)
            pm.Normal("y", mu + 4.0 * k, 0.5, observed=5.0)
        found = pma.find_map(model, transition="random_walk", **QUIET)
        # Given k the mode in mu is conjugate; of the three, k = 1 is the highest.
        height = [self.height(k, share) for k, share in enumerate([0.6, 0.3, 0.1])]
        assert found.point["k"] == int(np.argmax(height)) == 1
        assert found.log_posterior == pytest.approx(max(height), abs=1e-6)
        assert 0 < found.agreement <= 1

    @staticmethod
    def height(k: int, share: float) -> float:
        rest, variance = 5.0 - 4.0 * k, 0.25
        mu = rest * 4 / (4 + variance)
        terms = mu**2 / 4 + (rest - mu) ** 2 / variance
        return float(np.log(share) - 0.5 * terms - np.log(2 * np.pi * 2 * 0.5))

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [({"power": 1.0}, "`power` is 1.0"), ({"particles": 0}, "`particles` is 0")],
    )
    def test_refusals(self, arguments: dict, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            pma.find_map(two_peaks(), **arguments)
