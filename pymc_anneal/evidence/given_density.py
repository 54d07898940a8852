"""Draws and a log density given as a function, prepared for estimates that take a model.

The stand-in for the model has a Student-t density ``t``, wider than the draws, as its prior and
``f / t`` as its likelihood: its posterior is the given density ``f``, and a search for modes that
the draws have missed has somewhere to start.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pymc as pm

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.evidence.bridge_proposals import mean_and_root
from pymc_anneal.evidence.posterior_density import LogDensity, group_copies, in_batches
from pymc_anneal.model.compile import CompiledModel, compile_model
from pymc_anneal.model.derivatives import SMOOTH
from pymc_anneal.model.functions import as_op, is_jax
from pymc_anneal.paths.geometric import GeometricPath

# Degrees of freedom of the Student-t density, and its width in units of that of the draws.
_DEGREES, _WIDTH = 3, 3.0
_NO_SEARCH = (
    "`log_density` is not written in JAX: modes that the draws have missed were not looked for."
)


def checked_draws(draws: Any) -> np.ndarray:
    """Return draws given as an array, shape ``(chains, n, d)``, copies side by side.

    Raises
    ------
    TypeError
        They are no array of numbers.
    ValueError
        The array has another number of dimensions, or holds numbers that are not finite.
    """
    try:
        array = np.asarray(draws, dtype=float)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"With `log_density` the draws are an array of shape (chains, draws, d), found a "
            f"{type(draws).__name__}."
        ) from error
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3:
        raise ValueError(
            f"With `log_density` the draws are an array of shape (chains, draws, d), found "
            f"{array.shape}; those of emcee are `sampler.get_chain().swapaxes(0, 1)`."
        )
    if not np.isfinite(array).all():
        raise ValueError("Some of the draws are not finite.")
    return np.stack([group_copies(chain) for chain in array])


def given_density(function: Callable[[Any], Any], ndim: int) -> LogDensity:
    """Return a log density of one vector as a function of many positions.

    It raises `ValueError` where the density is NaN or infinite.
    """
    if is_jax(function, ndim):
        evaluate = in_batches(GeometricPath(lambda x: LogTerms(jnp.zeros(()), function(x))))
    else:
        evaluate = double_precision(lambda x: np.array([_number(function(row)) for row in x]))

    def checked(x: np.ndarray) -> np.ndarray:
        values = evaluate(x)
        wrong = np.isnan(values) | np.isposinf(values)
        if wrong.any():
            i = int(wrong.argmax())
            raise ValueError(
                f"`log_density` is {values[i]} at {np.array2string(x[i], precision=6)}, expected a "
                "number or -inf: return -inf where the density is zero."
            )
        return values

    return checked


def _number(value: Any) -> float:
    array = np.asarray(value, dtype=float)
    if array.shape != ():
        raise ValueError(
            f"`log_density` returned an array of shape {array.shape} for one point, expected a "
            "number."
        )
    return float(array)


def stand_in(function: Callable[[Any], Any], draws: np.ndarray) -> CompiledModel:
    """Return a model whose posterior is a given log density.

    Parameters
    ----------
    function
        From a position, shape ``(d,)``, to the log density, in nats.
    draws : ndarray, shape (chains, n, d)
        Draws of the density, about which the prior lies.
    """
    flat = draws.reshape(-1, draws.shape[2])
    centre, root = mean_and_root(flat)
    start = {"nu": _DEGREES, "mu": centre, "chol": _WIDTH * root}
    with pm.Model(model=None) as model:
        x = pm.MvStudentT("x", **start)
        ratio = as_op(function, flat.shape[1])(x) - pm.logp(pm.MvStudentT.dist(**start), x)
        pm.Potential("ratio", ratio)
    compiled = compile_model(model)
    return replace(compiled, notes=() if compiled.derivatives.order == SMOOTH else (_NO_SEARCH,))
