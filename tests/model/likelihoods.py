"""Observed families of PyMC, with priors wide enough to reach the corners of their densities."""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.distributions import transforms

from tests.model.models import Y

ORDER = np.array([-1.0, 0.0, 1.0])
SHARES = np.array([0.1, 0.5, 0.97])
COUNTS = np.array([0, 1, 5])
ENDS = np.array([0.0, 1.1, 2.5])


def real(name: str = "mu", sd: float = 15.0) -> pt.TensorVariable:
    return pm.Normal(name, 0.0, sd)


def positive(name: str = "sigma", scale: float = 5.0) -> pt.TensorVariable:
    return pm.HalfNormal(name, scale)


def share(name: str = "p") -> pt.TensorVariable:
    return pm.Beta(name, 0.5, 0.5)


def weights(k: int = 2) -> pt.TensorVariable:
    return pm.Dirichlet("w", np.full(k, 0.5))


def cutpoints() -> pt.TensorVariable:
    return pm.Normal("c", ORDER, 0.3, transform=transforms.ordered, initval=ORDER)


def censored(dist: Callable[[], object], lower: float | None = 0.0) -> Callable[[], object]:
    data = ENDS if lower is not None else np.maximum(ENDS, 0.1)
    return lambda: pm.Censored("y", dist(), lower=lower, upper=2.5, observed=data)


def truncated(dist: Callable[[], object], upper: float | None = 5.0) -> Callable[[], object]:
    return lambda: pm.Truncated("y", dist(), lower=0.1, upper=upper, observed=Y)


def mixture(*dists: Callable[[], object]) -> Callable[[], object]:
    return lambda: pm.Mixture(
        "y", w=weights(len(dists)), comp_dists=[d() for d in dists], observed=np.append(Y, 0)
    )


def normal() -> object:
    return pm.Normal.dist(real(), positive())


def log_normal() -> object:
    return pm.LogNormal.dist(real("m", 5.0), positive("s"))


def weibull() -> object:
    return pm.Weibull.dist(positive("a", 3.0), positive("b"))


def gamma() -> object:
    return pm.Gamma.dist(positive("a", 3.0), positive("b"))


def exponential() -> object:
    return pm.Exponential.dist(positive("rate"))


def _logarithm_of_a_half() -> None:
    x = real("x", 3.0)
    pm.Normal("y", pm.math.switch(x > 0, pm.math.log(x), x), 1.0, observed=Y)


def _power_of_a_half() -> None:
    x = real("x", 3.0)
    pm.Normal("y", pm.math.switch(x > 0, x**1.5, 0.0), 1.0, observed=Y)


# Families whose gradients were NaN in JAX at some prior draws with a finite density.
MENDED: dict[str, Callable[[], object]] = {
    "censored_normal": censored(normal),
    "censored_weibull": censored(weibull, lower=None),
    "truncated_normal": lambda: pm.TruncatedNormal(
        "y", real(), positive(), lower=0.0, upper=3.0, observed=Y
    ),
    "truncated_below": truncated(normal, upper=None),
    "truncated": truncated(normal),
    "truncated_prior": lambda: pm.Truncated("x", normal(), lower=0.0, upper=3.0),
    "ordered_probit": lambda: pm.OrderedProbit(
        "y", eta=real(sd=3.0), cutpoints=cutpoints(), sigma=positive(), observed=[0, 1, 2, 3]
    ),
    "zero_inflated_log_normal": mixture(lambda: pm.DiracDelta.dist(0.0), log_normal),
    "logarithm_of_a_half": _logarithm_of_a_half,
    "power_of_a_half": _power_of_a_half,
}

OTHERS: dict[str, Callable[[], object]] = {
    "censored_gamma": censored(gamma, lower=None),
    "censored_log_normal": censored(log_normal, lower=None),
    "censored_exponential": censored(exponential, lower=None),
    "censored_laplace": censored(lambda: pm.Laplace.dist(real(), positive())),
    "censored_logistic": censored(lambda: pm.Logistic.dist(real(), positive())),
    "censored_cauchy": censored(lambda: pm.Cauchy.dist(real(), positive())),
    "censored_gumbel": censored(lambda: pm.Gumbel.dist(real(), positive())),
    "censored_student_t": censored(lambda: pm.StudentT.dist(nu=3, mu=real(), sigma=positive())),
    "truncated_gamma": truncated(gamma),
    "truncated_log_normal": truncated(log_normal),
    "truncated_weibull": truncated(weibull),
    "truncated_exponential": truncated(exponential),
    "truncated_poisson": lambda: pm.Truncated(
        "y", pm.Poisson.dist(positive()), lower=1, observed=COUNTS + 1
    ),
    "mixture_of_normals": lambda: pm.NormalMixture(
        "y", weights(), pm.Normal("mu", 0, 15, shape=2), pm.HalfNormal("s", shape=2), observed=Y
    ),
    "mixture_with_uniform": mixture(lambda: pm.Uniform.dist(0.0, positive("u")), normal),
    "hurdle_gamma": lambda: pm.HurdleGamma(
        "y", share(), alpha=positive("a"), beta=positive("b"), observed=[0.0, *Y]
    ),
    "hurdle_log_normal": lambda: pm.HurdleLogNormal(
        "y", share(), mu=real(), sigma=positive(), observed=[0.0, *Y]
    ),
    "student_t": lambda: pm.StudentT(
        "y", nu=positive("nu"), mu=real(), sigma=positive(), observed=Y
    ),
    "ex_gaussian": lambda: pm.ExGaussian(
        "y", mu=real(), sigma=positive(), nu=positive("nu"), observed=Y
    ),
    "skew_normal": lambda: pm.SkewNormal(
        "y", mu=real(), sigma=positive(), alpha=real("a", 5.0), observed=Y
    ),
    "asymmetric_laplace": lambda: pm.AsymmetricLaplace(
        "y", kappa=positive("k"), mu=real(), b=positive(), observed=Y
    ),
    "cauchy": lambda: pm.Cauchy("y", real(), positive(), observed=Y),
    "moyal": lambda: pm.Moyal("y", real(), positive(), observed=Y),
    "weibull": lambda: pm.Weibull("y", positive("a"), positive("b"), observed=Y),
    "inverse_gamma": lambda: pm.InverseGamma("y", positive("a"), positive("b"), observed=Y),
    "pareto": lambda: pm.Pareto("y", positive("a"), pm.Uniform("m", 0, 0.4), observed=Y),
    "wald": lambda: pm.Wald("y", mu=positive("m"), lam=positive("l"), observed=Y),
    "rice": lambda: pm.Rice("y", nu=positive("nu"), sigma=positive(), observed=Y),
    "triangular": lambda: pm.Triangular("y", 0.0, 3.0, c=pm.Uniform("c", 0, 3), observed=Y),
    "beta": lambda: pm.Beta("y", positive("a"), positive("b"), observed=SHARES),
    "kumaraswamy": lambda: pm.Kumaraswamy("y", positive("a"), positive("b"), observed=SHARES),
    "logit_normal": lambda: pm.LogitNormal("y", real(), positive(), observed=SHARES),
    "bernoulli": lambda: pm.Bernoulli("y", share(), observed=[0, 1, 1]),
    "bernoulli_logit": lambda: pm.Bernoulli("y", logit_p=real(sd=300.0), observed=[0, 1, 1]),
    "binomial": lambda: pm.Binomial("y", 5, share(), observed=COUNTS),
    "beta_binomial": lambda: pm.BetaBinomial(
        "y", n=5, alpha=positive("a"), beta=positive("b"), observed=COUNTS
    ),
    "poisson": lambda: pm.Poisson("y", positive(), observed=COUNTS),
    "negative_binomial": lambda: pm.NegativeBinomial(
        "y", mu=positive("m"), alpha=positive("a"), observed=COUNTS
    ),
    "geometric": lambda: pm.Geometric("y", share(), observed=COUNTS + 1),
    "discrete_weibull": lambda: pm.DiscreteWeibull(
        "y", q=share(), beta=positive("b"), observed=COUNTS
    ),
    "zero_inflated_poisson": lambda: pm.ZeroInflatedPoisson(
        "y", share(), positive(), observed=COUNTS
    ),
    "zero_inflated_binomial": lambda: pm.ZeroInflatedBinomial(
        "y", share("psi"), 5, share(), observed=COUNTS
    ),
    "hurdle_poisson": lambda: pm.HurdlePoisson("y", share(), mu=positive(), observed=COUNTS),
    "categorical": lambda: pm.Categorical("y", p=weights(3), observed=[0, 1, 2]),
    "multinomial": lambda: pm.Multinomial("y", n=3, p=weights(3), observed=[0, 1, 2]),
    "dirichlet_multinomial": lambda: pm.DirichletMultinomial(
        "y", n=3, a=pm.HalfNormal("a", 2.0, shape=3), observed=[0, 1, 2]
    ),
    "ordered_logistic": lambda: pm.OrderedLogistic(
        "y", eta=real(), cutpoints=cutpoints(), observed=[0, 1, 2, 3]
    ),
}
