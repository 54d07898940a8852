"""Plot of compared models."""

import pytest

import pymc_anneal as pma

TRUST, DOUBT = pma.Verdict("trust"), pma.Verdict("do not trust", ("Pareto k",))


def evidence(value: float, error: float = 0.1, verdict: pma.Verdict = TRUST) -> pma.LogEvidence:
    interval = (value - 2 * error, value + 2 * error)
    return pma.LogEvidence(value, error, interval, 500, 0.1, 2.0, verdict)


def labels(axis) -> list[str]:
    return [t.get_text() for t in axis.get_yticklabels()]


def test_values_and_labels() -> None:
    panels = pma.plot_compare(pma.compare({"a": evidence(-3.0), "b": evidence(-4.0)}))
    assert labels(panels[0]) == ["a", "b"]
    assert [bar.get_width() for bar in panels[0].patches] == pytest.approx([0.731, 0.269], abs=1e-3)
    assert [float(line.get_xdata()[0]) for line in panels[1].lines[::3]][:2] == [0, -1]
    assert "with 95 % intervals" in panels[1].get_xlabel()


def test_errors_that_cannot_be_seen_are_named() -> None:
    panels = pma.plot_compare(pma.compare({"a": evidence(-3, 0.001), "b": evidence(-9, 0.001)}))
    assert all("smaller than the points" in axis.get_xlabel() for axis in panels)


def test_a_model_that_is_far_is_marked_at_the_edge() -> None:
    models = {"a": evidence(-3.0), "b": evidence(-4.0), "far": evidence(-503.0)}
    axis = pma.plot_compare(pma.compare(models))[1]
    assert axis.get_xlim()[0] > -3
    assert [text.get_text() for text in axis.texts] == ["-500.00 ± 0.14"]


def test_a_model_that_is_not_trusted_is_drawn_differently() -> None:
    panels = pma.plot_compare(
        pma.compare({"a": evidence(-3.0), "x": evidence(-1.0, verdict=DOUBT)})
    )
    assert labels(panels[0]) == ["a", "x\n(do not trust)"]
    assert [bar.get_hatch() for bar in panels[0].patches] == [None, "///"]
