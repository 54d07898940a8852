"""Every path, reference and schedule of the package is in a table of cases, by walking modules."""

import importlib
import inspect
import pkgutil

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import pymc_anneal as pma

from tests.cases import log_gamma_terms
from tests.path_cases import INNER_PATHS, INNER_REFERENCES, PATHS, REFERENCES
from tests.schedule_cases import INNER_SCHEDULES, SCHEDULES

PATH_METHODS = {"evaluate", "log_density", "log_ratio", "velocity"}
# All modules of the folder but those that check and name schedules.
SCHEDULE_MODULES = {
    f"pymc_anneal.schedules.{path.stem}"
    for path in (Path(pma.__file__).parent / "schedules").glob("*.py")
} - {f"pymc_anneal.schedules.{name}" for name in ("__init__", "named", "validate")}
ROOT = Path(__file__).parent
# Classes with a contract of their own, in which their names stand.
ELSEWHERE = {
    "ConfigurationMixture": "paths/test_configuration_mixture.py",  # of discrete coordinates
    "ConditionalPath": "paths/test_paths.py",  # its positions are those of the other coordinates
    "GaussianPath": "paths/test_gaussian.py",
    "GeometricRBMPath": "rbm/test_paths.py",
    "RBM": "rbm/test_exact.py",
    "SplineRBMPath": "rbm/test_spline_path.py",
    "_Prior": "sampling/test_target.py",  # functions of the user
}


@cache
def modules() -> list[Any]:
    found = pkgutil.walk_packages(pma.__path__, "pymc_anneal.")
    return [importlib.import_module(module.name) for module in found]


def defined() -> Iterator[Any]:
    """Yield classes and functions, each from the module that defines it."""
    for module in modules():
        for value in vars(module).values():
            if getattr(value, "__module__", None) == module.__name__:
                yield value


def classes_with(methods: set[str]) -> set[str]:
    """Return the names of classes with some methods; protocols describe them only."""
    return {
        value.__name__
        for value in defined()
        if inspect.isclass(value)
        and methods <= set(dir(value))
        and not getattr(value, "_is_protocol", False)
    }


def test_paths() -> None:
    covered = {type(case.make(log_gamma_terms)).__name__ for case in [*PATHS, *INNER_PATHS]}
    assert len(covered) > 5
    assert classes_with(PATH_METHODS) - set(ELSEWHERE) == covered


@pytest.mark.parametrize("sampler", ["sample", "draw"])
def test_references(sampler: str) -> None:
    covered = {type(case.make()).__name__ for case in [*REFERENCES, *INNER_REFERENCES]}
    assert classes_with({"log_density", sampler}) - set(ELSEWHERE) == covered


def test_schedules() -> None:
    covered = {case.exported for case in [*SCHEDULES, *INNER_SCHEDULES]}
    functions = {
        value.__name__
        for value in defined()
        if inspect.isfunction(value)
        and value.__module__ in SCHEDULE_MODULES
        and not value.__name__.startswith("_")
    }
    assert functions == covered


@pytest.mark.parametrize(("name", "file"), ELSEWHERE.items())
def test_contracts_elsewhere(name: str, file: str) -> None:
    assert name in (ROOT / file).read_text()
