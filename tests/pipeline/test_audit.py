"""The mode audit: modes that a run has missed are named."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import required_group
from pymc_anneal.execution.blocks import AnnealedRun
from pymc_anneal.pipeline.counted_run import count
from tests.pipeline.test_fitted_mixture import two_modes
from tests.problems import by_name


def spike_and_slab(d: int, shift: float = 0.031) -> tuple[pm.Model, float]:
    """The test of DNest4: a spike that holds 100 of 101 parts in the bulk of a slab."""

    def log_normal(x, mean: float, sd: float):
        return -0.5 * ((x - mean) ** 2).sum() / sd**2 - d * np.log(sd * np.sqrt(2 * np.pi))

    with pm.Model() as model:
        x = pm.Uniform("x", -0.5, 0.5, shape=d)
        spike = np.log(100) + log_normal(x, shift, 0.01)
        pm.Potential("data", pt.logaddexp(spike, log_normal(x, 0.0, 0.1)))
    return model, float(np.log(101))


def run(model: pm.Model, seed: int = 5, **arguments):
    return pma.sample_ais(model=model, progressbar=False, random_seed=seed, **arguments)


def cusp_and_slab(d: int) -> tuple[pm.Model, float]:
    """The same with a Laplace spike, at whose cusp no normal density is near."""
    width = 0.006
    with pm.Model() as model:
        x = pm.Uniform("x", -0.5, 0.5, shape=d)
        spike = np.log(100) - pt.abs(x - 0.031).sum() / width - d * np.log(2 * width)
        slab = pm.logp(pm.Normal.dist(0.0, 0.1), x).sum()
        pm.Potential("data", pt.logaddexp(spike, slab))
    slab_mass = float(np.diff(stats.norm.cdf([-5, 5]))[0]) ** d
    return model, float(np.log(100 + slab_mass))


@pytest.fixture(scope="module")
def slab():
    model, log_evidence = spike_and_slab(10)
    return pma.compile_model(model), log_evidence


class TestSpikeAndSlab:
    def test_the_spike_is_found(self, slab) -> None:
        model, log_evidence = slab
        idata = run(model)
        found = pma.log_evidence(idata)
        assert abs(found.log_evidence - log_evidence) < 4 * found.mcse
        assert found.verdict.trusted
        modes = idata["modes"]
        assert np.asarray(modes["mode_share"]).max() == pytest.approx(100 / 101, abs=0.01)
        tallest = int(np.asarray(modes["mode_share"]).argmax())
        np.testing.assert_allclose(np.asarray(modes["x"])[tallest], 0.031, atol=1e-3)
        shares = np.asarray(modes["mode_share_of_run"])
        np.testing.assert_allclose(shares, np.asarray(modes["mode_share"]), atol=0.01)

    @pytest.mark.slow
    def test_a_run_that_misses_it_says_so(self, slab) -> None:
        model, log_evidence = slab
        idata = run(model, reference="prior")
        found = pma.log_evidence(idata)
        assert abs(found.log_evidence - log_evidence) > 10 * found.mcse
        assert found.verdict.status == "do not trust"
        assert "a mode at x = [0.031" in str(found.verdict)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_small_mode_that_was_missed(seed: int) -> None:
    # Its draws are few among those of the audit, and those of the other mode weigh nothing in it.
    model, _ = two_modes(0.97, 3, 12.0)
    idata = run(model, seed, reference="laplace", warnings=False)
    found = pma.log_evidence(idata)
    assert found.verdict.status == "do not trust"
    assert "of the evidence by importance sampling" in str(found.verdict)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [101, 103, 104, 211])
def test_a_spike_whose_weights_have_a_heavy_tail(seed: int) -> None:
    # With seed 103 no particle of the survey meets the spike, and the path from the prior is short;
    # with seed 211 two climbs get stuck on the cusp.
    model, log_evidence = cusp_and_slab(10)
    found = pma.log_evidence(run(model, seed))
    assert abs(found.log_evidence - log_evidence) < 4 * found.mcse


class TestNoAlarm:
    @pytest.mark.parametrize("reference", ["auto", pytest.param("prior", marks=pytest.mark.slow)])
    def test_both_modes_were_found(self, reference: str) -> None:
        model, log_evidence = two_modes(0.8, 3, 6.0)
        idata = run(model, reference=reference)
        assert pma.log_evidence(idata).verdict.trusted
        share = np.sort(np.asarray(idata["modes"]["mode_share_of_run"]))
        np.testing.assert_allclose(share, [0.2, 0.8], atol=0.06)
        mass = np.asarray(idata["modes"]["mode_log_mass"])
        assert np.logaddexp.reduce(mass) == pytest.approx(log_evidence, abs=0.1)


def test_a_likelihood_that_never_varied_is_doubted() -> None:
    """A box with a higher likelihood that no particle has met, and no gradient leads to."""
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("data", pm.math.switch(pm.math.gt(x, 9.0), 50.0, 0.0))
    verdict = pma.log_evidence(run(model)).verdict
    assert verdict.status == "do not trust"
    assert "the same value at all particles" in str(verdict)


def test_a_likelihood_without_parameters_is_not() -> None:
    with pm.Model() as model:
        pm.Normal("x")
        pm.Normal("y", 0.0, 1.0, observed=[0.3, -0.2])
    found = pma.log_evidence(run(model))
    assert str(found.verdict) == "trust"
    assert found.log_evidence == pytest.approx(stats.norm.logpdf([0.3, -0.2]).sum())


@pytest.mark.slow
def test_a_null_with_parameters_that_drop_out_is_not() -> None:
    """A mask of zeros, as where models share a graph and differ in their data."""
    with pm.Model() as null:
        mask = pm.Data("mask", 0.0)
        scale = pm.HalfNormal("scale")
        pm.Normal("y", mask * scale, 1.0, observed=[0.3, -0.2])
    found = pma.log_evidence(run(null))
    assert str(found.verdict) == "trust"
    assert found.log_evidence == pytest.approx(stats.norm.logpdf([0.3, -0.2]).sum(), abs=1e-12)
    assert found.mcse == 0


@pytest.mark.slow
def test_no_table_where_nothing_was_planned() -> None:
    model, _ = two_modes(0.8, 2, 6.0)
    idata = run(model, reference="prior", steps=20)
    with pytest.raises(ValueError, match="modes"):
        required_group(idata, "modes", "sample_ais")


@pytest.mark.parametrize(("missing", "trusted"), [(0.0, True), (0.5, False)])
def test_importance_sampling_that_finds_more_raises_a_doubt(
    missing: float, trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the prior, where the mixture is fitted to the particles of the run itself."""

    def too_low(*arguments) -> AnnealedRun:
        found = count(*arguments)
        return replace(found, log_weight=found.log_weight - missing)

    monkeypatch.setattr("pymc_anneal.pipeline.run.count", too_low)
    model = by_name("conjugate_normal").build()
    found = pma.log_evidence(run(model, reference="prior", warnings=False))
    assert found.verdict.trusted == trusted
    assert ("importance sampling with a mixture found" in str(found.verdict)) != trusted


class TestNoAudit:
    """The verdict on a run without an audit says why there was none."""

    @staticmethod
    def verdict(model: pm.Model, **arguments) -> str:
        return str(pma.log_evidence(run(model, draws=500, warnings=False, **arguments)).verdict)

    @pytest.mark.slow
    def test_given_steps(self) -> None:
        model, _ = two_modes(0.8, 3, 6.0)
        assert "the number of steps was given" in self.verdict(model, steps=4, reference="prior")

    @pytest.mark.slow
    def test_discrete_variables(self) -> None:
        with pm.Model() as model:
            k = pm.Bernoulli("k", 0.5)
            pm.Normal("y", k, 1, observed=0.3)
        assert self.verdict(model) == "trust"  # both values were weighed

    @pytest.mark.slow
    def test_no_likelihood(self) -> None:
        with pm.Model() as model:
            pm.Normal("x")
        assert self.verdict(model, steps=2) == "trust"
