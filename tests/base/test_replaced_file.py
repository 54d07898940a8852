"""Files that are replaced as a whole, and belong to one run at a time."""

import subprocess
import sys

from pathlib import Path

import pytest

from pymc_anneal.base.replaced_file import locked, replace_file


def test_the_new_version_replaces_the_old_one(tmp_path: Path) -> None:
    for content in (b"first", b"second"):
        replace_file(tmp_path / "file", lambda file, content=content: file.write(content))
    assert (tmp_path / "file").read_bytes() == b"second"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_failure_keeps_the_old_version(tmp_path: Path) -> None:
    replace_file(tmp_path / "file", lambda file: file.write(b"first"))

    def fail(file) -> None:
        file.write(b"half")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        replace_file(tmp_path / "file", fail)
    assert (tmp_path / "file").read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_one_writer_while_another_writes(tmp_path: Path) -> None:
    """Each has a temporary file of its own, so that whoever is last leaves a complete version."""

    def write(file) -> None:
        file.write(b"outer")
        replace_file(tmp_path / "file", lambda inner: inner.write(b"inner, longer"))

    replace_file(tmp_path / "file", write)
    assert (tmp_path / "file").read_bytes() == b"outer"


def test_the_lock_is_free_again(tmp_path: Path) -> None:
    for _ in range(2):
        with locked(tmp_path / "file"):
            pass


def test_a_second_run_in_this_process(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "file"),
        pytest.raises(RuntimeError, match=r"Another run is writing to the checkpoint .*file"),
        locked(tmp_path / "file"),
    ):
        pass


def test_a_second_run_in_another_process(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from pymc_anneal.base.replaced_file import locked\n"
        "with locked(Path(sys.argv[1])): pass"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "file")]
    with locked(tmp_path / "file"):
        inside = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Another run is writing to the checkpoint" in inside.stderr
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
