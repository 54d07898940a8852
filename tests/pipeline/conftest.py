"""Fixtures of the tests of the pipeline."""

import pytest

from pymc_anneal.pipeline import choose_start
from pymc_anneal.pipeline.integrated_start import effects_start, integrated_start
from pymc_anneal.pipeline.short_road import short_road


@pytest.fixture
def long_road(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the offers of shorter roads away, so that simple posteriors are surveyed too."""
    shorter = (effects_start, short_road, integrated_start)
    offers = tuple(offer for offer in choose_start.OFFERS if offer not in shorter)
    monkeypatch.setattr(choose_start, "OFFERS", offers)
