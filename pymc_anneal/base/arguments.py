"""Checks of arguments: what was found, what was expected, and what to do."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def resolve(value: Any, known: Mapping[str, Callable], name: str, contract: type, *args) -> Any:
    """Return the object meant by a short string, or the object itself."""
    if isinstance(value, str):
        if value not in known:
            raise ValueError(
                f"Unknown `{name}` {value!r}; expected one of {sorted(known)} or an object."
            )
        return known[value](*args)
    required = [m for m in vars(contract) if not m.startswith("_") and callable(vars(contract)[m])]
    missing = [m for m in required if not hasattr(value, m)]
    if missing:
        raise TypeError(
            f"`{name}` is a {type(value).__name__} without the methods {missing}; expected one "
            f"of {sorted(known)} or an object with {required}."
        )
    return value


def check_count(name: str, value: Any, expected: str = "a positive whole number") -> None:
    """Raise if a value is not a positive whole number."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < 1:
        raise ValueError(f"`{name}` is {value!r}, expected {expected}.")


def check_target(target_mcse: float) -> None:
    """Raise if a wanted error is not a positive number."""
    if not 0 < target_mcse < np.inf:
        raise ValueError(f"`target_mcse` is {target_mcse}, expected a positive number of nats.")
