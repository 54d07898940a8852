"""Plots along the inverse temperature show what the container holds."""

import numpy as np
import pytest

from matplotlib import pyplot

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group

PLOTS = [pma.plot_running_evidence, pma.plot_ti_integrand, pma.plot_path_velocity]
PAIRS = [pma.plot_annealing, pma.plot_schedule]


@pytest.mark.parametrize("plot", PLOTS)
def test_own_axes(plot, idata) -> None:
    axis = pyplot.subplots()[1]
    assert plot(idata, ax=axis) is axis


@pytest.mark.parametrize("plot", [*PLOTS, *PAIRS])
def test_new_axes_are_labelled(plot, idata) -> None:
    for axis in np.atleast_1d(plot(idata, figsize=(4, 3))):
        assert axis.get_xlabel()
        assert axis.get_ylabel()


@pytest.mark.parametrize("plot", [*PLOTS, *PAIRS])
def test_not_a_result(plot) -> None:
    name = "ladder" if plot is pma.plot_path_velocity else "annealing"
    with pytest.raises(ValueError, match=f"group '{name}', found dict"):
        plot({})


@pytest.mark.parametrize("plot", PAIRS)
def test_wrong_number_of_axes(plot, idata) -> None:
    with pytest.raises(ValueError, match="Expected 2 axes"):
        plot(idata, axes=pyplot.subplots()[1])


def test_velocity_at_the_last_rung(idata) -> None:
    """The median at beta = 1 is that of the weighted particles, and the prior is left out."""
    ladder = group(idata, "ladder")
    line = pma.plot_path_velocity(idata).lines[0]
    assert len(line.get_xdata()) == ladder.sizes["rung"] - 1
    velocity, weight = ladder["velocity"].values, np.exp(ladder["log_weight"].values[-1])
    median = velocity.max() - line.get_ydata()[-1]
    below = weight[velocity[-1] < median].sum() / weight.sum()
    assert below == pytest.approx(0.5, abs=0.02)


def test_running_evidence_ends_at_the_estimate(idata) -> None:
    axis = pma.plot_running_evidence(idata)
    pooled = axis.lines[-1].get_ydata()
    assert pooled[-1] == pytest.approx(float(group(idata, "evidence")["lower_bound"]))
    vertices = axis.collections[0].get_paths()[0].vertices
    at_the_end = vertices[np.isclose(vertices[:, 0], 1.0), 1]
    assert at_the_end.min() < pooled[-1] < at_the_end.max()


def test_area_under_the_integrand(idata) -> None:
    """The curve of thermodynamic integration is drawn at the right place."""
    line = pma.plot_ti_integrand(idata).lines[0]
    area = np.trapezoid(line.get_ydata(), line.get_xdata())
    by_step = group(idata, "annealing")
    start = by_step["beta"].values[0, 0] * line.get_ydata()[0]
    assert area + start == pytest.approx(pma.log_evidence(idata).log_evidence, abs=2.0)
