"""Black boxes that take a batch of points at a time.

PyTensor gives a graph a leading axis by asking each Op (``vectorize_node``). An Op of a user that
has not been told how is called for each point of the batch. One that has, by a registered
``vectorize_node`` or by the NumPy function that it names (``gufunc_spec``), is called once.
"""

from pytensor import tensor as pt
from pytensor.compile.ops import FromFunctionOp
from pytensor.graph.basic import Variable
from pytensor.graph.op import Op
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.blockwise import Blockwise


def batch_form(inputs: list[Variable], outputs: list[Variable]) -> list[list[Variable]] | None:
    """Give a graph a leading axis of points.

    Parameters
    ----------
    inputs, outputs
        The graph of one point.

    Returns
    -------
    list of list of Variable, or None
        Inputs and outputs with a leading axis; None if the graph has no black box, or one that is
        called for each point.
    """
    if not any(is_black_box(v.owner.op) for v in ancestors(outputs) if v.owner):
        return None
    batched = [pt.tensor(v.name, dtype=v.dtype, shape=(None, *v.type.shape)) for v in inputs]
    try:
        graphs = vectorize_graph(outputs, replace=dict(zip(inputs, batched, strict=True)))
    except Exception:  # Of any class: the Ops of users raise whatever they like.
        return None
    if any(_calls_each_point(v.owner.op) for v in ancestors(graphs) if v.owner):
        return None
    # An output that depends on no input has no axis.
    has_axis = (g.ndim == v.ndim + 1 for g, v in zip(graphs, outputs, strict=True))
    return [batched, list(graphs)] if all(has_axis) else None


def is_black_box(op: Op) -> bool:
    """Whether an Op is a user's: not of PyTensor or PyMC, or a wrapped Python function."""
    package = type(op).__module__.partition(".")[0]
    return isinstance(op, FromFunctionOp) or package not in ("pytensor", "pymc")


def _calls_each_point(op: Op) -> bool:
    if not isinstance(op, Blockwise) or not is_black_box(op.core_op):
        return False
    return not (op.gufunc_spec or getattr(op.core_op, "gufunc_spec", None))
