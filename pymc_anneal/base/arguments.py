"""Checks of arguments; every message says what was found, what was expected, and what to do."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

T = TypeVar("T")


def resolve(
    value: str | T, known: Mapping[str, Callable[..., T]], name: str, contract: type, *args: Any
) -> T:
    """Return the object with a known name, or the object itself if it fulfils a contract.

    `known` has constructors by name, which take `args`; `name` is that of the argument.

    Raises
    ------
    ValueError
        The name is unknown.
    TypeError
        The object lacks methods of the contract, or is a class.
    """
    if isinstance(value, str):
        if value not in known:
            raise ValueError(
                f"Unknown `{name}` {value!r}; expected one of {sorted(known)} or an object."
            )
        return known[value](*args)
    if isinstance(value, type):
        raise TypeError(
            f"`{name}` is the class {value.__name__}, expected an object: {value.__name__}(...)."
        )
    present = set(dir(value))
    missing = [method for method in _public_members(contract) if method not in present]
    if missing:
        raise TypeError(
            f"`{name}` is a {type(value).__name__} without the methods {missing}; expected one "
            f"of {sorted(known)} or an object with the methods of `{contract.__name__}`."
        )
    return value


def _public_members(contract: type) -> list[str]:
    """Return the names that a protocol and its bases define, in their order."""
    bases = [base for base in reversed(contract.__mro__) if base not in (object, Protocol, Generic)]
    return [n for n in dict.fromkeys(n for b in bases for n in vars(b)) if not n.startswith("_")]


def check_count(
    name: str, value: Any, expected: str = "a positive whole number", least: int = 1
) -> None:
    """Raise `ValueError` if a value is not a whole number, or below the least one."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:
        raise ValueError(f"`{name}` is {value!r}, expected {expected}.")


def check_positive(
    name: str, value: Any, expected: str = "a positive number", most: float = np.inf
) -> None:
    """Raise `ValueError` if a value is not a number above 0, and at most the largest one."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0 < value <= most:
        raise ValueError(f"`{name}` is {value!r}, expected {expected}.")


def check_target(target_mcse: Any) -> None:
    """Raise `ValueError` if a target error is not a positive number of nats."""
    largest = np.finfo(float).max
    check_positive("target_mcse", target_mcse, "a positive number of nats", largest)


def check_mapping(name: str, value: Any) -> None:
    """Raise `TypeError` if a value is no mapping, and not None."""
    if not isinstance(value, Mapping | None):
        raise TypeError(f"`{name}` is a {type(value).__name__}, expected a dict.")
