"""Two small paths of RBMs with the exact RBM at every temperature, and single transitions."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pymc_anneal.base.contracts import KernelState, StepInfo
from pymc_anneal.rbm.model import RBM
from pymc_anneal.rbm.paths import GeometricRBMPath
from pymc_anneal.rbm.spline_path import SplineRBMPath
from pymc_anneal.rbm.transitions import BlockedGibbs, PerfectTransition
from tests.rbm_cases import independent_units, random_rbm, states

SHAPE = 4, 3
TARGET = random_rbm(*SHAPE, scale=1.8)
REFERENCE = independent_units(*SHAPE)
MIDDLE = random_rbm(*SHAPE, seed=5, scale=0.7)
KNOTS = np.array([0.0, 0.35, 1.0])

GEOMETRIC = GeometricRBMPath(REFERENCE.visible_bias, TARGET)
with jax.enable_x64(True):
    SPLINE = SplineRBMPath.through(KNOTS, [REFERENCE, MIDDLE, TARGET])
PATHS = {"geometric": GEOMETRIC, "spline": SPLINE}
KERNELS = {"gibbs": BlockedGibbs(), "perfect": PerfectTransition()}

each_path = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)

PARTICLES = 20_000


def expected_rbm_at(path: Any, beta: float) -> RBM:
    """Return the RBM that a path should be at."""
    if isinstance(path, GeometricRBMPath):
        ends, share = (REFERENCE, TARGET), beta
    else:
        j = min(int(np.searchsorted(KNOTS, beta, side="right")) - 1, 1)
        ends = [(REFERENCE, MIDDLE), (MIDDLE, TARGET)][j]
        share = (beta - KNOTS[j]) / (KNOTS[j + 1] - KNOTS[j])
    return jax.tree.map(lambda a, b: (1 - share) * a + share * b, *ends)


@partial(jax.jit, static_argnames="name")
def call(name: str, path: Any, *arguments) -> Any:
    """Call a method of a path, compiled once for all temperatures."""
    return getattr(path, name)(*arguments)


@partial(jax.jit, static_argnames="kernel_type")
def compiled_step(key, position, path, beta, kernel_type) -> tuple[KernelState, StepInfo]:
    # The terms may come from another temperature, as in the engine.
    state = KernelState(position, path.evaluate(position), ())
    return kernel_type().step(key, state, path, beta)


def step(path: Any, kernel: Any, beta: float, position: np.ndarray, seed: int = 0):
    key = jax.random.key(seed, impl="threefry2x32")
    return compiled_step(key, position, path, jnp.asarray(beta), type(kernel))


def sweep_probabilities(model: RBM, start: np.ndarray) -> np.ndarray:
    """Return the probabilities of the visible states one sweep after a state."""
    h, v = states(model.n_hidden), states(model.n_visible)
    hidden = model.hidden_probability(start)
    p_hidden = np.where(h > 0, hidden, 1 - hidden).prod(axis=1)
    visible = model.visible_probability(h)[:, None]
    return p_hidden @ np.where(v[None] > 0, visible, 1 - visible).prod(axis=2)
