"""Double precision for all tests of paths."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True)
def _double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield
