"""The script that runs the papers' tables at full scale, at its smallest scale."""

import json
import os
import subprocess
import sys

from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "papers" / "full_scale.py"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a file of small random pictures in the format of MNIST."""
    rng = np.random.default_rng(1)
    pictures = (rng.random((250, 5, 5)) < 0.3) * rng.integers(0, 256, (250, 5, 5))
    labels, file = rng.integers(0, 10, 250), tmp_path / "mnist.npz"
    parts = {"x_train": pictures[:200].astype(np.uint8), "y_train": labels[:200]}
    parts |= {"x_test": pictures[200:].astype(np.uint8), "y_test": labels[200:]}
    np.savez(file, **parts)
    return file


def run(data: Path, output: Path, *arguments: str) -> str:
    """Run the script for a few cells and return what it prints."""
    command = [sys.executable, str(SCRIPT), "--scale", "test", "--data", str(data)]
    command += ["--output", str(output), "--machines", "CD1(500)", "--references", "uniform"]
    command += ["--paths", "GA;MAS", "--schedules", "VAROPT0.003;LINEAR", *arguments]
    root = str(SCRIPT.parents[2])
    settings = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": root}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_an_interrupted_run_resumes_and_ends(tmp_path: Path, data: Path) -> None:
    text = run(data, tmp_path, "--minutes", "0.01")
    assert "# interrupted" in text
    assert "| CD1(500) | uniform | MAS | not run |" in text
    text = run(data, tmp_path, "--peak", "0.1")
    assert "# complete" in text
    assert "not run" not in text
    assert "% of the peak" in text
    folder = tmp_path / "full_scale_test"
    rows = [json.loads(line) for line in (folder / "cells.jsonl").read_text().splitlines()]
    assert [row["draws"] for row in rows] == [100, 100, 20, 20]
    for name in ("grosse_figure_5.png", "kiwaki_figure_6.png", "weights/cd1_500.npz"):
        assert (folder / name).stat().st_size > 0
    for name in ("grosse", "kiwaki"):
        assert (folder / f"{name}_table_2.md").read_text() in text
    assert not list(folder.glob("*.checkpoint"))
