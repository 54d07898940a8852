"""Direct paths between pooled and hierarchical models, in coordinates given the data."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.between.joint_space import JointSpace, join_models
from pymc_anneal.between.warp import Warp, fit_warp
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.results.container import dataset
from tests.sampling import mean_ratio

# The module, which the function of the same name hides.
MODULE = import_module("pymc_anneal.sampling.sample_bayes_factor")
EFFECT, ERROR = np.array([28.0, 8, -3, 7, 1]), np.array([15.0, 10, 16, 11, 9])
# Quantiles of the half-Cauchy prior of tau, scale 5.
TAU = 5 * np.tan(np.pi / 2 * (np.arange(5000) + 0.5) / 5000)
QUIET = {"progressbar": False, "warnings": False}


def pooled() -> pm.Model:
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0, 5), ERROR, observed=EFFECT)
    return model


def hierarchical(centred: bool = False) -> pm.Model:
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
        if centred:
            effect = pm.Normal("effect", mu, tau, shape=5)
        else:
            effect = mu + tau * pm.Normal("z", shape=5)
        pm.Normal("y", effect, ERROR, observed=EFFECT)
    return model


POOLED, HIERARCHICAL = pooled(), hierarchical()


def log_likelihoods(tau: np.ndarray) -> np.ndarray:
    """Return the log likelihood of each value of tau."""
    return np.array(
        [
            stats.multivariate_normal.logpdf(EFFECT, np.zeros(5), np.diag(ERROR**2 + t**2) + 25)
            for t in tau
        ]
    )


LIKELIHOOD = np.exp(log_likelihoods(TAU))
EXACT = float(log_likelihoods(np.zeros(1))[0] - np.log(LIKELIHOOD.mean()))


def draw_mu(rng: np.random.Generator, tau: np.ndarray) -> np.ndarray:
    variance = ERROR**2 + tau[:, None] ** 2
    precision = (1 / variance).sum(axis=1) + 1 / 25
    return rng.normal((EFFECT / variance).sum(axis=1) / precision, precision**-0.5)


def draws_of_pooled(seed: int, shape: tuple[int, int] = (4, 250)) -> object:
    mu = draw_mu(np.random.default_rng(seed), np.zeros(np.prod(shape)))
    return container({"posterior": dataset({"mu": mu.reshape(shape)}, ("chain", "draw"))})


def draws_of_hierarchical(seed: int, centred: bool = False, shape=(4, 250)) -> object:
    rng = np.random.default_rng(seed)
    tau = rng.choice(TAU, size=np.prod(shape), p=LIKELIHOOD / LIKELIHOOD.sum())
    mu, t = draw_mu(rng, tau), tau[:, None]
    precision = 1 + t**2 / ERROR**2
    z = rng.normal(t * (EFFECT - mu[:, None]) / ERROR**2 / precision, precision**-0.5)
    own = {"effect": mu[:, None] + t * z} if centred else {"z": z}
    values = {"mu": mu, "tau": tau, **own}
    shaped = {name: v.reshape(*shape, *v.shape[1:]) for name, v in values.items()}
    return container({"posterior": dataset(shaped, ("chain", "draw"))})


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list:
    """Return a list of the coordinates that are chosen."""
    found, choose = [], MODULE.choose_coordinates

    def record(*args: object) -> object:
        made = choose(*args)  # once: a seed that is spawned again gives other numbers
        found.append(made.coordinates)
        return made

    monkeypatch.setattr(MODULE, "choose_coordinates", record)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("given", ["a", "b", "both"])
def test_exact_value(chosen: list, given: str, centred: bool) -> None:
    models = POOLED, hierarchical(centred=True) if centred else HIERARCHICAL
    draws = {
        "draws_a": None if given == "b" else draws_of_pooled(1),
        "draws_b": None if given == "a" else draws_of_hierarchical(2, centred),
    }
    found = pma.sample_bayes_factor(*models, **draws, target_mcse=0.05, random_seed=3, **QUIET)
    assert found.verdict.status != "do not trust"
    assert found.mcse < 0.06
    assert abs(found.log_bayes_factor - EXACT) < 4 * found.mcse
    # One step, where the coordinates of the models themselves take 50,000 evaluations and more.
    assert found.evaluations < 15_000
    assert all(isinstance(c, Warp) for c in chosen)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_unbiased_at_few_steps(steps: int) -> None:
    """The mean of Z_b / Z_a over runs from exact draws of a, whatever the number of steps."""

    def draw(seed: int):
        return draws_of_pooled(seed, (4, 100))

    off, error = mean_ratio.of_runs((POOLED, HIERARCHICAL), draw, steps, EXACT)
    assert error < 0.05
    assert abs(off) < 4 * error


class TestOneStep:
    """Weights of one step at exact draws of either model, and of wrong twins."""

    def fitted(self, backward: bool) -> tuple[Warp, np.ndarray]:
        models = as_compiled(POOLED), as_compiled(HIERARCHICAL)
        draws = draws_of_hierarchical(5) if backward else draws_of_pooled(5)
        first, second = models[::-1] if backward else models
        space: JointSpace = join_models(first, second)
        x = MODULE.grouped_draws(draws, first).reshape(1000, -1)
        warp = fit_warp(space, x, np.random.SeedSequence(1), given_data=True)
        assert warp is not None
        return warp, warp.complete_first(np.random.SeedSequence(2), x)

    @pytest.mark.parametrize("backward", [False, True])
    def test_mean_of_the_weights(self, backward: bool) -> None:
        warp, z = self.fitted(backward)
        exact = EXACT if backward else -EXACT
        off, error = mean_ratio.of_weights(warp.path, z, exact)
        assert error < 0.04
        assert abs(off) < 4 * error
        # Another scale gives the same mean, and the twin leaves its volume out.
        root = warp.second.root @ np.diag(np.r_[1.5, np.ones(len(warp.second.mean) - 1)])
        other = replace(warp, second=warp.second._replace(root=root))
        off, error = mean_ratio.of_weights(other.path, z, exact)
        assert abs(off) < 4 * error
        off, error = mean_ratio.of_weights(other.path, z, exact + np.log(1.5))
        assert abs(off) > 4 * error

    def test_positions_are_the_inverse(self) -> None:
        warp, z = self.fitted(backward=True)
        _, second = warp.positions(z)
        again = warp.add_to_second(np.random.SeedSequence(3), second)
        shared = len(warp.second.mean)
        assert again[:, :shared] == pytest.approx(z[:, :shared], abs=1e-9)
