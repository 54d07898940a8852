"""Plots of tables."""

import pymc_anneal as pma


def test_compare() -> None:
    table = pma.compare(
        {
            "a": pma.LogEvidence(-3.0, 0.1, (-3.2, -2.8), 500, 0.1, 2.0, pma.Verdict("trust")),
            "b": pma.LogEvidence(-4.0, 0.2, (-4.4, -3.6), 500, 0.1, 2.0, pma.Verdict("trust")),
        }
    )
    axis = pma.plot_compare(table)
    assert [t.get_text().split("\n")[0] for t in axis.get_yticklabels()] == ["a", "b"]
    assert axis.lines[0].get_xdata().tolist() == [0, -1]
