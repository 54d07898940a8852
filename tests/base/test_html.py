"""HTML forms of records, and rounding to the error."""

import numpy as np
import pytest

from pymc_anneal.base.html import html_status, html_table, html_verdict, round_to_error


def test_cells_are_escaped_once() -> None:
    table = html_table([("a<b", html_status("trust"), "x & y")], header=("name", "", ""))
    assert "a&lt;b" in table
    assert ">trust</span>" in table
    assert "x &amp; y" in table


@pytest.mark.parametrize(
    ("status", "colour"),
    [("trust", "#1a7f37"), ("more draws needed", "#9a6700"), ("do not trust", "#b42318")],
)
def test_colours(status, colour) -> None:
    assert colour in html_status(status)


def test_reasons_follow_the_status() -> None:
    assert html_verdict("do not trust", ("a < b", "c")).endswith("</span> a &lt; b; c")


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (-31.31941, 0.0102, "-31.319"),
        (-31.31941, 0.1, "-31.32"),
        (-31.31941, 3.0, "-31.3"),
        (-31.31941, 1e-9, "-31.3194"),
        (2.0, 0.0, "2.000"),
        (np.nan, 0.1, "nan"),
    ],
)
def test_rounding(value, error, text) -> None:
    assert round_to_error(value, error) == text
