"""Programs in which choices are made as late as possible.

    f(where(c, a, b)) = where(c, f(a), f(b))

for what acts entry by entry. Where ``c`` depends on coordinates that ``a`` and ``b`` do not, as
``t < z`` in ``where(t < z, early, late)``, ``f`` is computed twice for all values of ``z``
together, and not once for each of them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from jax import lax
from jax.extend import core

from pymc_anneal.base.single_precision import read_through
from pymc_anneal.model.dependence import ENTRY_BY_ENTRY, Mask, carry_out


class _Choice(NamedTuple):
    """An array that is not chosen yet from arrays of its shape."""

    which: Any
    cases: tuple[Any, ...]


def replay_late(
    program: Any,
    args: Sequence[Any],
    masks: Mapping[Any, Mask],
    forms: Mapping[str, Callable[..., Any]],
) -> list[Any]:
    """Evaluate a flat program with late choices.

    Parameters
    ----------
    program
        The result of `flat_program`.
    args
        Its inputs.
    masks
        Of its variables (`dependences`), on the coordinates of which there are many values.
    forms
        Functions to take in place of primitives, by their names.
    """

    def line(eqn: Any, inputs: list[Any]) -> list[Any]:
        varies = [not isinstance(v, core.Literal) and masks[v] is not None for v in eqn.invars]
        return _late(eqn.primitive.name, partial(carry_out, eqn, forms=forms), inputs, varies)

    found = read_through(program.jaxpr, program.consts, args, line)
    return [_chosen(x) for x in found]


def _late(
    name: str, apply: Callable[..., list[Any]], inputs: list[Any], varies: list[bool]
) -> list[Any]:
    """Carry an operation out, in each case where all that varies is one choice of its inputs."""
    choices = [x for x in inputs if isinstance(x, _Choice)]
    if name == "select_n" and not choices and varies[0] and not any(varies[1:]):
        return [_Choice(inputs[0], tuple(inputs[1:]))]
    one = len({id(c.which) for c in choices}) == 1 and len(choices) == sum(varies)
    if name not in ENTRY_BY_ENTRY or not one:
        return apply([_chosen(x) for x in inputs])
    which, cases = choices[0].which, range(len(choices[0].cases))
    each = ([x.cases[i] if isinstance(x, _Choice) else x for x in inputs] for i in cases)
    return [_Choice(which, tuple(apply(own)[0] for own in each))]


def _chosen(x: Any) -> Any:
    return lax.select_n(x.which, *x.cases) if isinstance(x, _Choice) else x
