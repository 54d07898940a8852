"""Runs that ended early: one line for each case."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from pymc_anneal.adaptation.plan import Plan
from pymc_anneal.pipeline.cut_short import describe_interruption, explain_time_limit
from pymc_anneal.pipeline.settings import Settings


@dataclass
class Run:
    """The parts of an annealed run that matter here."""

    particles: int = 600
    planned: int = 600
    interrupted: bool = False
    population_size: int = 1
    spread: float = 5.0

    @property
    def log_weight(self) -> np.ndarray:
        return self.spread * np.random.default_rng(1).normal(size=(2, self.particles // 2))


@dataclass
class Forward:
    """Rounds."""

    rounds: list[Run] = field(default_factory=list)
    plan: Plan | None = None

    @property
    def last(self) -> Run:
        return self.rounds[-1]

    @property
    def log_weight(self) -> np.ndarray:
        return np.concatenate([r.log_weight for r in self.rounds], axis=1)


WHOLE, PART = Run(), Run(particles=200, interrupted=True)


@pytest.mark.parametrize(
    ("rounds", "words"),
    [
        ([WHOLE], ""),
        ([PART], "200 of 600 particles are kept"),
        ([WHOLE, PART], "in round 2, 200 of 600 particles are kept and all of round 1"),
        (
            [WHOLE, WHOLE, PART],
            "in round 3, 200 of 600 particles are kept and all of rounds 1 to 2",
        ),
        ([Run(interrupted=True)], "in round 2, and all of round 1 is kept"),
    ],
)
def test_interruption(rounds: list[Run], words: str) -> None:
    assert describe_interruption(Forward(rounds), reverse_stopped=False) == words


def test_a_stopped_reverse_run() -> None:
    words = describe_interruption(Forward([WHOLE]), reverse_stopped=True)
    assert words == "the forward run is complete and kept"


class TestTimeLimit:
    def explain(self, run: Run, plan: Plan | None = None, **settings: object) -> str:
        given = {"draws": 300, "chains": 2, "max_minutes": 3.0, "max_rounds": 3, **settings}
        chosen = Settings(**given)
        return explain_time_limit(chosen, Forward([run], plan))

    def test_an_error_above_the_target(self) -> None:
        assert self.explain(WHOLE) == (
            "`max_minutes` = 3 ended the run before its error reached the target; all 600 "
            "particles of round 1 are kept."
        )

    def test_a_plan_that_was_cut(self) -> None:
        cut, whole = (Plan(5, 600, predicted, 1.0) for predicted in (0.5, 0.05))
        assert self.explain(WHOLE, cut, max_rounds=1) != ""
        assert self.explain(WHOLE, whole, max_rounds=1) == ""

    @pytest.mark.parametrize(
        ("run", "settings"),
        [
            (Run(spread=0.01), {}),
            (PART, {}),
            (WHOLE, {"steps": 10}),
            (WHOLE, {"max_rounds": 1}),
            (WHOLE, {"max_minutes": np.inf}),
        ],
    )
    def test_other_ends(self, run: Run, settings: dict[str, object]) -> None:
        assert self.explain(run, **settings) == ""
