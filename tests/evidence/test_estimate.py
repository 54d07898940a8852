"""The record of a log evidence."""

import numpy as np

from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.verdict import Verdict


def test_repr() -> None:
    verdict = Verdict("do not trust", ("the chains disagree",))
    found = LogEvidence(-3.0, 0.1, (-3.2, -2.8), 512.0, 0.25, 2.0, verdict, "A note.", (-3.1, -2.9))
    assert repr(found).splitlines() == [
        "log evidence -3.000 +- 0.1 nats (95 % interval -3.200 to -2.800)",
        "forward runs -3.100, reverse runs -2.900",
        "ESS 512, Pareto k 0.25, barrier 2.0",
        "verdict: do not trust: the chains disagree",
        "note: A note.",
    ]


def test_repr_without_a_path() -> None:
    found = LogEvidence(-3.0, 0.1, (-3.2, -2.8), 512.0, 0.25, np.nan, Verdict("trust"))
    assert repr(found).splitlines()[1:] == ["ESS 512, Pareto k 0.25", "verdict: trust"]
