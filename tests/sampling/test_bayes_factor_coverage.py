"""Coverage of the errors of direct paths, constraints and updates, each with a wrong twin.

The twins take dependent draws for independent ones, leave out the error of one of two numbers, or
have errors that are three quarters as large.
"""

import math

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import special, stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.between import constraint_mass
from pymc_anneal.results.container import dataset
from tests import repetitions
from tests.repetitions import REPETITIONS, coverage, covers

pytestmark = pytest.mark.slow

QUIET = {"progressbar": False, "warnings": False}
WALK = pma.RandomWalkMetropolis(step_size=0.5, scale=1.0)


def narrowed(scores: list[float]) -> list[float]:
    """Return the errors in units of standard errors three quarters as large: the twin."""
    return [score / 0.75 for score in scores]


def independent(values: np.ndarray) -> float:
    """Return the number of draws as their effective sample size: the twin."""
    return float(values.size)


class TestDirectPath:
    """One Poisson rate for two counts, or one for each; a gamma prior, whose log is skewed."""

    COUNTS, SHAPE = (3, 6), 2.0

    def model(self, names: list[str]) -> pm.Model:
        with pm.Model() as built:
            rates = {name: pm.Gamma(name, self.SHAPE, 1) for name in names}
            each = pt.stack([rates[names[0]], rates[names[-1]]])
            pm.Poisson("y", each, observed=np.array(self.COUNTS))
        return built

    def log_evidence(self, counts: tuple[int, ...]) -> float:
        """Return the log evidence of one rate for some counts."""
        shape, rate = self.SHAPE + sum(counts), 1 + len(counts)
        factorials = special.gammaln(np.add(counts, 1)).sum()
        of_prior = special.gammaln(self.SHAPE)
        return float(special.gammaln(shape) - shape * np.log(rate) - of_prior - factorials)

    def draws(self, groups: dict[str, tuple[int, ...]], seed: list[int]) -> object:
        """Return draws of the rates: gamma quantiles of a dependent normal sequence."""
        d = len(groups)
        z = repetitions.autoregression(np.zeros(d), np.eye(d), seed, (4, 100))
        values = {
            name: stats.gamma(self.SHAPE + sum(y), scale=1 / (1 + len(y))).ppf(
                stats.norm.cdf(z[..., i])
            )
            for i, (name, y) in enumerate(groups.items())
        }
        return container({"posterior": dataset(values, ("chain", "draw"))})

    def scores(self, given: str, **settings: object) -> list[float]:
        """Return errors of the log Bayes factor in standard errors, one for each set of draws."""
        one, two = {"a": self.COUNTS}, {"a": self.COUNTS[:1], "b": self.COUNTS[1:]}
        exact = self.log_evidence(self.COUNTS) - sum(map(self.log_evidence, two.values()))
        models, scores = [self.model(list(groups)) for groups in (one, two)], []
        for seed in range(REPETITIONS):
            draws = {
                "draws_a": None if given == "b" else self.draws(one, [1, seed]),
                "draws_b": None if given == "a" else self.draws(two, [2, seed]),
            }
            found = pma.sample_bayes_factor(*models, **draws, **settings, **QUIET, random_seed=seed)
            scores.append((found.log_bayes_factor - exact) / found.mcse)
        return scores

    @pytest.mark.parametrize("given", ["a", "b", "both"])
    def test_one_step(self, given: str) -> None:
        scores = self.scores(given)
        assert covers(scores)
        assert not covers(narrowed(scores))

    @pytest.mark.parametrize("given", ["a", "both"])
    def test_three_steps(self, given: str) -> None:
        scores = self.scores(given, steps=3, transition=WALK)
        assert covers(scores)
        assert not covers(narrowed(scores))


# Means of two groups, with one observation each.
PRIOR_SD, ERROR = 2.0, 0.5
VARIANCE = 1 / (1 / ERROR**2 + 1 / PRIOR_SD**2)


class TestConstraint:
    def scores(self, observed: list[float], constraint: object) -> list[float]:
        """Return errors in standard errors for the order of two means."""
        with pm.Model() as model:
            mu = pm.Normal("mu", 0, PRIOR_SD, shape=2)
            pm.Normal("y", mu, ERROR, observed=np.array(observed))
        centre = VARIANCE * np.array(observed) / ERROR**2
        distance = (centre[0] - centre[1]) / math.sqrt(2 * VARIANCE)
        exact, scores = float(stats.norm.logsf(distance)) + math.log(2), []
        for seed in range(REPETITIONS):
            x = repetitions.autoregression(centre, VARIANCE * np.eye(2), [3, seed], (4, 1000))
            draws = container({"posterior": dataset({"mu": x}, ("chain", "draw"))})
            found = pma.constraint_bayes_factor(
                draws, constraint, model=model, random_seed=seed, **QUIET
            )
            scores.append((found.log_bayes_factor - exact) / found.mcse)
        return scores

    def test_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        order = pma.Increasing("mu")
        assert covers(self.scores([0.3, 0.0], order))
        monkeypatch.setattr(constraint_mass, "draws_ess", independent)
        assert coverage(self.scores([0.3, 0.0], order)) < 0.92

    def test_estimated_prior_mass(self) -> None:
        assert covers(self.scores([0.3, 0.0], lambda values: values["mu"][1] - values["mu"][0]))

    def test_tiny_mass(self) -> None:
        scores = self.scores([2.6, 0.0], pma.Increasing("mu"))
        assert covers(scores)
        assert not covers(narrowed(scores))


class TestUpdate:
    COUNTS = 20, 40

    def model(self, count: int) -> pm.Model:
        with pm.Model() as built:
            mu = pm.Normal("mu", 0, 2)
            pm.Normal("y", mu, 1, observed=repetitions.Y[:count])
        return built

    def exact(self, count: int) -> float:
        covariance = np.eye(count) + 4 * np.ones((count, count))
        normal = stats.multivariate_normal(np.zeros(count), covariance)
        return float(normal.logpdf(repetitions.Y[:count]))

    def test_predictive_density(self) -> None:
        """The log predictive density of the new data, and the evidence of all of them."""
        before, after = map(self.model, self.COUNTS)
        exact = [self.exact(count) for count in self.COUNTS]
        errors, twins, totals = [], [], []
        settings = {"draws": 100, **QUIET}
        for seed in range(REPETITIONS):
            old = pma.sample_ais(
                before, reference="prior", steps=30, random_seed=[4, seed], **settings
            )
            new = pma.update(old, after, steps=2, random_seed=[5, seed], **settings)
            a, b = pma.log_evidence(old), pma.log_evidence(new)
            error = b.log_evidence - a.log_evidence - (exact[1] - exact[0])
            errors.append(error / np.hypot(a.mcse, b.mcse))
            twins.append(error / b.mcse)
            totals.append((b.log_evidence - exact[1]) / b.mcse)
        assert covers(errors)
        assert covers(totals)
        assert coverage(twins) < 0.92
