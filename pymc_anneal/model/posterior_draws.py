"""Posterior draws of a container, mapped to the unconstrained space."""

from typing import Any

import numpy as np

from pymc_anneal.base.arviz_compat import group, required_group
from pymc_anneal.base.data_hash import hash_data, stored_hash
from pymc_anneal.model.compile import CompiledModel


def posterior_draws(idata: Any, compiled: CompiledModel) -> np.ndarray:
    """Return the posterior draws of a container in the unconstrained space.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of ``pymc.sample`` with a group ``posterior``.
    compiled
        The model that was sampled.

    Returns
    -------
    ndarray, shape (chains, draws, d)

    Raises
    ------
    ValueError
        There is no group ``posterior``, a variable of the model is missing from it, or has another
        number of dimensions than in the model; or the container holds other observed data.
    """
    check_same_data(idata, compiled)
    return unconstrain_posterior(idata, compiled)


def unconstrain_posterior(idata: Any, compiled: CompiledModel) -> np.ndarray:
    """Return draws as `posterior_draws` does, of a model of these or of other data."""
    flat, sizes = compiled.unconstrain(posterior_values(idata)), group(idata, "posterior").sizes
    return flat.reshape(sizes["chain"], sizes["draw"], compiled.ndim)


def posterior_values(idata: Any) -> dict[str, np.ndarray]:
    """Return the posterior draws of a container by variable, those of all chains together."""
    posterior = required_group(idata, "posterior", "pymc.sample")
    values = {str(k): np.asarray(v.transpose("chain", "draw", ...)) for k, v in posterior.items()}
    return {k: v.reshape(v.shape[0] * v.shape[1], *v.shape[2:]) for k, v in values.items()}


def check_same_data(idata: Any, compiled: CompiledModel) -> None:
    """Raise if a container holds observed data other than those of the model."""
    found, expected = stored_hash(idata), hash_data(compiled.observed_data())
    if found and found != expected:
        raise ValueError(
            f"The draws are of other observed data (hash {found}) than those of the model, "
            f"{sorted(compiled.observed_data())} (hash {expected}). Pass the model that was "
            "sampled."
        )
