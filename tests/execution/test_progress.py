"""Progress bars show the state of the blocks and of the pilot."""

from io import StringIO

from rich.console import Console

from pymc_anneal.base.progress import BlockProgress, PilotProgress
from pymc_anneal.execution.progress import BlocksProgress, ProgressDisplay


def shown(*, enabled: bool = True) -> str:
    """Text of a display with a pilot and two blocks."""
    output = StringIO()
    console = Console(file=output, width=120, force_terminal=True)
    with ProgressDisplay(enabled, console) as display:
        display.add_bar("Pilot").show(PilotProgress(0.25, -3.14159, 7, 0.8))
        blocks = BlocksProgress(display.add_bar("Annealing", 20))
        blocks.report(0, BlockProgress(10, 10, 1.0, -2.0, 0.5))
        blocks.report(1, BlockProgress(5, 10, 0.5, -1.2345, 0.75))
    return output.getvalue()


def test_status() -> None:
    text = shown()
    assert "Pilot" in text
    assert "beta 0.25  log Z -3.14  accept 80%" in text
    assert "step 5/10  beta 0.5  ESS 75%  log Z -1.23" in text


def test_steps_of_all_blocks_are_added() -> None:
    display = ProgressDisplay(False)
    blocks = BlocksProgress(display.add_bar("Annealing", 20))
    for index, step in [(0, 4), (1, 6), (0, 10)]:
        blocks.report(index, BlockProgress(step, 10, step / 10, 0.0, 1.0))
    (task,) = display._progress.tasks
    assert (task.completed, task.total) == (16, 20)


def test_the_first_text_is_the_compilation() -> None:
    display = ProgressDisplay(False)
    bar = display.add_bar("Survey")
    (task,) = display._progress.tasks
    assert task.fields["status"] == "compiling"
    bar.show(PilotProgress(0.0, 0.0, 11, 1.0))
    assert task.fields["status"] == "compiling, then moves of 11 evaluations"


def test_a_bar_takes_the_place_of_a_full_one_of_its_name() -> None:
    display = ProgressDisplay(False)
    full, other = display.add_bar("Survey"), display.add_bar("Fit")
    full.update(1.0, "done")
    other.update(0.5, "half")
    for name in ("Survey", "Fit"):
        display.add_bar(name)
    assert [task.description for task in display._progress.tasks] == ["Fit", "Survey", "Fit"]


def test_work_of_unknown_length() -> None:
    display = ProgressDisplay(False)
    with display.busy("Fit", "further modes"):
        (task,) = display._progress.tasks
        assert task.total is None
        assert not task.finished
    assert task.finished


def test_nothing_is_shown_if_disabled() -> None:
    assert shown(enabled=False).strip() == ""
