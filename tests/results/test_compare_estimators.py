"""Several estimators of one run: exact models, errors, and planted faults."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container, group
from pymc_anneal.results.compare_estimators import compare_estimators
from tests.problems import by_name


@pytest.fixture(scope="module")
def model():
    return pma.compile_model(by_name("gamma_poisson").build())


@pytest.fixture(scope="module")
def short(model):
    """A run of 40 steps."""
    return pma.sample_ais(200, steps=40, model=model, progressbar=False, random_seed=1)


SLOW = ("eight_schools", "half_space_data")


class TestCompareEstimators:
    @pytest.mark.parametrize(
        "name",
        ["beta_binomial", *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW)],
    )
    def test_exact_models(self, name) -> None:
        problem = by_name(name)
        model = pma.compile_model(problem.build())
        idata = pma.sample_ais(model=model, progressbar=False, random_seed=11)
        table = compare_estimators(idata, model=model, random_seed=1)
        errors = 4 * table["mcse"] + table["discretisation"]
        assert ((table["log_evidence"] - problem.log_evidence).abs() < errors).all()
        assert table["agrees"].all()
        assert table.attrs["verdict"] == "trust: all estimators agree within their errors"
        assert {"ais", "mbar", "thermodynamic_integration", "bridge"} < set(table.index)

    def test_a_way_back_without_a_variance(self) -> None:
        """From the posterior to the prior in one step, the ratios have no variance."""
        problem = by_name("conjugate_normal")
        kernel = pma.HMC(0.3, 3, 1.0)
        idata = pma.sample_ais(
            model=problem.build(),
            steps=1,
            schedule="linear",
            transition=kernel,
            progressbar=False,
            random_seed=3,
        )
        table = compare_estimators(idata)
        assert table.loc["stepping_stone_backward", "mcse"] == np.inf
        assert np.isfinite(table.drop("stepping_stone_backward")["mcse"]).all()

    def test_particles_of_zero_likelihood(self) -> None:
        with pm.Model() as model:
            x = pm.Normal("x", 0, 1)
            pm.Potential("half", pt.switch(x > 0, -0.5 * x**2, -np.inf))
        kernel = pma.HMC(0.5, 3, 1.0)
        schedule = {"steps": 4, "schedule": "linear", "transition": kernel}
        idata = pma.sample_ais(
            model=model, reference="prior", progressbar=False, random_seed=4, **schedule
        )
        table = compare_estimators(idata)
        exact = np.log(0.5) - 0.5 * np.log(2)
        assert ((table["log_evidence"] - exact).abs() < 4 * table["mcse"]).all()
        assert np.isfinite(table["mcse"]).all()

    @pytest.mark.slow
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
        assert table.attrs["verdict"].startswith("do not trust: ")
        assert "differ from the first" in table.attrs["verdict"]

    @pytest.mark.slow
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


@pytest.mark.slow
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
