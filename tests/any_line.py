"""Tests that CI runs beside the newest PyMC alone, most of them where an older one has little part.

Rooms that are not named here are tested whole on every line. The counts are a choice, for the time
that CI takes.
"""

from collections import Counter
from collections.abc import Sequence

import pytest

# Rooms whose modules do not import PyMC, as `tests/test_imports.py` sees to: one test of eight is
# left for every line, which sees what an older JAX or SciPy lacks.
WITHOUT_PYMC = frozenset({"annealing", "paths", "rbm", "schedules", "transitions"})
# Rooms that meet PyMC in whole runs, whose parts are tested elsewhere: one test of six is.
WHOLE_RUNS = frozenset({"adaptation", "evidence", "pipeline"})
# The public calls, with all that they hand to PyMC and ArviZ: one of three.
PUBLIC_CALLS = frozenset({"sampling"})
# Rooms with many cases for each of PyMC's and ArviZ's functions that they call: one of two.
CALLERS = frozenset({"model", "posthoc", "results"})
# Files of the suite's top level: what engines do to models that the room `model` compares with
# PyMC, and tests of the tests.
TOP_LEVEL = frozenset({"test_unbiasedness", "test_mutants", "test_pooled", "test_problems"})
_ONE_OF = (
    dict.fromkeys(WITHOUT_PYMC | TOP_LEVEL, 8)
    | dict.fromkeys(WHOLE_RUNS, 6)
    | dict.fromkeys(PUBLIC_CALLS, 3)
    | dict.fromkeys(CALLERS, 2)
)


def mark_tests(items: Sequence[pytest.Item]) -> None:
    """Add the marker ``any_line`` to the tests of these rooms, less one of so many in each."""
    seen: Counter[str] = Counter()
    for item in items:
        room = item.path.stem if item.path.stem in TOP_LEVEL else item.path.parent.name
        if seen[room] % _ONE_OF.get(room, 1):
            item.add_marker(pytest.mark.any_line)
        seen[room] += 1
