"""Numbers of components: polynomials in closed form, and where a sequence ends."""

import numpy as np
import pymc as pm
import pytest

from scipy import stats
from scipy.special import softmax

import pymc_anneal as pma

from pymc_anneal.sampling.count import _has_fallen

X = np.linspace(-1, 1, 15)
Y = 0.5 + X + np.random.default_rng(1).normal(0, 0.3, 15)


def basis(terms: int) -> np.ndarray:
    return np.polynomial.legendre.legvander(X, 6)[:, :terms]


def polynomial(terms: int) -> pm.Model:
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=terms)
        pm.Normal("y", basis(terms) @ b, 0.3, observed=Y)
    return model


def log_evidence(terms: int) -> float:
    covariance = 0.09 * np.eye(len(X)) + basis(terms) @ basis(terms).T
    return float(stats.multivariate_normal.logpdf(Y, np.zeros(len(X)), covariance))


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        ([0.0, -4.0, -8.0], True),
        ([0.0, -4.0], False),  # once only
        ([0.0, -8.0, -7.5], False),  # rises again
        ([0.0, -1.0, -2.0], False),  # not negligible
        ([-20.0, 0.0, -4.0, -8.0], True),
        ([-9.0, -8.5, 0.0], False),
    ],
)
def test_where_the_sequence_ends(score, expected) -> None:
    assert _has_fallen(score, 1e-3) == expected
    assert not _has_fallen(score, 0.0)


@pytest.mark.slow
def test_probabilities() -> None:
    prior = {1: 0.2, 2: 0.5, 3: 0.2, 4: 0.05, 5: 0.05}
    found = pma.count(
        polynomial, range(1, 6), prior=prior.get, negligible=0.1, random_seed=1, target_mcse=0.02
    )
    run = list(found.probability)
    exact = softmax([log_evidence(k) + np.log(prior[k]) for k in run])
    np.testing.assert_allclose(list(found.probability.values()), exact, atol=0.03)
    assert found.left_out == tuple(k for k in prior if k not in run)
    assert len(found.left_out) >= 1
    assert "not run, as the probabilities had fallen: " in repr(found)
    assert "not run" in found._repr_html_()
    pma.plot_compare(found.comparison)


@pytest.mark.parametrize(
    ("numbers", "prior", "message"),
    [
        ([1], None, "two or more increasing numbers"),
        ([2, 1], None, "two or more increasing numbers"),
        ([1, 2], lambda k: k - 1, "expected positive numbers"),
    ],
)
def test_errors(numbers, prior, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pma.count(polynomial, numbers, prior=prior)
