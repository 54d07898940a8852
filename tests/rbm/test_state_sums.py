"""Sums over states beyond every block: low and high bits, parts, chunks of factors."""

import numpy as np
import pytest

from pymc_anneal.rbm import state_sums
from pymc_anneal.rbm.exact import exact_moments, log_partition_function
from pymc_anneal.rbm.model import RBM
from pymc_anneal.rbm.state_sums import Moments
from tests.rbm_cases import enumerate_hidden_states, flat, random_rbm

# Two blocks in each part and more: 8 low bits, 3 bits of parts, and the rest within a part.
SHAPES = [(14, 12), (12, 15), (600, 13)]


@pytest.mark.parametrize("scale", [0.1, 3.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_enumeration(shape: tuple[int, int], scale: float) -> None:
    assert min(shape) >= state_sums._LOW_BITS + state_sums._LOG_PARTS + 1
    model = random_rbm(*shape, seed=4, scale=scale / np.sqrt(max(shape)))
    transposed = model.n_visible < model.n_hidden
    smaller = RBM(model.hidden_bias, model.visible_bias, model.weights.T)
    log_z, moments = enumerate_hidden_states(smaller if transposed else model)
    if transposed:
        moments = Moments(moments.hidden, moments.visible, moments.products.T)
    assert log_partition_function(model) == pytest.approx(log_z, rel=1e-12)
    np.testing.assert_allclose(flat(exact_moments(model)), flat(moments), rtol=1e-9, atol=1e-12)


def test_the_last_block_holds_nearly_everything() -> None:
    """Sums are rescaled from block to block, by hundreds of nats."""
    model = random_rbm(14, 12, seed=5, scale=0.3)
    bias = np.asarray(model.hidden_bias).copy()
    bias[8:] = 60.0
    model = RBM(model.visible_bias, bias, model.weights)
    log_z, moments = enumerate_hidden_states(model)
    assert log_partition_function(model) == pytest.approx(log_z, rel=1e-12)
    np.testing.assert_allclose(flat(exact_moments(model)), flat(moments), rtol=1e-9, atol=1e-12)
