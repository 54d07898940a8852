"""Operations of a program that are alike, carried out as one.

A model that is written as a loop has each operation once for every turn, on numbers of its own:

    log f(x) = sum_g log N(y_g | x_g, 1) + sum_g log N(x_g | m, s).

Operations with the same name, parameters and shapes, whose inputs come from operations that are
alike, become one on stacked arrays, and the program is as short as that of the model in vectors
(operation batching: Neubig, Goldberg & Dyer 2017, section 3; Looks et al. 2017).
"""

import itertools

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jax import lax
from jax.extend import core

from pymc_anneal.model.dependence import carry_out, flat_program

# Operations up to which a program stays as it is. One of 230 (30 groups) took 0.55 s to compile
# with its gradient, and 0.07 s when batched to 40.
_FEWEST = 100
# Inputs of a sum up to which sums are carried out side by side; of longer ones, each by itself.
_MOST_SIDE_BY_SIDE = 8
# Operations that lay their inputs side by side, and their parameter that names the axis.
_JOINS = {"concatenate": "dimension", "stack": "axis"}
# Calls of functions that have derivatives of their own, or are computed anew for derivatives.
_OWN_DERIVATIVES = frozenset({"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"})
_KEPT = _OWN_DERIVATIVES | {"checkpoint", "remat"}


def batch_operations(
    function: Callable[..., Any], *example: np.ndarray, fewest: int = _FEWEST
) -> Any:
    """Return the program of a function, batched if it is long and becomes shorter by half.

    Programs that it calls are written out, except for derivatives of their own.

    Parameters
    ----------
    function
        JAX function of arrays.
    example
        Arrays of the shapes and types of its arguments.
    fewest
        Operations up to which a program is not long.
    """
    program = flat_program(function, *example, keep=_KEPT)
    if len(program.jaxpr.eqns) <= fewest:
        return program
    batched = jax.make_jaxpr(_Batches(program))(*example)
    return batched if 2 * len(batched.jaxpr.eqns) <= len(program.jaxpr.eqns) else program


class _Node(NamedTuple):
    """An operation with its inputs: of nested sums or joins, those of all of them."""

    eqn: Any
    inputs: list[Any]

    @property
    def name(self) -> str:
        return str(self.eqn.primitive.name)

    def apply(self, *inputs: jax.Array) -> list[jax.Array]:
        """Carry the operation out."""
        if self.name == "add":
            return [reduce(lax.add, inputs)]
        if self.name == "concatenate":
            return [lax.concatenate(inputs, self.eqn.params["dimension"])]
        return carry_out(self.eqn, inputs, {}, _KEPT)


class _Place(NamedTuple):
    """Where a value is: the kind of the operation that made it, the output, the member."""

    kind: int
    output: int
    member: int


class _Batches:
    """A flat program as a function that carries out all operations of a kind at once."""

    def __init__(self, program: Any):
        self.program = program
        self.kinds = _kinds(program)
        self.places = dict[Any, _Place]()
        for kind, nodes in enumerate(self.kinds):
            nodes.sort(key=self._order)
            for member, node in enumerate(nodes):
                for output, v in enumerate(node.eqn.outvars):
                    self.places[v] = _Place(kind, output, member)

    def __call__(self, *arguments: jax.Array) -> list[Any]:
        """Evaluate the program."""
        jaxpr = self.program.jaxpr
        given = zip(jaxpr.constvars + jaxpr.invars, [*self.program.consts, *arguments], strict=True)
        evaluation = _Evaluation(self.places, dict(given))
        for nodes in self.kinds:
            evaluation.take(nodes)
        return [evaluation.value(v) for v in jaxpr.outvars]

    def _order(self, node: _Node) -> tuple[int, ...]:
        """Order operations as their inputs are, so that stacks need no rearrangement."""
        if node.name == "slice":
            return tuple(node.eqn.params["start_indices"])
        places = (None if isinstance(v, core.Literal) else self.places.get(v) for v in node.inputs)
        return tuple(-1 if place is None else place.member for place in places)


class _Evaluation:
    """The values of a program: the outputs of each kind, stacked where it has several members."""

    def __init__(self, places: dict[Any, _Place], given: dict[Any, Any]):
        self.places, self.given = places, given
        self.found = list[list[jax.Array]]()
        self.members = list[int]()

    def take(self, nodes: list[_Node]) -> None:
        """Carry out the operations of the next kind."""
        self.found.append(self._outputs(nodes))
        self.members.append(len(nodes))

    def value(self, v: Any) -> Any:
        """Return one value."""
        if isinstance(v, core.Literal):
            return np.asarray(v.val, v.aval.dtype)  # type: ignore[attr-defined]
        if v in self.given:
            return self.given[v]
        kind, output, member = self.places[v]
        found = self.found[kind][output]
        several = self.members[kind] > 1
        return lax.index_in_dim(found, member, keepdims=False) if several else found

    def _outputs(self, nodes: list[_Node]) -> list[jax.Array]:
        node, name = nodes[0], nodes[0].name
        if len(nodes) > 1 and name == "slice":
            return [_windows(self.value(node.inputs[0]), [n.eqn.params for n in nodes])]
        if len(nodes) > 1:
            return self._side_by_side(nodes)
        if name == "add":
            return [reduce(lax.add, self._summed(node.inputs))]
        if name in _JOINS:
            axis = node.eqn.params[_JOINS[name]]
            parts = self._joined(node.inputs, axis, is_new=name == "stack")
            return [lax.concatenate(list(parts), axis)]
        return node.apply(*map(self.value, node.inputs))

    def _side_by_side(self, nodes: list[_Node]) -> list[jax.Array]:
        columns = list(zip(*(node.inputs for node in nodes), strict=True))
        axes = [None if _are_same(column) else 0 for column in columns]
        inputs = [
            self.value(column[0]) if axis is None else self._stack(column)
            for column, axis in zip(columns, axes, strict=True)
        ]
        if any(axis == 0 for axis in axes):
            return list(jax.vmap(nodes[0].apply, in_axes=axes)(*inputs))
        return [jnp.broadcast_to(y, (len(nodes), *y.shape)) for y in nodes[0].apply(*inputs)]

    def _summed(self, variables: Sequence[Any]) -> Iterator[jax.Array]:
        """Yield the terms of a sum, those of one kind added up."""
        apart = [v for v in variables if self._stacked_place(v) is None]
        together = [v for v in variables if self._stacked_place(v) is not None]
        yield from map(self.value, apart)
        for _, run in self._runs(sorted(together, key=lambda v: self.places[v])):
            stack = self._stack(run)
            yield jnp.sum(stack, axis=0, dtype=stack.dtype)

    def _joined(self, variables: Sequence[Any], axis: int, is_new: bool) -> Iterator[jax.Array]:
        """Yield the parts of a join along an old or a new axis, neighbours of one kind as one."""
        for is_stacked, run in self._runs(variables):
            if is_stacked:
                stack = jnp.moveaxis(self._stack(run), 0, axis)
                yield stack if is_new else lax.collapse(stack, axis, axis + 2)
            else:
                values = map(self.value, run)
                yield from (lax.expand_dims(x, [axis]) if is_new else x for x in values)

    def _runs(self, variables: Sequence[Any]) -> Iterator[tuple[bool, list[Any]]]:
        """Yield neighbours that are members of one kind, and whether they are."""

        def kind(v: Any) -> tuple[int, int] | None:
            place = self._stacked_place(v)
            return None if place is None else place[:2]

        return ((k is not None, list(run)) for k, run in itertools.groupby(variables, kind))

    def _stacked_place(self, v: Any) -> _Place | None:
        """Return where a value is in a stack; None if it is in none."""
        place = None if isinstance(v, core.Literal) else self.places.get(v)
        return None if place is None or self.members[place.kind] == 1 else place

    def _stack(self, variables: Sequence[Any]) -> Any:
        """Return values of one shape along a new first axis."""
        places = [place for v in variables if (place := self._stacked_place(v)) is not None]
        if len(places) < len(variables) or len({place[:2] for place in places}) > 1:
            return _stacked([self.value(v) for v in variables])
        kind, output, _ = places[0]
        return _rows(self.found[kind][output], np.array([place.member for place in places]))


def _kinds(program: Any) -> list[list[_Node]]:
    """Return operations that are alike together, after all those on which they depend."""
    kinds, found = list[list[_Node]](), dict[Any, int]()
    numbers: dict[Any, str] = {v: f"argument {i}" for i, v in enumerate(program.jaxpr.invars)}
    numbers |= {v: f"constant {v.aval}" for v in program.jaxpr.constvars}

    def number(v: Any) -> str:
        return f"literal {v.aval}" if isinstance(v, core.Literal) else numbers[v]

    for node in _nodes(program.jaxpr):
        if node.name == "add":
            node.inputs.sort(key=number)
        inputs = node.inputs if node.name == "slice" else map(number, node.inputs)
        kind = found.setdefault((_description(node), *inputs), len(kinds))
        if kind == len(kinds):
            kinds.append([])
        kinds[kind].append(node)
        # Sums are sorted by these names: by addresses, they would differ between processes.
        numbers |= {v: f"kind {kind} {output}" for output, v in enumerate(node.eqn.outvars)}
    return kinds


def _description(node: _Node) -> Any:
    """Describe an operation; one that is like no other describes itself."""
    eqn, params = node.eqn, node.eqn.params
    if node.name == "slice" and params["strides"] is None:
        return "slice", *np.subtract(params["limit_indices"], params["start_indices"]).tolist()
    if node.name in _OWN_DERIVATIVES:
        return _with_derivative(eqn)
    long_sum = node.name == "add" and len(node.inputs) > _MOST_SIDE_BY_SIDE
    if long_sum or any(map(_is_opaque, params.values())):
        return id(eqn)
    return node.name, repr(sorted(params.items()))


def _with_derivative(eqn: Any) -> Any:
    """Describe a function with a derivative of its own by the operations of both.

    The names of the rules say too little: functions that a factory has made share them.
    """
    if not all(jnp.issubdtype(v.aval.dtype, jnp.floating) for v in [*eqn.invars, *eqn.outvars]):
        return id(eqn)

    def both(*x: jax.Array) -> Any:
        values, pull_back = jax.vjp(lambda *x: carry_out(eqn, x, {}, _KEPT), *x)
        return carry_out(eqn, x, {}, frozenset()), pull_back(values)

    closed = jax.make_jaxpr(both)(*(np.zeros(v.aval.shape, v.aval.dtype) for v in eqn.invars))
    return str(closed.jaxpr), *(np.asarray(c).tobytes() for c in closed.consts)


def _is_opaque(parameter: Any) -> bool:
    """Whether a parameter of an operation is a program, a function or an array."""
    if isinstance(parameter, tuple | list):
        return any(map(_is_opaque, parameter))
    function = callable(parameter) and not isinstance(parameter, type)
    return function or hasattr(parameter, "eqns") or isinstance(parameter, np.ndarray | jax.Array)


def _nodes(jaxpr: Any) -> Iterator[_Node]:
    """Yield the operations of a program; nested sums are one, and so are nested joins."""
    used = [v for eqn in jaxpr.eqns for v in eqn.invars] + list(jaxpr.outvars)
    uses = Counter(v for v in used if not isinstance(v, core.Literal))
    made, nodes = dict[Any, _Node](), dict[int, _Node]()
    for eqn in jaxpr.eqns:
        inputs = list[Any]()
        for v in eqn.invars:
            inner = None if isinstance(v, core.Literal) or uses[v] > 1 else made.get(v)
            if inner is None or not _continues(eqn, inner.eqn):
                inputs.append(v)
                continue
            del nodes[id(inner.eqn)]
            if inputs:
                inputs += inner.inputs
            else:  # that of a long chain is not copied at each of its links
                inputs = inner.inputs
        nodes[id(eqn)] = _Node(eqn, inputs)
        made.update(dict.fromkeys(eqn.outvars, nodes[id(eqn)]))
    yield from nodes.values()


def _continues(eqn: Any, inner: Any) -> bool:
    """Whether an operation adds to the sum, or joins to the array, of another one."""
    name = eqn.primitive.name
    return (
        name in ("add", "concatenate")
        and name == inner.primitive.name
        and eqn.params == inner.params
        and (name != "add" or _dtype(eqn) == _dtype(inner))
    )


def _dtype(eqn: Any) -> Any:
    return eqn.outvars[0].aval.dtype


def _are_same(variables: Sequence[Any]) -> bool:
    first = variables[0]
    if not isinstance(first, core.Literal):
        return all(v is first for v in variables)
    return all(isinstance(v, core.Literal) and v.val == first.val for v in variables)


def _stacked(values: Sequence[Any]) -> Any:
    """Stack values: those that are known, here and not in the program."""
    if any(isinstance(value, jax.core.Tracer) for value in values):
        return jnp.stack(values)
    with jax.ensure_compile_time_eval():
        return jnp.asarray(np.stack([np.asarray(value) for value in values]))


def _rows(stack: jax.Array, members: np.ndarray) -> jax.Array:
    """Return rows of an array, without a look-up where they are neighbours."""
    if (np.diff(members) == 1).all():
        everything = len(members) == len(stack)
        return stack if everything else lax.slice_in_dim(stack, members[0], members[-1] + 1)
    starts = np.pad(members[:, None], ((0, 0), (0, stack.ndim - 1)))
    return lax.squeeze(_gathered(stack, starts, [1, *stack.shape[1:]]), [1])


def _windows(x: jax.Array, params: Sequence[Any]) -> jax.Array:
    """Return slices of one size along a new first axis, without a look-up where it can be."""
    starts = np.array([p["start_indices"] for p in params])
    size = np.subtract(params[0]["limit_indices"], params[0]["start_indices"]).tolist()
    first, last, steps = starts[0].tolist(), starts[-1] + size, np.diff(starts, axis=0)
    if x.ndim == 1 and (steps == size).all():
        return lax.slice(x, first, last.tolist()).reshape(-1, *size)
    if size == [1] and (steps == steps[0]).all() and steps[0] > 0:
        return lax.slice(x, first, last.tolist(), steps[0].tolist()).reshape(-1, 1)
    return _gathered(x, starts, size)


def _gathered(x: jax.Array, starts: np.ndarray, size: Sequence[int]) -> jax.Array:
    """Look slices of one size up, along a new first axis."""
    axes = tuple(range(x.ndim))
    numbers = lax.GatherDimensionNumbers(tuple(a + 1 for a in axes), (), axes)
    return lax.gather(x, starts, numbers, tuple(size), mode="promise_in_bounds")
