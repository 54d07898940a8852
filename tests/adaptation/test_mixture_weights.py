"""Weights of a mixture, fitted to a target that is a mixture of the same components."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.adaptation.fitted_reference import discrepancy_of, draw_start, normalised
from pymc_anneal.adaptation.mixture_weights import fit_weights, log_ratio
from pymc_anneal.adaptation.mode_mixture import ModeMixture
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base import LogTerms
from pymc_anneal.paths.geometric import ReferencePath

D, PRIOR_SD, PRIOR_SHARE = 2, 6.0, 0.05
CENTRES = np.array([[3.0, 0.0], [-3.0, 1.0]])
TRUE, WRONG = 0.8, 0.3


def terms(x: jax.Array) -> LogTerms:
    """Two normal densities, 80 % of the mass in the first one; the evidence is 1."""
    log_prior = jax.scipy.stats.norm.logpdf(x, 0, PRIOR_SD).sum()
    log_each = jax.scipy.stats.norm.logpdf(x, CENTRES, 1).sum(axis=1)
    log_posterior = jax.nn.logsumexp(log_each + jnp.log(jnp.array([TRUE, 1 - TRUE])))
    return LogTerms(log_prior, log_posterior - log_prior)


def draw_prior(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, PRIOR_SD, (draws, D))


@pytest.fixture(scope="module")
def path() -> ReferencePath:
    """The path from a mixture with these components and wrong weights."""
    normals = [pma.GaussianReference(centre, np.eye(D)) for centre in CENTRES]
    weight = np.outer([WRONG, 1 - WRONG], [0.9, 0.1]).ravel()
    return ReferencePath(terms, ModeMixture.at(normals, weight), PRIOR_SHARE)


@pytest.fixture(scope="module")
def draws(path: ReferencePath) -> np.ndarray:
    return draw_start(path, draw_prior)(np.random.SeedSequence(2), 4000)


def fitted(path: ReferencePath, draws: np.ndarray, least: float) -> np.ndarray:
    """Return the fitted shares of both modes."""
    target = TargetDensity(pma.GeometricPath(terms), len(draws))
    with jax.enable_x64(True):
        found = fit_weights(path, draws, target, least * path.reference.weight)
    return found.weight.reshape(2, 2).sum(axis=1)


def test_weights_become_those_of_the_target(path: ReferencePath, draws: np.ndarray) -> None:
    np.testing.assert_allclose(fitted(path, draws, 0.2), [TRUE, 1 - TRUE], atol=0.03)


def test_by_hand(path: ReferencePath, draws: np.ndarray) -> None:
    """Five iterations of Cappe et al. (2008), eq. 14, with the share of the prior."""
    mixture, normal = path.reference, stats.norm.pdf
    each = np.exp(mixture.evaluate_components(draws)) / mixture.weight[:, None]
    prior = normal(draws, 0, PRIOR_SD).prod(axis=1)
    modes = [normal(draws, centre, 1).prod(axis=1) for centre in CENTRES]
    target, weight = TRUE * modes[0] + (1 - TRUE) * modes[1], mixture.weight
    importance = target / (PRIOR_SHARE * prior + (1 - PRIOR_SHARE) * weight @ each)
    importance /= importance.sum()
    for _ in range(5):
        reference = PRIOR_SHARE * prior + (1 - PRIOR_SHARE) * weight @ each
        weight = (weight[:, None] * each / reference) @ importance
        weight = weight / weight.sum()
    np.testing.assert_allclose(
        fitted(path, draws, 1e-9), weight.reshape(2, 2).sum(axis=1), rtol=1e-9
    )


def test_no_component_is_given_up(path: ReferencePath, draws: np.ndarray) -> None:
    # Bounds of what they were, 0.7 of which were of the second mode; then they sum to one.
    share = fitted(path, draws, 1.0)
    assert share[1] > 0.4
    assert share.sum() == pytest.approx(1.0)


def test_log_ratio_is_that_of_the_path(path: ReferencePath, draws: np.ndarray) -> None:
    with jax.enable_x64(True):
        exact = path.evaluate(draws)
        found = log_ratio(path, draws, jax.vmap(terms)(draws))
    np.testing.assert_allclose(found, exact.log_target - exact.log_reference, atol=1e-9)
    assert np.ptp(found) > 1


def test_draws_outside_of_the_support_leave_the_weights(
    path: ReferencePath, draws: np.ndarray
) -> None:
    def nowhere(x: jax.Array) -> LogTerms:
        return LogTerms(jax.scipy.stats.norm.logpdf(x, 0, PRIOR_SD).sum(), -jnp.inf)

    with jax.enable_x64(True):
        target = TargetDensity(pma.GeometricPath(nowhere), len(draws))
        found = fit_weights(path, draws, target, 0.2 * path.reference.weight)
    np.testing.assert_array_equal(found.weight, path.reference.weight)
    log_u = np.full(3, -np.inf)
    np.testing.assert_array_equal(normalised(log_u), 0)
    assert discrepancy_of(log_u, np.zeros(3)) == np.inf
