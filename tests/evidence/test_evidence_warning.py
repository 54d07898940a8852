"""Estimates that are not trusted end with a warning of their own category."""

import warnings

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.evidence.verdict import Verdict, warn_unless_trusted
from tests.evidence.test_bridge_sampling import posterior


@pytest.fixture(scope="module")
def model() -> pma.CompiledModel:
    with pm.Model() as built:
        x = pm.Normal("x", 0, 10, shape=3)
        pm.Normal("y", x, 0.1, observed=[1.0, 2.0, 3.0])
    return pma.compile_model(built)


ONE_STEP = {"steps": 1, "reference": "prior", "transition": pma.RandomWalkMetropolis(0.1)}


@pytest.mark.slow
def test_of_sample_ais(model) -> None:
    with pytest.warns(
        pma.EvidenceWarning, match="log evidence .* error not known: do not trust"
    ) as caught:
        pma.sample_ais(model=model, progressbar=False, random_seed=1, **ONE_STEP)
    assert caught[0].filename == __file__


@pytest.mark.slow
def test_switched_off(model) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pma.sample_ais(model=model, progressbar=False, random_seed=1, warnings=False, **ONE_STEP)


def test_none_of_a_trusted_estimate(model) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        idata = pma.sample_ais(model=model, progressbar=False, random_seed=1)
    assert pma.log_evidence(idata).verdict.trusted


def test_of_bridge_evidence(model) -> None:
    rng = np.random.default_rng(0)
    walk = posterior(x=np.cumsum(0.01 * rng.normal(size=(2, 400, 3)), axis=1) + [1, 2, 3])
    with pytest.warns(pma.EvidenceWarning, match="log evidence .* error not known: do not trust"):
        pma.bridge_evidence(walk, model=model, random_seed=1)


def test_of_a_comparison(model) -> None:
    found = pma.log_evidence(pma.sample_ais(model=model, progressbar=False, random_seed=1))
    low, high = found.log_evidence - 2, found.log_evidence + 2
    wide = replace(found, interval=(low, high), mcse=1.0)
    with pytest.warns(pma.EvidenceWarning, match="comparison of models: more draws needed"):
        pma.compare({"a": wide, "b": wide})


def test_they_can_be_filtered_by_category() -> None:
    assert issubclass(pma.EvidenceWarning, UserWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", pma.EvidenceWarning)
        warn_unless_trusted(Verdict("do not trust", ("a reason",)), "log evidence 1 nats")
