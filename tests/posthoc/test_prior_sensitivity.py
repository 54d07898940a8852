"""Changes of the prior: exact changes of the evidence from one set of draws."""

from functools import partial

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.posthoc import moved_to_prior
from pymc_anneal.posthoc.prior_sensitivity import _against, prior_sensitivity
from pymc_anneal.results.bayes_factor import LogBayesFactor
from pymc_anneal.results.container import dataset
from tests.problems import log_evidence_normal_mean
from tests.results import jzs

Y = np.array([0.3, 2.9, 1.1, 4.2, 1.7, 0.8, 6.3])

# PyMC holds the parameters of a distribution in single precision: an error of 1e-8 in its density.
ROUNDING = 1e-6


def posterior(**values: np.ndarray) -> object:
    return container({"posterior": dataset(values, ("chain", "draw"))})


def normal_model() -> pm.Model:
    with pm.Model() as model:
        scale = pm.Data("scale", 2.0)
        mu = pm.Normal("mu", -1.0, scale)
        pm.Normal("y", mu, 1.5, observed=Y)
    return model


def draws(seed: int = 1) -> object:
    precision = 1 / 4 + len(Y) / 2.25
    mean = (-1 / 4 + Y.sum() / 2.25) / precision
    return posterior(mu=np.random.default_rng(seed).normal(mean, precision**-0.5, (4, 1000)))


def exact(mean: float, sd: float) -> float:
    new, old = (log_evidence_normal_mean(Y, 1.5, *prior) for prior in ((mean, sd), (-1.0, 2.0)))
    return new - old


def test_bayes_factors_by_hand(monkeypatch) -> None:
    """Errors and both sides of the intervals add up in squares."""
    own = LogBayesFactor(1.0, 0.3, (0.7, 2.2), Verdict("trust"))
    module = "pymc_anneal.posthoc.prior_sensitivity"
    monkeypatch.setattr(f"{module}.log_bayes_factor", lambda *models: own)
    monkeypatch.setattr(f"{module}.required_group", lambda *arguments: None)
    table = pd.DataFrame({"log_ratio": [0.2], "mcse": [0.4], "lower": [-0.2], "upper": [0.7]})
    row = _against(table, None, None).iloc[0]
    assert row["log_bayes_factor"] == pytest.approx(1.2)
    assert row["log_bayes_factor_mcse"] == pytest.approx(0.5)
    assert row["log_bayes_factor_lower"] == pytest.approx(1.2 - np.hypot(0.3, 0.4))
    assert row["log_bayes_factor_upper"] == pytest.approx(1.2 + np.hypot(1.2, 0.5))


class TestNormalMean:
    def test_grid_of_distributions(self) -> None:
        priors = [(-1.0, 1.0), (-1.0, 4.0), (1.0, 2.0)]
        grid = [pm.Normal.dist(*prior) for prior in priors]
        table = prior_sensitivity(draws(), {"mu": grid}, model=normal_model())
        assert table.index.tolist() == [("mu", i) for i in range(3)]
        assert (table["verdict"] == "trust").all()
        error = table["log_ratio"].to_numpy() - [exact(*prior) for prior in priors]
        assert (np.abs(error) <= 4 * table["mcse"] + ROUNDING).all()
        assert (table["mcse"] < 0.05).all()

    def test_data_and_distributions_agree(self) -> None:
        scales = [1.0, 3.0]
        by_data = prior_sensitivity(draws(), {"scale": scales}, model=normal_model())
        by_dist = prior_sensitivity(
            draws(), {"mu": {s: pm.Normal.dist(-1.0, s) for s in scales}}, model=normal_model()
        )
        np.testing.assert_allclose(by_data["log_ratio"], by_dist["log_ratio"], atol=ROUNDING)
        assert by_data.index.tolist() == [("scale", 1.0), ("scale", 3.0)]

    def test_the_same_prior_changes_nothing(self) -> None:
        table = prior_sensitivity(draws(), {"mu": pm.Normal.dist(-1.0, 2.0)}, model=normal_model())
        assert table.loc[("mu", "new"), "log_ratio"] == pytest.approx(0.0, abs=ROUNDING)
        assert table.loc[("mu", "new"), "mcse"] == 0

    def test_a_prior_out_of_reach_is_not_trusted(self) -> None:
        far = pm.Normal.dist(30.0, 0.5)
        row = prior_sensitivity(draws(), {"mu": far}, model=normal_model()).iloc[0]
        assert row["verdict"].startswith("do not trust: ratios: Pareto k of the ratios")
        assert "no draw that was moved there is near to another" in row["verdict"]
        assert "run sample_ais with this prior" in row["verdict"]

    def test_draws_of_another_posterior_are_off(self) -> None:
        shifted = posterior(mu=np.random.default_rng(1).normal(0, 0.5, (4, 1000)))
        row = prior_sensitivity(shifted, {"scale": [1.0]}, model=normal_model()).iloc[0]
        assert abs(row["log_ratio"] - exact(-1.0, 1.0)) > 4 * row["mcse"]


@pytest.mark.slow
def test_curve_of_the_sleep_data() -> None:
    """The log Bayes factor at ten scales of the prior, from draws at one of them."""
    scales = np.geomspace(0.1, 2, 10)
    table = prior_sensitivity(jzs.exact_draws(2), {"r": scales}, model=jzs.model())
    found = jzs.LOG_BAYES_FACTOR + table["log_ratio"].to_numpy()
    expected = np.array([jzs.log_bayes_factor(r) for r in scales])
    assert (table["verdict"] == "trust").sum() >= 9  # the smallest scale is at the limit
    assert (np.abs(found - expected) < 4 * table["mcse"].to_numpy()).all()


class TestHierarchy:
    """``tau ~ U(0, upper)``, ``b_i ~ N(0, tau)``: parents, transforms and shapes."""

    def model(self) -> pm.Model:
        with pm.Model() as model:
            upper = pm.Data("upper", 4.0)
            tau = pm.Uniform("tau", 0, upper)
            b = pm.Normal("b", 0, tau, shape=3)
            pm.Potential("soft", -((b.sum() / upper) ** 2))
            pm.Normal("y", b, 1, observed=[0.5, 1.0, -0.3])
        return model

    def draws(self) -> object:
        rng = np.random.default_rng(1)
        return posterior(tau=rng.uniform(0.2, 2, (2, 60)), b=rng.normal(size=(2, 60, 3)))

    @pytest.mark.slow
    def test_all_terms_that_depend_on_the_data(self) -> None:
        found = prior_sensitivity(self.draws(), {"upper": [3.0]}, model=self.model()).iloc[0]
        total = np.asarray(self.draws()["posterior"]["b"]).sum(axis=-1)
        log_ratio = np.log(4 / 3) - (total / 3) ** 2 + (total / 4) ** 2
        assert found["log_ratio"] == pytest.approx(np.log(np.exp(log_ratio).mean()), rel=1e-9)

    def test_parameters_that_are_variables_of_the_model(self) -> None:
        model = self.model()
        wider = pm.Normal.dist(0, 1.5 * model["tau"])
        found = prior_sensitivity(self.draws(), {"b": wider}, model=model).iloc[0]
        group = self.draws()["posterior"]
        tau, b = np.asarray(group["tau"]), np.asarray(group["b"])
        log_ratio = -3 * np.log(1.5) + (b**2).sum(-1) / (2 * tau**2) * (1 - 1 / 1.5**2)
        assert found["log_ratio"] == pytest.approx(np.log(np.exp(log_ratio).mean()), rel=1e-9)

    def test_a_wider_support_is_refused(self) -> None:
        with pytest.raises(ValueError, match="The new prior by 'upper' reaches beyond"):
            prior_sensitivity(self.draws(), {"upper": [5.0]}, model=self.model())
        with pytest.raises(ValueError, match="The new prior by 'tau' reaches beyond"):
            prior_sensitivity(self.draws(), {"tau": pm.HalfNormal.dist(9)}, model=self.model())


class TestSupport:
    """The likelihood may be large where none of a few hundred draws of the new prior is."""

    @pytest.fixture(autouse=True)
    def few_sweeps(self, monkeypatch) -> None:
        monkeypatch.setattr(moved_to_prior, "_SWEEPS", 6)
        monkeypatch.setattr(moved_to_prior, "_TURNS", 1)

    @staticmethod
    def change(old, new) -> pd.DataFrame:
        """Change the prior of draws that say nothing."""
        with pm.Model() as model:
            x = old("x")
            pm.Normal("y", x.sum(), 1.0, observed=0.3)
        value = pm.draw(model["x"], 200, random_seed=1)
        draws = posterior(x=value.reshape(2, 100, *value.shape[1:]))
        return prior_sensitivity(draws, {"x": new}, model=model)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (partial(pm.Uniform, lower=-1, upper=1), pm.Normal.dist(0, 0.3)),
            (partial(pm.Uniform, lower=-1, upper=1, shape=20), pm.Normal.dist(0, 0.3, shape=20)),
            (partial(pm.HalfNormal, sigma=1), pm.Normal.dist(4, 1)),
            (partial(pm.Uniform, lower=0, upper=200), pm.HalfCauchy.dist(1)),
            (partial(pm.Binomial, n=20, p=0.5), pm.Poisson.dist(2)),
        ],
    )
    def test_beyond(self, old, new) -> None:
        with pytest.raises(ValueError, match="The new prior by 'x' reaches beyond the support"):
            self.change(old, new)

    @pytest.mark.quick_cases("old0-new0", "old1-new1", "old4-new4")
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (partial(pm.Uniform, lower=-9, upper=9), pm.Normal.dist(0, 1)),
            (partial(pm.Uniform, lower=0, upper=200), pm.HalfNormal.dist(2)),
            (partial(pm.Beta, alpha=2, beta=2), pm.Uniform.dist(0.2, 0.8)),
            (partial(pm.Dirichlet, a=np.ones(3)), pm.Dirichlet.dist(np.full(3, 2.0))),
            (partial(pm.Poisson, mu=2), pm.Binomial.dist(20, 0.5)),
        ],
    )
    def test_within(self, old, new) -> None:
        assert np.isfinite(self.change(old, new)["log_ratio"]).all()


@pytest.mark.parametrize(
    ("priors", "error", "message"),
    [
        ({"nu": 3}, ValueError, r"'nu' is neither a free variable \['mu'\] nor a pm.Data"),
        ({"mu": 3}, TypeError, "The new prior of 'mu' is a int, expected a distribution"),
        ({"scale": [[1.0, 2.0]]}, ValueError, r"'scale' has shape \(2,\), expected \(\)"),
    ],
)
def test_priors_that_make_no_sense(priors, error, message) -> None:
    with pytest.raises(error, match=message):
        prior_sensitivity(draws(), priors, model=normal_model())


def test_a_scale_is_not_rounded() -> None:
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0, pm.Data("scale", np.array(1))), 1, observed=0.0)
    with pytest.raises(ValueError, match="'scale' of the model is of type int"):
        prior_sensitivity(draws(), {"scale": [2.9]}, model=model)


def test_observed_data_are_no_prior() -> None:
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, 1, observed=pm.Data("data", [1.0, 2.0]))
    with pytest.raises(ValueError, match="'data' is observed"):
        prior_sensitivity(draws(), {"data": [[1.0, 3.0]]}, model=model)


def test_restricted_priors_are_refused() -> None:
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=2, transform=pm.distributions.transforms.ordered)
        pm.Normal("y", mu, 1, observed=[0.0, 1.0])
    with pytest.raises(NotImplementedError, match="a part of the prior's support"):
        prior_sensitivity(draws(), {"mu": pm.Normal.dist(0, 2)}, model=model)


class TestAgainstAnotherModel:
    def table(self) -> pd.DataFrame:
        model = normal_model()
        run = pma.sample_ais(
            100, model=model, steps=4, reference="prior", progressbar=False, random_seed=1
        )
        null = pma.LogEvidence(-20.0, 0.1, (-20.2, -19.8), 500, 0.1, 2.0, pma.Verdict("trust"))
        self.own = pma.log_bayes_factor(run, null)
        return prior_sensitivity(run, {"scale": [1.0, 2.0]}, model=model, against=null)

    @pytest.mark.slow
    def test_columns_and_plot(self) -> None:
        table = self.table()
        same = table.loc[("scale", 2.0)]
        assert same["log_bayes_factor"] == self.own.log_bayes_factor
        assert same["log_bayes_factor_mcse"] == self.own.mcse
        assert same["log_bayes_factor_lower"] == pytest.approx(self.own.interval[0])
        axis = pma.plot_prior_sensitivity(table)[0]
        assert axis.get_ylabel() == "log Bayes factor (nats)"
        assert axis.lines[0].get_xdata().tolist() == [1.0, 2.0]

    def test_draws_without_evidence(self) -> None:
        with pytest.raises(ValueError, match="Expected a result of"):
            prior_sensitivity(draws(), {"scale": [1.0]}, model=normal_model(), against=draws())


def test_plot_of_labels() -> None:
    priors = {"mu": {"near": pm.Normal.dist(-1, 1.9), "far": pm.Normal.dist(30, 0.5)}}
    axis = pma.plot_prior_sensitivity(prior_sensitivity(draws(), priors, model=normal_model()))[0]
    assert [t.get_text() for t in axis.get_xticklabels()] == ["near", "far"]
    assert [t.get_text() for t in axis.get_legend().get_texts()] == ["do not trust"]


class TestSuppressedMode:
    """A mode nine old standard deviations away, which a wide new prior admits."""

    @staticmethod
    def table(second: float, **settings) -> pd.DataFrame:
        with pm.Model() as model:
            x = pm.Normal("x", 0, 1)
            near, far = (pm.logp(pm.Normal.dist(at, 0.1), x) for at in (0, 9))
            pm.Potential("two", pm.math.logaddexp(near, far + second))
        given = posterior(x=np.random.default_rng(1).normal(0, 101**-0.5, (4, 1000)))
        return prior_sensitivity(
            given, {"x": {s: pm.Normal.dist(0, s) for s in (10, 30)}}, model=model
        )

    def test_it_is_seen(self) -> None:
        for verdict in self.table(0.0)["verdict"]:
            assert "of its posterior lies where the ratio of the priors is above all" in verdict

    def test_without_it_nothing_is(self) -> None:
        table = self.table(-40.0)
        assert (table["verdict"] == "trust").all()
        exact = [np.log(101 / (100 * s**2 + 1)) / 2 for s in (10, 30)]
        np.testing.assert_allclose(table["log_ratio"], exact, atol=0.002)


@pytest.mark.parametrize("shape", [(3,), (1, 1)])
def test_a_prior_of_another_shape(shape: tuple[int, ...]) -> None:
    new = pm.Normal.dist(np.zeros(shape), 1.0)
    with pytest.raises(ValueError, match=r"prior of 'mu' has the shape .*, expected \(\)"):
        prior_sensitivity(draws(), {"mu": new}, model=normal_model())
