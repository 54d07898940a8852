"""Shared functions of the scripts: data, output folder, tables, stored cells."""

import argparse
import json

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the MNIST file."""
    parser.add_argument("--data", type=Path, help="mnist.npz with x_train, y_train, x_test, y_test")


def images(path: Path | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training images, their labels and test images; one image per row, values in [0, 1].

    The images are MNIST if the file exists, otherwise scikit-learn's digits, with a message.
    """
    file = path or HERE.parent / "data" / "mnist.npz"
    if file.exists():
        with np.load(file) as data:
            train, test = (
                (data[k].reshape(len(data[k]), -1) / 255).astype(np.float32)
                for k in ("x_train", "x_test")
            )
            return train, data["y_train"].astype(int), test
    from sklearn.datasets import load_digits

    print(f"No MNIST file at {file}: using scikit-learn's digits instead.")
    digits = load_digits()
    rows = (digits.data / 16).astype(np.float32)
    return rows[:1500], digits.target[:1500], rows[1500:]


def output() -> Path:
    """Return the output folder, created if necessary."""
    folder = HERE.parent / "output" / "papers"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def pick(rows: Iterable[dict], **wanted) -> list[dict]:
    """Return the rows with the given entries."""
    return [r for r in rows if all(r[k] == v for k, v in wanted.items())]


def table(rows: Sequence[dict], columns: Sequence[str]) -> str:
    """Return rows as a Markdown table."""

    def text(value) -> str:
        if isinstance(value, float):
            return f"{value:.2f}"
        return f"{value:,}" if isinstance(value, int) else str(value)

    head = "| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns) + "\n"
    return head + "".join("| " + " | ".join(text(r[c]) for c in columns) + " |\n" for r in rows)


def find(file: Path, cell: dict) -> dict | None:
    """Return the result of a cell from the file of an earlier run, None if it is not there."""
    lines = file.read_text().splitlines() if file.exists() else []
    rows = map(json.loads, lines)
    return next((row for row in rows if all(row.get(k) == v for k, v in cell.items())), None)


def cached(file: Path, cell: dict, compute: Callable[[], dict]) -> dict:
    """Return the result of a cell, computed or from the file of an earlier run.

    The file has one line of JSON per cell, so an interrupted script resumes where it stopped.
    """
    row = find(file, cell)
    if row is None:
        row = {**cell, **compute()}
        with file.open("a") as stream:
            stream.write(json.dumps(row) + "\n")
    return row
