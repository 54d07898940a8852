"""Held-out particles of a survey against references, coordinates and runs that miss modes."""

import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from pymc_anneal.pipeline import coordinates_given_data, fitted_mixture
from pymc_anneal.pipeline.hear_witnesses import Hearing, hear_witnesses

PHASES = np.array([0.3, -0.55, 0.8])


@pytest.fixture(scope="module")
def phases() -> tuple[pma.CompiledModel, float]:
    """Return the phases of three sinusoids, some 2,000 modes, and the log evidence on a grid."""
    with pm.Model() as model:
        x = pm.Normal("x", 0.4, 1.5, shape=3)
        pm.Normal("y", pm.math.cos(6 * x), 0.05, observed=PHASES)
    grid = np.linspace(-12, 13, 200_001)
    step = grid[1] - grid[0]
    each = [stats.norm.pdf(y, np.cos(6 * grid), 0.05) for y in PHASES]
    density = stats.norm.pdf(grid, 0.4, 1.5) * step
    return pma.compile_model(model), float(sum(np.log(e @ density) for e in each))


def run(model, seed: int = 1, **arguments):
    return pma.sample_ais(
        model=model, random_seed=seed, progressbar=False, warnings=False, **arguments
    )


def silent(session, surveyed, log_ratio, draws, log_evidence, level=1e-2) -> Hearing:
    """Hear witnesses who never object."""
    found = hear_witnesses(session, surveyed, log_ratio, draws, log_evidence, level)
    return found._replace(objection="")


class TestManyModes:
    """A mixture of a few modes is far from the posterior, though each of its modes fits."""

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", [2, 3])
    def test_the_evidence(self, phases, seed: int) -> None:
        model, log_evidence = phases
        found = pma.log_evidence(run(model, seed))
        assert found.verdict.trusted
        assert abs(found.log_evidence - log_evidence) < 4 * found.mcse

    @pytest.mark.slow
    def test_the_prior_is_taken_and_the_result_names_its_witnesses(self, phases) -> None:
        model, log_evidence = phases
        idata = run(model, 0)
        found, attrs = pma.log_evidence(idata), group(idata, "evidence").attrs
        assert found.verdict.trusted
        assert abs(found.log_evidence - log_evidence) < 4 * found.mcse
        assert attrs["reference"] == "prior"
        assert "misses a part of the posterior" in attrs["path_rejected_because"]
        held_out, modes = found.witnesses
        assert (held_out.kind, modes.kind) == ("held-out particles", "modes")
        assert 1 < held_out.number < 128
        assert abs(held_out.log_evidence - log_evidence) < 3
        assert "witnesses: " in repr(found)
        assert "held-out particles" in found._repr_html_()

    @pytest.mark.slow
    def test_without_witnesses_before_the_run_it_is_wrong_and_they_say_so(
        self, phases, monkeypatch
    ) -> None:
        """The twin: nobody objects to coordinates and mixture that know one mode each."""
        model, log_evidence = phases
        monkeypatch.setattr(coordinates_given_data, "hear_witnesses", silent)
        monkeypatch.setattr(fitted_mixture, "hear_witnesses", silent)
        monkeypatch.setattr(fitted_mixture, "_INCOMPLETE", "")
        found = pma.log_evidence(run(model, 2))
        assert abs(found.log_evidence - log_evidence) > 1
        assert found.verdict.status == "do not trust"
        assert "held-out particles" in str(found.verdict)


@pytest.mark.slow
def test_a_run_with_given_steps_has_none(phases) -> None:
    model, _ = phases
    assert pma.log_evidence(run(model, steps=3, draws=50, reference="prior")).witnesses == ()
