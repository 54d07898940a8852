"""Moment-averaged paths by particles: what is reached, what is refused, and that nothing biases."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.adaptation.moment_matching import (
    MomentMatchingError,
    MomentSpline,
    fit_moment_spline,
)
from pymc_anneal.adaptation.pilot import run_pilot
from pymc_anneal.base.arviz_compat import container
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.execution.progress import ProgressDisplay
from pymc_anneal.paths.tail_transform import TailTransform
from pymc_anneal.pipeline.choose_reference import Start
from pymc_anneal.pipeline.rounds import survey
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.settings import Options
from pymc_anneal.results.container import dataset
from tests.problems import by_name

D, ROWS, NOISE, AWAY = 2, 10, 0.5, 4.0


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def log_terms(x: jax.Array) -> LogTerms:
    """Prior N(0, I); ten observations of a mean that lies four deviations away."""
    return LogTerms(-0.5 * (x**2).sum(), -0.5 * ROWS * ((x - AWAY) ** 2).sum() / NOISE**2)


PRECISION = 1 + ROWS / NOISE**2
MEAN, SD = AWAY * (PRECISION - 1) / PRECISION, PRECISION**-0.5


def ends(n: int = 512, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)), rng.normal(MEAN, SD, size=(n, D))


@cache
def fitted(statistics: str) -> MomentSpline:
    path, seed = pma.GeometricPath(log_terms), np.random.SeedSequence(3)
    return fit_moment_spline(path, pma.HMC(), *ends(), seed, statistics=statistics)


@pytest.mark.parametrize("statistics", ["linear", "squares"])
class TestNormal:
    def test_ends_are_exact(self, statistics: str) -> None:
        spline = fitted(statistics)
        assert (spline.natural[0] == 0).all()
        np.testing.assert_array_equal(spline.natural[-1], spline.path.family.posterior)
        assert spline.knots[0] == 0
        assert spline.knots[-1] == 1

    def test_knots_have_the_averaged_mean(self, statistics: str) -> None:
        """On a normal model every knot is a normal density, whose mean is known."""
        spline = fitted(statistics)
        family = spline.path.family
        for j, beta in enumerate(spline.knots[1:-1], start=1):
            b, tilt = spline.natural[j][0], spline.natural[j][1:]
            shift = tilt[:D] / family.scale
            curvature = tilt[D:] / family.scale**2 if len(tilt) > D else np.zeros(D)
            precision = 1 + b * (PRECISION - 1) - 2 * curvature
            pull = b * (PRECISION - 1) * AWAY + shift - 2 * curvature * family.centre
            # The noise of 512 particles, the clipping of tails and the ridge, all together.
            assert (np.abs(pull / precision - beta * MEAN) < 0.5 / np.sqrt(precision)).all()

    def test_path_is_shorter(self, statistics: str) -> None:
        """By the pilots of both paths: longer is the geometric one."""
        seed = np.random.SeedSequence(4)
        lengths = [
            run_pilot(path, pma.HMC(), ends()[0], seed).barrier
            for path in (pma.GeometricPath(log_terms), fitted(statistics).path)
        ]
        assert lengths[1] < {"linear": 0.95, "squares": 0.9}[statistics] * lengths[0]


def test_too_few_evaluations() -> None:
    path, seed = pma.GeometricPath(log_terms), np.random.SeedSequence(3)
    with pytest.raises(MomentMatchingError, match=r"took more than 2e\+04 evaluations"):
        fit_moment_spline(path, pma.HMC(), *ends(), seed, max_evaluations=2e4)


def test_moments_that_no_tilt_has() -> None:
    """Draws said to be of the posterior, but far outside the support of prior and likelihood."""

    def bounded(x: jax.Array) -> LogTerms:
        inside = (jnp.abs(x) < 1).all()
        return LogTerms(jnp.where(inside, 0.0, -jnp.inf), -(x**2).sum())

    rng = np.random.default_rng(5)
    first, last = rng.uniform(-1, 1, (256, 1)), rng.uniform(8, 9, (256, 1))
    path, seed = pma.GeometricPath(bounded), np.random.SeedSequence(6)
    with pytest.raises(MomentMatchingError, match=r"were missed by .* standard deviations"):
        fit_moment_spline(path, pma.HMC(), first, last, seed)


def test_heavy_tails_and_zero_likelihoods() -> None:
    """A Cauchy prior, and a likelihood that is zero on half of it: the moments are robust."""

    def terms(x: jax.Array) -> LogTerms:
        likelihood = -0.5 * ((x[0] - 6) / 0.5) ** 2
        return LogTerms(-jnp.log1p(x[0] ** 2), jnp.where(x[0] < 0, -jnp.inf, likelihood))

    rng = np.random.default_rng(7)
    first, last = rng.standard_cauchy((512, 1)), rng.normal(5.9, 0.5, (512, 1))
    path, seed = pma.GeometricPath(terms), np.random.SeedSequence(8)
    spline = fit_moment_spline(path, pma.HMC(), first, last, seed)
    assert np.isfinite(spline.natural).all()
    assert (spline.natural[:, 0] >= 0).all()
    assert spline.residual.max() < 1


def conflict() -> tuple[pm.Model, float]:
    """The model of this module in PyMC, and its log evidence."""
    y = AWAY + NOISE * np.random.default_rng(9).normal(size=(ROWS, D))
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0, 1, shape=D), NOISE, observed=y)
    covariance = NOISE**2 * np.eye(ROWS) + np.ones((ROWS, ROWS))
    exact = stats.multivariate_normal(np.zeros(ROWS), covariance).logpdf(y.T).sum()
    return model, float(exact)


@cache
def compiled():
    model, exact = conflict()
    return pma.compile_model(model), exact


def evidence(path, **settings):
    model, exact = compiled()
    idata = pma.sample_ais(model=model, path=path, random_seed=1, progressbar=False, **settings)
    found = pma.log_evidence(idata)
    return idata, found, (found.log_evidence - exact) / found.mcse


class TestSampleAis:
    def test_moment(self) -> None:
        idata, found, z = evidence("moment")
        assert abs(z) < 4
        assert found.verdict.trusted
        assert idata["evidence"].attrs["path"] == "MomentSplinePath"

    def test_moments_of_given_draws(self) -> None:
        _, draws = ends(4000)
        posterior = container(
            {"posterior": dataset({"mu": draws.reshape(4, 1000, D)}, ("chain", "draw"))}
        )
        idata, _, z = evidence("moment", moments_from=posterior)
        assert abs(z) < 4
        assert np.isfinite(float(idata["evidence"]["pilot_log_evidence"]))

    def test_q(self) -> None:
        idata, _, z = evidence("q")
        assert abs(z) < 4
        assert idata["evidence"].attrs["path"] == "QAveragePath"

    def test_custom(self) -> None:
        model, _ = compiled()
        terms = model.log_terms

        def rooted(x, beta):
            log_prior, log_likelihood = terms(x)
            return log_prior + beta**2 * log_likelihood

        assert abs(evidence(pma.CustomPath(rooted))[2]) < 4

    def test_custom_path_that_ends_elsewhere(self) -> None:
        terms = compiled()[0].log_terms
        wrong = pma.CustomPath(lambda x, beta: terms(x)[0] + 0.9 * beta * terms(x)[1])
        with pytest.raises(ValueError, match=r"`path` is .* at beta = 1 .* likelihood is"):
            evidence(wrong)

    def test_auto_records_both(self) -> None:
        idata, _, z = evidence("auto", target_mcse=0.01)
        costs = idata["evidence"].attrs["path_costs"]
        assert abs(z) < 4
        assert "geometric" in costs
        assert "moment" in costs or idata["evidence"].attrs["path_refused"]

    def test_auto_leaves_short_runs_alone(self) -> None:
        idata, _, z = evidence("auto", draws=25)
        assert abs(z) < 4
        assert "too short for another to pay" in idata["evidence"].attrs["path_refused"]
        assert idata["evidence"].attrs["path"] == "GeometricPath"

    def test_auto_that_stays_is_the_geometric_run(self) -> None:
        runs = [evidence(path, draws=25)[0]["annealing"] for path in ("auto", "geometric")]
        np.testing.assert_array_equal(runs[0]["log_weight"], runs[1]["log_weight"])


def scores(name: str, seeds: int) -> np.ndarray:
    """Errors along the moment-averaged path in standard errors, where it is not refused."""
    problem, found = by_name(name), []
    model = pma.compile_model(problem.build())
    for seed in range(seeds):
        try:
            idata = pma.sample_ais(model=model, path="moment", random_seed=seed, progressbar=False)
        except ValueError as error:
            assert "There is no moment-averaged path" in str(error)
            continue
        evidence = pma.log_evidence(idata)
        found.append((evidence.log_evidence - problem.log_evidence) / evidence.mcse)
    return np.array(found)


def test_heavy_tailed_prior() -> None:
    """Ten deviations from a Student-t prior."""
    found = scores("student_t_conflict", 4)
    assert stats.chi2.sf((found**2).sum(), len(found)) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["student_t_conflict", "half_cauchy_scale", "eight_schools"])
def test_errors_cover(name: str) -> None:
    found = scores(name, 40)
    assert len(found) > 30
    assert abs(found.mean()) < 4 / np.sqrt(len(found))
    assert found.std() == pytest.approx(1, abs=4 / np.sqrt(2 * len(found)))


@pytest.mark.slow
def test_errors_without_scores_do_not_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong twin: tilts of the coordinate itself."""

    def straight(draws: np.ndarray) -> TailTransform:
        return TailTransform(np.median(draws, axis=0), *np.full((2, draws.shape[1]), 1e6))

    monkeypatch.setattr(TailTransform, "from_draws", straight)
    found = scores("student_t_conflict", 20)
    assert stats.chi2.sf((found**2).sum(), len(found)) < 1e-6


def test_what_a_refused_path_took_counts_once() -> None:
    """On top of what the start had already taken, here more than any path does."""
    model, options = compiled()[0], Options(draws=50, chains=2, steps="auto", target_mcse=0.1)
    path, seeds = pma.GeometricPath(model.log_terms), np.random.SeedSequence(2).spawn(3)
    display = ProgressDisplay(False)
    session = Session(model, path, model.sample_prior, options, display, seeds[0])
    start = Start(session, "prior", survey(session, pma.HMC(), seeds[1]), evaluations=10**9)
    with pytest.raises(MomentMatchingError, match="the pilot took more than 1 eval") as caught:
        pma.MomentAveragedPath().surveyed(start, pma.HMC(), None, seeds[2], (np.inf, 1.0))
    assert 0 < caught.value.evaluations < 10**9


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match=r"Unknown `path` 'arithmetic'; expected one of \['auto'"):
        evidence("arithmetic")
    with pytest.raises(ValueError, match="Unknown `statistics` 'cubes'"):
        pma.MomentAveragedPath("cubes")
    with pytest.raises(ValueError, match=r"`q` is 1\.5, expected a number below 1"):
        pma.QPath(1.5)
