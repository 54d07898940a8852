"""Models passed by position where another argument was expected."""

import pymc as pm

from pymc_anneal.model.compile import CompiledModel


def check_not_model(name: str, value: object) -> None:
    """Raise `TypeError` if a model was passed by position as another argument."""
    if isinstance(value, pm.Model | CompiledModel):
        raise TypeError(f"`{name}` is a {type(value).__name__}: pass a model by name, `model=`.")
