"""Independent conjugate models with few data, in one model, and their posteriors."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from scipy import stats

from tests.normal_scores import ScoreRows
from tests.problems.problem import normal_mean_posterior

RESPONSE, RESIDUAL, WAITS = np.array([1.2, 2.9]), np.array([1.4, -0.8]), np.array([1.3, 0.6])
CONCENTRATION, COUNTS = np.array([0.8, 1.5, 2.0]), np.array([2, 0, 2])


def build() -> pm.Model:
    """A mean, a probability, a rate, a bounded rate, a variance and probabilities of a simplex."""
    with pm.Model() as model:
        pm.Normal("y_mean", pm.Normal("mean", -1.0, 2.0), 3.0, observed=RESPONSE)
        pm.Binomial("y_share", 4, pm.Beta("share", 2.0, 5.0), observed=3)
        pm.Poisson("y_rate", 0.5 * pm.Gamma("rate", 2.5, 0.8), observed=3)
        pm.Exponential("y_bounded", pm.Uniform("bounded", 0.5, 2.0), observed=WAITS)
        variance = pm.InverseGamma("variance", 3.0, 2.0)
        pm.Normal("y_variance", 0.0, pt.sqrt(variance), observed=RESIDUAL)
        pm.Multinomial("y_simplex", 4, pm.Dirichlet("simplex", CONCENTRATION), observed=COUNTS)
    return model


class Truncated:
    """A distribution restricted to an interval."""

    def __init__(self, law, lower: float, upper: float):
        self.law, self.ends = law, (lower, upper)

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Distribution function."""
        lower, upper = self.law.cdf(self.ends)
        return (self.law.cdf(x) - lower) / (upper - lower)

    def sf(self, x: np.ndarray) -> np.ndarray:
        """Complement of the distribution function."""
        return 1 - self.cdf(x)


LAWS = {
    "mean": stats.norm(*normal_mean_posterior(RESPONSE, 3.0, -1.0, 2.0)),
    "share": stats.beta(2.0 + 3, 5.0 + 1),
    "rate": stats.gamma(2.5 + 3, scale=1 / (0.8 + 0.5)),
    "bounded": Truncated(stats.gamma(1 + WAITS.size, scale=1 / WAITS.sum()), 0.5, 2.0),
    "variance": stats.invgamma(3.0 + RESIDUAL.size / 2, scale=2.0 + (RESIDUAL**2).sum() / 2),
}


def add_scores(rows: ScoreRows, x) -> None:
    """Add the draws of a posterior, a mapping of names to arrays."""
    for name, law in LAWS.items():
        rows.add(name, np.asarray(x[name]), law)
    # Stick-breaking: the first entry, and the share of the second one in the rest.
    p, (first, *rest) = np.asarray(x["simplex"]), CONCENTRATION + COUNTS
    rows.add("simplex 0", p[..., 0], stats.beta(first, sum(rest)))
    rows.add("simplex 1", p[..., 1] / (1 - p[..., 0]), stats.beta(*rest))
