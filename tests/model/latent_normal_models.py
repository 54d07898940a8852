"""Models with latent normal variables, and some whose structure is only similar."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

COUNTS = np.array([2, 0, 3, 1, 4, 2])
RESPONSE = np.array([0.8, -1.4, 2.1, 0.3, -0.6, 3.0])
GROUP = np.array([0, 0, 1, 1, 2, 2])
COVARIATE = np.linspace(-1, 1, 6)


def groups() -> pm.Model:
    """Centred group means, with a normal likelihood."""
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 1, 2), pm.HalfNormal("tau", 2)
        mean = pm.Normal("mean", mu, tau, shape=3)
        pm.Normal("y", mean[GROUP], pm.HalfNormal("sigma", 1), observed=RESPONSE)
    return model


def offset() -> pm.Model:
    """Group means next to a known offset."""
    with pm.Model() as model:
        mean = pm.Normal("mean", 1, pm.HalfNormal("tau", 2), shape=3)
        pm.Normal("y", 5.0 + COVARIATE + mean[GROUP], 0.7, observed=RESPONSE)
    return model


def counts() -> pm.Model:
    """Counts with a linear predictor behind a link."""
    with pm.Model() as model:
        scale, offset = pm.HalfCauchy("scale", 1), pm.Data("offset", 0.5)
        z, slope = pm.Normal("z", 0, 1, shape=6), pm.Normal("slope", 0.2, 0.5)
        pm.Poisson("y", pt.exp(offset + slope * COVARIATE + scale * z), observed=COUNTS)
    return model


def walk() -> pm.Model:
    """A random walk seen with noise, and a second response that does not depend on it."""
    with pm.Model() as model:
        tau, sigma = pm.HalfNormal("tau", 1), pm.HalfNormal("sigma", 1)
        start = pm.Normal.dist(0, 2)
        level = pm.GaussianRandomWalk("level", sigma=tau, init_dist=start, steps=5)
        pm.Normal("y", level, sigma, observed=RESPONSE)
        pm.Normal("other", 0, sigma, observed=0.4)
    return model


def missing() -> pm.Model:
    """A slope times unknown covariates: linear in either of them, not in both."""
    with pm.Model() as model:
        slope = pm.Normal("slope", 0, 1)
        x = pm.Normal("x", 0, 1, shape=6)
        pm.Normal("y", slope * x, 0.5, observed=RESPONSE)
    return model


def curved() -> pm.Model:
    """A predictor that is not linear."""
    with pm.Model() as model:
        u = pm.Normal("u", 0, 1, shape=2)
        pm.Normal("y", u[0] * u[1], 1, observed=RESPONSE)
    return model


def joint() -> pm.Model:
    """A likelihood that is no sum over the entries of the predictor."""
    with pm.Model() as model:
        u = pm.Normal("u", 0, 1, shape=6)
        pm.MvNormal("y", u, cov=np.eye(6) + 0.5, observed=RESPONSE)
    return model


def in_scale() -> pm.Model:
    """A latent variable in mean and scale of the response."""
    with pm.Model() as model:
        u = pm.Normal("u", 0, 1)
        pm.Normal("y", u, pt.exp(u), observed=RESPONSE)
    return model


def in_potential() -> pm.Model:
    """A latent variable in a potential as well."""
    with pm.Model() as model:
        u = pm.Normal("u", 0, 1)
        pm.Potential("penalty", -(u**4))
        pm.Normal("y", u, 1, observed=RESPONSE)
    return model


def heavy() -> pm.Model:
    """Latent variables that are not normal."""
    with pm.Model() as model:
        u = pm.StudentT("u", 4, mu=0, sigma=pm.HalfNormal("tau", 1), shape=6)
        pm.Normal("y", u, 1, observed=RESPONSE)
    return model


def outliers() -> pm.Model:
    """A likelihood that is not log-concave."""
    with pm.Model() as model:
        u = pm.Normal("u", 0, 3)
        pm.StudentT("y", 2, mu=u, sigma=0.1, observed=RESPONSE)
    return model
