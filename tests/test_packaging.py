"""Metadata: versions, dependencies and their oldest versions, the conda recipe."""

import re
import tomllib

from pathlib import Path

import pymc_anneal as pma

from tests.minimum_versions import oldest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


RECIPE = read("conda-recipe/recipe.yaml")


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


def test_the_version_is_that_of_the_changelog() -> None:
    released = re.findall(r"^## \[(\d[^\]]*)\]", read("CHANGELOG.md"), re.MULTILINE)
    assert released[0] == pma.__version__
    assert f"\nversion: {pma.__version__}\n" in read("CITATION.cff")


def test_oldest_versions() -> None:
    found = oldest(PROJECT["dependencies"])
    assert "pymc==5.28" in found
    # All but those that any version will do for.
    assert len(found) == len(PROJECT["dependencies"]) - 1
    assert oldest(["pandas", "jax<2"]) == []
    assert "minimum_versions.py" in read(".github/workflows/tests.yml")


def test_description() -> None:
    assert f'summary: "{PROJECT["description"]}"' in RECIPE
    assert f"license: {PROJECT['license']}" in RECIPE
