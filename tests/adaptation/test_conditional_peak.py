"""Peaks of a density in some coordinates, and the masses around them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pymc_anneal.adaptation.conditional_peak import ConditionalDensity
from pymc_anneal.base import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.paths.geometric import GeometricPath

# The last coordinate but one is the sharp one.
D, SHARP = 9, 7


@double_precision
@pytest.mark.parametrize("curvature", [1.0, 1e6, 1e18])
def test_curvatures_far_apart_keep_their_digits(curvature: float) -> None:
    """One of 1e18, where a scale is 1e-9, beside others of one."""
    root = np.random.default_rng(0).normal(size=(D, D))
    wide = root @ root.T + np.eye(D)

    def terms(x: jax.Array) -> LogTerms:
        near = -0.5 * curvature * (x[SHARP] - 0.25) ** 2
        return LogTerms(near - 0.5 * x @ wide @ x, jnp.zeros(()))

    density = ConditionalDensity(GeometricPath(terms), tuple(range(D)))
    peak = density.peaks(np.full((1, D), 0.3))
    # Of block matrices: the determinant without the sharp row, and what that row has left.
    rest = np.delete(np.delete(wide, SHARP, 0), SHARP, 1)
    cross = np.delete(wide[SHARP], SHARP)
    left = curvature + wide[SHARP, SHARP] - cross @ np.linalg.solve(rest, cross)
    volume = 0.5 * (D * np.log(2 * np.pi) - np.linalg.slogdet(rest)[1] - np.log(left))
    assert peak.log_mass[0] - peak.log_density[0] == pytest.approx(volume, abs=1e-6)
    covariance = peak.scale[0] @ peak.scale[0].T
    assert covariance[SHARP, SHARP] == pytest.approx(1 / left)
