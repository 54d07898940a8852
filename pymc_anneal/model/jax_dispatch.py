"""PyTensor's JAX dispatch, imported without changing JAX's precision.

The import of the dispatch switches JAX to double precision for the whole process. Importing this
package should change no setting, so the setting is restored here; it changes when a model is
compiled.
"""

import jax


def set_double_precision(on: bool) -> None:
    """Switch 64-bit numbers of JAX on or off, for the whole process."""
    jax.config.update("jax_enable_x64", on)  # type: ignore[no-untyped-call]  # untyped in JAX


_BEFORE = bool(jax.config.values["jax_enable_x64"])
from pytensor.link.jax.dispatch import jax_funcify as jax_funcify  # noqa: E402

set_double_precision(_BEFORE)
