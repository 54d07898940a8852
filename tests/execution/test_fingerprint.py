"""What a checkpoint knows of functions and objects: their code and values, in every process."""

import os
import subprocess
import sys

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

import pymc_anneal as pma

from pymc_anneal.execution.fingerprint import describe, describe_model

FACTOR = 2.0


def scaled(factor: float, shift: float = 0.0):
    def density(x, beta=1.0):
        return [factor * value * beta for value in x], shift

    return density


def with_default(shift: float):
    def density(x, own=shift):
        return x + own

    return density


def later(x):
    return lambda: FACTOR * x


def doubled(x):
    return FACTOR * x


def twice_doubled(x):
    return [doubled(value) for value in x]


class Held:
    """An object that holds a value and itself."""

    def __init__(self, value) -> None:
        self.value, self.myself = value, self

    def density(self, x):
        return x * self.value


PAIRS = {
    "closure": (scaled(1.0), scaled(2.0)),
    "default": (with_default(1.0), with_default(2.0)),
    "operation": (lambda x: x + 1, lambda x: x - 1),
    "set in the code": (lambda x: x in {"a", "b", "c"}, lambda x: x in {"a", "b", "d"}),
    "code": (lambda x: x + 1, lambda x: x + 2),
    "code inside": (lambda x: [v + 1 for v in x], lambda x: [v + 2 for v in x]),
    "attribute": (Held(1.0), Held(2.0)),
    "array": (Held(np.zeros(2)), Held(np.ones(2))),
    "bound method": (Held(1.0).density, Held(2.0).density),
    "partial": (partial(scaled, 1.0), partial(scaled, 2.0)),
    "compiled": (jax.jit(scaled(1.0)), jax.jit(scaled(2.0))),
    "path": (pma.CustomPath(scaled(1.0)), pma.CustomPath(scaled(2.0))),
    "set": ({1, 2}, {1, 3}),
    "bytes": (b"one", b"two"),
    "complex number": (lambda x: x + 1j, lambda x: x + 2j),
    "library": (jnp.sin, jnp.cos),
}


@pytest.mark.parametrize(("one", "other"), PAIRS.values(), ids=PAIRS)
def test_what_differs_is_told_apart(one, other) -> None:
    assert describe(one) != describe(other)


@pytest.mark.parametrize("name", ["doubled", "twice_doubled", "later"])
def test_a_global_value_counts(name: str, monkeypatch) -> None:
    before = describe(globals()[name])
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert describe(globals()[name]) != before


def test_equal_ones_are_equal() -> None:
    assert describe(scaled(1.0)) == describe(scaled(1.0))
    assert describe(Held(np.zeros(2))) == describe(Held(np.zeros(2)))
    kernel = pma.MALA(1.0, 2, 1.0)
    assert describe([kernel, kernel]) == describe([kernel, pma.MALA(1.0, 2, 1.0)])


def test_an_object_that_holds_much_is_described_once() -> None:
    held = SimpleNamespace(a=1)
    for _ in range(60):
        held = SimpleNamespace(a=held, b=held)
    assert len(describe(held)) < 100


class Applied(Op):
    """An operation that holds a function."""

    __props__ = ("function",)

    def __init__(self, function) -> None:
        self.function = function

    def make_node(self, x):
        return Apply(self, [pt.as_tensor_variable(x)], [pt.dscalar()])

    def perform(self, node, inputs, outputs) -> None:
        outputs[0][0] = np.asarray(self.function(inputs[0]))


def with_an_op() -> dict[str, str]:
    """Describe a model with an operation that holds a function."""
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("p", -Applied(lambda value: value**2)(x))
    return describe_model(pma.compile_model(model))


def test_another_process_finds_the_same() -> None:
    code = (
        "import json; from tests.execution.test_fingerprint import PAIRS, describe, with_an_op; "
        "print(json.dumps([[describe(v) for pair in PAIRS.values() for v in pair], with_an_op()]))"
    )
    root = Path(__file__).parents[2]
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert found[0] == found[1]
