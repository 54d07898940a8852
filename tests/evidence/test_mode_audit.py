"""Shares of modes by importance sampling against those among draws."""

import dataclasses

import numpy as np
import pytest

from pymc_anneal.evidence.mode_audit import ModeAudit

# A mode of 0.3 % by importance sampling and 1.2 % of the draws, as once found in eight schools.
SMALL = ModeAudit(
    centre=np.zeros((2, 1)),
    log_mass=np.log([0.9971, 0.0029]),
    share=np.array([0.9971, 0.0029]),
    share_mcse=np.array([0.0009, 0.0009]),
    ess=np.array([743.0, 9.7]),
    rest_ess=np.array([9.7, 743.0]),
    among_draws=np.array([0.9883, 0.0117]),
    among_draws_mcse=np.array([0.0017, 0.0017]),
)


def test_a_few_draws_of_a_small_mode_do_not_accuse_the_large_one() -> None:
    assert not SMALL.missed.any()


def test_many_draws_do() -> None:
    audit = dataclasses.replace(SMALL, rest_ess=np.array([500.0, 743.0]))
    assert audit.missed.tolist() == [True, False]


@pytest.mark.parametrize("rest_ess", [9.7, 100.0])
def test_a_mode_without_draws_is_missed_however_few_draws_the_others_have(rest_ess) -> None:
    audit = dataclasses.replace(
        SMALL,
        share=np.array([0.7, 0.3]),
        share_mcse=np.array([0.05, 0.05]),
        rest_ess=np.array([rest_ess, 743.0]),
        among_draws=np.array([0.0, 1.0]),
        among_draws_mcse=np.array([0.001, 0.001]),
    )
    assert audit.missed.tolist() == [True, False]


def test_a_single_mode_is_not_missed() -> None:
    one = {f.name: getattr(SMALL, f.name)[:1] for f in dataclasses.fields(SMALL)}
    one |= {"share": np.ones(1), "rest_ess": np.zeros(1), "among_draws": np.ones(1)}
    assert not ModeAudit(**one).missed.any()
