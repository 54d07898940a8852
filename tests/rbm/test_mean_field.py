"""Mean-field bounds of log Z, and runs that miss a phase of a machine."""

import importlib

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.rbm.exact import log_partition_function
from pymc_anneal.rbm.mean_field import mean_field_bound
from tests.rbm_cases import independent_units, random_rbm


def two_phases(gain: float) -> pma.rbm.RBM:
    """One hidden unit turns all visible ones on, and holds ``gain`` nats more than the rest."""
    rng = np.random.default_rng(1)
    weights = 0.3 * rng.normal(size=(40, 6))
    weights[:, 0] = 6.0
    bias = 0.1 * rng.normal(size=6)
    bias[0] = gain - 40 * (np.logaddexp(0, 6.0) - np.log(2))
    return pma.rbm.RBM(np.zeros(40), bias, weights)


@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 3.0])
def test_it_is_below_log_z_and_near_it(scale: float) -> None:
    for seed in range(10):
        apart = independent_units(12, 7, seed, hidden=True)  # for which the bound is exact
        model = random_rbm(12, 7, seed, scale) if scale else apart
        gap = log_partition_function(model) - mean_field_bound(model)
        assert -1e-9 < gap < (1e-9 if scale == 0 else 3.0)


def test_it_knows_both_phases() -> None:
    for gain in (-8.0, 8.0):
        gap = log_partition_function(two_phases(gain)) - mean_field_bound(two_phases(gain))
        assert 0 < gap < 1.0


def test_rounding_is_no_missed_phase() -> None:
    """Of independent units the bound is log Z, and so is each weight of a run that starts there."""
    for seed in range(8):
        apart = independent_units(20, 8, seed)
        run = {"steps": 20, "schedule": "linear", "random_seed": 1, "progressbar": False}
        found = pma.log_evidence(pma.rbm.sample_ais(apart, 50, reference=apart, **run))
        assert found.verdict.trusted
        assert found.log_evidence == pytest.approx(log_partition_function(apart), abs=1e-9)


class TestRun:
    @staticmethod
    def run(gain: float):
        model = two_phases(gain)
        idata = pma.rbm.sample_ais(model, steps=300, draws=100, random_seed=1, progressbar=False)
        return pma.log_evidence(idata), log_partition_function(model)

    @pytest.mark.slow
    def test_a_phase_that_was_missed(self) -> None:
        found, exact = self.run(5.0)
        assert found.log_evidence < exact - 1
        assert found.verdict.status == "do not trust"
        assert "by a mean-field bound: the run has missed a phase" in str(found.verdict)

    @pytest.mark.slow
    def test_silenced_it_is_not_noticed(self, monkeypatch) -> None:
        """The twin: nothing else sees it."""
        module = importlib.import_module("pymc_anneal.rbm.sample_ais")
        monkeypatch.setattr(module, "mean_field_bound", lambda model: -np.inf)
        found, exact = self.run(5.0)
        assert found.log_evidence < exact - 1
        assert "phase" not in str(found.verdict)

    def test_no_alarm(self) -> None:
        found, exact = self.run(-8.0)
        assert abs(found.log_evidence - exact) < 4 * found.mcse
        assert "phase" not in str(found.verdict)
        assert [w.kind for w in found.witnesses] == ["mean-field bound"]
        assert found.witnesses[0].log_evidence < exact
