"""Posterior draws of a container, mapped to the unconstrained space."""

from typing import Any

import numpy as np

from pymc_anneal.base.arviz_compat import group, has_group
from pymc_anneal.model.compile import CompiledModel


def posterior_draws(idata: Any, compiled: CompiledModel) -> np.ndarray:
    """Return the posterior draws in the unconstrained space, shape ``(chains, draws, d)``.

    Raises
    ------
    ValueError
        There is no group ``posterior``, or it is not of the model.
    """
    if not has_group(idata, "posterior"):
        raise ValueError(
            f"Expected an InferenceData or DataTree with a group 'posterior', found "
            f"{type(idata).__name__}. Run `idata = pymc.sample(model=model)` first."
        )
    posterior = group(idata, "posterior")
    values = {str(k): np.asarray(v.transpose("chain", "draw", ...)) for k, v in posterior.items()}
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    flat = {k: v.reshape(shape[0] * shape[1], *v.shape[2:]) for k, v in values.items()}
    return compiled.unconstrain(flat).reshape(*shape, compiled.ndim)
