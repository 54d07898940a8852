"""Zero likelihood where a log likelihood is NaN.

The evidence is then that of the model without the region where the likelihood is not defined,

    Z = int_{V(x) is a number} p(x) exp(V(x)) dx,

with the prior as it was: it is not normalised on the rest.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from jax.tree_util import Partial

from pymc_anneal.base.contracts import LogTerms, ScreenedTerms
from pymc_anneal.model.pickling import PicklableFunction


def reject_nan(log_terms: Callable[[jax.Array], LogTerms], x: jax.Array) -> ScreenedTerms:
    """Evaluate the log terms of a compiled model at a vector, -inf and flagged in place of NaN."""
    terms = log_terms(x)
    rejected = jnp.isnan(terms.log_likelihood)
    return ScreenedTerms(
        terms.log_prior, jnp.where(rejected, -jnp.inf, terms.log_likelihood), rejected
    )


def rejecting_nan(log_terms: Callable[[jax.Array], LogTerms]) -> Callable[[jax.Array], LogTerms]:
    """Return a log density whose likelihood is zero where it is NaN, with the same bound arrays."""
    if not isinstance(log_terms, Partial):
        return PicklableFunction(partial(reject_nan, log_terms))
    rejecting: Callable[[jax.Array], LogTerms]
    rejecting = Partial(reject_nan, log_terms)  # type: ignore[no-untyped-call]
    return rejecting
