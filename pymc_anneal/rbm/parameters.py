"""The parameters of an RBM as a group of a container, so that a saved result is complete."""

import numpy as np
import xarray as xr

from pymc_anneal.base.arviz_compat import Container, required_group
from pymc_anneal.rbm.model import RBM

_MADE_BY = "pymc_anneal.rbm.sample_ais"
_DIMS = {
    "visible_bias": ("visible_unit",),
    "hidden_bias": ("hidden_unit",),
    "weights": ("visible_unit", "hidden_unit"),
}


def parameters_dataset(model: RBM) -> xr.Dataset:
    """Return the parameters by name, in their floating type."""
    values = {name: (dims, np.asarray(getattr(model, name))) for name, dims in _DIMS.items()}
    units = {"visible_unit": np.arange(model.n_visible), "hidden_unit": np.arange(model.n_hidden)}
    return xr.Dataset(values, coords=units)


def stored_rbm(result: Container) -> RBM:
    """Read the RBM from a result of :func:`sample_ais`.

    Raises
    ------
    ValueError
        The object is no container, or holds no parameters of an RBM.
    """
    found = required_group(result, "constant_data", _MADE_BY)
    missing = [name for name in _DIMS if name not in found]
    if missing:
        raise ValueError(
            f"The group 'constant_data' has no {', '.join(missing)}; expected a result of "
            f"{_MADE_BY}."
        )
    return RBM(*(found[name].values for name in _DIMS))
