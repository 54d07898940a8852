"""Models from which data are simulated."""

import pymc as pm


def counts() -> pm.Model:
    """Poisson counts with a gamma rate: a posterior that a random walk samples well."""
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1)
        pm.Poisson("y", rate, observed=[3, 1, 4])
    return model


def folded() -> pm.Model:
    """Two modes, of which the prior favours the one below zero."""
    with pm.Model() as model:
        x = pm.Normal("x", -1, 1)
        pm.Normal("y", 3 * x**2 + x, 0.2, observed=[2.0])
    return model
