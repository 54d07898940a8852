"""Constants of a graph in double precision.

PyTensor stores a number in the smallest type that holds it: 3.0 as ``float32`` and 10 as ``int8``,
whose logarithms are of ``float32``. In ``pm.Normal("y", mu, 3.0)`` the log density of an
observation is 2e-8 nats off for that, that of 200,000 observations 0.004 nats.
"""

from collections.abc import Sequence

import pytensor.tensor as pt

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import toposort
from pytensor.tensor.elemwise import CAReduce
from pytensor.tensor.type import TensorType


def widen_constants(outputs: Sequence[Variable]) -> list[Variable]:
    """Return graphs with constants of ``float64`` and ``int64``, and what follows from them."""
    found: dict[Variable, Variable] = {}

    def new_of(variables: Sequence[Variable]) -> list[Variable]:
        found.update({v: _widened(v) for v in variables if v not in found})
        return [found[v] for v in variables]

    for node in toposort(outputs):
        inputs = new_of(node.inputs)
        if inputs != list(node.inputs):
            found.update(zip(node.outputs, _rebuilt(node, inputs).outputs, strict=True))
    return new_of(outputs)


def _widened(variable: Variable) -> Variable:
    """Return a constant of real numbers, or a single integer, with 64 bits."""
    if not (isinstance(variable, Constant) and isinstance(variable.type, TensorType)):
        return variable
    single = variable.data.size == 1
    wide = {"f": "float64", "i": "int64" if single else variable.dtype}
    dtype = wide.get(variable.data.dtype.kind, variable.dtype)
    return variable if dtype == variable.dtype else pt.constant(variable.data.astype(dtype))


def _rebuilt(node: Apply, inputs: Sequence[Variable]) -> Apply:
    """Return a node of other inputs, or of their old types where it takes no others: a loop."""
    op = node.op
    if isinstance(op, CAReduce) and op.dtype == "float32":
        op = op.clone(dtype="float64", acc_dtype="float64")
    try:
        return op.make_node(*inputs)
    except Exception:  # of any class
        pairs = zip(inputs, node.inputs, strict=True)
        old = [new if new.type == v.type else new.astype(v.dtype) for new, v in pairs]
        return node.clone_with_new_inputs(old)
