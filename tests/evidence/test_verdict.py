"""Verdicts: their text, their attributes, and how they are combined."""

import pytest

from pymc_anneal.evidence.combined_verdict import combined_verdict
from pymc_anneal.evidence.verdict import Verdict, verdict_from

VERDICTS = [
    Verdict("trust"),
    Verdict("trust", ("all estimators agree",)),
    Verdict("more steps needed", ("the error 0.2 misses the target 0.1; try steps=80",)),
    Verdict("do not trust", ('Pareto k is 0.9: "few" particles', "the chains disagree ± 1")),
    Verdict("not calibrated", ("the ranks are not uniform",)),
]


def test_text() -> None:
    assert str(Verdict("trust")) == "trust"
    verdict = Verdict("do not trust", ("one", "two"))
    assert str(verdict) == repr(verdict) == f"{verdict}" == "do not trust: one; two"


@pytest.mark.parametrize(
    ("status", "trusted"),
    [
        ("trust", True),
        ("calibrated", True),
        ("more steps needed", False),
        ("more draws needed", False),
        ("more evidence needed", False),
        ("do not trust", False),
        ("not calibrated", False),
    ],
)
def test_trusted(status, trusted) -> None:
    assert Verdict(status).trusted is trusted


@pytest.mark.parametrize("verdict", VERDICTS, ids=str)
def test_attributes(verdict) -> None:
    attrs = verdict.to_attrs()
    assert attrs["verdict"] == str(verdict)
    assert all(isinstance(value, str) for value in attrs.values())
    assert Verdict.from_attrs(attrs) == verdict


class TestVerdictFrom:
    def test_doubts_take_precedence(self) -> None:
        assert verdict_from(["a"], ["b"]) == Verdict("do not trust", ("a",))

    def test_shortfalls(self) -> None:
        assert verdict_from([], ["b", "c"]) == Verdict("more steps needed", ("b", "c"))
        assert verdict_from([], ["b"], "more draws needed").status == "more draws needed"

    def test_nothing_to_object(self) -> None:
        assert verdict_from([], []) == Verdict("trust")


class TestCombinedVerdict:
    def test_both_trusted(self) -> None:
        assert combined_verdict({"a": VERDICTS[0], "b": VERDICTS[1]}) == Verdict("trust")

    def test_the_worst_decides(self) -> None:
        found = combined_verdict({"a": VERDICTS[2], "b": Verdict("do not trust", ("x", "y"))})
        assert found == Verdict("do not trust", ("b: x; y",))

    def test_shortfalls(self) -> None:
        verdicts = {"a": Verdict("trust"), "b": Verdict("more draws needed", ("x",))}
        found = combined_verdict(verdicts | {"c": Verdict("more steps needed", ("y",))})
        assert found == Verdict("more draws needed", ("b: x", "c: y"))

    def test_without_reasons(self) -> None:
        found = combined_verdict({"a": Verdict("do not trust"), "b": Verdict("trust")})
        assert found == Verdict("do not trust", ("a: do not trust",))
