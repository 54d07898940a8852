"""PyTensor graph to JAX function.

PyTensor's own JAX dispatch does the translation; `rewrites.py` prepares the graph for it. A graph
that holds an Op without a JAX form is evaluated by the compiled PyTensor function, called back from
JAX (`callback.py`).
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import pytensor.tensor as pt

from pytensor.compile.mode import JAX
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import graph_inputs

from pymc_anneal.model.jax_dispatch import jax_funcify
from pymc_anneal.model.rewrites import CHECKS, FAST_FORMS


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
    for rewriter in CHECKS:
        rewriter.rewrite(fgraph)
    # A fused Composite would hide the forms that are exchanged next; XLA fuses by itself.
    JAX.excluding("fusion").optimizer.rewrite(fgraph)
    for rewriter in FAST_FORMS:
        rewriter.rewrite(fgraph)
    return JaxGraph(jax_funcify, fgraph)
