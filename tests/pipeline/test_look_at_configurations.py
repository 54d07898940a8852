"""Configurations of discrete variables in a run: a bound below it, and a start."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation import configurations
from pymc_anneal.base.arviz_compat import group
from pymc_anneal.pipeline import look_at_configurations as look
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.options import Options
from pymc_anneal.pipeline.session import Session, open_session
from pymc_anneal.pipeline.settings import Settings
from pymc_anneal.pipeline.start import Request
from tests import indicators
from tests.problems import ising

QUICK = {"draws": 250, "chains": 2, "random_seed": 1, "progressbar": False, "warnings": False}


def run(model: pm.Model | None = None, **settings):
    moved = {"discrete": "sample", **QUICK}
    return pma.sample_ais(model=model or indicators.build(), **{**moved, **settings})


def without_joint_moves(model: pm.Model) -> pma.Composition:
    parts = pma.default_transition(model=model).parts
    return pma.Composition([p for p in parts if not isinstance(p, pma.JointFlip)])


@pytest.fixture(scope="module")
def result():
    return run()


class TestStart:
    @pytest.mark.slow
    def test_the_run_is_right(self, result) -> None:
        found = pma.log_evidence(result)
        assert abs(found.log_evidence - indicators.log_evidence()) < 4 * found.mcse
        assert found.mcse < 0.05
        assert found.verdict.trusted
        assert group(result, "evidence").attrs["reference"] == "configurations"

    @pytest.mark.slow
    def test_draws_have_the_shares_of_the_subsets(self, result) -> None:
        on = np.asarray(group(result, "posterior")["on"]).reshape(-1, 4)
        exact = np.exp(indicators.log_masses() - indicators.log_evidence())
        pair = np.array([number & 3 == 3 for number in range(16)])
        share = on[:, :2].all(axis=1).mean()
        np.testing.assert_allclose(share, exact[pair].sum(), atol=0.02)

    @pytest.mark.slow
    def test_what_a_survey_finds_beside_them_leads_to_the_prior(self, monkeypatch) -> None:
        # A search that misses the subset of all the mass, and says that it is complete.
        def wrong(*args):
            found = find(*args)
            weight = np.array(found.reference.weight)
            weight[weight.argmax()] = 1e-30
            reference = replace(found.reference, weight=weight / weight.sum())
            return replace(found, reference=reference)

        find = look.find_configurations
        monkeypatch.setattr(look, "find_configurations", wrong)
        monkeypatch.setattr(look, "_PRIOR_SHARE", 1e-9)
        with pm.Model() as model:
            on = pm.Bernoulli("on", 0.5, shape=3)
            x = pm.Normal("x")
            pm.Normal("y", x + on.sum(), 0.3, observed=[3.1, 3.3, 2.9])
        attrs = group(run(model), "evidence").attrs
        assert attrs["reference"] == "prior"
        assert "the configurations miss a part" in attrs["path_rejected_because"]

    @pytest.mark.parametrize("complete", [True, False])
    @pytest.mark.parametrize("objection", ["", "a hole"])
    def test_when_it_is_taken(self, monkeypatch, complete: bool, objection: str) -> None:
        target = ModelTarget(pma.compile_model(ising(2).build()))
        prior = target.candidate()
        position = prior.draw_reference(np.random.SeedSequence(1), 64)
        pilot = SimpleNamespace(position=position)
        monkeypatch.setattr(Session, "survey", lambda *args: prior.with_pilot(pilot))
        monkeypatch.setattr(look, "pilot_of_fit", lambda *args: None)
        hearing = SimpleNamespace(objection=objection)
        monkeypatch.setattr(look, "hear_witnesses", lambda *args: hearing)
        with open_session(target, Settings(50, 2), random_seed=1, progressbar=False) as session:
            found = look.look_at_configurations(session, target.compiled)
            found = replace(found, complete=complete)
            request = Request(target, Options(pma.HMC()), True, found)
            choice = look.start_from_configurations(session, request).choice
        taken = complete and not objection
        assert choice.chosen.reference == ("configurations" if taken else "prior")
        assert bool(choice.rejected_because) != taken

    @pytest.mark.slow
    def test_an_unfinished_search_leads_to_the_prior(self, monkeypatch) -> None:
        monkeypatch.setattr(configurations, "_MOST_PEAKS", 3)
        evidence = group(run(), "evidence")
        assert evidence.attrs["reference"] == "prior"


class TestWitness:
    def test_a_run_below_the_bound_is_not_trusted(self) -> None:
        model = indicators.build()
        result = run(model, reference="prior", transition=without_joint_moves(model))
        found = pma.log_evidence(result)
        assert found.log_evidence < indicators.log_evidence() - 1
        assert found.verdict.status == "do not trust"
        assert "configurations of the discrete variables hold" in found.verdict.reasons[0]
        on = group(result, "posterior")["on"]
        assert on.dtype == np.int64
        assert set(np.unique(on)) == {0, 1}

    @pytest.mark.slow
    def test_it_is_named_with_its_bound(self, result) -> None:
        kinds = {w.kind: w for w in pma.log_evidence(result).witnesses}
        assert kinds.keys() == {"held-out particles", "configurations, at least"}
        bound = kinds["configurations, at least"]
        assert abs(bound.log_evidence - indicators.log_evidence()) < 4 * bound.mcse

    def test_errors_of_the_bound_count(self) -> None:
        class Found:
            number, log_evidence, mcse = 7, -1.0, 0.5

        assert look.doubt_by_configurations(Found, -3.1)
        assert not look.doubt_by_configurations(Found, -2.9)
        assert not look.doubt_by_configurations(None, -2.9)


class TestSentence:
    def test_of_a_complete_search(self, monkeypatch) -> None:
        class Found:
            number, log_evidence, pairs, every, complete = 7, -1.0, True, False, True

        monkeypatch.setattr(look, "explain_no_search", lambda *args: "")
        compiled = pma.compile_model(ising(2).build())
        said = look.say_what_configurations_left_out(None, compiled, Found, -0.5)
        assert said == (
            "configurations more than two changes of discrete variables away from the 7 that were "
            "weighed may be missed"
        )
        Found.pairs, Found.complete = False, False
        said = look.say_what_configurations_left_out(None, compiled, Found, -0.5)
        assert "more than a change of" in said
        assert "weighed, which hold 0.61 of the evidence, may" in said

    def test_of_all_there_are(self, monkeypatch) -> None:
        class Every:
            every = True

        monkeypatch.setattr(look, "explain_no_search", lambda *args: "")
        alone, beside = pma.compile_model(ising(2).build()), pma.compile_model(indicators.build())
        assert look.say_what_configurations_left_out(None, alone, Every, 0.0) == ""
        said = look.say_what_configurations_left_out(None, beside, Every, 0.0)
        assert said.startswith("another peak of the continuous variables")

    @pytest.mark.slow
    def test_of_a_part(self, monkeypatch) -> None:
        monkeypatch.setattr(configurations, "_MOST_DENSITIES", 4)
        verdict = str(pma.log_evidence(run(ising(2).build())).verdict)
        assert "which hold 0." in verdict

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("settings", "reason"),
        [({"audit": "off"}, "audit='off'"), ({"steps": 20}, "the number of steps was given")],
    )
    def test_where_nobody_looked(self, settings, reason: str) -> None:
        found = pma.log_evidence(run(ising(2).build(), **settings))
        assert found.witnesses == ()
        assert f"modes were not looked for: {reason}" in str(found.verdict)

    def test_many_continuous_coordinates(self) -> None:
        with pm.Model() as model:
            k = pm.Bernoulli("k", 0.5)
            x = pm.Normal("x", shape=33)
            pm.Normal("y", x + k, 1.0, observed=np.zeros(33))
        compiled = pma.compile_model(model)
        settings = type("Settings", (), {"audit": "auto", "fixed_steps": None})
        session = type("Session", (), {"settings": settings})
        assert "33 continuous coordinates" in look.explain_no_search(session, compiled)
