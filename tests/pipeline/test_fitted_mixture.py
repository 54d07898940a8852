"""The start from a survey: a mixture fitted to it, or the prior if that is cheaper."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from pymc_anneal.pipeline import fitted_mixture
from tests.adaptation.vague_regression import vague_regression
from tests.model.discrete_model import discrete_model
from tests.problems import by_name

pytestmark = pytest.mark.usefixtures("long_road")


def two_modes(share: float, d: int, distance: float) -> tuple[pm.Model, float]:
    """Return a model with two modes of different mass, and its log evidence."""
    with pm.Model() as model:
        x = pm.Normal("x", 0, 3, shape=d)
        first = -0.5 * ((x - distance / 2) ** 2).sum()
        second = -0.5 * ((x + distance / 2) ** 2).sum()
        pm.Potential("modes", pt.logaddexp(np.log(share) + first, np.log(1 - share) + second))
    return model, d * (-0.5 * np.log(10) - distance**2 / 80)


def wells() -> tuple[pm.Model, float]:
    """Return a model with 16 modes."""
    with pm.Model() as model:
        x = pm.Normal("x", 0, 2, shape=4)
        pm.Potential("wells", pt.logaddexp(-3.125 * (x - 2) ** 2, -3.125 * (x + 2) ** 2).sum())
    variance = 4 + 0.16
    return model, 4 * (np.log(2) - 2 / variance + 0.5 * np.log(0.16 / variance))


def many_modes() -> tuple[pm.Model, float]:
    """Return a model with 24 modes at places of no order, and its log evidence."""
    means = np.random.default_rng(0).uniform(-30, 30, (24, 4))
    with pm.Model() as model:
        x = pm.Normal("x", 0, 30, shape=4)
        pm.Potential("modes", pt.logsumexp(-0.5 * ((x[None] - means) ** 2).sum(axis=1)))
    log_density = stats.norm(0, np.sqrt(901)).logpdf(means).sum(axis=1)
    return model, float(np.logaddexp.reduce(log_density) + 2 * np.log(2 * np.pi))


@pytest.fixture(scope="module")
def shell() -> tuple[pma.CompiledModel, float]:
    """Return a thin shell in three dimensions, of which no normal density is an approximation."""
    with pm.Model() as model:
        x = pm.Normal("x", 0, 2, shape=3)
        pm.Potential("shell", -0.5 * ((pt.sqrt((x**2).sum()) - 3) / 0.05) ** 2)
    grid = np.linspace(2.5, 3.5, 10_001)
    density = stats.chi(3, scale=2).pdf(grid) * np.exp(-0.5 * ((grid - 3) / 0.05) ** 2)
    return pma.compile_model(model), float(np.log(density.sum() * 1e-4))


def cusps(d: int) -> tuple[pm.Model, float]:
    """Return a model of ``d`` sharp tops, one each coordinate, and its log evidence."""
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=d)
        pm.Potential("cusps", -3 * pt.abs(x - 1).sum())
    rise, fall = (
        slope * stats.norm.cdf(at) for slope, at in ((np.exp(1.5), -2), (np.exp(7.5), -4))
    )
    return model, d * float(np.log(rise + fall))


def run(model: pm.Model, **kwargs):
    return pma.sample_ais(model=model, progressbar=False, **kwargs)


def attributes(idata) -> dict[str, str]:
    return group(idata, "evidence").attrs


class TestEvidence:
    @pytest.mark.parametrize("share", [pytest.param(0.8, marks=pytest.mark.slow), 0.95])
    def test_unequal_modes(self, share: float) -> None:
        model, log_evidence = two_modes(share, 10, 8.0)
        for seed in range(3):
            idata = run(model, random_seed=seed)
            found = pma.log_evidence(idata)
            assert attributes(idata)["reference"] == "mixture"
            assert found.verdict.trusted
            assert abs(found.log_evidence - log_evidence) < 4 * found.mcse

    @pytest.mark.slow
    def test_a_small_error(self) -> None:
        regression = vague_regression(d=10)
        idata = run(regression.model, target_mcse=0.005, random_seed=1)
        found = pma.log_evidence(idata)
        assert found.mcse <= 0.005
        assert abs(found.log_evidence - regression.log_evidence) < 4 * found.mcse

    @pytest.mark.slow
    def test_steps_of_the_user(self) -> None:
        model, log_evidence = two_modes(0.8, 3, 6.0)
        idata = run(model, steps=7, random_seed=1)
        found = pma.log_evidence(idata)
        assert len(np.asarray(group(idata, "annealing")["beta"])[0]) == 7
        assert abs(found.log_evidence - log_evidence) < 4 * found.mcse

    @pytest.mark.slow
    def test_both_directions_start_from_the_prior(self) -> None:
        model, log_evidence = two_modes(0.8, 3, 6.0)
        idata = run(model, reverse_from="draws", random_seed=1)
        found = pma.log_evidence(idata)
        assert attributes(idata)["reference"] == "prior"
        assert abs(found.log_evidence - log_evidence) < 4 * found.mcse

    @pytest.mark.slow
    def test_draws_are_those_of_the_posterior(self) -> None:
        model, _ = two_modes(0.8, 2, 8.0)
        draws = np.asarray(run(model, random_seed=3)["posterior"]["x"]).mean(axis=-1).ravel()
        assert (draws > 0).mean() == pytest.approx(0.8, abs=0.05)
        assert draws[draws > 0].mean() == pytest.approx(3.6, abs=0.1)


class TestChoice:
    @pytest.mark.slow
    def test_the_prior_where_the_mixture_is_no_nearer(self, shell) -> None:
        model, log_evidence = shell
        idata = run(model, random_seed=1)
        found = pma.log_evidence(idata)
        attrs = attributes(idata)
        assert attrs["reference"] == "prior"
        assert abs(found.log_evidence - log_evidence) < 4 * found.mcse
        assert "mixture" in attrs["reference_costs"] or attrs["path_rejected_because"]

    @pytest.mark.quick_cases("auto-True-0.01-True", "hmc-True-0.01-False")
    @pytest.mark.parametrize(
        ("transition", "costly", "share", "own"),
        [
            ("auto", True, 0.01, True),
            ("auto", True, 0.5, False),
            ("auto", False, 0.01, False),
            ("hmc", True, 0.01, False),
        ],
    )
    def test_proposals_from_a_mixture_that_is_near(
        self, transition, costly, share, own, monkeypatch
    ) -> None:
        """Where gradients take more than their share of the time; not if HMC is asked for."""
        monkeypatch.setattr(pma.CompiledModel, "costly", costly)
        monkeypatch.setattr(fitted_mixture, "RUN_SHARE", share)
        model, log_evidence = two_modes(0.8, 3, 6.0)
        idata = run(model, transition=transition, random_seed=1)
        found = pma.log_evidence(idata)
        assert attributes(idata)["transition"] == ("IndependenceMetropolis" if own else "HMC")
        assert found.verdict.trusted
        assert abs(found.log_evidence - log_evidence) < 4 * found.mcse
        accepted = np.asarray(group(idata, "annealing")["accept_rate"])
        assert accepted.mean() > 0.5

    def test_the_prior_where_there_is_nothing_to_learn(self) -> None:
        with pm.Model() as model:
            pm.Normal("x", 0, 1, shape=3)
        idata = run(model, random_seed=1)
        assert attributes(idata)["reference"] == "prior"
        assert pma.log_evidence(idata).log_evidence == pytest.approx(0, abs=1e-9)

    @pytest.mark.slow
    def test_a_short_path_from_the_prior_needs_no_pilot_but_the_survey(self) -> None:
        with pm.Model() as model:
            x = pm.Uniform("x")
            pm.Normal("y", x, 5.0, observed=3.0)
        idata = run(model, random_seed=1)
        found = pma.log_evidence(idata)
        assert attributes(idata)["reference"] == "prior"
        exact = np.log(np.diff(stats.norm.cdf([2.0, 3.0], scale=5.0))[0])
        assert abs(found.log_evidence - exact) < 4 * found.mcse
        assert found.verdict.trusted
        assert int(idata["evidence"]["evaluations"]) < 60_000

    @pytest.mark.slow
    def test_a_half_space_costs_no_pilot_from_the_prior(self) -> None:
        """Where half of the prior has zero likelihood, and the other half needs no annealing."""
        idata = run(by_name("half_space").build(), random_seed=1)
        assert attributes(idata)["reference"] == "mixture"
        stages = pma.log_evidence(idata).stages
        assert sum(s.evaluations for name, s in stages.items() if name != "Levels") < 500_000

    @pytest.mark.slow
    def test_pilot_insists(self, shell) -> None:
        model, log_evidence = shell
        idata = run(model, reference="pilot", random_seed=1)
        found = pma.log_evidence(idata)
        assert attributes(idata)["reference"] == "mixture"
        assert abs(found.log_evidence - log_evidence) < 4 * found.mcse

    @pytest.mark.slow
    def test_sixteen_modes(self) -> None:
        model, log_evidence = wells()
        idata = run(model, random_seed=1)
        found = pma.log_evidence(idata)
        share = np.asarray(idata["modes"]["mode_share"])
        assert (share > 0.02).sum() == 16  # components between them may hold a thousandth
        np.testing.assert_allclose(share[share > 0.02], 1 / 16, atol=0.02)
        assert abs(found.log_evidence - log_evidence) < 4 * found.mcse

    def test_a_search_that_costs_little_beside_the_run_from_the_prior_goes_on(self) -> None:
        model, log_evidence = many_modes()
        idata = run(model, random_seed=1)
        found = pma.log_evidence(idata)
        assert attributes(idata)["reference"] == "mixture"
        assert (np.asarray(idata["modes"]["mode_share"]) > 1e-3).sum() == 24
        assert abs(found.log_evidence - log_evidence) < 4 * found.mcse
        # A run from the prior takes two million.
        assert sum(reading.evaluations for reading in found.stages.values()) < 500_000

    @pytest.mark.slow
    def test_discrete_variables(self) -> None:
        idata = run(discrete_model(), draws=25, random_seed=1, discrete="sample")
        assert attributes(idata)["reference"] == "configurations"

    @pytest.mark.slow
    def test_other_paths_start_from_the_prior(self) -> None:
        model, _ = two_modes(0.8, 1, 4.0)
        idata = run(model, path=pma.QPath(), draws=25, random_seed=1)
        assert attributes(idata)["reference"] == "prior"

    @pytest.mark.slow
    def test_the_default_path_is_kept_near_the_posterior(self) -> None:
        model, _ = two_modes(0.8, 1, 4.0)
        runs = [run(model, path=path, random_seed=1) for path in ("auto", "geometric")]
        weights = [np.asarray(group(r, "annealing")["log_weight"]) for r in runs]
        np.testing.assert_array_equal(*weights)

    @pytest.mark.slow
    @pytest.mark.parametrize("asked", [True, False])
    def test_a_mixture_that_is_far_is_not_too_low_for_that_alone(self, asked, monkeypatch) -> None:
        """Its draws are 1.5 to 3 nats too low in 150 dimensions, and those of its pilot right.

        The twin is asked about them, and takes the prior: twenty times the cost.
        """
        if asked:
            monkeypatch.setattr(fitted_mixture, "NEAR", np.inf)
        model, log_evidence = cusps(150)
        idata = run(model, draws=100, target_mcse=0.3, random_seed=1)
        found = pma.log_evidence(idata)
        assert attributes(idata)["reference"] == ("prior" if asked else "mixture")
        assert abs(found.log_evidence - log_evidence) < 4 * found.mcse

    def test_nothing_to_plan_or_tune(self) -> None:
        model, _ = two_modes(0.8, 1, 4.0)
        idata = run(model, steps=20, schedule="linear", transition=pma.HMC(0.5, 3, 1.0))
        assert attributes(idata)["reference"] == "prior"
        assert np.isnan(float(group(idata, "evidence")["pilot_log_evidence"]))
