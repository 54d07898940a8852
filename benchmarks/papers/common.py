"""What the scripts of the papers' experiments share: where results go, tables, kept cells."""

import json

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent

__all__ = ["HERE", "kept", "output", "pick", "table"]


def output() -> Path:
    """Return the folder of the results."""
    folder = HERE.parent / "output" / "papers"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def pick(rows: Iterable[dict], **wanted) -> list[dict]:
    """Return the rows with the given entries."""
    return [r for r in rows if all(r[k] == v for k, v in wanted.items())]


def table(rows: Sequence[dict], columns: Sequence[str]) -> str:
    """Return rows as a Markdown table."""

    def text(value) -> str:
        return (
            f"{value:.2f}"
            if isinstance(value, float)
            else f"{value:,}"
            if isinstance(value, int)
            else str(value)
        )

    head = "| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns) + "\n"
    return head + "".join("| " + " | ".join(text(r[c]) for c in columns) + " |\n" for r in rows)


def kept(file: Path, cell: dict, compute: Callable[[], dict]) -> dict:
    """Return the result of a cell, computed unless an earlier run has left it in the file.

    One line of JSON a cell: an interrupted script goes on where it stopped.
    """
    if file.exists():
        for line in file.read_text().splitlines():
            row = json.loads(line)
            if all(row.get(k) == v for k, v in cell.items()):
                return row
    row = {**cell, **compute()}
    with file.open("a") as stream:
        stream.write(json.dumps(row) + "\n")
    return row
