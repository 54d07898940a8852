"""Plots: they draw what the container holds, on axes of one's own or new ones."""

import matplotlib as mpl
import numpy as np
import pymc as pm
import pytest

mpl.use("Agg")

from matplotlib import pyplot

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container, group

ONE = [
    pma.plot_log_weights,
    pma.plot_forward_reverse,
    pma.plot_running_evidence,
    pma.plot_bounds,
    pma.plot_ti_integrand,
    pma.plot_path_velocity,
]
TWO = [pma.plot_annealing, pma.plot_schedule]
GROUPS = {"plot_forward_reverse": "reverse_annealing", "plot_bounds": "reverse_annealing"}
GROUPS |= {"plot_path_velocity": "ladder"}


@pytest.fixture(scope="module")
def idata():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 3)
        pm.Normal("y", mu, 0.5, observed=[3.0, 4.0, 5.5])
    return pma.sample_ais(
        100, steps=40, model=model, reverse_from="draws", progressbar=False, random_seed=1
    )


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
    name = GROUPS.get(plot.__name__, "annealing")
    with pytest.raises(ValueError, match=f"group '{name}', found dict"):
        plot({})


@pytest.mark.parametrize("plot", [pma.plot_forward_reverse, pma.plot_bounds])
def test_one_direction_only(plot, idata) -> None:
    alone = container({name: group(idata, name) for name in ("annealing", "evidence")})
    with pytest.raises(ValueError, match="Run sample_ais with `reverse_from`"):
        plot(alone)


def test_sandwich_ends_at_the_bounds(idata) -> None:
    axis = pma.plot_bounds(idata)
    numbers = group(idata, "evidence")
    for line, name in zip(axis.lines[:2], ("lower_bound", "upper_bound"), strict=True):
        assert line.get_ydata()[-1] == pytest.approx(float(numbers[name]), abs=1e-9)
        assert len(line.get_ydata()) == 400


def test_sandwich_of_several_rounds(idata) -> None:
    """The last round alone was reversed; a scale that its pooling gave it does not matter."""
    pooled = {name: group(idata, name) for name in ("annealing", "evidence", "reverse_annealing")}
    by_step = pooled["annealing"]
    log_weight = by_step["log_weight"].values
    pooled["annealing"] = by_step.drop_vars(["log_weight", "particle", "round"]).assign(
        log_weight=(("chain", "particle"), np.c_[log_weight - 9.0, log_weight + 0.7]),
        round=("particle", np.repeat([1, 2], 100)),
    )
    pooled["annealing"] = pooled["annealing"].set_coords("round")
    once, twice = (pma.plot_bounds(c).lines[0] for c in (idata, container(pooled)))
    np.testing.assert_allclose(once.get_ydata(), twice.get_ydata(), rtol=1e-12)


def test_overlap_is_of_densities(idata) -> None:
    """Each histogram has area one, and they lie on either side of the estimate."""
    axis = pma.plot_forward_reverse(idata, bins=20)
    areas = [[p.get_width() * p.get_height() for p in c] for c in axis.containers]
    assert np.sum(areas, axis=1) == pytest.approx([1, 1])
    forward, reverse = (
        sum(a * (p.get_x() + p.get_width() / 2) for a, p in zip(area, c, strict=True))
        for area, c in zip(areas, axis.containers, strict=True)
    )
    assert forward < pma.log_evidence(idata).log_evidence < reverse


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
    line = pma.plot_ti_integrand(idata).lines[0]
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
