"""HTML forms of records for notebooks and reports: escaped tables, verdicts in colour."""

from collections.abc import Sequence
from html import escape

import numpy as np

# Background of a verdict, readable under white letters on light and dark pages.
_GREEN, _AMBER, _RED = "#1a7f37", "#9a6700", "#b42318"
_COLOURS = {
    "trust": _GREEN,
    "calibrated": _GREEN,
    "do not trust": _RED,
    "not calibrated": _RED,
}

# Cells wrap their text and keep a distance, also where no style sheet of a notebook does it.
_CELL = "text-align:left;vertical-align:top;padding:2px 10px;white-space:normal"


class Html(str):
    """Text that is HTML already and is not escaped again."""


def html_table(rows: Sequence[Sequence[str]], header: Sequence[str] = ()) -> Html:
    """Return a table; the first cell of each row is its heading."""
    head = "".join(f'<th style="{_CELL}">{_cell(name)}</th>' for name in header)
    body = "".join(_row(row) for row in rows)
    return Html(f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}{body}</table>")


def html_status(status: str, examined: bool = True) -> Html:
    """Return the status of a verdict in its colour: green, amber or red.

    Amber is for shortfalls, and for an estimate in which nothing looked for what it may miss.
    """
    colour = _COLOURS.get(status, _AMBER)
    if colour == _GREEN and not examined:
        colour = _AMBER
    style = f"background:{colour};color:#fff;padding:1px 6px;border-radius:4px"
    return Html(f'<span style="{style}">{escape(status)}</span>')


def html_verdict(status: str, reasons: Sequence[str], examined: bool = True) -> Html:
    """Return a verdict: its status in colour, and the reasons."""
    text = "; ".join(reasons).replace("+-", "±")
    return Html(f"{html_status(status, examined)} {escape(text)}".strip())


def round_to_error(value: float, error: float) -> str:
    """Write a number with as many decimals as show two digits of its error, at most four."""
    if not np.isfinite([value, error]).all():
        return f"{value:.3f}"
    decimals = 3 if error <= 0 else int(np.clip(1 - np.floor(np.log10(error)), 1, 4))
    return f"{value:.{decimals}f}"


def _row(row: Sequence[str]) -> str:
    first, *others = row
    cells = "".join(f'<td style="{_CELL}">{_cell(text)}</td>' for text in others)
    return f'<tr><th style="{_CELL}">{_cell(first)}</th>{cells}</tr>'


def _cell(text: str) -> str:
    return text if isinstance(text, Html) else escape(str(text))
