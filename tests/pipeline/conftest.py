"""Fixtures of the tests of the pipeline."""

import pytest

from pymc_anneal.pipeline import choose_start
from pymc_anneal.pipeline.short_road import short_road


@pytest.fixture
def long_road(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the offer of the short road away, so that simple posteriors are surveyed too."""
    offers = tuple(offer for offer in choose_start.OFFERS if offer is not short_road)
    monkeypatch.setattr(choose_start, "OFFERS", offers)
