"""Sequential evidence: predictive densities of blocks of data add up to the evidence."""

import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

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


def test_the_old_draws_only_set_the_start() -> None:
    """Draws of other data far away give the same evidence."""
    with pm.Model() as other:
        pm.Normal("y", pm.Normal("mu", 0, 2), 1, observed=np.array([6.0, 7.0]))
    far = pma.sample_ais(other, random_seed=1, progressbar=False)
    found = pma.log_evidence(pma.update(far, model(6), random_seed=2, progressbar=False))
    assert abs(found.log_evidence - exact(6)) < 4 * found.mcse


def test_refused() -> None:
    idata = pma.sample_ais(model(2), random_seed=1, progressbar=False)
    with pytest.raises(TypeError, match="`reference` is fitted"):
        pma.update(idata, model(4), reference="prior")
    with pm.Model() as other:
        pm.Normal("y", pm.Normal("another", 0, 1), 1, observed=Y)
    with pytest.raises(ValueError, match="'another' of the model is not among"):
        pma.update(idata, other)
