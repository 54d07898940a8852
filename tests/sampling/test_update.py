"""Sequential evidence: predictive densities of blocks of data add up to the evidence."""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container

Y = np.array([1.3, 0.2, 2.1, 0.9, 1.8, -0.4])


def model(count: int) -> pm.Model:
    with pm.Model() as built:
        mu = pm.Normal("mu", 0, 2)
        pm.Normal("y", mu, 1, observed=Y[:count])
    return built


def exact(count: int) -> float:
    covariance = np.eye(count) + 4 * np.ones((count, count))
    return float(stats.multivariate_normal(np.zeros(count), covariance).logpdf(Y[:count]))


@pytest.mark.parametrize("counts", [(2, 6), pytest.param((2, 4, 6), marks=pytest.mark.slow)])
def test_blocks_add_up_to_the_evidence(counts: tuple[int, ...]) -> None:
    idata = pma.sample_ais(model(2), random_seed=1, progressbar=False)
    found = [pma.log_evidence(idata)]
    for count in counts[1:]:
        idata = pma.update(idata, model(count), random_seed=count, progressbar=False)
        found.append(pma.log_evidence(idata))
    scores = [b.log_evidence - a.log_evidence for a, b in zip(found, found[1:], strict=False)]
    ends = zip(scores, counts, counts[1:], found, found[1:], strict=False)
    for score, before, after, a, b in ends:
        error = np.hypot(a.mcse, b.mcse)
        assert b.verdict.trusted
        assert abs(score - (exact(after) - exact(before))) < 4 * error
    assert found[0].log_evidence + sum(scores) == pytest.approx(found[-1].log_evidence)
    assert abs(found[-1].log_evidence - exact(6)) < 4 * found[-1].mcse


def test_the_old_draws_only_help_to_search() -> None:
    """Draws of other data far away give the same evidence."""
    with pm.Model() as other:
        pm.Normal("y", pm.Normal("mu", 0, 2), 1, observed=np.array([6.0, 7.0]))
    far = pma.sample_ais(other, random_seed=1, progressbar=False)
    found = pma.log_evidence(pma.update(far, model(6), random_seed=2, progressbar=False))
    assert abs(found.log_evidence - exact(6)) < 4 * found.mcse


def needle() -> pm.Model:
    """A wide mode at 0 and one of width 0.02 at (3, ..., 3), to which no draw leads."""
    with pm.Model() as built:
        x = pm.Normal("x", 0, 1, shape=5)
        height = _HEIGHT - 0.5 * (((x - 3.0) / _WIDTH) ** 2).sum()
        pm.Potential("likelihood", -0.5 * (x**2).sum() + pt.log1p(pt.exp(height)))
    return built


_HEIGHT, _WIDTH = 75.0, 0.02
# The integral of the wide mode, and that of the needle times both factors around it.
_WIDE = -2.5 * np.log(2)
_NEEDLE = _HEIGHT + 5 * (np.log(_WIDTH) - 9 / (1 + 2 * _WIDTH**2)) - 2.5 * np.log1p(2 * _WIDTH**2)


def test_a_mode_of_the_old_draws_is_looked_for() -> None:
    """Climbs from the prior end in the wide mode, and the short road would take that alone."""
    there = xr.Dataset({"x": (("chain", "draw", "x_dim_0"), np.full((1, 4, 5), 3.001))})
    old = container({"posterior": there})
    found = pma.log_evidence(pma.update(old, needle(), random_seed=1, progressbar=False))
    assert abs(found.log_evidence - np.logaddexp(_WIDE, _NEEDLE)) < 4 * found.mcse


def test_the_twin_without_old_draws_misses_it() -> None:
    found = pma.log_evidence(pma.sample_ais(needle(), random_seed=1, progressbar=False))
    assert abs(found.log_evidence - _WIDE) < 4 * found.mcse


def discrete() -> pm.Model:
    with pm.Model() as built:
        pm.Normal("y", pm.Bernoulli("k", 0.5) + pm.Normal("m", 0, 1), 1, observed=[1.0, 2.0])
    return built


def without_variables() -> pm.Model:
    with pm.Model() as built:
        pm.Normal("y", 0, 1, observed=[1.0, 2.0])
    return built


@pytest.mark.quick_cases("without_variables")
@pytest.mark.parametrize("build", [discrete, without_variables])
def test_what_is_exact_without_old_draws_is_so_with_them(build: Callable[[], pm.Model]) -> None:
    idata = pma.sample_ais(build(), random_seed=1, progressbar=False)
    again = pma.log_evidence(pma.update(idata, build(), random_seed=2, progressbar=False))
    assert again.log_evidence == pytest.approx(pma.log_evidence(idata).log_evidence)


@pytest.mark.slow
def test_discrete_variables_that_are_moved() -> None:
    settings = {"discrete": "sample", "random_seed": 1, "progressbar": False, "warnings": False}
    idata = pma.sample_ais(discrete(), **settings)
    found = pma.log_evidence(pma.update(idata, discrete(), **settings))
    exact = pma.log_evidence(pma.sample_ais(discrete(), random_seed=1, progressbar=False))
    assert abs(found.log_evidence - exact.log_evidence) < 4 * found.mcse


def test_refused() -> None:
    idata = pma.sample_ais(model(2), random_seed=1, progressbar=False)
    with pytest.raises(TypeError, match="`search_from` are the old draws"):
        pma.update(idata, model(4), search_from={"mu": np.zeros(1)})
    with pm.Model() as other:
        pm.Normal("y", pm.Normal("another", 0, 1), 1, observed=Y)
    with pytest.raises(ValueError, match="'another' of the model is not among"):
        pma.update(idata, other)
