"""Models without observed variables."""

import numpy as np
import pymc as pm

from tests.problems.problem import Problem


def lkj_prior_only() -> Problem:
    """Covariance matrix without data: ``LKJCholeskyCov(3, eta=2)``, ``sd ~ LogNormal(0, 0.5)``.

    ``Z = 1``: the prior alone.

    With ``C = int det(R)^(eta - 1) dR`` over correlation matrices the density needs the factor
    ``1/C``; PyMC 5 multiplies by ``C`` instead, so that its density integrates to ``C^2``. The
    excess cancels between prior and posterior, not between a fitted reference and the posterior.
    """

    def build() -> pm.Model:
        with pm.Model() as model:
            pm.LKJCholeskyCov("chol", n=3, eta=2.0, sd_dist=pm.LogNormal.dist(0.0, 0.5))
        return model

    return Problem("lkj_prior_only", build, 0.0, "no likelihood, Cholesky transform")


def no_observed() -> Problem:
    """A hierarchy without data: ``scale ~ Gamma(3, 2)``, ``x_i ~ N(0.5, scale)``.

    ``Z = 1``.
    """

    def build() -> pm.Model:
        with pm.Model() as model:
            scale = pm.Gamma("scale", 3.0, 2.0)
            pm.Normal("x", 0.5, scale, shape=2)
        return model

    return Problem("no_observed", build, 0.0, "neither data nor potential")


def potential_only() -> Problem:
    """Likelihood given by a potential alone: ``x ~ Gamma(a, b)``, ``log L(x) = 1.7 - c x``.

    ``Z = exp(1.7) (b / (b + c))^a``; here ``a, b, c = 2.5, 1.5, 4``.
    """
    a, b, c = 2.5, 1.5, 4.0

    def build() -> pm.Model:
        with pm.Model() as model:
            x = pm.Gamma("x", a, b)
            pm.Potential("likelihood", 1.7 - c * x)
        return model

    log_evidence = 1.7 + a * np.log(b / (b + c))
    return Problem("potential_only", build, float(log_evidence), "no observed variable")
