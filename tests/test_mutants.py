"""The table of bugs is up to date, and the runner tells what is killed from what survives."""

import ast

from functools import cache
from pathlib import Path

import pytest

from tests.mutants.mutant import Mutant
from tests.mutants.run import copies, run_all, unexplained
from tests.mutants.table import MUTANTS

ROOT = Path(__file__).parent.parent
# Smallest number of bugs, and largest share of those that may survive.
LEAST, KNOWN = 150, 0.05


@cache
def read(file: str) -> str:
    """Return the text of a file of the project."""
    return (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("file", sorted({mutant.file for mutant in MUTANTS}))
def test_every_bug_can_be_put_in(file: str) -> None:
    assert file.startswith("pymc_anneal/")
    text = read(file)
    for mutant in (m for m in MUTANTS if m.file == file):
        assert text.count(mutant.old) == 1, mutant.name
        assert mutant.old != mutant.new, mutant.name
        ast.parse(text.replace(mutant.old, mutant.new))
        for target in mutant.tests:
            own, *names = target.split("::")
            assert all(name in read(own) for name in names), mutant.name


def test_the_size_of_the_table() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= LEAST
    assert sum(bool(mutant.reason) for mutant in MUTANTS) <= KNOWN * len(MUTANTS)


def test_a_copy_is_complete() -> None:
    """What the table names is in a copy, and so is every file of the package."""
    wanted = {str(path.relative_to(ROOT)) for path in ROOT.glob("pymc_anneal/**/*.py")}
    wanted |= {target.split("::")[0] for mutant in MUTANTS for target in mutant.tests}
    with copies(ROOT, 1) as [path]:
        assert [name for name in sorted(wanted) if not (path / name).is_file()] == []


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """Return a project with a function and a test that sees half of its bugs."""
    (tmp_path / "toy.py").write_text("def double(x):\n    return 2 * x if x > 0 else 2 * x + 0\n")
    test = "from toy import double\n\n\ndef test_double():\n    assert double(3) == 6\n"
    (tmp_path / "test_toy.py").write_text(test)
    return tmp_path


SEEN = Mutant("toy.py", "return 2 * x if", "return 3 * x if", ("test_toy.py",))
UNSEEN = Mutant("toy.py", "2 * x + 0", "2 * x + 1", ("test_toy.py",))


def test_killed_and_survived(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = toy / "log"
    outcomes = run_all(toy, [SEEN, UNSEEN], workers=2, log=log)
    assert [bool(o.killed_by) for o in outcomes] == [True, False]
    assert "test_toy.py::test_double" in outcomes[0].killed_by
    assert unexplained([SEEN, UNSEEN], outcomes) == [UNSEEN]
    printed = capsys.readouterr().out
    assert "SURVIVED" in printed
    # From the log, without running anything.
    assert run_all(toy, [SEEN, UNSEEN], log=log) == outcomes
    assert "return 2 * x" in (toy / "toy.py").read_text()  # the bugs were put into copies


def test_a_reason_explains_a_survivor(toy: Path) -> None:
    known = Mutant(UNSEEN.file, UNSEEN.old, UNSEEN.new, UNSEEN.tests, "no test of negative numbers")
    assert unexplained([known], run_all(toy, [known])) == []


def test_a_test_that_fails_without_any_bug(toy: Path) -> None:
    (toy / "test_toy.py").write_text("def test_nothing():\n    assert False\n")
    with pytest.raises(RuntimeError, match="fails without any bug"):
        run_all(toy, [SEEN])


@pytest.mark.parametrize(
    "test", ["import os\nos.kill(os.getpid(), 9)\n", "def no_test():\n    pass\n"]
)
def test_tests_that_do_not_run_say_nothing(toy: Path, test: str) -> None:
    """Killed from outside, as by a machine without memory; or none has the name in the table."""
    (toy / "test_toy.py").write_text(test)
    with pytest.raises(RuntimeError, match="no test was run"):
        run_all(toy, [SEEN])


def test_an_entry_out_of_date(toy: Path) -> None:
    with pytest.raises(ValueError, match="the old text occurs 2 times"):
        Mutant("toy.py", "2 * x", "x", ()).apply(toy)
