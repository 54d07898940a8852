"""Files that are complete at every moment, and written by one run at a time.

A new version is written beside the old one, under a name of its own, and replaces it by
:func:`os.replace`. A lock beside the file keeps a second run from it, in this process and in
others; the operating system releases it if the process ends.
"""

import os
import tempfile

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout


def replace_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Replace a file by what a function writes; if that fails, the old version stays.

    Raises
    ------
    OSError
        The folder cannot be written to, or the disk is full.
    """
    # In the same folder: a file system replaces its own files only.
    handle, temporary = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other runs from a file.

    Raises
    ------
    RuntimeError
        Another run has the file.
    """
    lock = FileLock(path.with_name(path.name + ".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise RuntimeError(
            f"Another run is writing to the checkpoint {path}: two runs would destroy each other's "
            "file. Wait for it, or give this run a file of its own."
        ) from None
    try:
        yield
    finally:
        lock.release()
