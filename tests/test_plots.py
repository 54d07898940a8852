"""Plots: they draw what the container holds, on axes of one's own or new ones."""

import matplotlib as mpl
import numpy as np
import pymc as pm
import pytest

mpl.use("Agg")

from matplotlib import pyplot

import pymc_anneal as pma

from pymc_anneal.compat import container, group

ONE = [pma.plot_log_weights, pma.plot_running_evidence, pma.plot_thermodynamic]
TWO = [pma.plot_annealing, pma.plot_schedule]


@pytest.fixture(scope="module")
def idata():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 3)
        pm.Normal("y", mu, 0.5, observed=[3.0, 4.0, 5.5])
    return pma.sample_ais(100, steps=40, model=model, progressbar=False, random_seed=1)


@pytest.fixture(autouse=True)
def close():
    yield
    pyplot.close("all")


@pytest.mark.parametrize("plot", ONE)
def test_own_axes(plot, idata) -> None:
    axis = pyplot.subplots()[1]
    assert plot(idata, ax=axis) is axis


@pytest.mark.parametrize("plot", [*ONE, *TWO])
def test_new_axes_are_labelled(plot, idata) -> None:
    for axis in np.atleast_1d(plot(idata, figsize=(4, 3))):
        assert axis.get_xlabel()
        assert axis.get_ylabel()


@pytest.mark.parametrize("plot", TWO)
def test_wrong_number_of_axes(plot, idata) -> None:
    with pytest.raises(ValueError, match="Expected 2 axes"):
        plot(idata, axes=pyplot.subplots()[1])


@pytest.mark.parametrize("plot", [*ONE, *TWO])
def test_not_a_result(plot) -> None:
    with pytest.raises(ValueError, match="group 'annealing', found dict"):
        plot({})


def test_running_evidence_ends_at_the_estimate(idata) -> None:
    axis = pma.plot_running_evidence(idata)
    pooled = axis.lines[-1].get_ydata()
    assert pooled[-1] == pytest.approx(pma.log_evidence(idata).log_evidence)
    vertices = axis.collections[0].get_paths()[0].vertices
    at_the_end = vertices[np.isclose(vertices[:, 0], 1.0), 1]
    assert at_the_end.min() < pooled[-1] < at_the_end.max()


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


def test_area_under_the_integrand(idata) -> None:
    """The curve of thermodynamic integration is drawn at the right place."""
    line = pma.plot_thermodynamic(idata).lines[0]
    area = np.trapezoid(line.get_ydata(), line.get_xdata())
    by_step = group(idata, "annealing")
    start = by_step["beta"].values[0, 0] * line.get_ydata()[0]
    assert area + start == pytest.approx(pma.log_evidence(idata).log_evidence, abs=2.0)


def test_compare() -> None:
    table = pma.compare(
        {
            "a": pma.LogEvidence(-3.0, 0.1, (-3.2, -2.8), 500, 0.1, 2.0, "trust"),
            "b": pma.LogEvidence(-4.0, 0.2, (-4.4, -3.6), 500, 0.1, 2.0, "trust"),
        }
    )
    axis = pma.plot_compare(table)
    assert [t.get_text().split("\n")[0] for t in axis.get_yticklabels()] == ["a", "b"]
    assert axis.lines[0].get_xdata().tolist() == [0, -1]
