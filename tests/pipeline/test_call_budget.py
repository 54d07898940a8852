"""`max_minutes` of slow black boxes, by a clock that only the calls advance."""

import warnings

from types import SimpleNamespace
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

import pymc_anneal as pma

from pymc_anneal.adaptation.pilot import PilotTooLongError
from pymc_anneal.annealing import loop
from pymc_anneal.base.progress import PilotProgress
from pymc_anneal.execution import checkpoint
from pymc_anneal.model import host_calls
from pymc_anneal.pipeline import call_budget
from pymc_anneal.pipeline.call_budget import CallBudget

pytestmark = pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning")


class Clock:
    """A clock that shows the seconds that have been spent on it."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now


CLOCK = Clock()


class OneSecond(Op):
    """A normal log density that takes a second."""

    def make_node(self, x):
        return Apply(self, [pt.as_tensor(x)], [pt.dscalar()])

    def perform(self, node, inputs, outputs):
        CLOCK.now += 1.0
        outputs[0][0] = np.asarray(-2.0 * (inputs[0] - 1) ** 2)


@pytest.fixture(scope="module")
def model() -> pma.CompiledModel:
    with pm.Model() as model:
        pm.Potential("likelihood", OneSecond()(pm.Normal("x")))
    return pma.compile_model(model)


EXACT = -0.5 * np.log(5) - 0.4


@pytest.fixture
def run(model, monkeypatch):
    clock = SimpleNamespace(perf_counter=CLOCK.perf_counter, monotonic=CLOCK.perf_counter)
    for module in (host_calls, loop, checkpoint):
        monkeypatch.setattr(module, "time", clock)

    def run(minutes: float, draws: int = 50, **settings: Any) -> tuple[Any, float]:
        begin = CLOCK.now
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The model has no gradient")
            idata = pma.sample_ais(
                draws,
                model=model,
                max_minutes=minutes,
                random_seed=1,
                progressbar=False,
                **settings,
            )
        return idata, (CLOCK.now - begin) / 60

    return run


@pytest.mark.slow
def test_a_generous_budget_changes_nothing(run) -> None:
    (free, minutes), (limited, _) = run(np.inf), run(1e4)
    np.testing.assert_array_equal(
        free["annealing"]["log_weight"], limited["annealing"]["log_weight"]
    )
    assert "max_minutes" not in free["evidence"].attrs["notes"]
    assert float(free["evidence"]["seconds_per_evaluation"]) == pytest.approx(1.0)
    assert minutes > 30
    estimate = pma.log_evidence(free)
    assert abs(estimate.log_evidence - EXACT) < 4 * estimate.mcse


def test_a_budget_for_a_part_of_a_pilot(run) -> None:
    """The error comes before the time is spent, and says what it is spent on."""
    begin = CLOCK.now
    with pytest.raises(ValueError, match=r"`max_minutes` is 20.*takes 1 s\. The survey is at beta"):
        run(20)
    assert (CLOCK.now - begin) / 60 < 20


@pytest.mark.slow
def test_the_plan_is_cut_to_what_the_pilots_leave(run) -> None:
    settings = {"reference": "prior", "target_mcse": 0.01, "warnings": False}
    _, free = run(np.inf, **settings)
    idata, minutes = run(0.6 * free, **settings)
    assert minutes < 0.75 * free  # the audit of the modes comes on top
    assert "cut the plan from" in idata["evidence"].attrs["notes"]
    estimate = pma.log_evidence(idata)
    assert abs(estimate.log_evidence - EXACT) < 4 * estimate.mcse


@pytest.mark.slow
def test_more_draws_than_there_is_time_for(run) -> None:
    _, free = run(np.inf, 50)
    with pytest.warns(UserWarning, match=r"The counted run takes about .* fewer `draws`"):
        idata, _ = run(free, 2000)
    assert "The counted run takes about" in idata["evidence"].attrs["notes"]


@pytest.mark.parametrize(
    ("seconds", "evaluations"), [(None, np.inf), (0.0, np.inf), (0.5, 1200), (20.0, 30)]
)
def test_evaluations_for_which_there_is_time(seconds, evaluations) -> None:
    assert CallBudget(20.0, 600.0, seconds).evaluations == evaluations


def test_a_plan_that_fills_the_budget_is_no_overrun() -> None:
    budget = CallBudget(20.0, 600.0, 1.0)
    assert budget.describe_overrun(610.0) == ""
    assert (
        "takes about 15.0 minutes, and `max_minutes` = 20 leaves 10.0"
        in budget.describe_overrun(900)
    )


def test_the_counted_run_of_a_model_in_jax_has_a_quarter_of_the_time_at_least() -> None:
    for passed, left in ((0.0, 1200), (600.0, 600), (1000.0, 300), (5000.0, 300)):
        assert CallBudget(20.0, passed, None).counted_seconds == pytest.approx(left)
    for passed, left in ((600.0, 600), (1000.0, 200), (5000.0, 0)):
        assert CallBudget(20.0, passed, 0.5).counted_seconds == pytest.approx(left)
    assert CallBudget(np.inf, 600.0, None).counted_seconds == np.inf


def test_a_long_pilot_of_a_model_in_jax_is_timed() -> None:
    budget = CallBudget(20.0, 600.0, None)
    assert budget.paced(1000, 59.0) == budget.paced(0, 600.0) == budget
    paced = budget.paced(1000, 100.0)
    assert paced.evaluations == pytest.approx(6000)
    paced.check_pilot("pilot", PilotProgress(0.1, 0.0, 1, 0.5, 1000, 5999))
    with pytest.raises(PilotTooLongError, match=r"evaluation takes 0.1 s. The pilot is at beta"):
        paced.check_pilot("pilot", PilotProgress(0.1, 0.0, 1, 0.5, 1000, 6001))
    assert CallBudget(20.0, 600.0, 0.5).paced(1000, 100.0).seconds_per_evaluation == 0.5


def test_a_pilot_of_a_model_in_jax_ends_with_its_time(monkeypatch) -> None:
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("x", 0, 10), 0.1, observed=3.0)
    settings = {"reference": "prior", "max_minutes": 1e-9, "random_seed": 1, "progressbar": False}
    monkeypatch.setattr(call_budget, "_LONG_PILOT", 0.0)
    with pytest.raises(ValueError, match=r"`max_minutes` is 1e-09.* The pilot is at beta = 0\.\d"):
        pma.sample_ais(model=model, warnings=False, **settings)


def test_the_last_temperature_needs_no_time() -> None:
    CallBudget(1.0, 600.0, 1.0).check_pilot("pilot", PilotProgress(1.0, 0.0, 1, 0.5, 10, 0))
