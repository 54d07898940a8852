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


@pytest.fixture(scope="session")
def reported() -> dict:
    """Runs of two models, one with a name to escape, and a curve of prior sensitivity."""

    def run(scale: float):
        with pm.Model() as model:
            mu = pm.Normal("mu", 0, pm.Data("scale", scale))
            pm.Normal("y", mu, 1, observed=[1.0, 2.0])
        settings = {"steps": 4, "reference": "prior", "progressbar": False, "random_seed": 1}
        return model, pma.sample_ais(model, chains=2, **settings)

    (model, narrow), (_, wide) = run(1.0), run(30.0)
    curve = pma.prior_sensitivity(narrow, {"scale": [0.5, 1.0]}, model=model)
    return {"narrow": narrow, "a<b>": wide, "curve": curve}


@pytest.fixture(autouse=True)
def close():
    yield
    pyplot.close("all")
