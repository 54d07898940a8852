"""`sample_ais` for models of which a part is a black box."""

import warnings

from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.model.derivatives import FIRST_ORDER, NO_GRADIENT, SMOOTH
from pymc_anneal.sampling.fit_reference import fit_to_draws
from tests.sampling.black_box_models import (
    LogLikelihood,
    LogLikelihoodWithGradient,
    custom_dist,
    exact_log_evidence,
    in_jax,
    log_likelihood,
    potential,
    solve,
    solved,
)

pytestmark = pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning")

WITHOUT_GRADIENT = {
    "custom_dist": lambda: custom_dist(LogLikelihood()),
    "wrap_py": lambda: potential(log_likelihood),
    "solver": solved,
}


def run(model: pm.Model, **settings: Any) -> Any:
    """Estimate the evidence, without the warning of the random walk."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The model has no gradient")
        return pma.sample_ais(200, model=model, random_seed=3, progressbar=False, **settings)


def assert_exact(idata: Any) -> None:
    estimate = pma.log_evidence(idata)
    assert abs(estimate.log_evidence - exact_log_evidence()) < 4 * estimate.mcse
    assert estimate.mcse < 0.1
    assert estimate.verdict.trusted


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    WITHOUT_GRADIENT,
)
def test_models_without_gradients_run_by_default(name: str) -> None:
    model = WITHOUT_GRADIENT[name]()
    assert pma.compile_model(model).derivatives.order == NO_GRADIENT
    idata = run(model)
    assert idata["evidence"].attrs["transition"] == "RandomWalkMetropolis"
    assert idata["evidence"].attrs["reference"] == "mixture"
    assert_exact(idata)


@pytest.mark.slow
def test_a_gradient_of_the_op_is_used() -> None:
    model = custom_dist(LogLikelihoodWithGradient())
    assert pma.compile_model(model).derivatives.order == FIRST_ORDER
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        idata = run(model, reference="pilot")
    assert idata["evidence"].attrs["transition"] == "HMC"
    assert_exact(idata)


@pytest.mark.slow
def test_a_wrong_black_box_is_seen() -> None:
    off_by_half = potential(lambda a, b: log_likelihood(a, b) + 0.05)  # of ten observations
    idata = run(off_by_half, audit="off")
    estimate = pma.log_evidence(idata)
    assert abs(estimate.log_evidence - exact_log_evidence()) > 4 * estimate.mcse


@pytest.mark.slow
def test_the_default_says_that_it_walks() -> None:
    with pytest.warns(UserWarning, match=r"no gradient .*FromFunctionOp\{solve\}.*random-walk"):
        pma.sample_ais(20, steps=2, model=solved(), progressbar=False, audit="off")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pma.sample_ais(
            20,
            steps=2,
            transition="random_walk",
            model=solved(),
            progressbar=False,
            warnings=False,
            audit="off",
        )


@pytest.mark.parametrize("transition", ["hmc", pma.MALA(), pma.GeneralizedHMC(), pma.HMC()])
def test_kernels_with_gradients_are_refused(transition: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"needs gradients.*solve.*random_walk"):
        pma.sample_ais(model=solved(), transition=transition, progressbar=False)


@pytest.mark.slow
def test_methods_with_gradients_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="A Laplace approximation needs gradients"):
        pma.sample_ais(
            model=solved(), reference="laplace", transition="random_walk", progressbar=False
        )
    with pytest.raises(NotImplementedError, match="find_map needs gradients"):
        pma.find_map(model=solved())
    with pytest.raises(NotImplementedError, match="find_map needs second derivatives"):
        pma.find_map(model=custom_dist(LogLikelihoodWithGradient()))


@pytest.mark.slow
def test_discrete_variables_beside_a_black_box() -> None:
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 1.0)
        on = pm.Bernoulli("on", 0.3)
        pm.Normal("y", solve(slope) + on, 1.0, observed=np.linspace(0.0, 9.0, 10))
    walk, gibbs = pma.default_transition(model=model).parts
    assert isinstance(walk.kernel, pma.RandomWalkMetropolis)
    assert gibbs == pma.Gibbs([1], [(0, 1)])


def test_a_reference_is_fitted_to_draws_alone() -> None:
    scale = np.array([[0.3, 0.0], [-0.5, 0.4]])
    draws = [1.0, 2.0] + np.random.default_rng(1).normal(size=(4000, 2)) @ scale.T
    fit = fit_to_draws(pma.compile_model(solved()), draws)
    np.testing.assert_allclose(fit.mean, [1.0, 2.0], atol=0.04)
    np.testing.assert_allclose(fit.scale, scale, atol=0.02)


def test_pymc_models_have_all_derivatives() -> None:
    assert pma.compile_model(in_jax()).derivatives.order == SMOOTH
