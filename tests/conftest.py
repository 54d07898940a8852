"""Configuration of the tests."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what PyTensor says about the machine, once a process, when it first compiles."""
    config.addinivalue_line(
        "filterwarnings", "ignore:PyTensor could not link to a BLAS:UserWarning"
    )
