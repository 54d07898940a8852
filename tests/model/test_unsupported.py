"""Models that cannot be annealed raise errors that name the variable."""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from tests.model.models import Y


def _minibatch() -> None:
    x = pm.Normal("x")
    batch = pm.Minibatch(np.arange(10.0), batch_size=2)
    pm.Normal("y", x, 1.0, observed=batch, total_size=10)


def _rescaled() -> None:
    x = pm.Normal("x")
    pm.Normal("y", x, 1.0, observed=Y, total_size=30)


def _simulator() -> None:
    x = pm.Normal("x")
    pm.Simulator("s", lambda rng, x, size: rng.normal(x, size=size), x, observed=Y)


def _no_draws() -> None:
    pm.CustomDist("mine", 1.0, logp=lambda value, mu: -0.5 * (value - mu) ** 2)


def _unregistered() -> None:
    x = pm.Normal("x")
    pm.Normal("y", x + pm.Normal.dist(0.0, 1.0), 1.0, observed=Y)


def _unregistered_parent() -> None:
    pm.Normal("x", pm.Normal.dist(0.0, 1.0), 1.0)


def _unregistered_in_a_potential() -> None:
    x = pm.Normal("x")
    pm.Potential("more", -(pm.Normal.dist(x, 1.0) ** 2))


def _minibatch_in_a_potential() -> None:
    x = pm.Normal("x")
    pm.Potential("more", (x * pm.Minibatch(np.arange(10.0), batch_size=2)).sum())


def _point_mass_in_a_mixture() -> None:
    components = [pm.DiracDelta.dist(0.0), pm.Normal.dist(0.0, 1.0)]
    pm.Mixture("spike", [0.5, 0.5], components)


UNSUPPORTED = [
    (_unregistered, ValueError, "log density of variable 'y' depends on a random variable that"),
    (_unregistered_parent, ValueError, "log density of variable 'x' depends on a random"),
    (_unregistered_in_a_potential, ValueError, "Potential 'more' depends on a random variable"),
    (_minibatch_in_a_potential, NotImplementedError, "Potential 'more' is a minibatch"),
    (_point_mass_in_a_mixture, NotImplementedError, "'spike' has a prior with both a density and"),
    (
        lambda: pm.Censored("cut", pm.Normal.dist(), lower=0.0, upper=None),
        NotImplementedError,
        "'cut' has a prior with both a density and point masses",
    ),
    (
        lambda: pm.HurdleGamma("hurdle", 0.5, alpha=1.0, beta=2.0),
        NotImplementedError,
        "'hurdle' has a prior with both a density and point masses",
    ),
    (lambda: pm.Flat("x"), ValueError, "'x' has the improper prior pm.Flat"),
    (lambda: pm.HalfFlat("scale"), ValueError, "'scale' has the improper prior pm.HalfFlat"),
    (_minibatch, NotImplementedError, "'y' is a minibatch or has a `total_size`"),
    (_rescaled, NotImplementedError, "'y' is a minibatch or has a `total_size`"),
    (_simulator, NotImplementedError, "'s' is a pm.Simulator.*pm.sample_smc"),
    (_no_draws, NotImplementedError, "random"),
]


# PyMC 6 warns about its own simulator.
@pytest.mark.filterwarnings("ignore:RandomVariable Ops will stop hiding:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:No safe default transform:UserWarning")
@pytest.mark.parametrize(("declare", "error", "message"), UNSUPPORTED)
def test_unsupported_models(declare: Callable, error: type, message: str) -> None:
    with pm.Model() as model:
        declare()
    with pytest.raises(error, match=message):
        pma.compile_model(model)
