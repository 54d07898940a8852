"""The import of ArviZ."""

import json
import subprocess
import sys

from importlib.metadata import version

import pytest


@pytest.fixture(scope="module")
def loaded() -> list[str]:
    """Return the modules that a new process has imported when it uses the package."""
    code = "import json, sys, pymc_anneal as pma; pma.sample_ais; print(json.dumps([*sys.modules]))"
    command = [sys.executable, "-c", code]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


@pytest.mark.skipif(version("arviz") < "1", reason="ArviZ 0.23 is imported whole")
def test_plots_are_not_imported(loaded: list[str]) -> None:
    assert "matplotlib.pyplot" not in loaded


def test_statistics_are(loaded: list[str]) -> None:
    assert ("arviz_stats" if version("arviz") >= "1" else "arviz") in loaded
