"""Packages that only some functions need."""

import importlib

from typing import Any


def import_optional(module: str, name: str, requirement: str) -> Any:
    """Import a name from a package of the extra ``nested``.

    Raises
    ------
    ImportError
        The package is not installed, or its version does not have the name.
    """
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"This needs {requirement}: found no {name} in '{module}' ({error}). Install it with "
            f"`pip install '{requirement}'`, or all nested samplers with "
            "`pip install 'pymc_anneal[nested]'`."
        ) from error
