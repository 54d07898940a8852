"""`sample_ais`: its arguments, its result, what it says."""

import warnings

from concurrent.futures import Future

import jax
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group, has_group
from pymc_anneal.execution import blocks
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.pipeline import rounds, session
from pymc_anneal.transitions.by_temperature import TunedTransition
from tests.problems import by_name

# A run that takes a tenth of a second: no pilot, five steps.
QUICK = {
    "chains": 2,
    "steps": 5,
    "schedule": "linear",
    "transition": pma.HMC(0.3, 2, 1.0),
    "random_seed": 1,
    "progressbar": False,
}


def small_model() -> pm.Model:
    """Two groups, a deterministic, coords, data."""
    coords = {"group": ["a", "b"], "obs": [10, 20, 30]}
    with pm.Model(coords=coords) as model:
        covariate = pm.Data("covariate", np.array([0.5, -1.0, 2.0]), dims="obs")
        mu = pm.Normal("mu", 0.0, 2.0, dims="group")
        sigma = pm.HalfNormal("sigma", 2.0)
        pm.Deterministic("total", mu.sum())
        pm.Normal("y", mu[0] + mu[1] * covariate, sigma, observed=[0.4, 2.0, -1.3], dims="obs")
    return model


@pytest.fixture(scope="module")
def compiled() -> CompiledModel:
    return pma.compile_model(small_model())


@pytest.fixture(scope="module")
def result(compiled: CompiledModel):
    wanted = {"log_likelihood": True, "prior": True}
    return pma.sample_ais(60, model=compiled, idata_kwargs=wanted, **QUICK)


def evidence_words(result) -> dict:
    return group(result, "evidence").attrs


def assert_same(first, second) -> None:
    """Two results hold the same numbers."""
    for name in ("posterior", "annealing"):
        left, right = group(first, name), group(second, name)
        assert set(left.data_vars) == set(right.data_vars)
        for variable in left.data_vars:
            np.testing.assert_array_equal(left[variable], right[variable])


class TestArguments:
    @pytest.mark.parametrize(
        ("argument", "value", "message"),
        [
            ("draws", 0, "`draws` is 0, expected a positive whole number"),
            ("draws", 10.0, "`draws` is 10.0"),
            ("draws", True, "`draws` is True"),
            ("chains", -1, "`chains` is -1"),
            ("max_rounds", 0, "`max_rounds` is 0"),
            ("max_minutes", 0, "`max_minutes` is 0, expected a positive number of minutes"),
            ("max_minutes", np.nan, "`max_minutes` is nan"),
            ("cores", 0, "`cores` is 0"),
            ("block_size", 0, "`block_size` is 0"),
            ("steps", 0, '`steps` is 0, expected a positive whole number or "auto"'),
            ("steps", "many", "`steps` is 'many'"),
            ("steps", 2.5, "`steps` is 2.5"),
            ("target_mcse", 0.0, "`target_mcse` is 0.0, expected a positive number of nats"),
            ("target_mcse", -1.0, "`target_mcse` is -1.0"),
            ("target_mcse", np.inf, "`target_mcse` is inf"),
            ("target_mcse", np.nan, "`target_mcse` is nan"),
            (
                "path",
                "arithmetic",
                r"Unknown `path` 'arithmetic'; expected one of \['auto',",
            ),
            ("schedule", "cubic", "Unknown `schedule` 'cubic'.*'linear'.*'variational'"),
            ("schedule", [0.0, 0.5, 0.4, 1.0], "not increasing"),
            ("schedule", [0.1, 1.0], "starts at 0.1"),
            ("schedule", np.array([0.0, 0.9]), "ends at 0.9"),
            ("schedule", [1.0], "shape"),
            ("transition", "gibbs", "Unknown `transition` 'gibbs'.*'hmc'.*'random_walk'"),
            ("random_seed", "lucky", "`random_seed` is 'lucky', expected a non-negative int"),
            ("random_seed", -1, "`random_seed` is -1"),
            ("idata_kwargs", {"posterior": True}, r"Unknown `idata_kwargs` \['posterior'\]"),
        ],
    )
    def test_values_that_make_no_sense(self, compiled, argument, value, message) -> None:
        arguments = {**QUICK, "model": compiled, argument: value}
        if argument == "schedule":
            arguments["steps"] = "auto"
        with pytest.raises(ValueError, match=message):
            pma.sample_ais(**arguments)

    @pytest.mark.parametrize(
        ("argument", "value", "message"),
        [
            ("path", 3, r"`path` is a int without the methods \['evaluate'"),
            ("transition", object(), r"`transition` is a object without the methods \['step'"),
            ("model", "a model", "`model` is a str, expected a pymc.Model"),
        ],
    )
    def test_objects_of_the_wrong_kind(self, compiled, argument, value, message) -> None:
        with pytest.raises(TypeError, match=message):
            pma.sample_ais(**{**QUICK, "model": compiled, argument: value})

    def test_no_model(self) -> None:
        with pytest.raises(TypeError, match="[Nn]o model on context stack"):
            pma.sample_ais(**QUICK)

    def test_draws_alone_is_positional(self, compiled) -> None:
        with pytest.raises(TypeError, match="positional argument"):
            pma.sample_ais(10, 2, model=compiled)

    def test_steps_against_an_array(self, compiled) -> None:
        arguments = {**QUICK, "schedule": [0.0, 0.5, 1.0], "steps": 3}
        with pytest.raises(ValueError, match="`steps` is 3, but the schedule has 2 steps"):
            pma.sample_ais(model=compiled, **arguments)

    def test_a_schedule_function_that_fails_the_contract(self, compiled) -> None:
        arguments = {**QUICK, "schedule": lambda steps: np.linspace(0.0, 0.5, steps + 1)}
        with pytest.raises(ValueError, match="ends at 0.5"):
            pma.sample_ais(model=compiled, **arguments)

    def test_max_step_out_of_reach(self, compiled) -> None:
        arguments = {**QUICK, "schedule": "variational", "max_step": 0.1}
        with pytest.raises(ValueError, match="`max_step` is 0.1 and the schedule has 5 steps"):
            pma.sample_ais(20, model=compiled, **arguments)

    def test_max_step_holds(self, compiled) -> None:
        arguments = {**QUICK, "schedule": "variational", "max_step": 0.25}
        result = pma.sample_ais(20, model=compiled, **arguments)
        betas = group(result, "annealing")["beta"].values[0]
        assert np.diff([0.0, *betas]).max() <= 0.25 * (1 + 1e-9)


class TestSeed:
    @pytest.mark.parametrize("seed", [7, [1, 2], np.random.SeedSequence(5)])
    def test_the_same_seed_is_the_same_result(self, compiled, seed) -> None:
        arguments = {**QUICK, "random_seed": seed}
        first, second = (pma.sample_ais(30, model=compiled, **arguments) for _ in range(2))
        assert_same(first, second)

    def test_generator(self, compiled) -> None:
        first, second = (
            pma.sample_ais(30, model=compiled, **{**QUICK, "random_seed": np.random.default_rng(3)})
            for _ in range(2)
        )
        assert_same(first, second)

    def test_other_seeds_are_other_results(self, compiled) -> None:
        values = [
            pma.log_evidence(
                pma.sample_ais(30, model=compiled, **{**QUICK, "random_seed": seed})
            ).log_evidence
            for seed in (1, 2, None, None)
        ]
        assert len(set(values)) == 4

    @pytest.mark.parametrize("cores", [1, 2, 4])
    def test_cores_do_not_matter(self, compiled, cores: int) -> None:
        arguments = {**QUICK, "block_size": 20}
        expected = pma.sample_ais(50, model=compiled, **arguments)
        assert_same(expected, pma.sample_ais(50, model=compiled, cores=cores, **arguments))

    def test_automatic_runs_are_reproducible(self, compiled) -> None:
        arguments = {"chains": 2, "random_seed": 3, "progressbar": False, "model": compiled}
        assert_same(pma.sample_ais(100, **arguments), pma.sample_ais(100, **arguments))

    def test_numpys_global_state_plays_no_part(self, compiled) -> None:
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        pma.sample_ais(20, model=compiled, **QUICK)
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002

    def test_jaxs_settings_are_left_alone(self, compiled) -> None:
        before = dict(jax.config.values)
        pma.sample_ais(20, model=compiled, **QUICK)
        assert dict(jax.config.values) == before


class TestResult:
    def test_groups(self, result) -> None:
        for name in (
            "posterior",
            "sample_stats",
            "annealing",
            "evidence",
            "observed_data",
            "constant_data",
            "log_likelihood",
            "prior",
        ):
            assert has_group(result, name), name

    def test_extra_groups_are_asked_for(self, compiled) -> None:
        plain = pma.sample_ais(20, model=compiled, **QUICK)
        assert not has_group(plain, "prior")
        assert not has_group(plain, "log_likelihood")

    def test_posterior(self, result) -> None:
        posterior = group(result, "posterior")
        assert dict(posterior.sizes) == {"chain": 2, "draw": 60, "group": 2}
        assert posterior["mu"].dims == ("chain", "draw", "group")
        assert posterior["group"].values.tolist() == ["a", "b"]
        assert set(posterior.data_vars) == {"mu", "sigma", "total"}
        np.testing.assert_allclose(posterior["mu"].sum("group"), posterior["total"], rtol=1e-12)
        assert (posterior["sigma"] > 0).all()
        assert posterior.attrs["inference_library"] == "pymc_anneal"

    def test_sample_stats(self, result) -> None:
        values = group(result, "sample_stats")["log_marginal_likelihood"]
        assert values.dims == ("chain",)
        log_weight = group(result, "annealing")["log_weight"].values
        expected = np.logaddexp.reduce(log_weight, axis=1) - np.log(log_weight.shape[1])
        np.testing.assert_allclose(values, expected, rtol=1e-12)

    def test_annealing(self, result) -> None:
        data = group(result, "annealing")
        assert data["log_weight"].dims == ("chain", "particle")
        assert data["log_weight"].shape == (2, 60)
        by_step = {
            "beta",
            "log_z",
            "ess",
            "accept_rate",
            "step_size",
            "fisher_information",
            "barrier",
            "velocity",
        }
        assert set(data.data_vars) == by_step | {"log_weight"}
        for name in by_step:
            assert data[name].dims == ("chain", "step"), name
            assert data[name].shape == (2, 5)
            assert data[name].dtype == np.float64
        np.testing.assert_allclose(data["beta"].values[0], np.arange(1, 6) / 5)
        assert data["step"].values.tolist() == [1, 2, 3, 4, 5]
        assert (data["step_size"] == 0.3).all()
        assert ((data["ess"] > 0) & (data["ess"] <= 60 * (1 + 1e-9))).all()
        last = data["log_z"].isel(step=-1)
        np.testing.assert_allclose(last, group(result, "sample_stats")["log_marginal_likelihood"])

    def test_long_runs_are_thinned(self, compiled) -> None:
        data = group(pma.sample_ais(10, model=compiled, **{**QUICK, "steps": 2500}), "annealing")
        assert data.sizes["step"] <= 1000
        assert data["step"].values[[0, -1]].tolist() == [1, 2500]
        assert data["beta"].values[0, -1] == 1

    def test_evidence(self, result) -> None:
        data, evidence = group(result, "evidence"), pma.log_evidence(result)
        log_weight = group(result, "annealing")["log_weight"].values.ravel()
        expected = np.logaddexp.reduce(log_weight) - np.log(log_weight.size)
        assert evidence.log_evidence == pytest.approx(expected, rel=1e-12)
        assert evidence.interval[0] < evidence.log_evidence < evidence.interval[1]
        assert 0 < evidence.mcse < 1
        assert 1 <= evidence.ess <= 120
        assert evidence.barrier > 0
        assert all(v.dtype == np.float64 and v.ndim == 0 for v in data.data_vars.values())
        assert float(data["steps"]) == 5
        assert float(data["particles"]) == 120
        assert float(data["evaluations"]) == 120 * 5 * 5  # two leapfrogs in two stages, and one
        words = evidence_words(result)
        assert words["path"] == "GeometricPath"
        assert words["schedule"] == "linear_schedule"
        assert words["transition"] == "HMC"
        assert words["verdict"] == str(evidence.verdict)
        assert pm.__version__ in words["versions"]

    def test_data_groups(self, result) -> None:
        observed, constant = group(result, "observed_data"), group(result, "constant_data")
        np.testing.assert_array_equal(observed["y"], [0.4, 2.0, -1.3])
        assert observed["obs"].values.tolist() == [10, 20, 30]
        np.testing.assert_array_equal(constant["covariate"], [0.5, -1.0, 2.0])

    def test_prior_and_log_likelihood(self, result) -> None:
        prior = group(result, "prior")
        assert prior["mu"].shape == (2, 60, 2)
        log_likelihood = group(result, "log_likelihood")["y"]
        assert log_likelihood.dims == ("chain", "draw", "obs")
        posterior = group(result, "posterior")
        mu, sigma = posterior["mu"].values, posterior["sigma"].values[..., None]
        mean = mu[..., :1] + mu[..., 1:] * np.array([0.5, -1.0, 2.0])
        expected = -0.5 * ((np.array([0.4, 2.0, -1.3]) - mean) / sigma) ** 2
        expected -= np.log(sigma * np.sqrt(2 * np.pi))
        np.testing.assert_allclose(log_likelihood, expected, rtol=1e-5)

    def test_coords_and_dims_of_the_user(self) -> None:
        with pm.Model() as model:
            pm.Normal("x", shape=2)
        wanted = {"coords": {"side": ["left", "right"]}, "dims": {"x": ["side"]}}
        result = pma.sample_ais(10, model=model, idata_kwargs=wanted, **QUICK)
        assert group(result, "posterior")["x"].dims == ("chain", "draw", "side")
        assert group(result, "posterior")["side"].values.tolist() == ["left", "right"]

    def test_draws_are_of_the_posterior(self) -> None:
        # A conjugate normal, run to high weights: mean and spread of the resampled draws.
        problem = by_name("conjugate_normal")
        arguments = {**QUICK, "steps": 40, "transition": pma.HMC(0.4, 4, 1.0)}
        result = pma.sample_ais(1000, model=problem.build(), **arguments)
        precision = 0.25 + 7 / 2.25
        data = group(result, "observed_data")["y"].values
        mean = (-0.25 + data.sum() / 2.25) / precision
        draws = group(result, "posterior")["mu"].values
        ess = pma.log_evidence(result).ess
        assert ess > 200
        assert abs(draws.mean() - mean) < 5 * precision**-0.5 / np.sqrt(ess / 2)
        assert draws.std() == pytest.approx(precision**-0.5, rel=5 / np.sqrt(ess))

    @pytest.mark.parametrize("model", ["empty", "no_observed"])
    def test_log_evidence_of_no_data_is_zero(self, model: str) -> None:
        with pm.Model() as empty:
            pm.Normal("x", shape=0)
        built = empty if model == "empty" else by_name("no_observed").build()
        result = pma.sample_ais(20, chains=2, random_seed=1, progressbar=False, model=built)
        evidence = pma.log_evidence(result)
        assert evidence.log_evidence == pytest.approx(0, abs=1e-12)
        assert evidence.mcse == 0
        assert evidence.barrier == pytest.approx(0, abs=1e-6)

    def test_a_model_without_free_variables(self) -> None:
        with pm.Model() as model:
            pm.Normal("y", 0.0, 1.0, observed=[0.5])
        result = pma.sample_ais(20, chains=2, random_seed=1, progressbar=False, model=model)
        exact = -0.125 - 0.5 * np.log(2 * np.pi)
        assert pma.log_evidence(result).log_evidence == pytest.approx(exact, rel=1e-6)


class TestSaving:
    @pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
    def test_netcdf(self, result, tmp_path, engine: str) -> None:
        for package in {"netcdf4": ["netCDF4"], "h5netcdf": ["h5netcdf", "h5py"]}[engine]:
            pytest.importorskip(package)
        import arviz as az

        path = str(tmp_path / "result.nc")
        if isinstance(result, xr.DataTree):
            result.to_netcdf(path, engine=engine)
            loaded = xr.open_datatree(path, engine=engine)
        else:
            result.to_netcdf(path, engine=engine)
            loaded = az.from_netcdf(path, engine=engine)
        assert pma.log_evidence(loaded) == pma.log_evidence(result)
        assert_same(loaded, result)

    # zarr 3 about coords that are text.
    @pytest.mark.filterwarnings("ignore:The data type:Warning")
    def test_zarr(self, result, tmp_path) -> None:
        zarr = pytest.importorskip("zarr")
        path = str(tmp_path / "result.zarr")
        if isinstance(result, xr.DataTree):
            result.to_zarr(path)
            loaded = xr.open_datatree(path, engine="zarr")
        elif int(zarr.__version__.split(".")[0]) >= 3:
            # ArviZ 0.23 writes zarr 2 only: through xarray.
            tree = xr.DataTree.from_dict({name: group(result, name) for name in result.groups()})
            tree.to_zarr(path)
            loaded = xr.open_datatree(path, engine="zarr")
        else:
            result.to_zarr(path)
            loaded = type(result).from_zarr(path)
        assert pma.log_evidence(loaded) == pma.log_evidence(result)
        assert_same(loaded, result)

    def test_every_variable_is_rectangular(self, result) -> None:
        names = result.children if isinstance(result, xr.DataTree) else result.groups()
        for name in names:
            for variable in group(result, name).variables.values():
                assert variable.dtype != object or isinstance(variable.values.flat[0], str)


class TestLogEvidence:
    def test_repr(self, result) -> None:
        text = repr(pma.log_evidence(result))
        for part in ("log evidence", "+-", "95 % interval", "ESS", "Pareto k", "verdict:"):
            assert part in text
        assert f"{pma.log_evidence(result).log_evidence:.3f}" in text

    @pytest.mark.parametrize("wrong", [3, {"posterior": 1}, None, xr.Dataset()])
    def test_something_else(self, wrong: object) -> None:
        with pytest.raises(ValueError, match=f"found {type(wrong).__name__}.*sample_ais"):
            pma.log_evidence(wrong)

    def test_a_container_without_evidence(self, result) -> None:
        other = type(result)
        bare = (
            other.from_dict({"posterior": group(result, "posterior")})
            if isinstance(result, xr.DataTree)
            else other(posterior=group(result, "posterior"))
        )
        with pytest.raises(ValueError, match="with a group 'evidence'"):
            pma.log_evidence(bare)


class TestWaysToAsk:
    def test_model_on_the_stack(self) -> None:
        with small_model():
            result = pma.sample_ais(20, **QUICK)
        assert has_group(result, "evidence")

    def test_a_model_is_as_good_as_compiled(self, compiled) -> None:
        assert_same(
            pma.sample_ais(20, model=small_model(), **QUICK),
            pma.sample_ais(20, model=compiled, **QUICK),
        )

    @pytest.mark.parametrize(
        "schedule",
        [
            *("linear", "power", "geometric", "sigmoid", "salakhutdinov_murray"),
            *("variational", "optimal_binned"),
        ],
    )
    def test_schedules_by_name(self, compiled, schedule: str) -> None:
        result = pma.sample_ais(20, model=compiled, **{**QUICK, "schedule": schedule})
        betas = group(result, "annealing")["beta"].values[0]
        assert betas.shape == (5,)
        assert schedule in evidence_words(result)["schedule"]

    def test_schedule_as_an_array(self, compiled) -> None:
        arguments = {**QUICK, "schedule": [0.0, 0.01, 0.2, 1.0], "steps": "auto"}
        result = pma.sample_ais(20, model=compiled, **arguments)
        betas = group(result, "annealing")["beta"].values[0]
        np.testing.assert_array_equal(betas, [0.01, 0.2, 1.0])
        assert evidence_words(result)["schedule"] == "array"

    def test_schedule_as_a_function(self, compiled) -> None:
        def cubic(steps: int) -> np.ndarray:
            return pma.linear_schedule(steps) ** 3

        result = pma.sample_ais(20, model=compiled, **{**QUICK, "schedule": cubic})
        np.testing.assert_allclose(
            group(result, "annealing")["beta"].values[0], (np.arange(1, 6) / 5) ** 3
        )
        assert evidence_words(result)["schedule"] == "cubic"

    @pytest.mark.parametrize("name", ["hmc", "generalized_hmc", "mala", "random_walk"])
    def test_transitions_by_name(self, compiled, name: str) -> None:
        result = pma.sample_ais(20, model=compiled, **{**QUICK, "transition": name})
        expected = {
            "hmc": "HMC",
            "generalized_hmc": "GeneralizedHMC",
            "mala": "MALA",
            "random_walk": "RandomWalkMetropolis",
        }
        assert evidence_words(result)["transition"] == expected[name]
        assert (group(result, "annealing")["step_size"] > 0).all()

    def test_transition_objects(self, compiled) -> None:
        blackjax = pytest.importorskip("blackjax")
        parameters = {
            "step_size": 0.2,
            "num_integration_steps": 2,
            "inverse_mass_matrix": np.ones(3),
        }
        kernels = [
            pma.MALA(0.3, 1, 1.0),
            pma.HMC(n_steps=3),
            TunedTransition(
                np.array([1.0]), pma.HMC(np.array([0.3]), np.array([2]), np.ones((1, 3)))
            ),
            pma.BlackJAXKernel(blackjax.hmc, parameters),
        ]
        values = [
            pma.log_evidence(pma.sample_ais(400, model=compiled, **{**QUICK, "transition": kernel}))
            for kernel in kernels
        ]
        centre = np.mean([v.log_evidence for v in values])
        for value in values:
            assert abs(value.log_evidence - centre) < 5 * value.mcse

    def test_path_object(self, compiled) -> None:
        path = pma.GeometricPath(compiled.log_terms)
        assert_same(
            pma.sample_ais(20, model=compiled, **{**QUICK, "path": path}),
            pma.sample_ais(20, model=compiled, **QUICK),
        )

    def test_fixed_steps_with_a_pilot(self, compiled) -> None:
        arguments = {**QUICK, "transition": "hmc", "schedule": "variational", "steps": 17}
        result = pma.sample_ais(50, model=compiled, **arguments)
        assert group(result, "annealing").sizes["step"] == 17
        assert float(group(result, "evidence")["rounds"]) == 1

    def test_evaluations_of_all_stages_count(self, compiled) -> None:
        def run(**more) -> tuple[float, float]:
            result = pma.sample_ais(
                50, chains=2, model=compiled, random_seed=3, progressbar=False, **more
            )
            data = group(result, "evidence")
            return float(data["evaluations"]), float(data["steps"] * data["particles"])

        plain, counted = run()
        assert plain > counted  # a step takes three evaluations at least
        both, _ = run(reverse_from="draws")
        assert both > plain + counted

    def test_rounds_follow_until_the_run_is_trusted(self, compiled, monkeypatch) -> None:
        monkeypatch.setattr(rounds, "MAX_PARETO_K", -np.inf)  # nothing is ever enough
        result = pma.sample_ais(
            50, chains=2, random_seed=2, progressbar=False, max_rounds=2, model=compiled
        )
        data, words = group(result, "evidence"), evidence_words(result)["rounds"]
        assert float(data["rounds"]) == 2
        assert "round 1: " in words
        assert "round 2: " in words
        assert group(result, "annealing")["log_weight"].size == float(data["particles"]) >= 200
        steps = [int(part.split()[2]) for part in words.split("; ")]
        assert steps[1] >= 2 * steps[0]
        assert float(data["steps"]) == steps[1]

    def test_the_barrier_of_a_long_run_is_the_length_of_the_path(self) -> None:
        # mu ~ N(0, 1), y ~ N(mu, sigma): int sqrt(Var_beta[V]) dbeta by quadrature.
        y, sigma = 3.0, 0.5
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("mu"), sigma, observed=[y])
        beta = np.linspace(0, 1, 20_001) ** 2
        variance = 1 / (1 + beta / sigma**2)
        mean = variance * beta * y / sigma**2
        speed = np.sqrt(variance**2 / 2 + variance * (y - mean) ** 2) / sigma**2
        exact = np.trapezoid(speed, beta)
        result = pma.sample_ais(
            1000, chains=2, steps=100, random_seed=4, progressbar=False, model=model
        )
        assert pma.log_evidence(result).barrier == pytest.approx(exact, rel=0.05)


class TestWhatItSays:
    def test_silent(self, compiled, capsys) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pma.sample_ais(30, chains=2, random_seed=1, progressbar=False, model=compiled)
        captured = capsys.readouterr()
        assert captured.out == captured.err == ""

    def test_progress(self, compiled, capsys) -> None:
        pma.sample_ais(30, chains=2, random_seed=1, progressbar=True, model=compiled)
        shown = capsys.readouterr().out
        assert "Pilot" in shown
        assert "Annealing" in shown
        assert "log Z" in shown

    def test_potentials_are_noted(self) -> None:
        with pm.Model() as model:
            x = pm.Normal("x")
            pm.Potential("extra", -(x**2))
        result = pma.sample_ais(200, model=model, **QUICK)
        assert "'extra' is tempered with the likelihood" in evidence_words(result)["notes"]
        evidence = pma.log_evidence(result)
        assert abs(evidence.log_evidence + 0.5 * np.log(3)) < 5 * evidence.mcse

    def test_nan_names_the_term_and_the_value(self) -> None:
        with pm.Model() as model:
            x = pm.Normal("x")
            pm.Normal("fine", x, 1.0, observed=[0.0])
            pm.Potential("culprit", pt.log(x))
        for steps in (5, "auto"):
            with pytest.raises(ValueError, match=r"NaN in the term\(s\) \['culprit'\] at x = -"):
                pma.sample_ais(50, model=model, **{**QUICK, "steps": steps})

    def test_all_likelihoods_are_zero(self) -> None:
        with pm.Model() as model:
            x = pm.HalfNormal("x")
            pm.Potential("never", pt.switch(x > 0, -np.inf, 0.0))
        with pytest.raises(ValueError, match="zero at all of .* prior draws.*contradict"):
            pma.sample_ais(50, chains=2, model=model, progressbar=False)
        with pytest.raises(ValueError, match="All weights of a chain are zero"):
            pma.sample_ais(50, model=model, **QUICK)

    def test_likelihood_of_plus_infinity(self) -> None:
        with pm.Model() as model:
            x = pm.Normal("x")
            pm.Potential("spike", pt.switch(x > 0, np.inf, 0.0))
        with pytest.raises(ValueError, match=r"log likelihood is \+inf"):
            pma.sample_ais(50, chains=2, model=model, progressbar=False)
        with pytest.raises(ValueError, match=r"\+inf"):
            pma.sample_ais(50, model=model, **QUICK)

    def test_an_improper_prior_is_refused_by_name(self) -> None:
        with pm.Model() as model:
            pm.Flat("x")
        with pytest.raises(ValueError, match="'x' has the improper prior"):
            pma.sample_ais(model=model, **QUICK)

    def test_a_poor_run_is_not_trusted(self) -> None:
        # One step from a wide prior to a narrow posterior.
        arguments = {**QUICK, "steps": 1}
        result = pma.sample_ais(100, model=by_name("informative_1e3").build(), **arguments)
        verdict = str(pma.log_evidence(result).verdict)
        assert verdict.startswith(("do not trust: ", "more steps needed: "))

    def test_a_good_run_is_trusted(self, compiled) -> None:
        result = pma.sample_ais(200, chains=2, random_seed=1, progressbar=False, model=compiled)
        assert pma.log_evidence(result).verdict.trusted


class _FirstBlockOnly:
    """An executor that does one block and meets Ctrl-C on the next."""

    def __init__(self, workers: int):
        self._submitted = 0

    def __enter__(self):
        return self

    def __exit__(self, *exception) -> None:
        pass

    def submit(self, function, *args, **kwargs) -> Future:
        future: Future = Future()
        self._submitted += 1
        if self._submitted == 1:
            future.set_result(function(*args, **kwargs))
        else:
            future.set_exception(KeyboardInterrupt())
        return future


def test_an_interrupted_run_keeps_finished_blocks(compiled, monkeypatch) -> None:
    monkeypatch.setattr(blocks, "ThreadPoolExecutor", _FirstBlockOnly)
    result = pma.sample_ais(90, model=compiled, block_size=60, **QUICK)
    assert group(result, "annealing")["log_weight"].shape == (2, 30)
    assert group(result, "posterior").sizes["draw"] == 90
    assert "the run was interrupted" in str(pma.log_evidence(result).verdict)


def test_an_interrupted_round_keeps_the_rounds_before(compiled, monkeypatch) -> None:
    run = session.Session.run

    def interrupted(session, name, blocks):
        if name == "Round 2":
            raise KeyboardInterrupt
        return run(session, name, blocks)

    monkeypatch.setattr(session.Session, "run", interrupted)
    # An error that no round of so few steps can reach: a second one begins.
    monkeypatch.setattr(
        rounds, "_growth", lambda options, last, left: None if last.interrupted else 2
    )
    result = pma.sample_ais(40, chains=2, model=compiled, random_seed=1, progressbar=False)
    assert float(group(result, "evidence")["rounds"]) == 1
    assert "the run was interrupted" in str(pma.log_evidence(result).verdict)
