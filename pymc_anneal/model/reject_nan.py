"""Zero likelihood where a log likelihood is NaN.

The evidence is then that of the model without the region where the likelihood is not defined,

    Z = int_{V(x) is a number} p(x) exp(V(x)) dx,

with the prior as it was: it is not normalised on the rest.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import LogTerms, ScreenedTerms


def reject_nan(log_terms: Callable[[jax.Array], LogTerms], x: jax.Array) -> ScreenedTerms:
    """Evaluate log prior and log likelihood at a vector, -inf and flagged in place of NaN.

    Parameters
    ----------
    log_terms
        As that of a compiled model.
    x : Array, shape (d,)
        Unconstrained values.
    """
    terms = log_terms(x)
    rejected = jnp.isnan(terms.log_likelihood)
    return ScreenedTerms(
        terms.log_prior, jnp.where(rejected, -jnp.inf, terms.log_likelihood), rejected
    )
