"""`compare` in ArviZ's habits: names of columns, a reference, decimals."""

import warnings

import arviz as az
import numpy as np
import pytest

from scipy.stats import norm

import pymc_anneal as pma

from tests.results.test_plot_compare import DOUBT, evidence, labels

MODELS = {"null": evidence(-7.0, 0.05), "a": evidence(-3.0), "b": evidence(-3.1, 0.2)}


def test_names_are_those_of_arviz() -> None:
    rng = np.random.default_rng(1)
    draws = {
        name: {
            "posterior": {"mu": rng.normal(size=(4, 100))},
            "log_likelihood": {"y": rng.normal(-1, 0.1, size=(4, 100, 120))},
        }
        for name in ("a", "b")
    }
    if az.__version__.startswith("0."):
        runs = {name: az.from_dict(**groups) for name, groups in draws.items()}
    else:
        runs = {name: az.from_dict(groups) for name, groups in draws.items()}
    with warnings.catch_warnings():  # an older ArviZ with a newer pandas
        warnings.simplefilter("ignore")
        theirs = set(az.compare(runs).columns)
    ours = set(pma.compare(MODELS).arviz.columns)
    assert {"rank", "se", "dse", "weight"} <= theirs & ours
    assert ours - theirs <= {"log_evidence", "log_evidence_diff", "warning", "p_worse"}


def test_against_the_best() -> None:
    table = pma.compare(MODELS).arviz
    assert table.index.tolist() == ["a", "b", "null"]
    np.testing.assert_allclose(table["log_evidence_diff"], [0, -0.1, -4])
    np.testing.assert_allclose(table["dse"], [0, np.hypot(0.1, 0.2), np.hypot(0.1, 0.05)])
    np.testing.assert_allclose(table["se"], [0.1, 0.2, 0.05])
    expected = norm.cdf(0.1 / np.hypot(0.1, 0.2))
    assert table.loc["b", "p_worse"] == pytest.approx(expected)
    assert np.isnan(table.loc["a", "p_worse"])
    assert not table["warning"].any()
    assert table["weight"].sum() == pytest.approx(1)


def test_against_a_reference() -> None:
    found = pma.compare(MODELS, reference="null")
    np.testing.assert_allclose(found.details["log_bayes_factor"], [4, 3.9, 0])
    assert found.details.loc["null", "log_bayes_factor_mcse"] == 0
    low, high = found.details.loc["a", ["log_bayes_factor_lower", "log_bayes_factor_upper"]]
    assert (low, high) == pytest.approx((4 - np.hypot(0.2, 0.1), 4 + np.hypot(0.2, 0.1)))
    assert found.arviz.loc["a", "p_better"] == pytest.approx(1)
    assert found.verdict == pma.compare(MODELS).verdict
    assert "log BF against null" in repr(found)
    axis = pma.plot_compare(found)[1]
    assert axis.get_xlabel().startswith("log Bayes factor against null (nats)")
    assert labels(pma.plot_compare(found)[0]) == ["a", "b", "null"]


def test_a_reference_that_is_not_trusted_gives_no_factors() -> None:
    models = {**MODELS, "null": evidence(-7.0, 0.05, DOUBT)}
    found = pma.compare(models, reference="null", warnings=False)
    assert [cells[4] for cells in found._cells(lambda status, _: status)] == ["-"] * 3
    assert found.arviz["warning"].to_dict() == {"a": False, "b": False, "null": True}


def test_decimals() -> None:
    raw, one = pma.compare(MODELS), pma.compare(MODELS, round_to=1)
    assert raw.table.equals(pma.compare(MODELS, round_to="none").table)
    assert one.table.loc["b", "probability"] == round(raw.table.loc["b", "probability"], 1)
    assert one.arviz.loc["b", "dse"] == 0.2
    assert one.details.equals(raw.details)
    assert "-4.0" in repr(one)
    assert "-4.00" in repr(raw)
    assert repr(float(raw.table.loc["b", "probability"])) in repr(
        pma.compare(MODELS, round_to="none")
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reference": "c"}, r"`reference` is 'c', expected the name of a model: one of \['null'"),
        ({"round_to": "two"}, "`round_to` is 'two', expected a number of decimals"),
        ({"round_to": -1}, "`round_to` is -1"),
    ],
)
def test_errors(settings, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pma.compare(MODELS, **settings)
