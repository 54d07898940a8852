"""Tests that CI runs beside the newest PyMC alone: what an older one has little or no part in.

PyMC and ArviZ enter through the rooms that are not named here, which are tested whole on every
line. The counts are a choice, for the time that CI takes.
"""

from collections import Counter
from collections.abc import Sequence

import pytest

# Rooms whose modules do not import PyMC, as `tests/test_imports.py` sees to: one test of eight is
# left for every line, which sees what an older JAX or SciPy lacks.
WITHOUT_PYMC = frozenset({"annealing", "paths", "rbm", "schedules", "transitions"})
# Rooms that meet PyMC in whole runs: one test of three is.
WHOLE_RUNS = frozenset({"adaptation", "evidence", "pipeline", "sampling"})
_ONE_OF = dict.fromkeys(WITHOUT_PYMC, 8) | dict.fromkeys(WHOLE_RUNS, 3)


def mark_tests(items: Sequence[pytest.Item]) -> None:
    """Add the marker ``any_line`` to the tests of these rooms, less one of so many in each room."""
    seen: Counter[str] = Counter()
    for item in items:
        room = item.path.parent.name
        if seen[room] % _ONE_OF.get(room, 1):
            item.add_marker(pytest.mark.any_line)
        seen[room] += 1
