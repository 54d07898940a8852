"""CAR and ICAR are the normal densities that they stand for, in draws and in density."""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytest

from scipy import sparse, special, stats

import pymc_anneal as pma

from tests.model.models import evaluate

SOFT = 0.1


def lattice(rows: int, columns: int) -> np.ndarray:
    """The adjacency matrix of a lattice."""
    index = np.arange(rows * columns).reshape(rows, columns)
    W = np.zeros((rows * columns, rows * columns), dtype=int)
    for first, second in ((index[:, :-1], index[:, 1:]), (index[:-1], index[1:])):
        W[first.ravel(), second.ravel()] = W[second.ravel(), first.ravel()] = 1
    return W


W = lattice(2, 3)
N = len(W)
MU = np.linspace(-1, 1, N)


def car(as_matrix: Callable[[np.ndarray], object]) -> pm.Model:
    with pm.Model() as model:
        alpha = pm.Uniform("alpha", 0, 0.95, default_transform=None)
        tau = pm.HalfNormal("tau", 2, default_transform=None)
        pm.CAR("x", MU, as_matrix(W), alpha, tau)
    return model


def icar() -> pm.Model:
    with pm.Model() as model:
        sigma = pm.Uniform("sigma", 0.3, 2, default_transform=None)
        pm.ICAR("x", W, sigma=sigma, zero_sum_stdev=SOFT)
    return model


def car_precision(alpha: float, tau: float) -> np.ndarray:
    return tau * (np.diag(W.sum(axis=0)) - alpha * W)


def icar_precision(sigma: float, W: np.ndarray = W, soft: float = SOFT) -> np.ndarray:
    n = len(W)
    return (np.diag(W.sum(axis=0)) - W) / sigma**2 + np.ones((n, n)) / (soft * n) ** 2


MODELS = {
    "CAR": (lambda: car(lambda w: w), car_precision, MU),
    "CAR, sparse": (lambda: car(sparse.csr_matrix), car_precision, MU),
    "ICAR": (icar, icar_precision, np.zeros(N)),
}


@pytest.mark.parametrize("name", MODELS)
def test_draws_and_density_are_those_of_the_normal_distribution(name: str) -> None:
    build, precision, mean = MODELS[name]
    with build() as model:
        x = model["x"]
        pm.Normal("y", x[0], 1.0, observed=0.3)
    compiled = pma.compile_model(model)
    draws = compiled.sample_prior(np.random.SeedSequence(1), 4000)
    parameters, fields = np.split(draws, [compiled.ndim - N], axis=1)
    matrices = [precision(*row) for row in parameters]
    # Whitened by the precision given its parameters, the draws are standard normal.
    roots = np.linalg.cholesky(np.array(matrices))
    white = np.einsum("nij,ni->nj", roots, fields - mean)
    second = white[:, :, None] * white[:, None]
    error = second.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(second.mean(axis=0) - np.eye(N)) < 5 * error).all()
    log_volume = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    exact = (log_volume + stats.norm.logpdf(white).sum(axis=1))[:20]
    densities = {"alpha": stats.uniform(0, 0.95), "tau": stats.halfnorm(scale=2)}
    densities |= {"sigma": stats.uniform(0.3, 1.7)}
    names = [v.name for v in compiled.variables if v.name != "x"]
    exact += sum(densities[k].logpdf(parameters[:20, i]) for i, k in enumerate(names))
    np.testing.assert_allclose(evaluate(compiled, draws[:20]).log_prior, exact, rtol=1e-9)


def test_an_observed_field_has_its_constant() -> None:
    y = np.random.default_rng(2).normal(size=N)
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 2, default_transform=None)
        pm.CAR("y", MU, W, 0.6, tau, observed=y)
    compiled = pma.compile_model(model)
    found = evaluate(compiled, np.array([[1.7]])).log_likelihood
    exact = stats.multivariate_normal(MU, np.linalg.inv(car_precision(0.6, 1.7))).logpdf(y)
    np.testing.assert_allclose(found, exact, rtol=1e-9)


def test_parts_of_a_graph_that_are_not_connected() -> None:
    two = np.kron(np.eye(2, dtype=int), W)
    with pm.Model() as model:
        pm.ICAR("phi", two)
    with pytest.raises(ValueError, match="'phi' is a pm.ICAR on a graph of 2 parts"):
        pma.compile_model(model)


AREAS = lattice(5, 6)
Y = 1.0 + np.linspace(-1, 1, 30) + np.random.default_rng(2).normal(0, 0.5, 30)


def besag_york_mollie() -> pm.Model:
    """A level, a spatial and an independent effect of 30 areas, the scale of the former unknown."""
    with pm.Model() as model:
        level, sigma = pm.Normal("level", 0, 2), pm.HalfNormal("sigma", 1.0)
        phi = pm.ICAR("phi", W=AREAS, sigma=sigma, zero_sum_stdev=SOFT)
        pm.Normal("y", level + phi, 0.5, observed=Y)
    return model


def log_evidence_of_bym(normalised: bool = True) -> float:
    """Integrate over the scale; given it, all is normal."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    terms = []
    for s, w in zip(3 * (nodes + 1), 3 * weights, strict=True):
        precision = icar_precision(s, AREAS)
        value = stats.multivariate_normal(
            np.zeros(30), np.linalg.inv(precision) + 4.0 + 0.25 * np.eye(30)
        ).logpdf(Y)
        if not normalised:  # the integral of PyMC's density of the field
            value += 15 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(precision)[1]
            value -= 0.5 * np.log(2 * np.pi) + np.log(SOFT * 30)
        terms.append(value + stats.halfnorm.logpdf(s) + np.log(w))
    return float(special.logsumexp(terms))


@pytest.mark.slow
def test_evidence_of_a_spatial_model_with_a_random_scale() -> None:
    exact = log_evidence_of_bym()
    assert abs(exact - log_evidence_of_bym(normalised=False)) > 5
    found = pma.log_evidence(pma.sample_ais(model=besag_york_mollie(), random_seed=1))
    assert found.verdict.status == "trust"
    assert abs(found.log_evidence - exact) < 4 * found.mcse + 0.005
