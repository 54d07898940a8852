"""A run with reverse runs, and figures that are closed."""

import matplotlib as mpl
import pymc as pm
import pytest

mpl.use("Agg")

from matplotlib import pyplot

import pymc_anneal as pma


@pytest.fixture(scope="session")
def idata():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 3)
        pm.Normal("y", mu, 0.5, observed=[3.0, 4.0, 5.5])
    return pma.sample_ais(
        100,
        steps=40,
        model=model,
        reference="prior",
        reverse_from="draws",
        progressbar=False,
        random_seed=1,
    )


@pytest.fixture(autouse=True)
def close():
    yield
    pyplot.close("all")
