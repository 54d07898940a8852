"""Sensitivity of the posterior to the power of the likelihood."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot
from scipy import stats

import pymc_anneal as pma

from tests.sampling.power_model import exact_moments, power_result


def test_table() -> None:
    table = pma.power_sensitivity(power_result())
    assert list(table.index.unique("variable")) == ["mu[a]", "mu[b]", "difference"]
    assert list(table.columns) == ["mean", "sd", "lower", "upper", "slope"]
    row = table.loc[("mu[a]", 1.0)]
    mean, sd = exact_moments(1.0)
    assert row["mean"] == pytest.approx(mean, abs=0.1)
    assert row["lower"] == pytest.approx(stats.norm.ppf(0.03, mean, sd), abs=0.1)


@pytest.mark.parametrize("beta", [0.25, 1.0, 4.0])
def test_slope(beta: float) -> None:
    h = 1e-4
    (left, _), (right, _), (_, sd) = (exact_moments(b) for b in (beta - h, beta + h, beta))
    expected = np.log(2) * beta * (right - left) / (2 * h) / sd
    table = pma.power_sensitivity(power_result(), "mu")
    assert table.loc[("mu[a]", beta), "slope"] == pytest.approx(expected, abs=0.08)
    assert table.loc[("mu[b]", beta), "slope"] == pytest.approx(0, abs=0.08)


def test_plot() -> None:
    axes = pma.plot_sensitivity(power_result(), ["mu"])
    assert [axis.get_ylabel() for axis in axes] == ["mu[a]", "mu[b]"]
    pyplot.close("all")
    with pytest.raises(ValueError, match="Expected 1 axes"):
        pma.plot_sensitivity(power_result(), "difference", axes=pyplot.subplots(1, 2)[1])
    pyplot.close("all")


def test_a_result_of_another_function() -> None:
    with pytest.raises(ValueError, match="group 'power', found dict"):
        pma.power_sensitivity({})


def test_unknown_variables() -> None:
    with pytest.raises(ValueError, match="no variables \\['nu'\\]"):
        pma.power_sensitivity(power_result(), "nu")
