"""What the bits of a run depend on, in words and hashes that other processes find again.

A model is known by its variables and data, by the text of its graph, and by what it does: its
first prior draws and their log densities.
"""

import hashlib
import platform

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import jax
import numpy as np
import pymc as pm
import pytensor

from pymc_anneal._version import __version__
from pymc_anneal.model.compile import CompiledModel

_DRAWS = 4


def describe_model(compiled: CompiledModel) -> dict[str, str]:
    """Describe a model.

    Returns
    -------
    dict of str to str
        By part: its variables, each of its data, its graph, and its values at prior draws.
    """
    model = compiled.model
    draws = compiled.sample_prior(np.random.SeedSequence(0), _DRAWS)
    with jax.enable_x64(True):
        terms = jax.vmap(compiled.log_terms)(jax.numpy.asarray(draws))
    data = {**compiled.constant_data(), **compiled.observed_data()}
    graph = pytensor.printing.debugprint([model.varlogp, model.datalogp], file="str")
    return {
        "variables": ", ".join(f"{v.name} {v.shape}" for v in compiled.variables),
        **{f"data of '{name}'": describe(np.asarray(value)) for name, value in data.items()},
        "graph of the model": _short(graph.encode()),
        "prior draws": describe(draws),
        "log prior at these": describe(np.asarray(terms.log_prior)),
        "log likelihood at these": describe(np.asarray(terms.log_likelihood)),
        "deterministics at these": describe(compiled.constrain(draws)),
    }


def describe_versions() -> dict[str, str]:
    """Return the versions of what computes."""
    versions = {f"version of {m.__name__}": m.__version__ for m in (pm, pytensor, jax, np)}
    device = jax.devices()[0]
    return {
        "version of pymc_anneal": __version__,
        **versions,
        "version of python": ".".join(platform.python_version_tuple()[:2]),
        "device": f"{device.platform} {device.device_kind} {platform.machine()}",
    }


def describe(value: Any) -> str:
    """Describe a setting by its values; a function by its name."""
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
