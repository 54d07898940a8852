"""Configuration of the tests."""

import gc
import os

from collections.abc import Iterator

import jax
import pytest

from pymc_anneal.base.programs import memory_maps
from tests.any_line import mark_tests
from tests.quick_cases import mark_slow_cases


def pytest_configure(config: pytest.Config) -> None:
    """Ignore PyTensor's warning about BLAS, given once in each process at the first compilation."""
    config.addinivalue_line(
        "filterwarnings", "ignore:PyTensor could not link to a BLAS:UserWarning"
    )
    _share_compiled_programs(config)
    # Tests compute with JAX themselves. Calls switch it on for their own duration, which
    # `tests/base/test_double_precision.py` and the processes that tests start rely on.
    jax.config.update("jax_enable_x64", True)


@pytest.hookimpl(tryfirst=True)  # before pytest selects by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_tests(items)
    mark_slow_cases(items)


def _share_compiled_programs(config: pytest.Config) -> None:
    """Cache JAX's compiled programs on disk, since compilation takes most of the suite's time.

    All processes and both lines of PyMC share the cache.
    """
    settings = {
        "jax_compilation_cache_dir": str(config.rootpath / ".pytest_cache" / "jax"),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    for name, value in settings.items():
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)  # for processes started by tests


def pytest_collection_finish() -> None:
    """Search for cycles among what the tests make, and rarely: a thirtieth of the suite's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(autouse=True, scope="module")
def _forget_compiled_programs() -> Iterator[None]:
    """Clear JAX's compiled programs if they hold many memory mappings.

    Linux allows a process about 65,000 mappings; a worker that keeps all programs of the suite
    exceeds them and crashes inside the compiler.
    """
    yield
    if memory_maps() > 25_000:
        jax.clear_caches()
