"""On which coordinates the entries of an array depend, read off the program that computes it.

Every array of a jaxpr gets a mask, for each entry and coordinate, from those of its inputs. The
rules may claim a dependence that is not there, never miss one: a primitive without a rule makes
every entry of its outputs depend on all that its inputs depend on.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jax.extend import core

from pymc_anneal.base.single_precision import read_through

# Entry by entry: inputs have the shape of the output, or none.
ENTRY_BY_ENTRY = frozenset(
    """
    abs acos acosh add and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil clamp
    convert_element_type copy copy_p cos cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor
    ge gt igamma igammac integer_pow is_finite le lgamma log log1p logistic lt max min mul ne neg
    nextafter not or polygamma pow reduce_precision regularized_incomplete_beta rem round rsqrt
    select_n shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt square
    stop_gradient sub tan tanh xor zeta
    """.split()
)
# Entries are moved, and keep their values.
_MOVED = frozenset(
    "broadcast_in_dim concatenate expand_dims pad reshape rev slice squeeze stack transpose".split()
)
_REDUCED = frozenset(
    "argmax argmin reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum".split()
)
# Names under which a primitive holds the program that it calls.
_CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_CALLERS = frozenset(
    "pjit jit closed_call core_call custom_jvp_call custom_vjp_call custom_vjp_call_jaxpr remat "
    "checkpoint custom_lin".split()
)

# Operations that are not carried out to know a value.
_HOST = frozenset("io_callback pure_callback random_bits while scan cond".split())

# Entries of a mask, those of an array on the way times coordinates, up to which one is made.
MOST_MASKS = 50_000_000

# Masks, shape (*shape of the array, coordinates); None: on none.
Mask = np.ndarray | None


def flat_program(
    function: Callable[..., Any], *example: np.ndarray, keep: Set[str] = frozenset()
) -> Any:
    """Return the program of a function, with the programs that it calls written out.

    Calls of primitives in `keep` stay: those of functions with derivatives of their own.
    """
    closed = jax.make_jaxpr(function)(*example)
    line = partial(carry_out, forms={}, keep=keep)
    return jax.make_jaxpr(lambda *x: read_through(closed.jaxpr, closed.consts, x, line))(*example)


def carry_out(
    eqn: Any,
    inputs: Sequence[Any],
    forms: Mapping[str, Callable[..., Any]],
    keep: Set[str] = frozenset(),
) -> list[Any]:
    """Carry out a line of a program.

    A program that it calls is written out, unless its primitive is in `keep`; `forms` are functions
    to take in place of primitives, by their names.
    """
    inner, name = _called(eqn), eqn.primitive.name
    if inner is not None and name not in keep:
        return read_through(*inner, inputs, partial(carry_out, forms=forms, keep=keep))
    return [forms[name](*inputs)] if name in forms else _bind(eqn, inputs)


def _bind(eqn: Any, inputs: Sequence[Any]) -> list[Any]:
    """Carry an operation out."""
    given = eqn.primitive.get_bind_params(eqn.params)
    parts, params = given if isinstance(given, tuple) else ((), given)  # before JAX 0.10
    found = eqn.primitive.bind(*parts, *inputs, **params)
    return list(found) if eqn.primitive.multiple_results else [found]


def _called(eqn: Any) -> tuple[Any, Sequence[Any]] | None:
    """Return the program that an operation calls, and its constants; None if it calls none."""
    inner = next((eqn.params[name] for name in _CALLS if name in eqn.params), None)
    if eqn.primitive.name not in _CALLERS or inner is None:
        return None
    return (inner.jaxpr, inner.consts) if hasattr(inner, "consts") else (inner, ())


def dependences(program: Any, coordinates: Sequence[int]) -> dict[Any, Mask]:
    """Return the masks of all variables of a flat program of one vector.

    Parameters
    ----------
    program
        The result of `flat_program` for a function of a vector of shape ``(d,)``.
    coordinates
        Those in question, ``p`` of them.

    Returns
    -------
    dict of variable to ndarray of bool, shape (..., p), or None
    """
    x: Any = program.jaxpr.invars[0]
    analysis = _Analysis(len(coordinates))
    analysis.values.update(zip(program.jaxpr.constvars, program.consts, strict=True))
    analysis.masks[x] = np.arange(x.aval.shape[0])[:, None] == np.asarray(coordinates, int)
    for eqn in program.jaxpr.eqns:
        analysis.take(eqn)
    return analysis.masks


class _Analysis:
    """Masks, and the values of what depends on no coordinate at all."""

    def __init__(self, count: int):
        self.count = count
        self.masks = defaultdict[Any, Mask](lambda: None)
        self.values: dict[Any, Any] = {}

    def take(self, eqn: Any) -> None:
        """Find the masks of the outputs of an operation."""
        masks = [None if isinstance(v, core.Literal) else self.masks[v] for v in eqn.invars]
        inputs = [v.val if isinstance(v, core.Literal) else self.values.get(v) for v in eqn.invars]
        if all(mask is None for mask in masks):
            if all(value is not None for value in inputs) and eqn.primitive.name not in _HOST:
                self.values.update(zip(eqn.outvars, _bind(eqn, inputs), strict=True))
            return
        called = _called(eqn)
        rules = (
            self._rule(eqn, masks, inputs) if called is None else self._in(*called, masks, inputs)
        )
        self.masks.update(zip(eqn.outvars, rules, strict=True))

    def _in(
        self, jaxpr: Any, consts: Sequence[Any], masks: list[Mask], values: list[Any]
    ) -> list[Mask]:
        """Find the masks of the outputs of a program that is called."""
        inner = _Analysis(self.count)
        inner.masks.update(zip(jaxpr.invars, masks, strict=True))
        inner.values.update(zip(jaxpr.constvars, consts, strict=True))
        known = zip(jaxpr.invars, values, strict=True)
        inner.values.update((v, value) for v, value in known if value is not None)
        for eqn in jaxpr.eqns:
            inner.take(eqn)
        return [None if isinstance(v, core.Literal) else inner.masks[v] for v in jaxpr.outvars]

    def _rule(self, eqn: Any, masks: list[Mask], values: list[Any]) -> list[Mask]:
        name, shape = eqn.primitive.name, eqn.outvars[0].aval.shape
        present = [m for m in masks if m is not None]
        if name in ENTRY_BY_ENTRY:
            return [_union([np.broadcast_to(m, (*shape, self.count)) for m in present])]
        if name in _MOVED:
            return [self._moved(eqn, masks)]
        if name == "split" and masks[0] is not None:
            ends = np.cumsum(eqn.params["sizes"])[:-1]
            return list[Mask](np.split(masks[0], ends, axis=eqn.params["axis"]))
        if name in _REDUCED and masks[0] is not None:
            return [np.asarray(masks[0].any(axis=tuple(eqn.params["axes"])))]
        if name == "dot_general":
            return [_union([m for m in self._contracted(eqn, masks) if m is not None])]
        if name == "gather":
            return [self._gathered(eqn, masks, values)]
        some = _union([np.asarray(m.reshape(-1, self.count).any(axis=0)) for m in present])
        return [np.broadcast_to(some, (*v.aval.shape, self.count)) for v in eqn.outvars]

    def _gathered(self, eqn: Any, masks: list[Mask], values: list[Any]) -> Mask:
        operand, indices = masks
        shape = eqn.outvars[0].aval.shape
        if indices is None and values[1] is not None and operand is not None:
            at = self._numbers(operand)
            return self._looked_up(eqn.primitive.bind(at, values[1], **eqn.params), [operand])
        found = np.zeros((*shape, self.count), bool)
        if operand is not None:
            found = found | _by_batch(operand, shape, eqn.params["dimension_numbers"])
        if indices is None:
            return found
        chosen = indices.any(axis=-2)  # the last axis of indices is that of the start of a slice
        for axis in sorted(eqn.params["dimension_numbers"].offset_dims):
            chosen = np.expand_dims(chosen, axis)
        return found | chosen

    def _moved(self, eqn: Any, masks: list[Mask]) -> Mask:
        """Move the numbers of entries, and look their masks up."""
        filled = [
            np.zeros((*v.aval.shape, self.count), bool) if m is None else m
            for v, m in zip(eqn.invars, masks, strict=True)
        ]
        starts = np.cumsum([0, *(int(np.prod(m.shape[:-1])) for m in filled)])
        at = [self._numbers(m, start) for m, start in zip(filled, starts, strict=False)]
        return self._looked_up(eqn.primitive.bind(*at, **eqn.params), filled)

    @staticmethod
    def _numbers(mask: np.ndarray, start: int = 0) -> jax.Array:
        """Return the number of each entry of an array, from one on: zero fills gaps."""
        shape = mask.shape[:-1]
        return jnp.arange(start + 1, start + 1 + int(np.prod(shape)), dtype=float).reshape(shape)

    def _looked_up(self, at: Any, masks: list[np.ndarray]) -> Mask:
        rows = [np.zeros((1, self.count), bool), *(m.reshape(-1, self.count) for m in masks)]
        return np.asarray(np.concatenate(rows)[np.nan_to_num(np.asarray(at)).astype(int)])

    def _contracted(self, eqn: Any, masks: list[Mask]) -> list[Mask]:
        """Return the masks of a product by each of its factors: batch, left, right axes."""
        contracted, batch = eqn.params["dimension_numbers"]
        ranks = [len(v.aval.shape) for v in eqn.invars]
        free = [r - len(c) - len(b) for r, c, b in zip(ranks, contracted, batch, strict=True)]
        shape, found = eqn.outvars[0].aval.shape, list[Mask]()
        for i, mask in enumerate(masks):
            if mask is None:
                found.append(None)
                continue
            rest = [a for a in range(ranks[i]) if a not in (*contracted[i], *batch[i])]
            kept = mask.transpose(*batch[i], *rest, *contracted[i], ranks[i])
            summed = tuple(range(len(batch[i]) + len(rest), ranks[i]))
            kept = np.asarray(kept.any(axis=summed))
            others = range(len(batch[i]), len(batch[i]) + free[0])
            axes = others if i else range(len(batch[i]) + free[0], len(shape))
            for axis in axes:
                kept = np.expand_dims(kept, axis)
            found.append(np.broadcast_to(kept, (*shape, self.count)))
        return found


def _union(masks: Sequence[np.ndarray]) -> np.ndarray:
    return np.asarray(np.logical_or.reduce(list(masks)))


def _by_batch(operand: np.ndarray, shape: Sequence[int], numbers: Any) -> np.ndarray:
    """Return on what an unknown entry of the operand of a look-up depends, by rows of a batch."""
    others = tuple(a for a in range(operand.ndim - 1) if a not in numbers.operand_batching_dims)
    free = [axis for axis in range(len(shape)) if axis not in numbers.offset_dims]
    rows = [free[i] for i in numbers.start_indices_batching_dims]
    masks = np.transpose(operand.any(axis=others), [*np.argsort(rows), len(rows)])
    return np.expand_dims(masks, tuple(axis for axis in range(len(shape)) if axis not in rows))
