"""Hash of observed data, by which results of different data are told apart."""

import hashlib

from collections.abc import Mapping

import numpy as np


def hash_data(observed: Mapping[str, np.ndarray]) -> str:
    """Hash the numbers of observed variables, whatever their names, shapes and types.

    Parameters
    ----------
    observed : mapping of str to ndarray
        Observed data by variable.

    Returns
    -------
    str
        Sixteen hexadecimal digits; "" if there are no data.
    """
    # Adding zero makes -0.0 the same number as 0.0.
    parts = [
        (np.ravel(np.asarray(v)).astype(np.float64) + 0.0).tobytes() for v in observed.values()
    ]
    content = b"".join(sorted(parts))
    return hashlib.sha256(content).hexdigest()[:16] if content else ""
