"""Models of Bambi, which wrap a PyMC model."""

from typing import Any


def unwrap_bambi(model: Any) -> Any:
    """Return the PyMC model of a Bambi model, which is built if it is not; anything else as it is.

    Bambi need not be installed: its models are recognised by the name of their package.
    """
    if type(model).__module__.partition(".")[0] != "bambi" or not hasattr(model, "build"):
        return model
    if not model.built:
        model.build()
    return model.backend.model
