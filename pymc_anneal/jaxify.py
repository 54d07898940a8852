"""PyTensor graph to JAX function.

PyTensor's own JAX dispatch does the translation; this module prepares the graph for it. Checks on
parameters become ``-inf`` as in :func:`pymc.sample`, checks that can never fail are dropped, and
the few element-wise forms whose JAX translation is several times slower than it need be are
exchanged for equally accurate ones:

- ``softplus(x) = max(x, 0) + log1p(exp(-|x|))`` with the logistic sigmoid as its derivative, in
  place of ``logaddexp(x, 0)``, whose guards against infinities cost five times the function;
- ``switch(c, f(a), f(b)) = f(switch(c, a, b))``, which evaluates ``f`` once. Bernoulli and
  categorical likelihoods have this shape, with ``f`` a softplus.

A graph that holds an Op without a JAX form is evaluated by the compiled PyTensor function, called
back from JAX.
"""

import threading
import warnings

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytensor
import pytensor.tensor as pt

from pymc.logprob.utils import local_check_parameter_to_ninf_switch
from pytensor.compile.mode import JAX
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import GraphRewriter, in2out, node_rewriter
from pytensor.graph.traversal import graph_inputs
from pytensor.raise_op import Assert
from pytensor.scalar.basic import (
    AND,
    GE,
    LE,
    Abs,
    Add,
    Exp,
    Mul,
    ScalarOp,
    Second,
    Sqr,
    Sqrt,
    Switch,
    upgrade_to_float,
)
from pytensor.scalar.math import Sigmoid, Softplus
from pytensor.tensor.basic import MakeVector
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import All

# Importing PyTensor's dispatch switches 64-bit numbers on for the process. Here that waits until a
# model is compiled: an import should change nothing.
_X64 = jax.config.read("jax_enable_x64")
from pytensor.link.jax.dispatch import jax_funcify  # noqa: E402

jax.config.update("jax_enable_x64", _X64)

__all__ = ["JaxGraph", "callback_graph", "compiled", "freeze_shared", "jaxify"]


class JaxGraph:
    """A JAX function of one point, translated from a graph.

    Takes one array per input of the graph and returns a tuple with one array per output. What is
    pickled is the graph: who receives it translates it again.

    Parameters
    ----------
    translate
        From the graph to the function.
    graph
        What it understands.
    """

    def __init__(self, translate: Callable[[Any], Callable], graph: Any):
        _use_double_precision()
        self._translate, self._graph = translate, graph
        self._function = translate(graph)

    def __call__(self, *point: jax.Array) -> tuple[jax.Array, ...]:
        """Evaluate at a point."""
        return self._function(*point)

    def __reduce__(self) -> tuple:
        return JaxGraph, (self._translate, self._graph)


class FastSoftplus(Softplus):
    """Softplus with a JAX form of its own (see the module's docstring)."""


@jax.custom_jvp
def softplus(x: jax.Array) -> jax.Array:
    """``log(1 + exp(x))``, accurate to a few units in the last place for every ``x``."""
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


softplus.defjvps(lambda tangent, _, x: tangent / (1 + jnp.exp(-x)))


@jax_funcify.register(FastSoftplus)
def _jax_softplus(op, **kwargs):
    return softplus


def _scalar_op(variable: Variable) -> ScalarOp | None:
    """Return the scalar Op of an element-wise variable."""
    owner = variable.owner
    return owner.op.scalar_op if owner is not None and isinstance(owner.op, Elemwise) else None


@node_rewriter([Elemwise])
def _fast_softplus(fgraph, node):
    if type(node.op.scalar_op) is not Softplus:
        return None
    return [Elemwise(FastSoftplus(upgrade_to_float, name="fast_softplus"))(*node.inputs)]


@node_rewriter([Elemwise])
def _sigmoid_within_unit_interval(fgraph, node):
    """Replace ``sigmoid(x) >= 0`` and ``sigmoid(x) <= 1`` by true."""
    bound = {GE: 0, LE: 1}.get(type(node.op.scalar_op))
    if bound is None or not isinstance(_scalar_op(node.inputs[0]), Sigmoid):
        return None
    limit = getattr(node.inputs[1], "data", None)
    if limit is None or not np.all(limit == bound):
        return None
    return [pt.ones_like(node.inputs[0], dtype="bool")]


_NEVER_NEGATIVE = (Abs, Exp, Sigmoid, Softplus, Sqr, Sqrt)


def _never_negative(variable: Variable) -> bool:
    """Whether every value of a variable is certain to be 0 or more, or NaN."""
    if isinstance(variable, Constant):
        return bool(np.all(variable.data >= 0))
    if variable.owner is None:
        return False
    inputs, op = variable.owner.inputs, variable.owner.op
    if isinstance(op, DimShuffle):
        return _never_negative(inputs[0])
    scalar = _scalar_op(variable)
    if isinstance(scalar, Switch):
        return all(map(_never_negative, inputs[1:]))
    if isinstance(scalar, Add):
        return all(map(_never_negative, inputs))
    if isinstance(scalar, Mul):
        # By positive numbers only: 0 times infinity is NaN, which a check would catch.
        factors = [v for v in inputs if not isinstance(v, Constant)]
        numbers = np.array([np.min(v.data) for v in inputs if isinstance(v, Constant)])
        positive = bool(np.all(numbers > 0) and np.all(np.isfinite(numbers)))
        return positive and len(factors) == 1 and _never_negative(factors[0])
    return isinstance(scalar, _NEVER_NEGATIVE)


def _certain(variable: Variable) -> bool:
    """Whether a check is certain to hold everywhere."""
    if isinstance(variable, Constant):
        return bool(np.all(variable.data))
    if variable.owner is None:
        return False
    inputs, op, scalar = variable.owner.inputs, variable.owner.op, _scalar_op(variable)
    if isinstance(scalar, Second):
        return _certain(inputs[1])
    if isinstance(scalar, GE):
        value, bound = inputs
        below = isinstance(bound, Constant) and bool(np.all(bound.data <= 0))
        return below and _never_negative(value)
    if isinstance(op, All | DimShuffle | MakeVector) or isinstance(scalar, AND):
        return all(map(_certain, inputs))
    return False


@node_rewriter([All])
def _certain_check(fgraph, node):
    """Drop a check that cannot fail.

    XLA finds that ``exp(x) >= 0`` holds, and then evaluates "all are true" while it compiles, entry
    by entry: seconds for every million of observations times particles.
    """
    out = node.outputs[0]
    return [pt.constant(np.array(True))] if out.ndim == 0 and _certain(node.inputs[0]) else None


@node_rewriter([Elemwise])
def _switch_inside(fgraph, node):
    """Rewrite ``switch(c, f(a), f(b))`` to ``f(switch(c, a, b))`` for unary ``f``."""
    if not isinstance(node.op.scalar_op, Switch):
        return None
    condition, left, right = node.inputs
    op_left, op_right = _scalar_op(left), _scalar_op(right)
    if op_left is None or op_left != op_right or len(left.owner.inputs) != 1:
        return None
    return [left.owner.op(pt.switch(condition, left.owner.inputs[0], right.owner.inputs[0]))]


@node_rewriter([Assert])
def _drop_assert(fgraph, node):
    """JAX cannot raise from compiled code; what PyTensor asserts are shapes, known here."""
    return [node.inputs[0]]


_CHECKS: tuple[GraphRewriter, ...] = (
    in2out(local_check_parameter_to_ninf_switch, name="checks_to_ninf"),
)
_FAST_FORMS: tuple[GraphRewriter, ...] = (
    in2out(_drop_assert, name="drop_assert"),
    in2out(_fast_softplus, name="fast_softplus"),
    in2out(_sigmoid_within_unit_interval, name="sigmoid_checks"),
    in2out(_certain_check, name="certain_checks"),
    # From the outputs inwards, twice: -softplus(.) is two unary Ops deep.
    in2out(_switch_inside, name="switch_inside"),
    in2out(_switch_inside, name="switch_inside_again"),
)


def _use_double_precision() -> None:
    """Switch 64-bit numbers on for the process, as PyTensor's JAX backend does.

    The model's constants are converted when its function is traced, and callbacks run in threads
    of XLA's own: a setting for this thread only would leave both at 32 bits.
    """
    jax.config.update("jax_enable_x64", True)


def freeze_shared(graph: Sequence[Variable]) -> list[Variable]:
    """Replace shared variables (``pm.Data``) by their present values."""
    shared = [v for v in graph_inputs(graph) if isinstance(v, SharedVariable)]
    values = {v: pt.constant(v.get_value(borrow=True)) for v in shared}
    return list(clone_replace(list(graph), replace=values))


def jaxify(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> JaxGraph:
    """Translate a graph to a JAX function of one point.

    Parameters
    ----------
    inputs, outputs
        The graph. Shared variables are frozen at their present values.

    Returns
    -------
    JaxGraph

    Raises
    ------
    NotImplementedError
        An Op of the graph has no JAX form.
    """
    fgraph = FunctionGraph(list(inputs), freeze_shared(outputs), clone=True)
    for rewriter in _CHECKS:
        rewriter.rewrite(fgraph)
    # A fused Composite would hide the forms that are exchanged next; XLA fuses by itself.
    JAX.excluding("fusion").optimizer.rewrite(fgraph)
    for rewriter in _FAST_FORMS:
        rewriter.rewrite(fgraph)
    return JaxGraph(jax_funcify, fgraph)


def callback_graph(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> JaxGraph:
    """Wrap scalar outputs of a graph as a JAX function that calls compiled PyTensor code.

    The function can be mapped over points and differentiated once in reverse mode; the points of
    a batch are evaluated one after the other.

    Parameters
    ----------
    inputs
        Those of whole numbers have no derivatives.
    outputs
        Scalars.

    Returns
    -------
    JaxGraph
    """
    return JaxGraph(_calling_back, (list(inputs), list(outputs)))


def _calling_back(graph_: tuple[list[Variable], list[Variable]]) -> Callable:
    inputs, outputs = graph_
    values = compiled(inputs, outputs)
    real = [i for i, v in enumerate(inputs) if v.type.dtype.startswith("float")]
    wrt = [inputs[i] for i in real]
    gradients = compiled(inputs, [g for out in outputs for g in _gradients(out, wrt)])
    value_types = [jax.ShapeDtypeStruct((), np.float64) for _ in outputs]

    @jax.custom_vjp
    def graph(*points):
        return tuple(_call(values, value_types, points))

    def forward(*points):
        return graph(*points), points

    def backward(points, cotangents):
        types = [jax.ShapeDtypeStruct(points[i].shape, np.float64) for i in real] * len(outputs)
        flat = _call(gradients, types, points)
        rows = [flat[i * len(real) : (i + 1) * len(real)] for i in range(len(outputs))]
        slopes = [np.zeros(p.shape, jax.dtypes.float0) for p in points]  # of whole numbers
        for k, i in enumerate(real):
            slope = sum(c * row[k] for c, row in zip(cotangents, rows, strict=True))
            slopes[i] = slope.astype(points[i].dtype)
        return tuple(slopes)

    graph.defvjp(forward, backward)
    return graph


def compiled(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Callable:
    """Compile a graph by PyTensor, for what has no JAX form."""
    with warnings.catch_warnings():
        # An Op without a Numba form either; that it is slow is said in the model's notes.
        warnings.filterwarnings("ignore", message="Numba will use object mode")
        return pytensor.function(list(inputs), list(outputs), on_unused_input="ignore")


def _gradients(output: Variable, inputs: list[Variable]) -> list[Variable]:
    gradients = pt.grad(output, inputs, disconnected_inputs="ignore", return_disconnected="zero")
    return [g.astype("float64") for g in gradients]


def _call(function, types, points):
    """Call a compiled function at one point, or at every point of a batch."""
    lock = threading.Lock()  # a compiled function has one storage

    def host(*arrays):
        with lock:
            return evaluate(*[np.asarray(a) for a in arrays])

    def evaluate(*arrays):
        batch = arrays[0].shape[: arrays[0].ndim - points[0].ndim]
        rows = np.ndindex(*batch)
        results = [function(*(a[i] for a in arrays)) for i in rows]
        return [
            np.asarray([r[j] for r in results], dtype=t.dtype).reshape(batch + t.shape)
            for j, t in enumerate(types)
        ]

    return jax.pure_callback(host, types, *points, vmap_method="broadcast_all")
