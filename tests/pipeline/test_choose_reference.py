"""References other than the prior: chosen by the pilot, given, or refused."""

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from tests.adaptation.vague_regression import vague_regression
from tests.model.discrete_model import discrete_model
from tests.problems import by_name


@pytest.fixture(scope="module")
def vague():
    regression = vague_regression(d=10)
    return pma.compile_model(regression.model), regression.log_evidence


class TestRuns:
    @pytest.mark.parametrize(
        "reference",
        [*(pytest.param(r, marks=pytest.mark.slow) for r in ("pilot", "laplace")), "auto"],
    )
    def test_vague_prior(self, reference, vague) -> None:
        # With a prior of sd 100 the path from a fitted reference is many times shorter.
        model, log_evidence = vague
        idata = pma.sample_ais(
            model=model, reference=reference, progressbar=False, random_seed=[1, 2]
        )
        found = pma.log_evidence(idata)
        assert found.verdict.trusted
        assert abs(found.log_evidence - log_evidence) < 4 * found.mcse
        assert found.barrier < 3
        assert group(idata, "evidence").attrs["reference"] != "prior"

    @pytest.mark.slow
    def test_fitted_to_draws(self) -> None:
        problem = by_name("eight_schools")
        model = pma.compile_model(problem.build())
        short = {"steps": 40, "transition": pma.HMC(0.4, 4, 1.0), "schedule": "sigmoid"}
        idata = pma.sample_ais(model=model, progressbar=False, random_seed=1, **short)
        reference = pma.fit_reference(idata, model=model, family="student_t")
        again = pma.sample_ais(
            model=model, reference=reference, progressbar=False, random_seed=2, **short
        )
        found = pma.log_evidence(again)
        assert abs(found.log_evidence - problem.log_evidence) < 4 * found.mcse
        assert group(again, "evidence").attrs["reference"] == "StudentTReference"

    @pytest.mark.slow
    def test_with_reverse_runs(self, vague) -> None:
        model, log_evidence = vague
        idata = pma.sample_ais(
            model=model, reference="pilot", reverse_from="draws", progressbar=False, random_seed=4
        )
        found = pma.log_evidence(idata)
        assert abs(found.log_evidence - log_evidence) < 4 * found.mcse


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"reference": "posterior"}, ValueError, "Unknown `reference` 'posterior'"),
            ({"reference": 3.0}, TypeError, "without the methods"),
        ],
    )
    def test_bad_references(self, arguments, error, message) -> None:
        with pytest.raises(error, match=message):
            pma.sample_ais(model=vague_regression(d=2).model, progressbar=False, **arguments)

    def test_only_with_the_geometric_path(self) -> None:
        compiled = pma.compile_model(vague_regression(d=2).model)
        reference = pma.GaussianReference(np.zeros(2), np.ones(2))
        path = pma.ReferencePath(compiled.log_terms, reference)
        for given in (reference, "prior"):
            with pytest.raises(ValueError, match="ReferencePath, which `reference` stands for"):
                pma.sample_ais(model=compiled, path=path, reference=given, progressbar=False)

    def test_priors_without_a_normaliser(self) -> None:
        with pm.Model() as model:
            pm.VonMises("angle", 0, 1)
        with pytest.raises(NotImplementedError, match="A reference other than the prior needs"):
            pma.sample_ais(model=model, reference="pilot", progressbar=False)


class TestDiscreteVariables:
    """Fitted references are densities of real numbers."""

    @pytest.mark.parametrize(
        "reference",
        ["pilot", "laplace", pma.GaussianReference(np.zeros(6), np.ones(6))],
        ids=["pilot", "laplace", "gaussian"],
    )
    def test_references(self, reference) -> None:
        with pytest.raises(NotImplementedError, match="'z' is discrete.*prior as reference"):
            pma.sample_ais(
                model=discrete_model(), discrete="sample", reference=reference, progressbar=False
            )

    @pytest.mark.parametrize("call", [pma.fit_reference, pma.bridge_evidence])
    def test_fits(self, call) -> None:
        with pytest.raises(NotImplementedError, match="real numbers.*'z' is discrete"):
            call(None, model=discrete_model())

    def test_laplace(self) -> None:
        with pytest.raises(NotImplementedError, match="'z' is discrete"):
            pma.laplace_reference(model=discrete_model())
