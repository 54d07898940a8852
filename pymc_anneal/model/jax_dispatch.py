"""PyTensor's JAX dispatch, imported without its side effect.

Importing the dispatch switches 64-bit numbers on for the process. Here that waits until a model is
compiled: importing this package changes no setting.
"""

import jax

_X64 = jax.config.read("jax_enable_x64")
from pytensor.link.jax.dispatch import jax_funcify as jax_funcify  # noqa: E402

jax.config.update("jax_enable_x64", _X64)
