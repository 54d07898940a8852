"""Runs that ended early: one line for each case."""

from types import SimpleNamespace

import pytest

from pymc_anneal.pipeline.result import describe_interruption

WHOLE = SimpleNamespace(particles=600, planned=600, interrupted=False)
PART = SimpleNamespace(particles=200, planned=600, interrupted=True)


@pytest.mark.parametrize(
    ("run", "reverse_stopped", "words"),
    [
        (WHOLE, False, ""),
        (
            PART,
            False,
            "200 of 600 particles are kept, those that were finished early: a biased set if the "
            "time that a particle takes depends on where it is",
        ),
        (WHOLE, True, "the forward run is complete and kept"),
    ],
)
def test_interruption(run, reverse_stopped: bool, words: str) -> None:
    assert describe_interruption(run, reverse_stopped) == words
