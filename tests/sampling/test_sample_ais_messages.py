"""`sample_ais`: progress, notes, errors, verdicts, interruption."""

import warnings

from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from pymc_anneal.execution import blocks
from pymc_anneal.pipeline import session
from tests.problems import by_name
from tests.sampling.small_model import QUICK, evidence_attrs, small_model


class TestOutput:
    @pytest.mark.slow
    def test_nothing_is_printed_without_a_progress_bar(self, capsys) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pma.sample_ais(200, chains=2, random_seed=1, progressbar=False, model=small_model())
        captured = capsys.readouterr()
        assert captured.out == captured.err == ""

    def test_stages_are_shown(self, capsys) -> None:
        pma.sample_ais(200, chains=2, random_seed=1, progressbar=True, model=small_model())
        shown = capsys.readouterr().out
        assert "Survey" in shown
        assert "Annealing" in shown
        assert "log Z" in shown

    def test_potentials_are_noted(self) -> None:
        with pm.Model() as model:
            x = pm.Normal("x")
            pm.Potential("extra", -(x**2))
        result = pma.sample_ais(200, model=model, **QUICK)
        assert "'extra' is tempered with the likelihood" in evidence_attrs(result)["notes"]
        evidence = pma.log_evidence(result)
        assert abs(evidence.log_evidence + 0.5 * np.log(3)) < 5 * evidence.mcse


class TestErrors:
    def test_nan_names_the_term_and_the_value(self) -> None:
        with pm.Model() as model:
            x = pm.Normal("x")
            pm.Normal("fine", x, 1.0, observed=[0.0])
            pm.Potential("culprit", pt.log(x))
        for steps in (5, "auto"):
            with pytest.raises(ValueError, match=r"NaN in the term\(s\) \['culprit'\] at x = -"):
                pma.sample_ais(50, model=model, **{**QUICK, "steps": steps})

    def test_all_likelihoods_are_zero(self) -> None:
        with pm.Model() as model:
            x = pm.HalfNormal("x")
            pm.Potential("never", pt.switch(x > 0, -np.inf, 0.0))
        with pytest.raises(ValueError, match="zero at all of .* prior draws.*contradict"):
            pma.sample_ais(50, chains=2, model=model, progressbar=False)
        with pytest.raises(ValueError, match="All weights of a chain are zero"):
            pma.sample_ais(50, model=model, **QUICK)

    def test_likelihood_of_plus_infinity(self) -> None:
        with pm.Model() as model:
            x = pm.Normal("x")
            pm.Potential("spike", pt.switch(x > 0, np.inf, 0.0))
        with pytest.raises(ValueError, match=r"log likelihood is \+inf"):
            pma.sample_ais(50, chains=2, model=model, progressbar=False)
        with pytest.raises(ValueError, match=r"\+inf"):
            pma.sample_ais(50, model=model, **QUICK)

    def test_an_improper_prior_is_named(self) -> None:
        with pm.Model() as model:
            pm.Flat("x")
        with pytest.raises(ValueError, match="'x' has the improper prior"):
            pma.sample_ais(model=model, **QUICK)


class TestVerdict:
    def test_a_poor_run_is_not_trusted(self) -> None:
        # One step from a wide prior to a narrow posterior.
        arguments = {**QUICK, "steps": 1}
        result = pma.sample_ais(100, model=by_name("informative_1e3").build(), **arguments)
        verdict = pma.log_evidence(result).verdict
        assert verdict.status in ("do not trust", "more steps needed")
        assert verdict.reasons
        assert not verdict.trusted

    def test_a_good_run_is_trusted(self) -> None:
        result = pma.sample_ais(
            200, chains=2, random_seed=1, progressbar=False, model=small_model()
        )
        assert pma.log_evidence(result).verdict.trusted


class _FirstBlockOnly:
    """An executor that runs one block and receives Ctrl-C on the next."""

    def __init__(self, workers: int):
        self._submitted = 0

    def __enter__(self):
        return self

    def __exit__(self, *exception) -> None:
        pass

    def submit(self, function, *args, **kwargs) -> Future:
        future: Future = Future()
        self._submitted += 1
        if self._submitted == 1:
            future.set_result(function(*args, **kwargs))
        else:
            future.set_exception(KeyboardInterrupt())
        return future


def test_an_interrupted_run_keeps_the_finished_blocks(monkeypatch) -> None:
    monkeypatch.setattr(blocks, "ThreadPoolExecutor", _FirstBlockOnly)
    result = pma.sample_ais(90, model=small_model(), block_size=60, **QUICK)
    assert group(result, "annealing")["log_weight"].shape == (2, 30)
    assert group(result, "posterior").sizes["draw"] == 90
    verdict = str(pma.log_evidence(result).verdict)
    assert "the run was interrupted: 60 of 180 particles are kept" in verdict


@pytest.mark.parametrize("stage", ["run_pilot", "anneal"])
def test_a_stop_before_the_first_result_loses_nothing(
    stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(session, stage, stop)
    with pytest.raises(KeyboardInterrupt, match="nothing is lost, because nothing was counted"):
        pma.sample_ais(90, model=small_model(), transition=pma.HMC(), progressbar=False)


def test_a_stop_names_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "run_pilot", stop)
    settings = {"checkpoint": tmp_path / "file", "progressbar": False}
    with pytest.raises(KeyboardInterrupt, match="goes on from the checkpoint"):
        pma.sample_ais(90, model=small_model(), transition=pma.HMC(), **settings)


@pytest.mark.slow
@pytest.mark.parametrize(("minutes", "cut"), [(1e-9, True), (20.0, False)])
def test_a_time_limit_says_what_it_cut(minutes: float, cut: bool) -> None:
    result = pma.sample_ais(
        200,
        chains=2,
        model=small_model(),
        target_mcse=0.05,
        max_minutes=minutes,
        reference="prior",
        random_seed=1,
        progressbar=False,
    )
    found = pma.log_evidence(result)
    assert ("`max_minutes` = 1e-09 cut the plan from" in found.notes) == cut
    assert found.verdict.trusted != cut
