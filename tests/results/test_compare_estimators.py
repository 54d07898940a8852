"""Several estimators from one run: by hand on few numbers, on exact models, and on faults."""

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container, group
from pymc_anneal.evidence.ladder import Rungs, mbar, stepping_stone
from pymc_anneal.evidence.ladder import thermodynamic_integration as integrate
from pymc_anneal.results.compare_estimators import compare_estimators
from tests.cases import log_gamma_draws, log_gamma_evidence, log_gamma_terms
from tests.problems import by_name


def rungs_of(beta, v, log_weight=None) -> Rungs:
    """Rungs of a path with ``log f_beta = beta v``."""
    beta, v = np.asarray(beta, dtype=float), np.asarray(v, dtype=float)
    log_weight = np.zeros_like(v) if log_weight is None else np.asarray(log_weight)
    up, down, h = np.zeros_like(v), np.zeros_like(v), np.diff(beta)[:, None]
    up[:-1], down[1:] = h * v[:-1], h * v[1:]
    return Rungs(beta, log_weight, up, down, v)


def exact_rungs(count: int = 8, n: int = 4000, seed: int = 1) -> Rungs:
    """Exact draws at every rung of the test problem."""
    rng, beta = np.random.default_rng(seed), np.linspace(0, 1, count + 1) ** 2
    draws = [log_gamma_draws(b, n, rng) for b in beta]
    v = np.array([[float(log_gamma_terms(x).log_likelihood) for x in d[:400]] for d in draws])
    return rungs_of(beta, v)


class TestByHand:
    beta, v = [0.0, 0.5, 1.0], np.array([[-1.0, -3.0], [-1.5, -2.0], [-1.2, -1.4]])

    def test_stepping_stone(self) -> None:
        forward = np.log(np.exp(0.5 * self.v[:2]).mean(axis=1)).sum()
        backward = -np.log(np.exp(-0.5 * self.v[1:]).mean(axis=1)).sum()
        rungs = rungs_of(self.beta, self.v)
        assert stepping_stone(rungs) == pytest.approx(forward, rel=1e-12)
        assert stepping_stone(rungs, backward=True) == pytest.approx(backward, rel=1e-12)

    def test_weights(self) -> None:
        log_weight = np.array([[0.0, 0.0], [0.3, -0.2], [0.5, 0.1]])
        share = np.exp(log_weight) / np.exp(log_weight).sum(axis=1, keepdims=True)
        forward = np.log((share * np.exp(0.5 * self.v))[:2].sum(axis=1)).sum()
        found = stepping_stone(rungs_of(self.beta, self.v, log_weight))
        assert found == pytest.approx(forward, rel=1e-12)

    def test_integration(self) -> None:
        mean, variance = self.v.mean(axis=1), self.v.var(axis=1)
        first = np.log(np.exp(0.5 * self.v[0]).mean())
        trapezoid = 0.25 * (mean[1] + mean[2])
        correction = -0.25 * (variance[2] - variance[1]) / 12
        found = integrate(rungs_of(self.beta, self.v))
        assert found == pytest.approx((first + trapezoid + correction, correction), rel=1e-12)

    def test_integration_needs_no_mean_under_the_prior(self) -> None:
        """A heavy-tailed prior: one particle at the start decides nothing."""
        v = np.vstack([[-1e12, -3.0], self.v[1:]])
        assert abs(integrate(rungs_of(self.beta, v))[0]) < 10

    def test_mbar_of_two_rungs_is_bar(self) -> None:
        """With two rungs and equal weights, MBAR is Bennett's acceptance ratio."""
        v = np.random.default_rng(3).normal(size=(2, 50))
        found = pma.estimators.bar(v[0], v[1]).log_evidence
        assert mbar(rungs_of([0.0, 1.0], v)) == pytest.approx(found, abs=1e-7)

    def test_a_constant_shifts_all(self) -> None:
        plain, shifted = rungs_of(self.beta, self.v), rungs_of(self.beta, self.v + 1e3)
        for estimate in (stepping_stone, lambda r: integrate(r)[0], mbar):
            assert estimate(shifted) == pytest.approx(estimate(plain) + 1e3, abs=1e-7)

    def test_zero_likelihood_at_the_start(self) -> None:
        """Half of the prior forbidden: every estimator counts it."""
        v = np.zeros((3, 400))
        v[0, ::2] = -np.inf
        rungs = rungs_of(self.beta, v)
        rungs.log_weight[1:, ::2] = -np.inf
        for estimate in (stepping_stone, lambda r: stepping_stone(r, True), mbar):
            assert estimate(rungs) == pytest.approx(np.log(0.5), abs=1e-7)
        assert integrate(rungs)[0] == pytest.approx(np.log(0.5), abs=1e-12)


def test_exact_draws() -> None:
    rungs, exact = exact_rungs(), log_gamma_evidence()
    for estimate in (
        stepping_stone,
        lambda r: stepping_stone(r, True),
        lambda r: integrate(r)[0],
        mbar,
    ):
        assert estimate(rungs) == pytest.approx(exact, abs=0.15)


@pytest.fixture(scope="module")
def model():
    return pma.compile_model(by_name("gamma_poisson").build())


@pytest.fixture(scope="module")
def short(model):
    """A run of 40 steps."""
    return pma.sample_ais(200, steps=40, model=model, progressbar=False, random_seed=1)


class TestCompareEstimators:
    @pytest.mark.parametrize("name", ["eight_schools", "half_space_data"])
    def test_exact_models(self, name) -> None:
        problem = by_name(name)
        model = pma.compile_model(problem.build())
        idata = pma.sample_ais(model=model, progressbar=False, random_seed=11)
        table = compare_estimators(idata, model=model, random_seed=1)
        errors = 4 * table["mcse"] + table["discretisation"]
        assert ((table["log_evidence"] - problem.log_evidence).abs() < errors).all()
        assert table["agrees"].all()
        assert table.attrs["verdict"] == "all estimators agree within their errors"
        assert {"ais", "mbar", "thermodynamic_integration", "bridge"} < set(table.index)

    def test_ais_is_the_official_estimate(self, short) -> None:
        table, found = compare_estimators(short), pma.log_evidence(short)
        assert table.loc["ais", "log_evidence"] == found.log_evidence
        assert table.loc["ais", "mcse"] == found.mcse
        assert table["agrees"].all()

    def test_the_ladder(self, short) -> None:
        ladder, by_step = group(short, "ladder"), group(short, "annealing")
        assert ladder["beta"].values[[0, -1]].tolist() == [0, 1]
        np.testing.assert_array_equal(ladder["log_weight"].values[-1], by_step["log_weight"].values)
        np.testing.assert_allclose(
            ladder["log_ratio_up"].values[:-1],
            np.diff(ladder["beta"].values)[:, None, None] * ladder["velocity"].values[:-1],
        )

    def test_particles_that_do_not_fit_their_weights_are_noticed(self, short) -> None:
        """Planted fault: particles elsewhere than their weights say."""
        ladder = group(short, "ladder").copy(deep=True)
        for name in ("velocity", "log_ratio_up", "log_ratio_down"):
            ladder[name].values[1:-1] = ladder[name].values[1:-1] * 1.5
        kept = {name: group(short, name) for name in ("annealing", "evidence")}
        table = compare_estimators(container({"ladder": ladder, **kept}))
        assert "differ from the first" in table.attrs["verdict"]

    def test_errors(self, model) -> None:
        """The spread over seeds is the error reported, and that of the differences."""
        rows = []
        for seed in range(30):
            idata = pma.sample_ais(
                60,
                steps=30,
                model=model,
                progressbar=False,
                random_seed=seed,
                transition=pma.HMC(0.5, 3, 1.0),
                schedule="sigmoid",
            )
            rows.append(compare_estimators(idata))
        for name in rows[0].index[1:]:
            for value, error in (("log_evidence", "mcse"), ("difference", "difference_mcse")):
                spread = np.std([r.loc[name, value] for r in rows], ddof=1)
                typical = np.sqrt(np.mean([r.loc[name, error] ** 2 for r in rows]))
                assert spread == pytest.approx(typical, rel=0.5), (name, value)

    def test_not_a_result(self) -> None:
        with pytest.raises(ValueError, match="group 'ladder', found dict"):
            compare_estimators({})


def test_restricted_boltzmann_machines() -> None:
    """A path that is not linear in beta: all but MBAR."""
    rng = np.random.default_rng(1)
    model = pma.rbm.RBM(rng.normal(size=6), rng.normal(size=4), rng.normal(size=(6, 4)))
    result = pma.rbm.sample_ais(model, steps=200, progressbar=False, random_seed=1)
    table = compare_estimators(result)
    exact = pma.rbm.log_partition_function(model)
    assert "mbar" not in table.index
    errors = 4 * table["mcse"] + table["discretisation"]
    assert ((table["log_evidence"] - exact).abs() < errors).all()
