"""Necks that no particle of a survey enters: funnels written as potentials, whose evidence is one.

Before the way up was looked at (`adaptation/missing.py`), half of such runs were trusted, and up to
1.1 nats too low.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_anneal as pma

# Standard deviation of the normal priors that a potential replaces by the density of the funnel.
WIDE = 50.0
# The largest number of standard errors of a trusted run.
LARGEST = 4.0
QUIET = {"progressbar": False, "warnings": False}


def log_normal(x: pt.TensorVariable, mean: object, scale: object) -> pt.TensorVariable:
    return -0.5 * ((x - mean) / scale) ** 2 - pt.log(scale) - 0.5 * np.log(2 * np.pi)


def replace_prior(x: pt.TensorVariable, log_density: pt.TensorVariable) -> None:
    pm.Potential("density", log_density - log_normal(x, 0.0, WIDE).sum())


def straight() -> pm.Model:
    with pm.Model() as model:
        v, x = pm.Normal("v", 0, 3), pm.Normal("x", 0, WIDE, shape=9)
        replace_prior(x, log_normal(x, 0.0, pt.exp(v / 2)).sum())
    return model


def curved() -> pm.Model:
    with pm.Model() as model:
        v, x = pm.Normal("v", 0, 3), pm.Normal("x", 0, WIDE, shape=6)
        replace_prior(x, log_normal(x, 3 * pt.sin(v), pt.exp(v / 2)).sum())
    return model


def rotated() -> pm.Model:
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0]
    with pm.Model() as model:
        z = pm.Normal("z", 0, WIDE, shape=8)
        v, x = pt.dot(turn[:1], z)[0], pt.dot(turn[1:], z)
        replace_prior(z, log_normal(v, 0.0, 3.0) + log_normal(x, 0.0, pt.exp(v / 2)).sum())
    return model


MODELS = {"straight": straight, "curved": curved, "rotated": rotated}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_trusted_runs_are_right(name: str) -> None:
    scores = []
    for seed in range(3):
        run = pma.sample_ais(model=MODELS[name](), random_seed=seed, **QUIET)
        found = pma.log_evidence(run)
        if found.verdict.status == "trust":
            scores.append(found.log_evidence / found.mcse)
    assert scores
    assert np.abs(scores).max() < LARGEST
