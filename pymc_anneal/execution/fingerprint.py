"""Fingerprint of a run: everything its bits depend on, in words and hashes.

Another process that makes the same run finds the same fingerprint. A model is described by its
variables and data, by the text of its graph, and by its log densities at a few prior draws.
"""

import hashlib
import platform

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor

from pymc_anneal._version import __version__
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel

# Number of prior draws at which a model is evaluated.
_DRAWS = 4


def describe_model(compiled: CompiledModel) -> dict[str, str]:
    """Describe variables, data arrays, graph, and values at prior draws of a model, by name."""
    model = compiled.model
    draws = compiled.sample_prior(np.random.SeedSequence(0), _DRAWS)
    terms = _evaluate_terms(compiled, draws)
    data = {**compiled.constant_data(), **compiled.observed_data()}
    graph = pytensor.printing.debugprint([model.varlogp, model.datalogp], file="str")
    return {
        "variables": ", ".join(f"{v.name} {v.shape}" for v in compiled.variables),
        **{f"data of '{name}'": describe(np.asarray(value)) for name, value in data.items()},
        "graph of the model": _short(graph.encode()),
        "prior draws": describe(draws),
        "log prior at prior draws": describe(np.asarray(terms.log_prior)),
        "log likelihood at prior draws": describe(np.asarray(terms.log_likelihood)),
        "deterministics at prior draws": describe(compiled.constrain(draws)),
    }


@double_precision
def _evaluate_terms(compiled: CompiledModel, draws: np.ndarray) -> LogTerms:
    """Evaluate the log densities at draws of shape ``(n, d)``."""
    return jax.vmap(compiled.log_terms)(jnp.asarray(draws))


def describe_versions() -> dict[str, str]:
    """Return the versions of the libraries that compute, and the device, by name."""
    versions = {f"version of {m.__name__}": m.__version__ for m in (pm, pytensor, jax, np)}
    device = jax.devices()[0]
    return {
        "version of pymc_anneal": __version__,
        **versions,
        "version of python": ".".join(platform.python_version_tuple()[:2]),
        "device": f"{device.platform} {device.device_kind} {platform.machine()}",
    }


def describe(value: Any) -> str:
    """Describe a setting by its values, a function by its name.

    Two functions of the same name in the same module are not told apart.
    """
    if isinstance(value, np.ndarray | jax.Array):
        array = np.ascontiguousarray(value)
        return f"array {array.dtype} {array.shape} {_short(array.tobytes())}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {describe(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(describe, value)) + "]"
    if is_dataclass(value) and not isinstance(value, type):
        inner = ", ".join(f"{f.name}={describe(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({inner})"
    if isinstance(value, str | int | float | bool | None | np.generic):
        return repr(value)
    name = getattr(value, "__qualname__", None) or type(value).__qualname__
    return f"{getattr(value, '__module__', '')}.{name}"


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
