"""Configuration of the tests."""

from pathlib import Path

import jax
import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what PyTensor says about the machine, once a process, when it first compiles."""
    config.addinivalue_line(
        "filterwarnings", "ignore:PyTensor could not link to a BLAS:UserWarning"
    )


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
