"""Draws of a smaller model in a larger one: shapes, order, shares, and what they may change."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc.distributions.transforms import ordered

import pymc_anneal as pma

from pymc_anneal.adaptation.fit_mixture import fit_to_particles
from pymc_anneal.base.arviz_compat import container
from pymc_anneal.results.container import dataset
from pymc_anneal.sampling.embed import _one, embedded

SEED = np.random.SeedSequence(1)
Y = np.array([-3.0, -2.8, 0.1, 0.2, 3.1, 2.9])


def mixture(k: int, **order) -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 3, shape=k, initval=np.arange(k), **order)
        weight = pm.Dirichlet("weight", np.ones(k))
        pm.HalfNormal("other", 1.0)
        pm.NormalMixture("y", weight, mu, 0.3, observed=Y)
    return model


def draws(k: int) -> object:
    rng = np.random.default_rng(k)
    mu = np.sort(rng.normal(0, 0.1, (2, 50, k)) + np.linspace(-3, 0, k), axis=-1)
    values = {"mu": mu, "weight": rng.dirichlet(50 * np.ones(k), (2, 50)), "shape": mu[..., 0]}
    return container({"posterior": dataset(values, ("chain", "draw"))})


def test_one_more_component() -> None:
    compiled = pma.compile_model(mixture(3, transform=ordered))
    found = embedded(draws(2), compiled, SEED)
    assert found is not None
    assert {name: v.shape for name, v in found.items()} == {
        "mu": (64, 3),
        "weight": (64, 3),
        "other": (64,),
    }
    assert (np.diff(found["mu"]) > 0).all()
    np.testing.assert_allclose(found["weight"].sum(axis=1), 1)
    # The new mean is that of the cluster that two components lack; its weight has its place.
    assert np.median(found["mu"][:, 2]) == pytest.approx(3.0, abs=0.5)
    old = found["weight"][:, :2] / found["weight"][:, :2].sum(axis=1, keepdims=True)
    last = found["mu"][:, 2] > 1
    assert np.abs(old[last] - 0.5).max() < 0.3
    assert np.isfinite(compiled.unconstrain(found)).all()


def test_without_an_order_the_new_entry_is_the_last() -> None:
    found = embedded(draws(2), pma.compile_model(mixture(3)), SEED)
    assert found is not None
    assert np.abs(found["mu"][:, :2] - [-3, 0]).max() < 0.5


def test_models_without_anything_in_common() -> None:
    with pm.Model() as other:
        pm.Normal("b", shape=2)
    assert embedded(draws(2), pma.compile_model(other), SEED) is None


def test_places() -> None:
    old, new = np.array([[1.0, 2.0]]), np.array([[7.0, 8.0, 9.0]])
    assert _one(old, new, 2).tolist() == [[1, 2, 9]]
    assert _one(old, new, 0).tolist() == [[9, 1, 2]]
    assert _one(old, old + 1, 1).tolist() == [[1, 2]]
    assert _one(old, np.zeros((1, 5)), 1).tolist() == [[0] * 5]  # longer by more than one
    assert _one(old, np.zeros((1, 3, 3)), 1).shape == (1, 3, 3)
    pairs = np.arange(4.0).reshape(1, 2, 2)
    assert _one(pairs, 9 + np.zeros((1, 3, 2)), 1).tolist() == [[[0, 1], [9, 9], [2, 3]]]


def needle(x: np.ndarray) -> pm.Model:
    """Return a wide mode, and one of two thirds that 1 draw of the prior in 1e10 meets."""
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=4)
        wide = -0.5 * (b**2).sum() / 0.25
        narrow = -0.5 * ((b - x) ** 2).sum() / 0.01**2 + 4 * np.log(0.5 / 0.01) + np.log(2)
        top = pm.math.maximum(wide, narrow)
        pm.Potential("modes", top + pt.log1p(pt.exp(-pt.abs(wide - narrow))))
    return model


def test_hints_are_starts_of_the_search() -> None:
    """A mode that only a hint leads to gets its component; a hint that leads nowhere gets none."""
    place = np.array([2.0, -2.0, 2.0, 2.0])
    compiled = pma.compile_model(needle(place))
    particles = 0.45 * np.random.default_rng(1).normal(size=(200, 4))
    near, far = place + 0.01 * np.random.default_rng(2).normal(size=(8, 4)), np.zeros((8, 4))

    def modes(hints: np.ndarray | None) -> int:
        return fit_to_particles(compiled, particles, SEED, 20_000, hints=hints).modes

    assert modes(near) == modes(far) + 1
    assert modes(far) == modes(None)


@pytest.mark.slow
def test_a_run_without_a_survey_has_the_same_bits() -> None:
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("b", 0, 1, shape=2), 1, observed=[0.1, 0.3])
    settings = {"random_seed": 1, "draws": 50, "reference": "prior", "progressbar": False}
    compiled = pma.compile_model(model)
    plain = pma.sample_ais(compiled, warnings=False, **settings)
    hints = {"b": np.ones((5, 2))}
    hinted = pma.sample_ais(compiled, warnings=False, search_from=hints, **settings)
    found = [pma.log_evidence(run).log_evidence for run in (plain, hinted)]
    assert found[0] == found[1]
