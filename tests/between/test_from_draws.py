"""Runs from draws: what is fitted is not what is counted."""

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.between import between_models, from_draws
from pymc_anneal.between.from_draws import split_draws
from pymc_anneal.results.container import dataset

QUIET = {"progressbar": False, "warnings": False, "random_seed": 1}
Y = np.array([0.4, 1.1, 0.2, 0.9])


def regression(slope: bool) -> pm.Model:
    """Return a mean of four numbers, with a slope or without."""
    with pm.Model() as model:
        mean = pm.Normal("mu", 0, 2)
        if slope:
            mean = mean + pm.Normal("slope", 0, 1) * np.arange(4.0)
        pm.Normal("y", mean, 1, observed=Y)
    return model


def posterior_draws(shape: tuple[int, int] = (4, 600)) -> np.ndarray:
    """Return exact draws of the mean without a slope."""
    precision = len(Y) + 1 / 4
    return np.random.default_rng(2).normal(Y.sum() / precision, precision**-0.5, shape)


@pytest.mark.parametrize(("chains", "n", "fitted"), [(4, 100, 50), (4, 400, 128), (2, 4000, 1000)])
def test_parts_of_each_chain(chains: int, n: int, fitted: int) -> None:
    draws = np.arange(chains * n, dtype=float).reshape(chains, n, 1)
    first, rest = split_draws(draws)
    assert first.shape == (chains, fitted, 1)
    np.testing.assert_array_equal(np.concatenate([first, rest], axis=1), draws)


class Recorder:
    """Record the values of the mean at which densities are evaluated, by use."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.fitted, self.counted = set[float](), set[float]()
        self._wrap(monkeypatch, between_models, "probe", lambda path, given, seed: given.draws)
        self._wrap(monkeypatch, between_models, "fit_warp", lambda space, draws, *_: draws)
        self._wrap(
            monkeypatch, from_draws, "_one_step", lambda session, path, given, near: given.draws
        )

    def _wrap(self, monkeypatch, module, name, draws_of) -> None:
        function, seen = getattr(module, name), self.counted if name == "_one_step" else self.fitted

        def recorded(*arguments):
            seen.update(np.ravel(draws_of(*arguments)).tolist())
            return function(*arguments)

        monkeypatch.setattr(module, name, recorded)


def test_a_bayes_factor_counts_other_draws_than_it_fits(monkeypatch) -> None:
    seen = Recorder(monkeypatch)
    draws = posterior_draws()
    idata = container({"posterior": dataset({"mu": draws}, ("chain", "draw"))})
    pma.sample_bayes_factor(regression(False), regression(True), draws_a=idata, **QUIET)
    assert seen.fitted
    assert seen.counted
    assert not seen.fitted & seen.counted
    assert seen.fitted | seen.counted == set(draws.ravel().tolist())


def test_one_step_is_kept_whatever_its_weights_are(monkeypatch) -> None:
    """The probe alone decides, at other draws."""
    monkeypatch.setattr(from_draws, "weight_pareto_k", lambda log_weight: 0.0)
    seen = Recorder(monkeypatch)
    monkeypatch.setattr(from_draws, "_NEAR", np.inf)
    idata = container({"posterior": dataset({"mu": posterior_draws()}, ("chain", "draw"))})
    pma.sample_bayes_factor(regression(False), regression(True), draws_a=idata, **QUIET)
    assert seen.counted


def test_a_constraint_counts_other_draws_than_decide(monkeypatch) -> None:
    """All draws that decide are inside of the region, and none that is counted."""
    draws = np.concatenate([np.full((4, 250), 0.5), np.full((4, 750), -0.5)], axis=1)
    draws += 0.1 * np.random.default_rng(3).normal(size=draws.shape)
    idata = container({"posterior": dataset({"mu": draws}, ("chain", "draw"))})
    found = pma.constraint_bayes_factor(
        idata, lambda v: v["mu"], model=regression(False), log_prior_mass=-0.7, **QUIET
    )
    assert found.log_bayes_factor == -np.inf
    assert "the chains have not converged" in str(found.verdict)
