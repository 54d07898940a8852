"""Fingerprint of a run: everything its bits depend on, in words and hashes.

Another process that makes the same run finds the same fingerprint. A model is described by its
variables and data, by the text of its graph, and by its log densities at a few prior draws.
"""

import hashlib
import platform
import re

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType
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
# Packages whose functions and objects their names describe, in the versions of the run.
_KNOWN = {"builtins", "jax", "jaxlib", "numpy", "pymc", "pymc_anneal", "pytensor", "scipy"}
# Global values of a function that are followed.
_FOLLOWED: tuple[type, ...] = (FunctionType, partial, np.ndarray, jax.Array, int, float, str, list)


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
        # An Op that holds a function shows its place in memory.
        "graph of the model": _short(re.sub(" at 0x[0-9a-f]+", "", graph).encode()),
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


def describe(value: Any, known: dict[int, tuple[Any, str]] | None = None) -> str:
    """Describe a setting by its values, a function by its code and the values that it uses.

    `known` has what was described before, by identity; an object inside of itself is three dots.
    """
    known = {} if known is None else known
    if id(value) not in known:
        known[id(value)] = value, "..."
        known[id(value)] = value, _text_of(value, partial(describe, known=known))
    return known[id(value)][1]


def _text_of(value: Any, inner: Callable[[Any], str]) -> str:
    if isinstance(value, np.ndarray | jax.Array):
        array = np.ascontiguousarray(value)
        return f"array {array.dtype} {array.shape} {_short(array.tobytes())}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {inner(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(inner, value)) + "]"
    if isinstance(value, set | frozenset):  # whose order is that of the process
        return "{" + ", ".join(sorted(map(inner, value))) + "}"
    if is_dataclass(value) and not isinstance(value, type):
        text = ", ".join(f"{f.name}={inner(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({text})"
    if isinstance(value, str | bytes | int | float | complex | None | np.generic):
        return repr(value)
    if isinstance(value, partial):
        return f"partial({inner([value.func, value.args, value.keywords])})"
    known = name_of(value).partition(".")[0] in _KNOWN
    parts = [] if known else [inner(v) for v in _parts(value)]
    return name_of(value) + (f" {_short(' '.join(parts).encode())}" if parts else "")


def name_of(value: Any) -> str:
    """Return the name of a function, or of the class of an object, with its module."""
    name = getattr(value, "__qualname__", None) or type(value).__qualname__
    return f"{getattr(value, '__module__', None) or ''}.{name}"


def _parts(value: Any) -> Iterator[Any]:
    """Yield what a function computes with, or what an object holds."""
    if isinstance(value, MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, FunctionType):
        names, text = _instructions(value.__code__)
        yield from (text, value.__defaults__, value.__kwdefaults__)
        yield from (c.cell_contents for c in value.__closure__ or () if c != CellType())
        yield from (v for v in map(value.__globals__.get, names) if isinstance(v, _FOLLOWED))
    elif isinstance(value, type):
        yield from ()
    else:
        yield getattr(value, "__dict__", None)  # with what `jax.jit` compiles


def _instructions(code: CodeType) -> tuple[list[str], str]:
    """Return the global names and the instructions of a function, with those inside."""
    names, texts = list(code.co_names), [code.co_code.hex()]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            own, text = _instructions(constant)
            names += own
        else:
            text = describe(constant)
        texts.append(text)
    return names, " ".join([*code.co_names, *texts])


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
