"""Numbers of a model, which PyTensor stores in few bits, count in double precision."""

import jax
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.model import jaxify
from pymc_anneal.model.double_constants import widen_constants

Y = np.linspace(-5, 7, 1001)


def model() -> pm.Model:
    """Return a model whose scales are 10 and 3.0, of types ``int8`` and ``float32``."""
    with pm.Model() as built:
        mu = pm.Normal("mu", 0, 10, shape=2)
        pm.Normal("y", mu.sum(), 3.0, observed=Y)
    return built


def off() -> np.ndarray:
    """Return how far log prior and log likelihood at a point are off, in nats."""
    at = np.array([0.3, 1.0])
    with jax.enable_x64(True):
        terms = pma.compile_model(model()).log_terms(at)
        found = np.array([float(terms.log_prior), float(terms.log_likelihood)])
    exact = stats.norm.logpdf(at, 0, 10).sum(), stats.norm.logpdf(Y, 1.3, 3).sum()
    return np.abs(found - exact)


def test_scales_that_are_written_as_numbers() -> None:
    assert off().max() < 1e-11


def test_in_few_bits_each_observation_is_off(monkeypatch) -> None:
    """The twin: 2e-8 nats each."""
    monkeypatch.setattr(jaxify, "widen_constants", list)
    prior, likelihood = off()
    assert prior > 1e-8
    assert likelihood > 1e-5


def test_an_exact_sum_has_all_its_digits() -> None:
    """Of Bernoulli variables with a share of 0.5 PyMC's own log density is of ``float32``."""
    with pm.Model() as coins:
        heads = pm.Bernoulli("heads", 0.5, shape=9)
        pm.Potential("more", heads.sum() * np.log(3))
    found = pma.log_evidence(pma.sample_ais(model=coins, random_seed=1, progressbar=False))
    assert found.mcse == 0.0
    assert found.log_evidence == pytest.approx(9 * np.log(2), abs=1e-13)


def value_of(graph: pt.TensorVariable) -> np.ndarray:
    (wide,) = widen_constants([graph])
    return pytensor.function([], wide)()


def test_logarithms_sums_and_data() -> None:
    assert value_of(pt.log(pt.constant(10))) == np.log(10.0)
    assert value_of(pt.log(pt.constant(2.5))) == np.log(2.5)
    data = np.array([1.5, 2.5], dtype=np.float32)
    assert value_of(pt.log(pt.constant(data)).sum()) == pytest.approx(np.log(3.75), abs=1e-15)
    small = pt.constant(np.array([3, 4], dtype=np.int8))
    assert value_of(small).dtype == np.int8  # tables of data stay as small as they are


def test_a_loop_keeps_its_types() -> None:
    start = pt.constant(1.5)
    steps = pytensor.scan(
        lambda x: x * start, outputs_info=pt.log(start), n_steps=3, return_updates=False
    )
    assert value_of(steps[-1]) == pytest.approx(np.log(1.5) * 1.5**3, rel=1e-6)
