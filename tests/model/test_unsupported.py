"""Models that cannot be annealed raise errors that name the variable."""

import warnings

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


def _partly_observed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
        data = np.ma.masked_invalid([[0.3, np.nan], [1.0, 2.0]])
        pm.MvNormal("pair", np.zeros(2), np.eye(2), observed=data)


def _no_draws() -> None:
    pm.CustomDist("mine", 1.0, logp=lambda value, mu: -0.5 * (value - mu) ** 2)


UNSUPPORTED = [
    (lambda: pm.Flat("x"), ValueError, "'x' has the improper prior pm.Flat"),
    (lambda: pm.HalfFlat("scale"), ValueError, "'scale' has the improper prior pm.HalfFlat"),
    (_minibatch, NotImplementedError, "'y' is a minibatch or has a `total_size`"),
    (_rescaled, NotImplementedError, "'y' is a minibatch or has a `total_size`"),
    (_simulator, NotImplementedError, "'s' is a pm.Simulator.*pm.sample_smc"),
    (_partly_observed, NotImplementedError, "'pair.*' holds missing values of a multivariate"),
    (_no_draws, NotImplementedError, "random"),
]


# PyMC 6 warns about its own simulator.
@pytest.mark.filterwarnings("ignore:RandomVariable Ops will stop hiding:DeprecationWarning")
@pytest.mark.parametrize(("declare", "error", "message"), UNSUPPORTED)
def test_unsupported_models(declare: Callable, error: type, message: str) -> None:
    with pm.Model() as model:
        declare()
    with pytest.raises(error, match=message):
        pma.compile_model(model)
