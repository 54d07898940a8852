"""Tests that are the same beside every version of PyMC, which CI runs beside the newest alone."""

from collections.abc import Sequence

import pytest

# Rooms whose modules do not import PyMC, as `tests/test_imports.py` sees to.
WITHOUT_PYMC = frozenset({"annealing", "paths", "rbm", "schedules", "transitions"})
# One test of so many of these runs on every line: it sees what an older JAX or SciPy lacks.
_LEFT = 8


def mark_tests(items: Sequence[pytest.Item]) -> None:
    """Add the marker ``any_line`` to the tests of these rooms, all but every eighth."""
    inside = [item for item in items if item.path.parent.name in WITHOUT_PYMC]
    for index, item in enumerate(inside):
        if index % _LEFT:
            item.add_marker(pytest.mark.any_line)
