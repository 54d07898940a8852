"""HTML forms of records, and rounding to the error."""

import numpy as np
import pytest

from pymc_anneal.base.html import (
    html_status,
    html_table,
    html_verdict,
    round_to_error,
)
from pymc_anneal.results.model_comparison import probability_text


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


def test_green_is_for_what_was_examined() -> None:
    assert "#9a6700" in html_status("trust", examined=False)
    assert "#b42318" in html_status("do not trust", examined=False)


def test_cells_have_padding() -> None:
    assert html_table([("a", "b")], header=("c", "d")).count("padding:2px 10px") == 4


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.99979, "0.9998"),
        (0.99, "0.99"),
        (0.9999999, "> 0.999999"),
        (0.5432, "0.543"),
        (1.87e-9, "1.87e-09"),
        (1.0, "1"),
        (0.0, "0"),
    ],
)
def test_probabilities(value, text) -> None:
    assert probability_text(value) == text


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
