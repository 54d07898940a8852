"""The import of ArviZ."""

import subprocess
import sys

from importlib.metadata import version

import pytest


def loaded(name: str) -> bool:
    """Whether a new process that uses the package has imported a module with it."""
    code = f"import sys, pymc_anneal as pma; pma.sample_ais; sys.exit(not {name!r} in sys.modules)"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.skipif(version("arviz") < "1", reason="ArviZ 0.23 is imported whole")
def test_plots_are_not_imported() -> None:
    assert not loaded("matplotlib.pyplot")


def test_statistics_are() -> None:
    assert loaded("arviz_stats" if version("arviz") >= "1" else "arviz")
