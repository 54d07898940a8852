"""Results in the containers of nested samplers: their plots, weights and volumes."""

import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

Y = np.array([0.4, 1.2, 0.9])


@pytest.fixture(scope="module")
def run():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1, shape=2)
        pm.Normal("y", mu[0], 1, observed=Y)
    compiled = pma.compile_model(model)
    settings = {"random_seed": 1, "draws": 250, "progressbar": False}
    return compiled, pma.sample_ais(compiled, **settings)


@pytest.mark.slow
def test_plots_of_dynesty(run) -> None:
    plotting = pytest.importorskip("dynesty.plotting")
    compiled, idata = run
    found = pma.to_dynesty(idata, model=compiled)
    n = len(found["logl"])
    np.testing.assert_allclose(found.importance_weights(), 1 / n)
    assert (np.diff(found["logl"]) >= 0).all()
    assert (np.diff(found["logvol"]) < 0).all()
    figure, axes = plotting.cornerplot(found)
    assert axes.shape == (2, 2)
    plotting.traceplot(found)
    figure.clear()


def test_volumes_are_prior_masses(run) -> None:
    """Above the median of the likelihoods: a closed form, since one mean decides."""
    pytest.importorskip("dynesty")
    compiled, idata = run
    found = pma.to_dynesty(idata, model=compiled)
    middle = len(found["logl"]) // 2
    at_best = stats.norm.logpdf(Y, Y.mean()).sum()
    reach = np.sqrt(2 * (at_best - found["logl"][middle]) / len(Y))
    exact = np.diff(stats.norm.cdf(Y.mean() + reach * np.array([-1, 1])))[0]
    assert found["logvol"][middle] == pytest.approx(np.log(exact), abs=0.15)


def test_samples_of_anesthetic(run) -> None:
    pytest.importorskip("anesthetic")
    compiled, idata = run
    found = pma.to_anesthetic(idata, model=compiled)
    assert list(found.columns.get_level_values(0)) == ["mu[0]", "mu[1]", "logL"]
    assert found.get_weights().min() == found.get_weights().max()
    axes = found.plot_2d(["mu[0]", "mu[1]"])
    assert axes.shape == (2, 2)


def test_what_is_refused(run, monkeypatch) -> None:
    compiled, idata = run
    pytest.importorskip("dynesty")
    with pytest.raises(ValueError, match=r"`var_names` has \['b'\], expected .*'mu'"):
        pma.to_dynesty(idata, model=compiled, var_names=["b"])
    monkeypatch.setitem(__import__("sys").modules, "anesthetic", None)
    with pytest.raises(ImportError, match="anesthetic"):
        pma.to_anesthetic(idata, model=compiled)
