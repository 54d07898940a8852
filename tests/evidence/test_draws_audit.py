"""Draws of a posterior that were made elsewhere: missed modes, and chains that disagree."""

import re

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.evidence.draws_audit import judge_draws, look_for_missed_modes
from pymc_anneal.model.log_concavity import is_log_concave_model
from pymc_anneal.results.container import dataset

SEED = np.random.SeedSequence(1)


def square() -> pm.Model:
    """A square with roots near -2 and 2, which hold 0.12 and 0.88 of the posterior."""
    with pm.Model() as model:
        x = pm.Normal("x", 0.5, 1)
        pm.Normal("y", x**2, 0.1, observed=4.0)
    return model


@pytest.fixture(scope="module")
def compiled():
    return pma.compile_model(square())


def draws(share: float = 0.88, seed: int = 1) -> np.ndarray:
    """Draws of both roots, a share of them of the larger one, shape (4, 500, 1)."""
    rng = np.random.default_rng(seed)
    root = np.sqrt(4 + 0.1 * rng.normal(size=(4, 500)))
    return np.where(rng.random(root.shape) < share, root, -root)[..., None]


def posterior(x: np.ndarray):
    return container({"posterior": dataset({"x": x[..., 0]}, ("chain", "draw"))})


class TestModes:
    def test_draws_of_both_are_not_doubted(self, compiled) -> None:
        assert look_for_missed_modes(compiled, draws(), SEED) == []

    def test_a_mode_that_all_chains_missed(self, compiled) -> None:
        (doubt,) = look_for_missed_modes(compiled, draws(share=1.0), SEED)
        assert "a mode at x = -" in doubt
        assert "sample_ais" in doubt

    def test_chains_of_different_modes(self, compiled) -> None:
        x = np.abs(draws()) * np.array([1, 1, -1, -1])[:, None, None]
        doubts = look_for_missed_modes(compiled, x, SEED)
        (disagreement,) = (d for d in doubts if d.startswith("the chains disagree"))
        assert re.search(r"share of the mode at x = (1\.99|2)", disagreement)

    def test_one_chain_has_nobody_to_disagree_with(self, compiled) -> None:
        assert look_for_missed_modes(compiled, draws().reshape(1, -1, 1), SEED) == []

    def test_nothing_is_looked_for_in_a_log_concave_posterior(self, monkeypatch) -> None:
        with pm.Model() as model:
            mu = pm.Normal("mu", 0, 1)
            pm.Normal("y", mu, 1, observed=[0.3, 0.9])
        plain = pma.compile_model(model)
        assert is_log_concave_model(plain.model)
        monkeypatch.setattr("pymc_anneal.evidence.draws_audit.fit_to_particles", None)
        assert look_for_missed_modes(plain, np.zeros((4, 100, 1)), SEED) == []

    def test_nor_where_no_mixture_can_be_fitted(self) -> None:
        with pm.Model() as model:
            k = pm.Bernoulli("k", 0.5)
            pm.Normal("y", k, 1, observed=0.3)
        assert look_for_missed_modes(pma.compile_model(model), np.zeros((4, 100, 1)), SEED) == []


class TestDivergences:
    """Marked as by NUTS, whose trajectories diverge at the neck that the draws then miss."""

    @staticmethod
    def of_nuts(diverging: int):
        flags = np.arange(2000).reshape(4, 500) < diverging
        stats = dataset({"diverging": flags}, ("chain", "draw"))
        return container({"posterior": posterior(draws())["posterior"], "sample_stats": stats})

    def test_a_few_are_usual(self, compiled) -> None:
        assert judge_draws(self.of_nuts(10), compiled, draws(), SEED) == {}

    def test_many_are_doubted(self, compiled) -> None:
        (reason,) = judge_draws(self.of_nuts(11), compiled, draws(), SEED)["draws"].reasons
        assert reason.startswith("11 of the 2000 transitions diverged")

    def test_a_bridge_from_them(self, compiled) -> None:
        for diverging, status in ((10, "trust"), (11, "do not trust")):
            found = pma.bridge_evidence(self.of_nuts(diverging), model=compiled, warnings=False)
            assert found.verdict.status == status

    def test_other_samplers_note_none(self, compiled) -> None:
        stats = dataset({"accept": np.ones((4, 500))}, ("chain", "draw"))
        idata = container({"posterior": posterior(draws())["posterior"], "sample_stats": stats})
        assert judge_draws(idata, compiled, draws(), SEED) == {}


class TestVerdict:
    def test_draws_of_a_run_come_with_its_own(self, compiled) -> None:
        for status, expected in (("trust", {}), ("more steps needed", {})):
            own = dataset(
                {"mcse": np.float64(0.1)},
                (),
                attrs={"verdict_status": status, "verdict_reasons": "[]"},
            )
            idata = container({"posterior": posterior(draws(1.0))["posterior"], "evidence": own})
            assert judge_draws(idata, compiled, draws(1.0), SEED) == expected
        own = own.assign_attrs(verdict_status="do not trust", verdict_reasons='["k"]')
        idata = container({"posterior": posterior(draws())["posterior"], "evidence": own})
        assert judge_draws(idata, compiled, draws(), SEED)["draws"].reasons == ("k",)

    @pytest.mark.parametrize(
        "ask",
        [
            lambda idata, model: pma.savage_dickey(idata, {"x": 2.0}, model=model).verdict,
            lambda idata, model: pma.prior_sensitivity(
                idata, {"x": pm.Normal.dist(0.4, 1)}, model=model
            )["verdict"].iloc[0],
            lambda idata, model: (
                pma.constraint_bayes_factor(
                    idata,
                    pma.Between("x", lower=0.0),
                    model=model,
                    log_prior_mass=np.log(0.69),
                    progressbar=False,
                    warnings=False,
                ).verdict
            ),
            lambda idata, model: (
                pma.sample_bayes_factor(
                    model, wider(), draws_a=idata, progressbar=False, warnings=False
                ).verdict
            ),
        ],
        ids=["savage_dickey", "prior_sensitivity", "constraint", "sample_bayes_factor"],
    )
    def test_what_is_computed_from_draws_inherits_it(self, compiled, ask) -> None:
        verdict = str(ask(posterior(draws(share=1.0)), compiled))
        assert verdict.startswith("do not trust")
        assert "a mode at x = -" in verdict


def wider() -> pm.Model:
    """The same likelihood with another prior."""
    with pm.Model() as model:
        x = pm.Normal("x", 0.5, 1.2)
        pm.Normal("y", x**2, 0.1, observed=4.0)
    return model
