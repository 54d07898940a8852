"""The record of a log evidence."""

from dataclasses import replace

import numpy as np

from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.evidence.witness import Witness


def test_repr() -> None:
    verdict = Verdict("more steps needed", ("the error is large",))
    found = LogEvidence(-3.0, 0.1, (-3.2, -2.8), 512.0, 0.25, 2.0, verdict, "A note.", (-3.1, -2.9))
    assert repr(found).splitlines() == [
        "log evidence -3.000 +- 0.1 nats (95 % interval -3.200 to -2.800)",
        "forward runs -3.100, reverse runs -2.900",
        "ESS 512, Pareto k 0.25, barrier 2.0",
        "verdict: more steps needed: the error is large",
        "note: A note.",
    ]


def test_repr_without_a_path() -> None:
    found = LogEvidence(-3.0, 0.1, (-3.2, -2.8), 512.0, 0.25, np.nan, Verdict("trust"))
    assert repr(found).splitlines()[1:] == ["ESS 512, Pareto k 0.25", "verdict: trust"]


def test_no_error_is_printed_that_is_not_known() -> None:
    """One particle holds all weight: the formula of the error gives 0.83 whatever is missing."""
    verdict = Verdict("do not trust", ("Pareto k",))
    found = LogEvidence(-656.041, 0.83, (-657.0, -655.5), 1.0, 1.9, 9.0, verdict)
    assert found.headline == "log evidence -656.04 nats, error not known"
    for text in (repr(found), found._repr_html_()):
        assert "0.83" not in text
        assert "interval" not in text
        assert "error not known" in text


def test_what_nothing_has_examined_is_amber() -> None:
    verdict = Verdict("trust", ("modes were not looked for: the number of steps was given",))
    unseen = LogEvidence(-3.0, 0.1, (-3.2, -2.8), 512.0, 0.25, 2.0, verdict)
    seen = replace(unseen, witnesses=(Witness("held-out particles", 60.0, -3.0),))
    plain = replace(unseen, verdict=Verdict("trust"))
    assert [e.is_examined for e in (unseen, seen, plain)] == [False, True, True]
    assert "#9a6700" in unseen._repr_html_()
    assert "#1a7f37" in seen._repr_html_()
