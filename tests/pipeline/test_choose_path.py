"""The path of a run: by name, as an object, or the cheaper of two."""

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from pymc_anneal.pipeline.choose_path import (
    AutoPath,
    GeometricChoice,
    GivenPath,
    check_ends,
    resolve_path,
)
from tests.cases import log_gamma_terms
from tests.pipeline.conflict import conflict, is_near, run_along

PATH = pma.GeometricPath(log_gamma_terms)


class TestResolvePath:
    @pytest.mark.parametrize(
        ("name", "choice"),
        [
            ("geometric", GeometricChoice()),
            ("moment", pma.MomentAveragedPath()),
            ("auto", AutoPath()),
        ],
    )
    def test_names(self, name: str, choice) -> None:
        assert resolve_path(name) == choice

    def test_choices_with_settings(self) -> None:
        choice = pma.MomentAveragedPath("squares")
        assert resolve_path(choice) is choice

    def test_objects(self) -> None:
        assert resolve_path(PATH) == GivenPath(PATH)

    def test_unknown_names(self) -> None:
        with pytest.raises(ValueError, match=r"Unknown `path` 'arithmetic'; expected one of \['au"):
            resolve_path("arithmetic")

    def test_other_objects(self) -> None:
        with pytest.raises(TypeError, match=r"`path` is a int without the methods \['evaluate'"):
            resolve_path(3)


def rooted(x, beta):
    """The likelihood raised to ``beta^2``."""
    log_prior, log_likelihood = conflict().log_terms(x)
    return log_prior + beta**2 * log_likelihood


class TestGivenPath:
    @pytest.mark.slow
    def test_a_path_of_the_user(self) -> None:
        idata = run_along(pma.CustomPath(rooted))
        assert is_near(idata)
        assert group(idata, "evidence").attrs["path"] == "CustomPath"

    def test_it_has_to_end_at_the_posterior(self) -> None:
        terms = conflict().log_terms
        wrong = pma.CustomPath(lambda x, beta: terms(x)[0] + 0.9 * beta * terms(x)[1])
        with pytest.raises(ValueError, match=r"`path` is .* at beta = 1 .* likelihood is"):
            check_ends(wrong, conflict())

    def test_it_has_to_start_at_the_prior(self) -> None:
        terms = conflict().log_terms
        wrong = pma.CustomPath(lambda x, beta: 2 * terms(x)[0] + beta * (terms(x)[1] - terms(x)[0]))
        with pytest.raises(ValueError, match=r"`path` is .* at beta = 0 .* log prior is"):
            check_ends(wrong, conflict())

    def test_it_goes_with_no_other_reference(self) -> None:
        reference = pma.GaussianReference(np.zeros(2), np.ones(2))
        with pytest.raises(ValueError, match="an object passed as `path` has to start from the pr"):
            run_along(pma.CustomPath(rooted), reference=reference)


class TestAuto:
    @pytest.mark.slow
    def test_both_costs_are_recorded(self) -> None:
        idata = run_along("auto", target_mcse=0.01)
        attrs = group(idata, "evidence").attrs
        assert is_near(idata)
        assert "geometric" in attrs["path_costs"]
        assert "moment" in attrs["path_costs"] or attrs["path_rejected_because"]

    def test_a_short_run_tries_no_second_path(self) -> None:
        idata = run_along("auto", draws=25)
        attrs = group(idata, "evidence").attrs
        assert is_near(idata)
        assert "too short for another to pay" in attrs["path_rejected_because"]
        assert attrs["path"] == "GeometricPath"

    def test_the_geometric_run_has_the_same_bits(self) -> None:
        runs = [group(run_along(path, draws=25), "annealing") for path in ("auto", "geometric")]
        np.testing.assert_array_equal(runs[0]["log_weight"], runs[1]["log_weight"])
