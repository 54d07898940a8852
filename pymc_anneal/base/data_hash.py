"""Hash of observed data, by which results of different data are told apart."""

import hashlib

from collections.abc import Mapping

import numpy as np

from pymc_anneal.base.arviz_compat import Container, group, has_group


def hash_data(observed: Mapping[str, np.ndarray]) -> str:
    """Hash the numbers of observed variables, whatever their names, shapes and types.

    In sixteen hexadecimal digits; "" if there are no data.
    """
    # Adding zero makes -0.0 the same number as 0.0.
    parts = [
        (np.ravel(np.asarray(v)).astype(np.float64) + 0.0).tobytes() for v in observed.values()
    ]
    content = b"".join(sorted(parts))
    return hashlib.sha256(content).hexdigest()[:16] if content else ""


def stored_data(data: Container) -> dict[str, np.ndarray]:
    """Return the observed data that a container holds, by variable."""
    if not has_group(data, "observed_data"):
        return {}
    return {str(k): np.asarray(v) for k, v in group(data, "observed_data").data_vars.items()}


def stored_hash(data: Container) -> str:
    """Return the hash of the observed data of a container; "" if they are not known."""
    attrs = group(data, "evidence").attrs if has_group(data, "evidence") else {}
    return str(attrs.get("observed_data_hash", "")) or hash_data(stored_data(data))
