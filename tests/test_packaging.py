"""The conda recipe says the same as pyproject.toml."""

import re
import tomllib

from pathlib import Path

import pymc_anneal as pma

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RECIPE = (ROOT / "conda-recipe" / "recipe.yaml").read_text(encoding="utf-8")


def listed(heading: str) -> list[str]:
    """Return the items of a list of the recipe."""
    block = re.search(rf"^ *{heading}:\n((?: +- .*\n)+)", RECIPE, re.MULTILINE)
    assert block is not None
    return [line.split("- ", 1)[1] for line in block[1].splitlines()]


def test_dependencies() -> None:
    required = sorted(re.sub(r"\s", "", entry) for entry in PROJECT["dependencies"])
    python, *packages = listed("run")
    assert sorted(entry.replace(" ", "") for entry in packages) == required
    assert python == "python >=${{ python_min }}"


def test_versions() -> None:
    assert f'version: "{pma.__version__}"' in RECIPE
    assert f'python_min: "{PROJECT["requires-python"].removeprefix(">=")}"' in RECIPE


def test_description() -> None:
    assert f'summary: "{PROJECT["description"]}"' in RECIPE
    assert f"license: {PROJECT['license']}" in RECIPE
