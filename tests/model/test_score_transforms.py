"""Normal scores of gamma, beta and Dirichlet variables of small shape."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor.gradient import jacobian
from scipy import stats

from pymc_anneal.model.score_transforms import (
    BetaScore,
    DirichletScore,
    GammaScore,
    logistic_of_score,
    score_of_logistic,
    stick_shapes,
)

NOTHING = pt.constant(0)  # generator and size of a random variable, which no transform looks at
Z = np.linspace(-6, 6, 13)
SHAPES = [0.003, 0.05, 0.3, 1.0, 4.0]


def gamma_inputs(shape: float, scale: float = 2.5) -> tuple:
    # 2.5 alone is a constant of single precision, and so is its logarithm.
    return NOTHING, NOTHING, *(pt.constant(np.asarray(v, dtype=float)) for v in (shape, scale))


def dirichlet_inputs(shape) -> tuple:
    return NOTHING, NOTHING, pt.constant(np.asarray(shape, dtype=float))


def test_the_cubic_is_the_logistic_quantile_at_a_score() -> None:
    z = np.linspace(-6, 6, 1001)
    share = stats.logistic.cdf(logistic_of_score(pt.constant(z)).eval())
    assert np.abs(share - stats.norm.cdf(z)).max() == pytest.approx(1.4e-4, rel=0.02)


def test_the_cubic_has_one_root() -> None:
    z = np.linspace(-40, 40, 1001)
    np.testing.assert_allclose(score_of_logistic(logistic_of_score(pt.constant(z))).eval(), z)


@pytest.mark.parametrize("shape", SHAPES)
def test_gamma_scores_and_back(shape: float) -> None:
    inputs, score = gamma_inputs(shape), GammaScore()
    log_value = pt.log(score.backward(pt.constant(Z), *inputs))
    np.testing.assert_allclose(score.of_logarithm(log_value, *inputs).eval(), Z, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [1e-3, 30.0])
def test_volume_of_a_gamma_score(shape: float, scale: float) -> None:
    inputs, score, z = gamma_inputs(shape, scale), GammaScore(), pt.dvector()
    log_value = pt.log(score.backward(z, *inputs))
    slope = pt.log(pt.grad(log_value.sum(), z)) + log_value
    function = pytensor.function([z], [slope, score.log_jac_det(z, *inputs)])
    expected, found = function(Z[3:-3])
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("shape", [0.003, 0.3, 1.0])
def test_volume_far_below(shape: float) -> None:
    """Where ``softplus(t) = e^t`` underflows, as at a draw with a heavy tail: ``log x = t / a``."""
    inputs, score, z = gamma_inputs(shape), GammaScore(), pt.dvector()
    found = score.log_jac_det(z, *inputs)
    at = np.array([-20.0, -24.0, -60.0, -1e3])
    t = logistic_of_score(pt.constant(at)).eval()
    volume, slope = pytensor.function([z], [found, pt.grad(found.sum(), z)])(at)
    slope_of_t = 1.5976 + 3 * 0.07056 * at**2
    expected = np.log(2.5) + t / shape - np.log(shape) + np.log(slope_of_t)
    np.testing.assert_allclose(volume, expected, rtol=1e-12)
    np.testing.assert_allclose(slope, slope_of_t / shape + 6 * 0.07056 * at / slope_of_t)


@pytest.mark.parametrize("z", [-1e3, -30.0, 30.0, 1e3])
def test_far_scores_of_a_stick_are_numbers(z: float) -> None:
    inputs, score, value = dirichlet_inputs([0.05, 0.4, 0.1]), DirichletScore(), pt.dvector()
    found = score.log_jac_det(value, *inputs)
    for each in pytensor.function([value], [found, pt.grad(found, value)])([z, 0.3]):
        assert np.isfinite(each).all()


@pytest.mark.parametrize("shape", [0.003, 0.05, 0.3, 0.5])
def test_scores_are_about_normal_under_the_prior(shape: float) -> None:
    rng = np.random.default_rng(1)
    uniform = np.log(rng.uniform(size=20_000))
    log_value = np.log(stats.gamma(shape + 1).rvs(20_000, random_state=rng)) + uniform / shape
    z = GammaScore().of_logarithm(pt.constant(log_value), *gamma_inputs(shape, 1.0)).eval()
    assert z.mean() == pytest.approx(0, abs=0.27)
    assert z.std() == pytest.approx(0.92, abs=0.1)
    # Those of its logarithm are about -2 and 5.
    assert np.abs(stats.skew(z)) < 0.45
    assert np.abs(stats.kurtosis(z)) < 0.4


@pytest.mark.parametrize(
    "shape", [[0.3, 0.3], [0.01, 0.4, 0.1], [2.0, 0.1, 0.3, 3.0], np.full(9, 0.05)]
)
def test_dirichlet_scores_and_back(shape) -> None:
    inputs, score = dirichlet_inputs(shape), DirichletScore()
    z = np.random.default_rng(2).normal(size=(2, len(shape) - 1))
    weight = score.backward(pt.constant(z), *inputs)
    assert weight.eval().shape == (2, len(shape))
    np.testing.assert_allclose(weight.sum(axis=-1).eval(), 1)
    np.testing.assert_allclose(score.forward(weight, *inputs).eval(), z, atol=1e-6)


@pytest.mark.parametrize("shape", [[0.3, 0.3], [0.05, 0.4, 0.1], [2.0, 0.1, 0.3, 3.0]])
def test_volume_of_dirichlet_scores(shape) -> None:
    inputs, score, z = dirichlet_inputs(shape), DirichletScore(), pt.dvector()
    change = jacobian(score.backward(z, *inputs)[:-1], z)
    expected = pt.log(pt.abs(pt.linalg.det(change)))
    function = pytensor.function([z], [expected, score.log_jac_det(z, *inputs)])
    for point in 0.7 * np.random.default_rng(3).normal(size=(5, len(shape) - 1)):
        np.testing.assert_allclose(*function(point), rtol=1e-7)


BETA_SHAPES = pytest.mark.parametrize("shape", [[0.3, 0.3], [0.02, 0.4], [0.2, 7.0]])


def beta_inputs(shape) -> tuple:
    return NOTHING, NOTHING, *(pt.constant(np.asarray(a, dtype=float)) for a in shape)


@BETA_SHAPES
def test_beta_scores_and_back(shape) -> None:
    inputs, score, z = beta_inputs(shape), BetaScore(), np.linspace(-2, 1, 7)
    value = score.backward(pt.constant(z), *inputs)
    np.testing.assert_allclose(score.forward(value, *inputs).eval(), z, atol=1e-6)


@BETA_SHAPES
def test_beta_scores_are_those_of_a_stick_of_two_parts(shape) -> None:
    z, inputs, of_stick = pt.dvector(), beta_inputs(shape), dirichlet_inputs(shape)
    found = BetaScore().backward(z, *inputs), BetaScore().log_jac_det(z, *inputs)
    weight = DirichletScore().backward(z[:, None], *of_stick)[:, 0]
    expected = weight, DirichletScore().log_jac_det(z[:, None], *of_stick)
    values = pytensor.function([z], [*found, *expected])(Z)
    np.testing.assert_allclose(values[0], values[2])
    np.testing.assert_allclose(values[1], values[3])


def test_the_parts_of_a_stick_are_beta_variables() -> None:
    first, second = stick_shapes(pt.constant(np.array([[1.0, 2.0, 3.0], [0.5, 0.1, 0.2]])))
    np.testing.assert_allclose(first.eval(), [[1, 2], [0.5, 0.1]])
    np.testing.assert_allclose(second.eval(), [[5, 3], [0.3, 0.2]])


@pytest.mark.parametrize("shape", [[1e-3, 1.0], [1.0, 1e-3], [1e-3, 1e-3]])
def test_scores_of_extreme_log_odds(shape) -> None:
    """A share in e^-10,000, which no float holds; its log odds are given."""
    odds, inputs = np.array([-1e4, -300.0, -1.0, 0.1, 7.0, 300.0, 1e4]), dirichlet_inputs(shape)
    t = logistic_of_score(DirichletScore().of_log_odds(pt.constant(odds[:, None]), *inputs)).eval()
    found = np.logaddexp(0, t) / shape[1] - np.logaddexp(0, -t) / shape[0]
    np.testing.assert_allclose(found[:, 0], odds, rtol=1e-9)


@pytest.mark.parametrize("shape", [1e-4, 1e-3])
def test_scores_of_extreme_logarithms(shape: float) -> None:
    log_value, inputs = (
        np.array([-40 / shape, -300.0, -1.0, 0.0, 3.0, 5.0]),
        gamma_inputs(shape, 1.0),
    )
    t = logistic_of_score(GammaScore().of_logarithm(pt.constant(log_value), *inputs)).eval()
    found = np.log(np.logaddexp(0, t)) - (1 / shape - 1) * np.logaddexp(0, -t)
    np.testing.assert_allclose(found, log_value, rtol=1e-9, atol=1e-9)
