"""Runs along the moment-averaged path: unbiased, with errors that cover, or refused."""

from dataclasses import replace

import numpy as np
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.adaptation.moment_matching import MomentMatchingError
from pymc_anneal.base.arviz_compat import container, group
from pymc_anneal.paths.tail_transform import TailTransform
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.path_choice import PathRequest
from pymc_anneal.pipeline.session import open_session
from pymc_anneal.pipeline.settings import Settings
from pymc_anneal.results.container import dataset
from tests.pipeline.conflict import AWAY, NOISE, ROWS, D, conflict, is_near, run_along
from tests.problems import by_name


@pytest.mark.slow
def test_moments_of_the_pilot() -> None:
    idata = run_along("moment")
    assert is_near(idata)
    assert pma.log_evidence(idata).verdict.trusted
    assert group(idata, "evidence").attrs["path"] == "MomentSplinePath"


@pytest.mark.parametrize("statistics", ["squares", "products"])
@pytest.mark.slow
def test_more_statistics(statistics: str) -> None:
    assert is_near(run_along(pma.MomentAveragedPath(statistics), draws=250))


@pytest.mark.slow
def test_moments_of_given_draws() -> None:
    precision = 1 + ROWS / NOISE**2
    mean, sd = AWAY * (precision - 1) / precision, precision**-0.5
    draws = {"mu": np.random.default_rng(1).normal(mean, sd, size=(4, 1000, D))}
    posterior = container({"posterior": dataset(draws, ("chain", "draw"))})
    idata = run_along("moment", moments_from=posterior)
    assert is_near(idata)
    assert np.isfinite(float(group(idata, "evidence")["pilot_log_evidence"]))


def test_unknown_statistics() -> None:
    with pytest.raises(ValueError, match="Unknown `statistics` 'cubes'; expected one of"):
        pma.MomentAveragedPath("cubes")


@pytest.mark.slow
def test_evaluations_of_a_fit_that_is_too_long_are_counted() -> None:
    target, settings = ModelTarget(conflict()), Settings(draws=50, chains=2)
    with open_session(target, settings, random_seed=2, progressbar=False) as session:
        request = PathRequest(session, target.candidate(), pma.HMC(), None)
        request = request._replace(candidate=request.with_pilot())
        before = dict(session.meter.stages)
        with pytest.raises(MomentMatchingError, match="the pilot took more than 1 eval"):
            pma.MomentAveragedPath().fit(request, session.seeds.path, pilot_budget=1.0)
        found = session.meter.stages
    assert found["Moments"].evaluations > 0
    assert found["Pilot"].evaluations > before["Pilot"].evaluations > 0


@pytest.mark.slow
def test_pilots_that_disagree_are_an_error() -> None:
    # A geometric pilot whose evidence is ten nats off.
    target, settings = ModelTarget(conflict()), Settings(draws=50, chains=2)
    with open_session(target, settings, random_seed=2, progressbar=False) as session:
        request = PathRequest(session, target.candidate(), pma.HMC(), None)
        geometric = request.with_pilot()
        wrong = replace(geometric.pilot, log_z=geometric.pilot.log_z + 10)
        request = request._replace(candidate=replace(geometric, pilot=wrong))
        with pytest.raises(MomentMatchingError, match="the pilots of both paths disagree"):
            pma.MomentAveragedPath().fit(request, session.seeds.path)


def scores(name: str, seeds: int, doubted: bool = False) -> np.ndarray:
    """Return errors in standard errors of runs that are trusted, or of all with a path."""
    problem, found = by_name(name), []
    model = pma.compile_model(problem.build())
    for seed in range(seeds):
        try:
            idata = pma.sample_ais(model=model, path="moment", random_seed=seed, progressbar=False)
        except ValueError as error:
            assert "There is no moment-averaged path" in str(error)
            continue
        evidence = pma.log_evidence(idata)
        if evidence.verdict.trusted or doubted:
            found.append((evidence.log_evidence - problem.log_evidence) / evidence.mcse)
    return np.array(found)


@pytest.mark.slow
def test_heavy_tailed_prior() -> None:
    # The data lie ten deviations from a Student-t prior.
    found = scores("student_t_conflict", 2)
    assert stats.chi2.sf((found**2).sum(), len(found)) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["student_t_conflict", "half_cauchy_scale", "eight_schools"])
def test_errors_cover(name: str) -> None:
    found = scores(name, 40)
    assert len(found) > 30
    assert abs(found.mean()) < 4 / np.sqrt(len(found))
    assert found.std() == pytest.approx(1, abs=4 / np.sqrt(2 * len(found)))


@pytest.mark.slow
def test_errors_without_the_tail_transform_do_not_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    # The wrong twin: tilts of the coordinates themselves.
    def identity(draws: np.ndarray) -> TailTransform:
        return TailTransform(np.median(draws, axis=0), *np.full((2, draws.shape[1]), 1e6))

    monkeypatch.setattr(TailTransform, "from_draws", identity)
    found = scores("student_t_conflict", 40, doubted=True)
    assert stats.chi2.sf((found**2).sum(), len(found)) < 1e-6
