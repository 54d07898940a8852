"""Many models in one call: all subsets of regressors, with their exact evidences."""

import time

from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from tests.sampling import subsets
from tests.sampling.small_model import (
    QUICK,
    assert_same,
    build_small_model,
    small_model,
    small_result,
)
from tests.serial_executor import Serial

# The module, which the function of the same name hides.
MODULE = import_module("pymc_anneal.sampling.sample_models")
US_CRIME = Path(__file__).parents[2] / "examples" / "data" / "us_crime.csv"


def check_subsets(x: np.ndarray, y: np.ndarray) -> dict:
    """Run all subsets; compare evidences, inclusion probabilities and averages with exact ones."""
    masks = subsets.masks(x.shape[1])
    results = pma.sample_models(
        {name: {"mask": mask} for name, mask in masks.items()},
        model=subsets.model(x, y),
        random_seed=1,
        progressbar=False,
    )
    found = {name: pma.log_evidence(result) for name, result in results.items()}
    exact = {name: subsets.log_evidence(x, y, mask) for name, mask in masks.items()}
    z = np.array([(found[n].log_evidence - exact[n]) / found[n].mcse for n in masks])
    assert np.abs(z).max() < 4
    included = {n: [f"x{j}" for j in np.flatnonzero(mask)] for n, mask in masks.items()}
    table = pma.inclusion(results, included)
    mass = np.exp(np.array(list(exact.values())) - max(exact.values()))
    for j in range(x.shape[1]):
        inside = np.array([mask[j] == 1 for mask in masks.values()])
        log_odds = np.log(mass[inside].sum() / mass[~inside].sum())
        row = table.loc[f"x{j}"]
        assert abs(row["log_bayes_factor"] - log_odds) < 3 * row["log_bayes_factor_mcse"]
    return results


@pytest.mark.slow
def test_two_regressors() -> None:
    x, y = subsets.standardised(subsets.CEMENT)
    check_subsets(x[:, :2], y)


@pytest.mark.slow
def test_all_subsets_of_the_cement_data() -> None:
    results = check_subsets(*subsets.standardised(subsets.CEMENT))
    assert len(results) == 16


@pytest.mark.slow
def test_256_subsets_in_two_minutes() -> None:
    data = np.log(np.loadtxt(US_CRIME, delimiter=",", skiprows=1))
    begin = time.process_time()
    check_subsets(*subsets.standardised(data))
    assert time.process_time() - begin < 120


class TestModels:
    def results(self, **settings) -> dict:
        models = {"small": build_small_model(), "other": small_model()}
        return pma.sample_models(models, **{**QUICK, "draws": 20, **settings})

    def test_separate_models(self) -> None:
        results = self.results()
        assert list(results) == ["small", "other"]
        first, second = (pma.log_evidence(r).log_evidence for r in results.values())
        assert first != second  # seeds of their own
        again = {n: pma.log_evidence(r).log_evidence for n, r in self.results().items()}
        assert list(again.values()) == [first, second]

    def test_errors_name_the_model(self) -> None:
        with pytest.raises(ValueError, match="`draws` is 0") as caught:
            self.results(draws=0)
        assert caught.value.__notes__ == ["This happened in the model 'small'."]

    @pytest.mark.parametrize("models", [{}, [small_model()]])
    def test_no_models(self, models) -> None:
        with pytest.raises(ValueError, match="expected a dict of at least one model"):
            pma.sample_models(models)

    @pytest.mark.parametrize("member", [None, 3, "model", [1.0]])
    def test_a_member_that_is_no_model(self, member) -> None:
        with pytest.raises(TypeError, match=r"`models\['b'\]` is .*, expected a pymc.Model"):
            pma.sample_models({"a": small_model(), "b": member})

    def test_values_are_looked_at_before_any_run(self, monkeypatch) -> None:
        monkeypatch.setattr(MODULE, "sample_ais", lambda **settings: pytest.fail("a run"))
        values = {"a": {"covariate": [1.0, 2.0, 3.0]}, "b": {"covariate": [1.0]}}
        with pytest.raises(ValueError, match="value of 'covariate' has shape"):
            pma.sample_models(values, model=build_small_model())

    def test_values_without_a_model(self) -> None:
        with pytest.raises(TypeError, match="[Nn]o model on context stack"):
            pma.sample_models({"a": {"mask": [1.0]}})

    def test_warnings_name_the_model(self) -> None:
        with pytest.warns(pma.EvidenceWarning, match="^other, log evidence") as caught:
            self.results(warnings=True)
        assert {Path(w.filename).name for w in caught} == {Path(__file__).name}

    def test_progress(self, capsys) -> None:
        with pm.Model() as model:
            pm.Normal("x")
        pma.sample_models({"[/only] [red]": model}, **{**QUICK, "draws": 10, "progressbar": True})
        text = capsys.readouterr().out
        assert "[/only] [red]" in text
        assert "Models" in text
        assert "log evidence" in text


class TestSideBySide:
    """The executor receives whole models, through a pickle."""

    MODELS: ClassVar[dict] = {
        "data": {"covariate": [1.0, 2.0, 3.0]},
        "other data": {"covariate": [1.0, 0.0, 3.0]},
    }

    def results(self, **settings) -> dict:
        models = {**self.MODELS, "own": build_small_model()}
        return pma.sample_models(
            models, **{**QUICK, "draws": 20, "model": build_small_model(), **settings}
        )

    @pytest.mark.slow
    def test_the_same_results(self) -> None:
        executor = Serial()
        results = self.results(executor=executor)
        assert executor.calls == 3
        assert list(results) == ["data", "other data", "own"]
        expected = self.results()
        for name, result in results.items():
            assert_same(result, expected[name])
        evidences = {pma.log_evidence(result).log_evidence for result in results.values()}
        assert len(evidences) == 3

    def test_errors_name_the_model(self) -> None:
        with pytest.raises(ValueError, match="`draws` is 0") as caught:
            self.results(draws=0, executor=Serial())
        (note,) = caught.value.__notes__
        assert note.startswith("This happened in the model '")

    @pytest.mark.slow
    def test_threads_run_the_blocks_of_one_model_after_another(self) -> None:
        with ThreadPoolExecutor(2) as executor:
            results = self.results(executor=executor)
        assert_same(results["own"], self.results()["own"])

    def test_no_executor(self) -> None:
        with pytest.raises(TypeError, match="without a method `submit`"):
            self.results(executor=2)


class TestStopped:
    """Ctrl-C keeps the models that are done."""

    @pytest.fixture
    def stopped_at(self, monkeypatch):
        def set_up(number: int, what) -> None:
            calls = iter(range(1, 4))

            def sample(**settings):
                return what() if next(calls) == number else small_result()

            monkeypatch.setattr(MODULE, "sample_ais", sample)

        return set_up

    def stop(self):
        raise KeyboardInterrupt

    def run(self) -> dict:
        models = {"a": small_model(), "b": small_model(), "c": small_model()}
        return pma.sample_models(models, progressbar=False)

    @pytest.mark.filterwarnings("ignore:[ab], log evidence")
    def test_during_a_pilot(self, stopped_at) -> None:
        stopped_at(2, self.stop)
        with pytest.warns(pma.EvidenceWarning, match=r"of 1 models, and none of \['b', 'c'\]"):
            assert list(self.run()) == ["a"]

    @pytest.mark.filterwarnings("ignore:[ab], log evidence")
    def test_during_a_counted_run(self, stopped_at) -> None:
        stopped_at(2, partial(interrupted, small_result()))
        with pytest.warns(pma.EvidenceWarning, match=r"of 2 models, and none of \['c'\]"):
            assert list(self.run()) == ["a", "b"]

    def fail(self):
        raise ZeroDivisionError

    @pytest.mark.parametrize("executor", [None, Serial()])
    def test_an_error_keeps_them_too(self, stopped_at, executor, monkeypatch) -> None:
        stopped_at(3, self.fail)
        models = {"a": small_model(), "b": small_model(), "c": small_model()}
        with pytest.raises(ZeroDivisionError) as caught:
            pma.sample_models(models, executor=executor, progressbar=False)
        assert sorted(caught.value.results) == ["a", "b"]
        own, kept = caught.value.__notes__
        assert own == "This happened in the model 'c'."
        assert "are in the attribute `results` of this error" in kept

    def test_before_any_model_is_done(self, stopped_at) -> None:
        stopped_at(1, self.stop)
        with pytest.raises(KeyboardInterrupt):
            self.run()


def interrupted(result):
    """Return a result as Ctrl-C leaves it."""
    result = deepcopy(result)
    result["evidence"].attrs["interruption"] = "10 of 20 particles are kept"
    return result
