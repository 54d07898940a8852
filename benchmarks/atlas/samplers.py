"""Targets on which variational and diffusion samplers are compared, as PyMC models.

    python -m benchmarks.atlas.samplers    # computes their evidences anew

Definitions were read in the code of Blessing et al. (2024), "Beyond ELBOs"
(variational_sampling_methods, commit 32de621), and for the wells in that of Berner et al. (2024),
"An optimal control perspective" (sde_sampler, commit e199bda). A target without a prior, gamma(x),
becomes a model with a wide normal prior p(x) and the term log gamma(x) - log p(x), so that its
evidence is the integral of gamma.
"""

import json

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.tensor import TensorVariable
from scipy import integrate, linalg, special, stats

from benchmarks.atlas import stored
from benchmarks.atlas.models.terms import normal_logp
from benchmarks.atlas.posterior import Posterior
from benchmarks.atlas.stored import Data

WELLS, DIMENSIONS, SEPARATION = 5, 50, 2.0
COMPONENTS, SPREAD = 40, 40.0
FUNNEL, FUNNEL_SCALE = 10, 3.0
GRID, VARIANCE, LENGTH, POINTS = 40, 1.91, 1 / 33, 126
DRAWS = 400_000  # of importance sampling: an error of 0.002


def with_density(log_density: TensorVariable, x: TensorVariable, scale: float) -> None:
    """Make `log_density` the density of x over its normal prior of this scale."""
    pm.Potential("target", log_density - normal_logp(x, 0.0, np.float64(scale)).sum())


def many_well(d: Data) -> None:
    """Five double wells, -(x^2 - 2)^2, and 45 normal coordinates -x^2 / 2: 32 modes."""
    x = pm.Normal("x", 0, 2, shape=DIMENSIONS)
    wells = -((x[:WELLS] ** 2 - SEPARATION) ** 2)
    with_density(wells.sum() - 0.5 * (x[WELLS:] ** 2).sum(), x, 2.0)


def mixture(d: Data) -> None:
    """Forty unit normal densities with uniform means in [-40, 40]^50, of our own generator."""
    means = np.random.default_rng(0).uniform(-SPREAD, SPREAD, (COMPONENTS, DIMENSIONS))
    x = pm.Normal("x", 0, SPREAD, shape=DIMENSIONS)
    components = normal_logp(x[None, :], means, np.float64(1.0)).sum(axis=1)
    with_density(pt.logsumexp(components) - np.log(COMPONENTS), x, SPREAD)


def funnel(d: Data) -> None:
    """Neal's funnel: v ~ N(0, 9), nine coordinates N(0, e^v), under priors N(0, 100^2)."""
    v = pm.Normal("v", 0, FUNNEL_SCALE)
    x = pm.Normal("x", 0, 100, shape=FUNNEL - 1)
    with_density(normal_logp(x, 0.0, pt.exp(v / 2)).sum(), x, 100.0)


def credit(d: Data) -> None:
    """German credit, logistic regression with N(0, 10^2), which the published target leaves out."""
    x, good = credit_design(d)
    beta = pm.Normal("beta", 0, 10, shape=x.shape[1])
    pm.Bernoulli("good", logit_p=pt.dot(x, beta), observed=good)


def credit_design(d: Data) -> tuple[np.ndarray, np.ndarray]:
    """Return an intercept and columns of unit variance, and which label is 2."""
    x = d["x"] / d["x"].std(axis=0)
    return np.column_stack([np.ones(len(x)), x]), d["label"] - 1


def cox(d: Data) -> None:
    """Saplings of Finnish pines in 40 x 40 cells: log intensity by a Gaussian process, whitened.

    The published target leaves out 1600^-n / n! of each cell with n points.
    """
    z = pm.Normal("z", 0, 1, shape=GRID**2)
    mean, factor = cox_process()
    pm.Poisson("n", pt.exp(mean + pt.dot(factor, z)) / GRID**2, observed=d["n"].ravel())


def cox_process() -> tuple[float, np.ndarray]:
    """Return mean and Cholesky factor of the log intensity (Moller et al. 1998)."""
    places = np.stack(np.meshgrid(np.arange(GRID), np.arange(GRID), indexing="ij"), -1)
    places = places.reshape(-1, 2)
    distance = np.linalg.norm(places[:, None] - places[None], axis=-1)
    covariance = VARIANCE * np.exp(-distance / (GRID * LENGTH))
    return np.log(POINTS) - VARIANCE / 2, np.linalg.cholesky(covariance)


TARGETS = {
    t.name: t
    for t in (
        Posterior("wells-many_well_50", many_well, 50, needs_data=False),
        Posterior("mixture-normal_40x50", mixture, 50, needs_data=False),
        Posterior("funnel-neal_10", funnel, 10, needs_data=False),
        Posterior("german_credit-logistic", credit, 25),
        Posterior("finpines-cox_40x40", cox, 1600),
    )
}


# Evidences


def evidences() -> dict[str, stored.Evidence]:
    """Return the evidences of the targets, without this package; the Cox process has none.

    Draws of a normal density at its mode have too few weights to say more than +- 0.8.
    """
    z = np.random.default_rng(0)
    x, good = credit_design(stored.load("german_credit"))
    well = integrate.quad(lambda x: np.exp(-((x**2 - SEPARATION) ** 2)), -np.inf, np.inf)
    value = WELLS * np.log(well[0]) + (DIMENSIONS - WELLS) / 2 * np.log(2 * np.pi)
    return {
        "wells-many_well_50": stored.Evidence(value, WELLS * well[1] / well[0], "quadrature"),
        "mixture-normal_40x50": stored.Evidence(0.0, 0.0, "closed form"),
        "funnel-neal_10": stored.Evidence(0.0, 0.0, "closed form"),
        "german_credit-logistic": importance_sampling(*logistic_terms(x, good), z, DRAWS),
    }


def logistic_terms(x: np.ndarray, y: np.ndarray) -> tuple:
    """Return log density, gradient and curvature of the logistic regression with N(0, 10^2)."""
    sign = 2 * y - 1

    def log_density(beta):
        likelihood = -np.logaddexp(0, -sign * (beta @ x.T)).sum(axis=-1)
        return likelihood + stats.norm(0, 10).logpdf(beta).sum(axis=-1)

    def gradient(beta):
        return x.T @ (y - special.expit(x @ beta)) - beta / 100

    def curvature(beta):
        p = special.expit(x @ beta)
        return (x.T * (p * (1 - p))) @ x + np.eye(x.shape[1]) / 100

    return log_density, gradient, curvature, x.shape[1]


def importance_sampling(
    log_density, gradient, curvature, size: int, generator: np.random.Generator, draws: int
) -> stored.Evidence:
    """Return the mean weight of draws of a normal density at the mode, and its standard error."""
    mode = np.zeros(size)
    for _ in range(50):  # Newton's method; the densities are log-concave
        mode = mode + np.linalg.solve(curvature(mode), gradient(mode))
    root = np.linalg.cholesky(curvature(mode))
    weights = []
    for _ in range(draws // 1000):
        noise = generator.standard_normal((1000, size))
        x = mode + linalg.solve_triangular(root.T, noise.T).T
        proposal = stats.norm.logpdf(noise).sum(axis=1) + np.log(np.diag(root)).sum()
        weights.append(log_density(x) - proposal)
    weights = np.concatenate(weights)
    relative = np.exp(weights - weights.max())
    error = relative.std(ddof=1) / relative.mean() / np.sqrt(len(weights))
    value = weights.max() + np.log(relative.mean())
    return stored.Evidence(float(value), float(error), "importance sampling")


if __name__ == "__main__":
    found = {name: entry._asdict() for name, entry in evidences().items()}
    (stored.FOLDER / stored.SAMPLERS).write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))
