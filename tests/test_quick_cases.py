"""`quick_cases`: the cases that are not named are slow, and every name is that of a case."""

import pytest

from tests.quick_cases import mark_slow_cases


class Item:
    """A test as pytest collects it, as far as `mark_slow_cases` reads it."""

    def __init__(self, nodeid: str, *named: str) -> None:
        self.nodeid, self.added = nodeid, list[str]()
        self._marker = pytest.mark.quick_cases(*named).mark if named else None

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self._marker if name == "quick_cases" else None

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        self.added.append(marker.name)


def test_other_cases_are_slow() -> None:
    items = [Item("t.py::test_a[one]", "one"), Item("t.py::test_a[two]", "one"), Item("t.py::b")]
    mark_slow_cases(items)
    assert [item.added for item in items] == [[], ["slow"], []]


def test_brackets_in_the_name_of_a_case() -> None:
    items = [Item(f"t.py::test_a[{case}]", "x[1]") for case in ("x[1]", "y")]
    mark_slow_cases(items)
    assert [item.added for item in items] == [[], ["slow"]]


def test_a_name_without_a_case_is_refused() -> None:
    items = [Item(f"t.py::test_a[{case}]", "three") for case in ("one", "two")]
    with pytest.raises(
        pytest.UsageError, match=r"names \['three'\]; its cases are \['one', 'two'\]"
    ):
        mark_slow_cases(items)


def test_a_selected_case_is_no_error() -> None:
    items = [Item("t.py::test_a[two]", "one")]
    mark_slow_cases(items)
    assert items[0].added == ["slow"]
