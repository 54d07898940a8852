"""Compiled programs kept on disk, for the next process that runs the same model.

JAX compiles a model's programs at the first call, which takes seconds, longer than a small model
runs. Its persistent cache is switched on for the duration of a call, in the user's cache folder,
unless the user has configured a cache of their own; other programs of the process do not use it.
The environment variable ``PYMC_ANNEAL_CACHE`` names another folder, or switches it off.
"""

import hashlib
import os
import platform

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import jax

from jax.experimental.compilation_cache.compilation_cache import reset_cache
from platformdirs import user_cache_path

_config: Any = jax.config  # whose settings and methods have no types in some versions
_VARIABLE, _OFF = "PYMC_ANNEAL_CACHE", ("off", "0", "false", "no")
# Programs that compile faster than this are not worth a file.
_LEAST_SECONDS = 0.1
# Size above which the oldest programs are deleted.
_MAX_BYTES = 512 * 2**20


@contextmanager
def compilation_cache() -> Iterator[None]:
    """Use the cache of compiled programs, and restore JAX's settings afterwards."""
    folder = _find_folder()
    if folder is None:
        yield
        return
    settings = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": _LEAST_SECONDS,
        "jax_persistent_cache_min_entry_size_bytes": 0,
    }
    before = {name: getattr(_config, name) for name in settings}
    _apply(settings)
    try:
        yield
    finally:
        _apply(before)


def _apply(settings: dict[str, object]) -> None:
    for name, value in settings.items():
        _config.update(name, value)
    reset_cache()  # JAX looks at its settings once


def _find_folder() -> Path | None:
    """Return the folder of the cache, made if necessary; None if there is to be no cache."""
    wanted = os.environ.get(_VARIABLE, "")
    if wanted.lower() in _OFF or _config.jax_compilation_cache_dir:
        return None
    root = Path(wanted) if wanted else user_cache_path("pymc_anneal", appauthor=False)
    folder = root / f"{platform.machine()}-{_describe_processor()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a read-only home: compile every time
        return None
    _delete_oldest(folder)
    return folder


def _describe_processor() -> str:
    """Return a hash of the processor's instruction sets: programs are compiled for them."""
    text = platform.processor()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        text = next((line for line in lines if line.startswith(("flags", "Features"))), text)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache
def _delete_oldest(folder: Path) -> None:
    """Delete the programs that have not been used for longest, if there are too many.

    Once for each process: to look at thousands of files takes as long as a small model runs.
    """
    # Another process may delete the same files.
    with suppress(OSError):
        files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)
        total = 0
        for file in files:
            total += file.stat().st_size
            if total > _MAX_BYTES:
                file.unlink(missing_ok=True)
