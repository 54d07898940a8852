"""The record of a Bayes factor: which model comes first, and what is said of it."""

import numpy as np
import pytest

from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.results.bayes_factor import (
    LogBayesFactor,
    describe_factor,
    factor_range,
    factor_text,
)

TRUST = Verdict("trust")


def factor(value: float, half: float = 0.1, verdict: Verdict = TRUST) -> LogBayesFactor:
    return LogBayesFactor(
        value, half / 1.96, (value - half, value + half), verdict, models=("pooled", "varying")
    )


def test_numbers() -> None:
    found = factor(np.log(20))
    assert found.bayes_factor == pytest.approx(20)
    assert found.log10 == pytest.approx(np.log10(20))
    assert factor(1e4).bayes_factor == np.inf


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "the data favour pooled over varying by 7.39 : 1 (95 % interval 6.69 to 8.17)"),
        (-2.0, "the data favour varying over pooled by 7.39 : 1 (95 % interval 6.69 to 8.17)"),
        (0.05, "the data favour neither: pooled against varying 1.05 : 1 (95 % interval 0.951 to"),
        (-0.05, "the data favour neither: varying against pooled 1.05 : 1 (95 % interval 0.951"),
    ],
)
def test_the_favoured_model_comes_first(value, text) -> None:
    assert text in factor(value).favoured
    assert text in repr(factor(value))


def test_both_models_are_named() -> None:
    assert repr(factor(2.0)).splitlines() == [
        "log Bayes factor 2.000 +- 0.051 nats (95 % interval 1.900 to 2.100), "
        "pooled against varying",
        "the data favour pooled over varying by 7.39 : 1 (95 % interval 6.69 to 8.17)",
        "verdict: trust",
    ]


def test_nothing_is_said_of_a_factor_that_is_not_trusted() -> None:
    doubtful = factor(2.0, verdict=Verdict("do not trust", ("k",)))
    for text in (repr(doubtful), doubtful._repr_html_()):
        assert "favour" not in text
        assert "0.051" not in text
        assert "interval" not in text
        assert "error not known" in text


def test_the_sign_turns_with_the_order() -> None:
    a, b = ("a", "b"), ("b", "a")
    assert describe_factor(1.0, (0.5, 1.5), a) == describe_factor(-1.0, (-1.5, -0.5), b)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.log(4525.4), "4525"),
        (np.log(17.31), "17.3"),
        (np.log(0.05123), "0.0512"),
        (np.log(10) * 12.6, "10^12.6"),
        (-np.inf, "0"),
        (np.inf, "infinity"),
        (np.nan, "unknown"),
    ],
)
def test_text_of_a_factor(value, text) -> None:
    assert factor_text(value) == text


def test_ends_of_a_narrow_interval_differ() -> None:
    assert factor_range((np.log(1.5861), np.log(1.5944))) == "1.586 to 1.594"
    assert factor_range((7.371 * np.log(10), 7.384 * np.log(10))) == "10^7.37 to 10^7.38"


def test_words() -> None:
    assert factor(np.log(20), 0.3).words() == "positive to strong"
    assert factor(-np.log(20), 0.01).words("jeffreys") == "strong"
    # An interval around zero begins with the weakest word, whatever its longer end is.
    assert factor(0.2, 3.0).words() == "not worth more than a bare mention to strong"
    with pytest.raises(ValueError, match="expected one of"):
        factor(1.0).words("deciban")


def test_no_scale_is_in_the_text_unasked() -> None:
    assert "strong" not in repr(factor(np.log(50)))
