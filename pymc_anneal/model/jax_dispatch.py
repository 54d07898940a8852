"""PyTensor's JAX dispatch, imported without changing JAX's precision.

The import of the dispatch switches JAX to double precision for the whole process. Importing this
package should change no setting, so the setting is restored here.
"""

import jax

_BEFORE = bool(jax.config.values["jax_enable_x64"])
from pytensor.link.jax.dispatch import jax_funcify as jax_funcify  # noqa: E402

jax.config.update("jax_enable_x64", _BEFORE)  # type: ignore[no-untyped-call]  # untyped in JAX
