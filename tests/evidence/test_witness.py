"""The record of what has looked for missed parts of a posterior."""

import numpy as np

from pymc_anneal.evidence.witness import Witness, from_text, to_text


def test_records_survive_their_text() -> None:
    witnesses = (Witness("held-out particles", np.float64(12.5)), Witness("modes", 3, -1.5, 0.1))
    found = from_text(to_text(witnesses))
    assert [w.kind for w in found] == ["held-out particles", "modes"]
    assert np.isnan(found[0].log_evidence)
    assert found[1] == witnesses[1]
    assert from_text("[]") == ()


def test_words() -> None:
    assert str(Witness("held-out particles", 12.53)) == "12.5 held-out particles"
    assert str(Witness("modes", 3, -1.5, 0.1)) == "3 modes (-1.50 +- 0.1)"
    assert str(Witness("modes", 1, -1.5)) == "1 modes (-1.50)"
