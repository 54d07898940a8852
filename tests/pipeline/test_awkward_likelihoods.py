"""Likelihoods without a slope, with hard edges, with next to no support, or without a bound."""

import warnings

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group


def run(model: pm.Model, seed: int = 1, **arguments: object):
    """Run with defaults; a warning of NumPy's is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        return pma.sample_ais(
            model=model, random_seed=seed, progressbar=False, warnings=False, **arguments
        )


def assert_right(idata, exact: float) -> None:
    found = pma.log_evidence(idata)
    assert abs(found.log_evidence - exact) < 4 * found.mcse + 0.005
    assert found.mcse < 0.15


def boxes(width: float) -> tuple[pm.Model, float]:
    """Each square of three coordinates lies in an interval: eight boxes, apart from each other."""
    y, mean = np.array([1.5, 1.2, 1.8]), 0.5
    with pm.Model() as model:
        x = pm.Normal("x", mean, 1.0, shape=3)
        pm.Uniform("y", x**2 - width, x**2 + width, observed=y)
    low, high = np.sqrt(y - width), np.sqrt(y + width)
    prior = stats.norm(mean).cdf
    mass = prior(high) - prior(low) + prior(-low) - prior(-high)
    return model, float(np.log(mass / (2 * width)).sum())


def balls() -> tuple[pm.Model, float]:
    """A ball of 2e-5 of the prior with 99 % of the evidence, inside of a larger one."""
    with pm.Model() as model:
        x = pm.Uniform("x", -3, 3, shape=3)
        squared = (x**2).sum()
        inner = pt.switch(squared < 0.01, np.log(1e9), np.log(1e4))
        pm.Potential("steps", pt.switch(squared < 1.0, inner, 0.0))
    ball = 4 * np.pi / 3
    total = (216 - ball) + 1e4 * ball * (1 - 1e-3) + 1e9 * ball * 1e-3
    return model, float(np.log(total / 216))


def equal_data(scale_prior: str) -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", 7, 2)
        sigma = getattr(pm, scale_prior)(
            "sigma", **{"sigma": 1.0} if scale_prior == "HalfNormal" else {"lower": 0, "upper": 9}
        )
        pm.Normal("y", mu, sigma, observed=np.full(5, 7.2))
    return model


def test_flat_steps_move_by_random_walks_with_the_reason() -> None:
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("steps", pt.switch(x > 1, 3.0, 0.0) + pt.switch(x > 1.5, -1.0, 0.0))
    idata = run(model)
    one, two = stats.norm.sf([1, 1.5])
    assert_right(idata, float(np.log(1 - one + np.exp(3) * (one - two) + np.exp(2) * two)))
    attrs = group(idata, "evidence").attrs
    assert attrs["transition"] == "RandomWalkMetropolis"
    assert "has steps along 1 of 1 coordinates" in attrs["notes"]


def changes(count: int) -> tuple[pm.Model, float]:
    """Series with a change in continuous time each: the likelihood has steps along the times."""
    t = np.arange(20.0)
    y = np.where(t < 7.5, 0.0, 1.5) + np.random.default_rng(8).normal(0, 0.5, 20)
    with pm.Model() as model:
        tau = pm.Uniform("tau", 0, 20, shape=(count, 1))
        before, after = (pm.Normal(name, 0, 2, shape=(count, 1)) for name in ("before", "after"))
        pm.Normal("y", pt.switch(t < tau, before, after), 0.5, observed=np.tile(y, (count, 1)))
    sides = [np.column_stack([t < cut, t >= cut]).astype(float) for cut in t + 0.5]
    cov = [0.25 * np.eye(20) + 4 * side @ side.T for side in sides]
    terms = [stats.multivariate_normal(np.zeros(20), each).logpdf(y) for each in cov]
    return model, float(count * (np.logaddexp.reduce(terms) - np.log(20)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_steps_along_some_coordinates_are_walked(seed: int) -> None:
    """With trajectories through the steps a move took 200,000 evaluations."""
    model, exact = changes(4)
    idata = run(model, seed)
    assert_right(idata, exact)
    attrs = group(idata, "evidence").attrs
    assert attrs["transition"] == "HMC, RandomWalkMetropolis"
    assert "Random walks move 'tau'; gradients move the others" in attrs["notes"]


@pytest.mark.slow
def test_a_transition_that_is_asked_for_is_kept() -> None:
    model, exact = boxes(0.7)
    idata = run(model, transition="hmc", reference="prior")
    assert group(idata, "evidence").attrs["transition"] == "HMC"
    assert_right(idata, exact)


@pytest.mark.slow
def test_boxes_that_no_draw_meets_are_reached_by_their_conditions() -> None:
    """Four boxes with 7e-6 of the prior."""
    y, width, prior = np.array([2.0, 4.0]), 0.02, stats.norm(0.5).cdf
    with pm.Model() as model:
        x = pm.Normal("x", 0.5, 1.0, shape=2)
        pm.Uniform("y", x**2 - width, x**2 + width, observed=y)
    low, high = np.sqrt(y - width), np.sqrt(y + width)
    mass = prior(high) - prior(low) + prior(-low) - prior(-high)
    assert_right(run(model), float(np.log(mass / (2 * width)).sum()))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [312, 313, 314])
def test_boxes_that_a_mixture_of_some_misses(seed: int) -> None:
    """Sixteen boxes: with 313, half of them were missed, a fifth of the evidence, and trusted."""
    y, width = np.array([1.5, 1.2, 1.8, 1.4]), 0.7
    with pm.Model() as model:
        x = pm.Normal("x", 0.5, 1.0, shape=4)
        pm.Uniform("y", x**2 - width, x**2 + width, observed=y)
    low, high, prior = np.sqrt(y - width), np.sqrt(y + width), stats.norm(0.5).cdf
    mass = prior(high) - prior(low) + prior(-low) - prior(-high)
    idata = run(model, seed=seed)
    assert_right(idata, float(np.log(mass / (2 * width)).sum()))
    assert pma.log_evidence(idata).verdict.trusted


@pytest.mark.slow
def test_boxes_that_are_too_many_and_too_small_are_refused() -> None:
    y = np.linspace(2, 4, 4)
    with pm.Model() as model:
        x = pm.Normal("x", 0.5, 1.0, shape=4)
        pm.Uniform("y", x**2 - 0.05, x**2 + 0.05, observed=y)
    with pytest.raises(ValueError, match="not zero, which is about [12]e-09 of the prior"):
        run(model)


@pytest.mark.slow
def test_boxes_that_one_draw_in_a_thousand_meets() -> None:
    assert_right(run(boxes(0.35)[0]), boxes(0.35)[1])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_small_ball_inside_of_a_large_one(seed: int) -> None:
    model, exact = balls()
    idata = run(model, seed)
    assert pma.log_evidence(idata).verdict.status == "trust"
    assert_right(idata, exact)


@pytest.mark.slow
def test_trajectories_that_run_over_cliffs_give_way_to_walks() -> None:
    """Angles beside the cut of the arc tangent, where the likelihood falls by 1,900 nats."""
    count, y = 4, 3.0
    with pm.Model() as model:
        up, right = (pm.Normal(name, 0, 3, shape=count) for name in ("up", "right"))
        pm.Normal("y", pt.arctan2(up, right), 0.1, observed=np.full(count, y))
    idata = run(model, 11)
    inside = stats.norm(y, 0.1)  # of the angle, which is uniform
    assert_right(idata, count * float(np.log((inside.cdf(np.pi) - inside.cdf(-np.pi)) / 2 / np.pi)))
    assert group(idata, "evidence").attrs["transition"] == "RandomWalkMetropolis"
    assert float(group(idata, "evidence")["evaluations"]) < 3e7


@pytest.mark.slow
def test_trajectories_that_run_into_edges_give_way_to_walks() -> None:
    """Uniform data between unknown ends: without a random walk a move takes thousands."""
    y = np.random.default_rng(2).uniform(-3, 4, size=(4, 5))
    with pm.Model() as model:
        a, b = pm.Uniform("a", -10, 0, shape=4), pm.Uniform("b", 0, 10, shape=4)
        pm.Uniform("y", a[:, None], b[:, None], observed=y)
    low, high, n = y.min(axis=1), y.max(axis=1), y.shape[1]
    # The integral of (b - a)^-n over a in (-10, low) and b in (high, 10).
    ends = (
        (high - low) ** (2.0 - n)
        - (high + 10) ** (2.0 - n)
        - (10 - low) ** (2.0 - n)
        + 20.0 ** (2 - n)
    )
    exact = float(np.log(ends / ((n - 1) * (n - 2)) / 100).sum())
    idata = run(model)
    assert group(idata, "evidence").attrs["transition"] == "RandomWalkMetropolis"
    found = pma.log_evidence(idata)
    assert abs(found.log_evidence - exact) < 4 * found.mcse + 0.005


@pytest.mark.parametrize(
    "scale_prior", ["HalfNormal", pytest.param("Uniform", marks=pytest.mark.slow)]
)
def test_an_infinite_evidence_names_the_variable(scale_prior: str) -> None:
    with pytest.raises(ValueError, match="evidence is infinite: as 'sigma' goes to 0.* by 3 nats"):
        run(equal_data(scale_prior))


def points_on_a_curve() -> None:
    place = np.linspace(0, 1, 12)
    terms = np.stack([place**0, place, place**2, np.cos(5 * place)], axis=1)
    mean, y = terms @ pm.Normal("b", 0, 2, shape=4), terms @ [0.3, -1.0, 0.5, 0.2]
    pm.Normal("y", mean, pm.HalfNormal("sigma", 1), observed=y)


def a_group_of_equal_numbers() -> None:
    y = np.random.default_rng(1).normal(size=(5, 6))
    y[2] = 0.4
    sigma = pm.HalfCauchy("sigma", 1, shape=5)
    pm.Normal("y", pm.Normal("m", 0, 1, shape=5)[:, None], sigma[:, None], observed=y)


def equal_numbers_with_heavy_tails() -> None:
    mu, sigma, nu = pm.Normal("mu", 0, 2), pm.HalfNormal("sigma", 1), pm.Exponential("nu", 0.1)
    pm.StudentT("y", nu=nu, mu=mu, sigma=sigma, observed=np.full(8, 1.3))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "growth"),
    [(points_on_a_curve, 7), (a_group_of_equal_numbers, 4), (equal_numbers_with_heavy_tails, 6)],
)
def test_perfect_fits_have_an_infinite_evidence(build: Callable[[], None], growth: int) -> None:
    """Of ``n`` powers of ``1 / sigma`` each coefficient takes one, the log scale another."""
    with pm.Model() as model:
        build()
    with pytest.raises(ValueError, match=f"evidence is infinite: as 'sigma'.* by {growth} nats"):
        run(model)


@pytest.mark.slow
def test_a_precise_measurement_is_finite() -> None:
    """Deviations of 1e-6: the particles are as far from the prior, and the evidence is finite."""
    y = 7.2 + 1e-6 * np.random.default_rng(1).normal(size=5)
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu", 7, 2), pm.HalfNormal("sigma", 1)
        pm.Normal("y", mu, sigma, observed=y)
    # Flat in the mean; the density of sigma at zero is that of the prior.
    n, ss = len(y), np.square(y - y.mean()).sum()
    exact = -0.5 * (n - 1) * np.log(2 * np.pi) - 0.5 * np.log(n) + stats.norm.logpdf(y.mean(), 7, 2)
    # The integral of sigma^-(n - 1) exp(-ss / (2 sigma^2)) with n = 5.
    exact += np.log(2) + stats.norm.logpdf(0) + np.log(0.5 * (2 / ss) ** 1.5 * np.sqrt(np.pi) / 2)
    assert_right(run(model), exact)


@pytest.mark.slow
def test_counts_in_few_categories_of_a_sparse_dirichlet_are_finite() -> None:
    """The tails of the other categories are exponential: particles run far beyond the prior."""
    counts, share = np.array([20, 10, 1] + 17 * [0]), np.full(20, 0.1)
    with pm.Model() as model:
        pm.Multinomial("y", counts.sum(), pm.Dirichlet("p", share), observed=counts)
    assert_right(run(model), stats.dirichlet_multinomial.logpmf(counts, share, counts.sum()))


def test_a_likelihood_that_is_zero_everywhere_is_refused_with_the_number_of_draws() -> None:
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1)
        pm.Potential("nowhere", pt.switch(pt.eq(pt.sign(x), 3), 0.0, -np.inf))
    with pytest.raises(ValueError, match="zero at all of 10[0-9]{5} prior draws"):
        run(model)
