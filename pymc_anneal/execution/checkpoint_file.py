"""The file of a checkpoint: one line of JSON, the header, followed by a pickle, the body.

The header holds the format, a hash of the body, and the fingerprint of the run, which can therefore
be compared without unpickling.
"""

import hashlib
import json

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pymc_anneal.base.replaced_file import replace_file

# Text in front of the number of the format.
_KIND = "pymc_anneal checkpoint"

# Number of the format, which changes with the classes in the body.
_FORMAT = 4


def write_checkpoint(path: Path, fingerprint: Mapping[str, str], body: bytes) -> None:
    """Replace a file so that at every moment either the old or the new version is complete."""
    header = {"format": f"{_KIND} {_FORMAT}", "sha256": _hash(body), "fingerprint": fingerprint}
    head = json.dumps(header).encode()
    replace_file(path, lambda file: file.write(head + b"\n" + body))


def read_checkpoint(path: Path) -> tuple[dict[str, str], bytes]:
    """Return the fingerprint and the body of a file.

    Raises
    ------
    ValueError
        The file has the format of another version, is damaged, or is no checkpoint.
    """
    head, _, body = path.read_bytes().partition(b"\n")
    header = _parse_header(head)
    kind, _, number = str(header.get("format")).rpartition(" ")
    if kind == _KIND and number != str(_FORMAT):
        writer = "an older" if number.isdecimal() and int(number) < _FORMAT else "a newer"
        raise ValueError(
            f"The checkpoint {path} has format {number}, of {writer} version of pymc_anneal; this "
            f"version expects format {_FORMAT}. Finish the run with the version that wrote the "
            "file, choose another file, or delete this one to start again."
        )
    if kind != _KIND or header.get("sha256") != _hash(body):
        raise ValueError(
            f"{path} is not a complete checkpoint of pymc_anneal: the file is damaged or of "
            "another kind. Choose another file, or delete this one to start again."
        )
    return header["fingerprint"], body


def _parse_header(head: bytes) -> dict[str, Any]:
    try:
        header = json.loads(head)
    except ValueError:
        return {}
    return header if isinstance(header, dict) else {}


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
