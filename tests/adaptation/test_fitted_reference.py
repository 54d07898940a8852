"""What the weights of draws of a fitted reference say of its path and of its modes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pymc_anneal.adaptation.fitted_reference import FittedReference, discrepancy_of

# Ratios at draws of the reference: their mean is 2, that of their squares 5.
DRAWS = np.log([1.0, 3.0])


@pytest.mark.parametrize(
    ("particles", "expected"),
    [([2.0, 2.0], 5 / 4), ([4.0, 8.0], 6 / 2), ([0.1, 0.3], 5 / 4)],
    ids=["draws", "particles", "low particles"],
)
def test_the_larger_one(particles: list[float], expected: float) -> None:
    assert discrepancy_of(DRAWS, np.log(particles)) == pytest.approx(np.log(expected))


def test_of_a_perfect_reference() -> None:
    assert discrepancy_of(np.full(3, 7.0), np.full(2, 7.0)) == pytest.approx(0, abs=1e-12)


class TestLeastShare:
    """A mode of half of the draws with log-normal weights; those of the other mode are one."""

    DRAWS = 200

    def fitted(self, log_mean: float, sd: float, seed: int) -> FittedReference:
        """Return draws; the first mode has ``exp(log_mean)`` times the mass of the second one."""
        first = np.arange(self.DRAWS) % 2 == 0
        z = np.random.default_rng(seed).standard_normal(self.DRAWS)
        heavy = log_mean - sd**2 / 2 + sd * z
        path: Any = None  # not looked at
        return FittedReference(
            path=path,
            log_ratio_draws=np.where(first, heavy, 0.0),
            log_ratio_particles=np.zeros(1),
            modes=2,
            evaluations=0,
            membership=np.column_stack([first, ~first]).astype(float),
            particle_share=np.array([0.0, 1.0]),
        )

    def test_is_not_above_the_share_however_heavy_the_tail(self) -> None:
        every = [self.fitted(0.0, 3.5, seed) for seed in range(2000)]
        assert max(fitted.least_share()[0] for fitted in every) < 0.5
        # The plain estimate is, more often than once in twenty times.
        assert np.mean([fitted.share[0] > 0.6 for fitted in every]) > 0.05

    def test_of_a_mode_with_nearly_all_of_the_mass(self) -> None:
        every = [self.fitted(7.0, 2.0, seed) for seed in range(200)]
        least = np.array([fitted.least_share() for fitted in every])
        assert least[:, 0].min() > 0.5
        assert least[:, 1].max() < 0.05

    def test_beside_a_larger_estimate_of_the_rest(self) -> None:
        fitted = self.fitted(7.0, 1.0, 0)
        odds = fitted.least_share() / (1 - fitted.least_share())
        rest = float(np.log(1 - fitted.share[0])) + fitted.log_z
        beside = fitted.least_share(rest + 1.0)
        assert beside[0] / (1 - beside[0]) == pytest.approx(odds[0] / np.e)

    def test_without_a_draw_in_the_support(self) -> None:
        fitted = replace(self.fitted(0.0, 1.0, 0), log_ratio_draws=np.full(self.DRAWS, -np.inf))
        assert fitted.least_share().tolist() == [0.0, 0.0]
        assert fitted.unmet_share_of(np.nan) == 0.0

    def test_counts_as_unmet(self) -> None:
        heavy = self.fitted(7.0, 3.0, 1)
        assert heavy.unmet_share_of(np.nan) == pytest.approx(heavy.least_share()[0])
        assert 0.05 < heavy.least_share()[0] < heavy.share[0]
        light = self.fitted(7.0, 0.5, 1)
        assert light.unmet_share_of(np.nan) == pytest.approx(light.share[0])

    @pytest.mark.parametrize(("unmet", "price"), [(9e-4, 1.0), (2e-3, 4.0), (0.06, 100.0)])
    def test_price(self, unmet: float, price: float, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(FittedReference, "unmet_share_of", lambda self, log_evidence: unmet)
        assert self.fitted(7.0, 0.5, 1).price() == price
