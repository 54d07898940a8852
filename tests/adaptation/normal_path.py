"""A normal prior and a normal likelihood, with the evidence and the length of the path."""

import jax
import numpy as np

from scipy import integrate, stats

import pymc_anneal as pma

from pymc_anneal.adaptation.pilot import Pilot, run_pilot
from pymc_anneal.base.contracts import LogTerms, Transition

PARTICLES = 2000


def normal_path(dim: int, prior_sd: float, y: float, sigma: float) -> pma.GeometricPath:
    """Prior N(0, prior_sd^2 I), likelihood N(y; x_i, sigma) in each of ``dim`` coordinates."""

    def terms(x: jax.Array) -> LogTerms:
        prior = -0.5 * (x / prior_sd) ** 2 - np.log(prior_sd * np.sqrt(2 * np.pi))
        likelihood = -0.5 * ((x - y) / sigma) ** 2 - np.log(sigma * np.sqrt(2 * np.pi))
        return LogTerms(prior.sum(), likelihood.sum())

    return pma.GeometricPath(terms)


def normal_evidence(dim: int, prior_sd: float, y: float, sigma: float) -> float:
    """Return the log evidence of ``normal_path``."""
    return float(dim * stats.norm.logpdf(y, 0.0, np.hypot(prior_sd, sigma)))


def normal_barrier(dim: int, prior_sd: float, y: float, sigma: float) -> float:
    """Return the length of ``normal_path``, ``int sqrt(Var_beta[V]) dbeta``, by quadrature."""

    def speed(log_beta: float) -> float:
        beta = np.exp(log_beta)
        variance = 1 / (prior_sd**-2 + beta / sigma**2)
        mean = variance * beta * y / sigma**2
        fisher = variance**2 / (2 * sigma**4) + variance * (y - mean) ** 2 / sigma**4
        return np.sqrt(dim * fisher) * beta

    return float(integrate.quad(speed, np.log(1e-16), 0.0, limit=500)[0])


def normal_pilot(
    kernel: Transition,
    dim: int = 1,
    prior_sd: float = 1.0,
    y: float = 3.0,
    sigma: float = 0.5,
    seed: int = 1,
    **kwargs,
) -> Pilot:
    """Run the pilot along ``normal_path``."""
    rng = np.random.default_rng(seed)
    position = rng.normal(0.0, prior_sd, size=(PARTICLES, dim))
    path = normal_path(dim, prior_sd, y, sigma)
    return run_pilot(path, kernel, position, np.random.SeedSequence(seed), **kwargs)
