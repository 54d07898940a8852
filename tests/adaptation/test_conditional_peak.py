"""Peaks of a density in some coordinates, and the masses around them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pymc_anneal.adaptation.conditional_peak import ConditionalDensity
from pymc_anneal.base import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.paths.geometric import GeometricPath


@double_precision
@pytest.mark.parametrize("curvature", [1.0, 1e6, 1e18])
def test_curvatures_far_apart_keep_their_digits(curvature: float) -> None:
    """One of 1e18, where a scale is 1e-9, beside two of one."""

    def terms(x: jax.Array) -> LogTerms:
        near = -0.5 * curvature * (x[0] - 0.4) ** 2
        return LogTerms(near - 0.5 * (x[1] - x[0]) ** 2 - 0.5 * x[2] ** 2, jnp.zeros(()))

    density = ConditionalDensity(GeometricPath(terms), (0, 1, 2))
    peak = density.peaks(np.array([[0.5, -1.0, 2.0]]))
    np.testing.assert_allclose(peak.position, [[0.4, 0.4, 0.0]], atol=1e-6)
    expected = 1.5 * np.log(2 * np.pi) - 0.5 * np.log(curvature)
    assert peak.log_mass[0] == pytest.approx(expected, abs=1e-6)
    covariance = peak.scale[0] @ peak.scale[0].T
    np.testing.assert_allclose(np.diag(covariance), [1 / curvature, 1 + 1 / curvature, 1])
