"""Estimators from particles at several temperatures: by hand on few numbers, and exact draws."""

import numpy as np
import pytest

from pymc_anneal.annealing.block import Ladder
from pymc_anneal.evidence.bennett import bar
from pymc_anneal.evidence.ladder import mbar, stepping_stone
from pymc_anneal.evidence.ladder import thermodynamic_integration as integrate
from tests.cases import log_gamma_draws, log_gamma_evidence, log_gamma_terms
from tests.evidence.meng_wong import bridge

ESTIMATORS = [
    lambda beta, ladder: stepping_stone(ladder),
    lambda beta, ladder: stepping_stone(ladder, backward=True),
    lambda beta, ladder: integrate(beta, ladder)[0],
    mbar,
]


def ladder_of(beta, v, log_weight=None) -> Ladder:
    """Particles of a path with ``log f_beta = beta v``."""
    beta, v = np.asarray(beta, dtype=float), np.asarray(v, dtype=float)
    log_weight = np.zeros_like(v) if log_weight is None else np.asarray(log_weight)
    up, down, h = np.zeros_like(v), np.zeros_like(v), np.diff(beta)[:, None]
    up[:-1], down[1:] = h * v[:-1], h * v[1:]
    return Ladder(log_weight, up, down, v, np.zeros((*v.shape, 0)))


def exact_ladder(count: int = 8, n: int = 4000, seed: int = 1) -> tuple[np.ndarray, Ladder]:
    """Return temperatures, and exact draws of the test problem at each of them."""
    rng, beta = np.random.default_rng(seed), np.linspace(0, 1, count + 1) ** 2
    draws = [log_gamma_draws(b, n, rng) for b in beta]
    v = np.array([[float(log_gamma_terms(x).log_likelihood) for x in d[:400]] for d in draws])
    return beta, ladder_of(beta, v)


class TestByHand:
    beta, v = np.array([0.0, 0.5, 1.0]), np.array([[-1.0, -3.0], [-1.5, -2.0], [-1.2, -1.4]])

    def test_stepping_stone(self) -> None:
        forward = np.log(np.exp(0.5 * self.v[:2]).mean(axis=1)).sum()
        backward = -np.log(np.exp(-0.5 * self.v[1:]).mean(axis=1)).sum()
        ladder = ladder_of(self.beta, self.v)
        assert stepping_stone(ladder) == pytest.approx(forward, rel=1e-12)
        assert stepping_stone(ladder, backward=True) == pytest.approx(backward, rel=1e-12)

    def test_weights(self) -> None:
        log_weight = np.array([[0.0, 0.0], [0.3, -0.2], [0.5, 0.1]])
        share = np.exp(log_weight) / np.exp(log_weight).sum(axis=1, keepdims=True)
        forward = np.log((share * np.exp(0.5 * self.v))[:2].sum(axis=1)).sum()
        found = stepping_stone(ladder_of(self.beta, self.v, log_weight))
        assert found == pytest.approx(forward, rel=1e-12)

    def test_integration(self) -> None:
        mean, variance = self.v.mean(axis=1), self.v.var(axis=1)
        first = np.log(np.exp(0.5 * self.v[0]).mean())
        trapezoid = 0.25 * (mean[1] + mean[2])
        correction = -0.25 * (variance[2] - variance[1]) / 12
        found = integrate(self.beta, ladder_of(self.beta, self.v))
        assert found == pytest.approx((first + trapezoid + correction, correction), rel=1e-12)

    def test_integration_needs_no_mean_under_the_prior(self) -> None:
        """A heavy-tailed prior: one particle at the start decides nothing."""
        v = np.vstack([[-1e12, -3.0], self.v[1:]])
        assert abs(integrate(self.beta, ladder_of(self.beta, v))[0]) < 10

    def test_mbar_of_two_temperatures_is_bar(self) -> None:
        """With equal weights, MBAR is then Bennett's acceptance ratio."""
        v = np.random.default_rng(3).normal(size=(2, 50))
        found = bar(v[0], v[1]).log_evidence
        assert mbar(np.array([0.0, 1.0]), ladder_of([0.0, 1.0], v)) == pytest.approx(
            found, abs=1e-7
        )

    def test_mbar_of_uneven_weights(self) -> None:
        """Temperatures count by their effective sample sizes: the bridge of these shares."""
        rng = np.random.default_rng(3)
        v, log_weight = rng.normal(size=(2, 50)), np.stack([np.zeros(50), rng.normal(size=50)])
        share = np.exp(log_weight[1]) / np.exp(log_weight[1]).sum()
        ess = 1 / (share**2).sum()
        found = mbar(np.array([0.0, 1.0]), ladder_of([0.0, 1.0], v, log_weight))
        assert found == pytest.approx(bridge(*v, share, ess / (50 + ess)), abs=1e-7)

    def test_a_constant_shifts_all(self) -> None:
        plain, shifted = ladder_of(self.beta, self.v), ladder_of(self.beta, self.v + 1e3)
        for estimate in ESTIMATORS:
            found = estimate(self.beta, shifted)
            assert found == pytest.approx(estimate(self.beta, plain) + 1e3, abs=1e-7)

    def test_zero_likelihood_at_the_start(self) -> None:
        """Half of the prior forbidden: every estimator counts it."""
        v = np.zeros((3, 400))
        v[0, ::2] = -np.inf
        ladder = ladder_of(self.beta, v)
        ladder.log_weight[1:, ::2] = -np.inf
        for estimate in ESTIMATORS:
            assert estimate(self.beta, ladder) == pytest.approx(np.log(0.5), abs=1e-7)


def test_exact_draws() -> None:
    beta, ladder = exact_ladder()
    for estimate in ESTIMATORS:
        assert estimate(beta, ladder) == pytest.approx(log_gamma_evidence(), abs=0.15)
