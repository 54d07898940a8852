"""The cases of a parametrised test that the default suite runs, named beside the test.

``@pytest.mark.quick_cases("hmc")`` leaves the case ``hmc`` where it is and makes the others slow.
"""

from collections import defaultdict
from collections.abc import Sequence

import pytest


def mark_slow_cases(items: Sequence[pytest.Item]) -> None:
    """Add the marker ``slow`` to the cases that the marker ``quick_cases`` does not name."""
    cases: dict[str, set[str]] = defaultdict(set)
    named: dict[str, set[str]] = {}
    for item in items:
        marker = item.get_closest_marker("quick_cases")
        if marker is None:
            continue
        test, _, rest = item.nodeid.partition("[")
        case, named[test] = rest.removesuffix("]"), set(marker.args)
        cases[test].add(case)
        if case not in named[test]:
            item.add_marker(pytest.mark.slow)
    _check(cases, named)


def _check(cases: dict[str, set[str]], named: dict[str, set[str]]) -> None:
    """Refuse names that no case has, where all cases were collected: they outnumber the names."""
    for test, names in named.items():
        unknown = names - cases[test]
        if unknown and len(cases[test]) > len(names):
            raise pytest.UsageError(
                f"quick_cases of {test} names {sorted(unknown)}; "
                f"its cases are {sorted(cases[test])}"
            )
