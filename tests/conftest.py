"""Configuration of the tests."""

import os

from pathlib import Path

import jax
import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what PyTensor says about the machine, once a process, when it first compiles."""
    config.addinivalue_line(
        "filterwarnings", "ignore:PyTensor could not link to a BLAS:UserWarning"
    )
    _share_compiled_programs(config)


def _share_compiled_programs(config: pytest.Config) -> None:
    """Keep JAX's programs on disk: most of the time of the suite is compilation.

    Tests that compile the same program, in whatever process and on either line of PyMC, share it.
    """
    settings = {
        "jax_compilation_cache_dir": str(config.rootpath / ".pytest_cache" / "jax"),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    for name, value in settings.items():
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)  # for the processes that tests start


def _mappings() -> int:
    """Return the number of memory mappings of this process, 0 where it is not known."""
    maps = Path("/proc/self/maps")
    return len(maps.read_text().splitlines()) if maps.exists() else 0


@pytest.fixture(autouse=True, scope="module")
def _forget_compiled_programs():
    """Drop JAX's programs when they have become many.

    Every one holds memory mappings, of which Linux allows a process some 65,000: a worker that
    keeps those of the whole suite crashes inside the compiler.
    """
    yield
    if _mappings() > 25_000:
        jax.clear_caches()
