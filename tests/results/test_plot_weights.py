"""Plots of log weights: histograms and bounds show what the container holds."""

import numpy as np
import pytest

from matplotlib import pyplot

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container, group

PLOTS = [pma.plot_log_weights, pma.plot_forward_reverse, pma.plot_bounds]


@pytest.mark.parametrize("plot", PLOTS)
def test_own_axes(plot, idata) -> None:
    axis = pyplot.subplots()[1]
    assert plot(idata, ax=axis) is axis


@pytest.mark.parametrize("plot", PLOTS)
def test_new_axes_are_labelled(plot, idata) -> None:
    for axis in np.atleast_1d(plot(idata, figsize=(4, 3))):
        assert axis.get_xlabel()
        assert axis.get_ylabel()


@pytest.mark.parametrize("plot", PLOTS)
def test_not_a_result(plot) -> None:
    name = "annealing" if plot is pma.plot_log_weights else "reverse_annealing"
    with pytest.raises(ValueError, match=f"group '{name}', found dict"):
        plot({})


@pytest.mark.parametrize("plot", [pma.plot_forward_reverse, pma.plot_bounds])
def test_one_direction_only(plot, idata) -> None:
    alone = container({name: group(idata, name) for name in ("annealing", "evidence")})
    with pytest.raises(ValueError, match=r"sample_ais\(reverse_from=...\) with a group"):
        plot(alone)


def test_running_estimates_end_at_the_bounds(idata) -> None:
    axis = pma.plot_bounds(idata)
    numbers = group(idata, "evidence")
    for line, name in zip(axis.lines[:2], ("lower_bound", "upper_bound"), strict=True):
        assert line.get_ydata()[-1] == pytest.approx(float(numbers[name]), abs=1e-9)
        assert len(line.get_ydata()) == 400


def test_histograms_are_densities(idata) -> None:
    """Each histogram has area one, and they lie on either side of the estimate."""
    axis = pma.plot_forward_reverse(idata, bins=20)
    areas = [[p.get_width() * p.get_height() for p in c] for c in axis.containers]
    assert np.sum(areas, axis=1) == pytest.approx([1, 1])
    forward, reverse = (
        sum(a * (p.get_x() + p.get_width() / 2) for a, p in zip(area, c, strict=True))
        for area, c in zip(areas, axis.containers, strict=True)
    )
    assert forward < pma.log_evidence(idata).log_evidence < reverse


def test_stray_particles_do_not_set_the_scale(idata) -> None:
    strayed = container(
        {
            "annealing": group(idata, "annealing").copy(deep=True),
            "evidence": group(idata, "evidence"),
        }
    )
    group(strayed, "annealing")["log_weight"].values[0, :2] = [-1e9, -np.inf]
    axis = pma.plot_log_weights(strayed)
    assert axis.get_xlim()[0] > -1e3
    assert "(2 outside)" in axis.get_legend().get_texts()[0].get_text()
