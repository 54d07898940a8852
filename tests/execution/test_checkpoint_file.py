"""The file of a checkpoint: what is refused, and why."""

import hashlib
import json

from pathlib import Path

import pytest

from pymc_anneal.execution.checkpoint import Checkpoint
from pymc_anneal.execution.checkpoint_file import read_checkpoint, write_checkpoint


def test_round_trip(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "file", {"setting": "1"}, b"first")
    write_checkpoint(tmp_path / "file", {"setting": "2"}, b"body\nwith lines")
    assert read_checkpoint(tmp_path / "file") == ({"setting": "2"}, b"body\nwith lines")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("content", [b"", b"\xff", b"other\n1", b"[1]\n", b'{"format": 3}\n'])
def test_not_a_checkpoint(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match="is not a complete checkpoint"):
        read_checkpoint(tmp_path / "file")


def test_a_damaged_file(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "file", {}, b"content")
    content = (tmp_path / "file").read_bytes()
    (tmp_path / "file").write_bytes(content[:-3])
    with pytest.raises(ValueError, match="is not a complete checkpoint"):
        read_checkpoint(tmp_path / "file")


@pytest.mark.parametrize(("number", "age"), [("1", "an older"), ("5", "a newer")])
def test_another_format(tmp_path: Path, number: str, age: str) -> None:
    """The body may hold classes that this version lacks: it is not unpickled."""
    body = b"a pickle of classes that no longer exist"
    header = {
        "format": f"pymc_anneal checkpoint {number}",
        "sha256": hashlib.sha256(body).hexdigest(),
        "fingerprint": {},
    }
    (tmp_path / "file").write_bytes(json.dumps(header).encode() + b"\n" + body)
    expected = f"has format {number}, of {age} version .* this version expects format 4"
    with pytest.raises(ValueError, match=expected) as caught:
        Checkpoint(tmp_path / "file").open({})
    assert "Finish the run with the version that wrote the file" in str(caught.value)
