"""Configuration of the tests."""

import jax
import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what PyTensor says about the machine, once a process, when it first compiles."""
    config.addinivalue_line(
        "filterwarnings", "ignore:PyTensor could not link to a BLAS:UserWarning"
    )


@pytest.fixture(autouse=True, scope="module")
def _forget_compiled_programs():
    """Drop JAX's programs after each module.

    Every one holds memory mappings, of which Linux allows a process some 65,000: a worker that
    keeps those of the whole suite crashes inside the compiler.
    """
    yield
    jax.clear_caches()
