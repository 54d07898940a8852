"""Local maxima by L-BFGS-B."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pymc_anneal.posthoc.maximise import maximise


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def test_the_maximum_of_a_quadratic() -> None:
    centre, precision = np.array([1.0, -2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    found = maximise(lambda x: 3.0 - 0.5 * (x - centre) @ precision @ (x - centre), np.zeros(2))
    np.testing.assert_allclose(found.position, centre, atol=1e-4)
    assert found.value == pytest.approx(3.0, abs=1e-8)


def test_the_start_decides_between_two_maxima() -> None:
    def two_peaks(x: jax.Array) -> jax.Array:
        return -((x[0] ** 2 - 1) ** 2)

    for start in (-2.0, 2.0):
        found = maximise(two_peaks, np.array([start]), gtol=1e-10, ftol=1e-15)
        assert found.position[0] == pytest.approx(np.sign(start), abs=1e-4)


def test_options_are_those_of_scipy() -> None:
    one, many = (
        maximise(lambda x: -jnp.cosh(x).sum(), np.full(2, 5.0), maxiter=n) for n in (1, 99)
    )
    assert many.value > one.value
