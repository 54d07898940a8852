"""Tests that CI runs beside the newest PyMC alone, most of them where an older one has little part.

Files and rooms that are not named here are tested whole on every line. The counts are a choice, for
the time that CI takes.
"""

from collections import Counter
from collections.abc import Sequence

import pytest

# Rooms whose modules do not import PyMC, as `tests/test_imports.py` sees to: one test of sixteen is
# left for every line, which sees what an older JAX or SciPy lacks.
WITHOUT_PYMC = frozenset({"annealing", "paths", "rbm", "schedules", "transitions"})
# Rooms that meet PyMC in whole runs, whose parts are tested elsewhere: one test of sixteen is.
WHOLE_RUNS = frozenset({"adaptation", "between", "evidence", "execution", "nested", "pipeline"})
# The public calls, with all that they hand to PyMC and ArviZ, and what all rooms stand on: one of
# twelve.
PUBLIC_CALLS = frozenset({"base", "posthoc", "results", "sampling"})
# The room with many cases for each of PyMC's functions and distributions: one of ten.
CALLERS = frozenset({"model"})
# Files of the suite's top level: what engines do to models that the room `model` compares with
# PyMC, and tests of the tests.
TOP_LEVEL = frozenset(
    {"test_exact", "test_unbiasedness", "test_mutants", "test_pooled", "test_problems"}
)
_ONE_OF = (
    dict.fromkeys(WITHOUT_PYMC, 16)
    | dict.fromkeys(WHOLE_RUNS | TOP_LEVEL, 16)
    | dict.fromkeys(PUBLIC_CALLS, 12)
    | dict.fromkeys(CALLERS, 10)
)


def mark_tests(items: Sequence[pytest.Item]) -> None:
    """Add the marker ``any_line`` to the tests of these rooms, less one of so many in each."""
    seen: Counter[str] = Counter()
    for item in items:
        room = item.path.stem if item.path.stem in TOP_LEVEL else item.path.parent.name
        if seen[room] % _ONE_OF.get(room, 1):
            item.add_marker(pytest.mark.any_line)
        seen[room] += 1
