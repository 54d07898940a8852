"""Translation of PyTensor graphs to JAX functions.

PyTensor's own JAX dispatch does the translation, after the rewrites of `rewrites.py`. A graph that
holds an Op without a JAX form cannot be translated; `callback.py` evaluates it instead.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax

from pytensor.compile.mode import JAX
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph

from pymc_anneal.model.double_constants import widen_constants
from pymc_anneal.model.frozen_data import freeze_shared
from pymc_anneal.model.jax_dispatch import jax_funcify
from pymc_anneal.model.rewrites import EXACT_FORMS, FAST_FORMS

# One array per input of a graph, to one array per output.
JaxFunction: TypeAlias = Callable[..., tuple[jax.Array, ...]]


class JaxGraph:
    """A JAX function of one point that is pickled as a graph.

    Takes one array per input of the graph and returns one array per output. The process that loads
    it builds the function again.

    Parameters
    ----------
    build
        Function that builds the JAX function of a graph.
    graph
        Argument of `build`.
    """

    def __init__(self, build: Callable[[Any], JaxFunction], graph: Any):
        self._build, self._graph = build, graph
        with jax.enable_x64(True):
            self._function = build(graph)

    def __call__(self, *point: jax.Array) -> tuple[jax.Array, ...]:
        """Evaluate at a point, in double precision whatever the setting of the caller."""
        with jax.enable_x64(True):
            return self._function(*point)

    def __reduce__(self) -> tuple[Any, ...]:
        return JaxGraph, (self._build, self._graph)


def jaxify(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> JaxGraph:
    """Translate a graph to a JAX function of one point.

    Raises
    ------
    NotImplementedError
        An Op of the graph has no JAX form.
    """
    wide = widen_constants(freeze_shared(outputs))
    fgraph = FunctionGraph(list(inputs), wide, clone=True)
    for rewriter in EXACT_FORMS:
        rewriter.rewrite(fgraph)
    # Fusion would hide the forms that are replaced next inside a Composite; XLA fuses by itself.
    JAX.excluding("fusion").optimizer.rewrite(fgraph)
    for rewriter in FAST_FORMS:
        rewriter.rewrite(fgraph)
    return JaxGraph(jax_funcify, fgraph)
