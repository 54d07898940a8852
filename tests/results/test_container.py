"""The container of a run: datasets with ArviZ's names, and the group of the estimate."""

from dataclasses import replace

import arviz as az
import numpy as np
import pytest
import xarray as xr

from pymc_anneal.annealing.block import Ladder
from pymc_anneal.annealing.step_statistics import Stats
from pymc_anneal.base.arviz_compat import group
from pymc_anneal.evidence.ais import ais
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.results import container
from pymc_anneal.results.container import RunArrays, dataset, to_container

IS_TREE = "InferenceData" not in vars(az)


def arviz_dataset(values, leading, coords, dims) -> xr.Dataset:
    key = "sample_dims" if IS_TREE else "default_dims"
    return az.dict_to_dataset(values, coords=coords, dims=dims, **{key: list(leading)})


class TestDataset:
    def test_names_of_dims(self) -> None:
        values = {"a": np.zeros((2, 3, 4, 5)), "b": np.zeros((2, 3))}
        data = dataset(values, ("chain", "draw"), {"g": list("wxyz")}, {"a": ["g"]})
        assert data["a"].dims == ("chain", "draw", "g", "a_dim_1")
        assert data["b"].dims == ("chain", "draw")
        assert data["g"].values.tolist() == list("wxyz")
        assert data["a_dim_1"].values.tolist() == list(range(5))

    @pytest.mark.parametrize(
        ("shapes", "leading", "dims"),
        [
            ({"a": (2, 3, 5, 4), "b": (2, 3)}, ("chain", "draw"), {"a": [None, "g"]}),
            ({"a": (2, 3, 0), "b": (2, 3, 4)}, ("chain", "draw"), {"b": [None]}),
            ({"y": (4,), "x": (6, 4)}, (), {"y": ["g"], "x": [None, "g"]}),
            ({}, (), {}),
        ],
    )
    def test_as_arviz(self, shapes, leading, dims) -> None:
        values = {
            name: np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
            for name, shape in shapes.items()
        }
        expected = arviz_dataset(values, leading, {"g": list("wxyz")}, dims)
        found = dataset(values, leading, {"g": list("wxyz")}, dims)
        xr.testing.assert_identical(found, expected.drop_attrs(deep=False))
        assert all(found[name].dtype == np.int32 for name in shapes)

    def test_coordinates_that_do_not_fit(self) -> None:
        data = dataset({"a": np.zeros((2, 3, 4))}, ("chain", "draw"), {"g": [7, 8]}, {"a": ["g"]})
        assert data["a"].dims == ("chain", "draw", "g")
        assert data["g"].values.tolist() == [0, 1, 2, 3]

    def test_scalars(self) -> None:
        assert dataset({"a": np.float64(2)}, ())["a"].dims == ()

    def test_attributes(self) -> None:
        assert dataset({"a": np.zeros(2)}, (), attrs={"unit": "nats"}).attrs == {"unit": "nats"}


def finished_run(betas: np.ndarray, **changes) -> RunArrays:
    """A run of two chains of 50 particles, with weights of mean about e^-1/2."""
    steps, chains, n = len(betas) - 1, 2, 50
    rng = np.random.default_rng(1)
    log_weight = rng.normal(-1, 1, (chains, n))
    log_w = np.log(np.linspace(1, np.exp(log_weight).mean(axis=1), steps) * n)
    blank = np.zeros((steps, chains))
    shape = (2, chains, n)
    return RunArrays(
        **{
            "betas": betas,
            "log_weight": log_weight,
            "position": np.zeros((chains, n, 1)),
            "stats": Stats(log_w, 2 * log_w - np.log(n), log_w, blank, blank, blank + 0.8, blank),
            "step_size": np.full(steps, np.nan),
            "verdict": Verdict("more steps needed", ("the error", "the ess")),
            "scalars": {"steps": steps},
            "attrs": {"path": "GeometricPath"},
            "ladder": Ladder(*[np.zeros(shape)] * 4, np.zeros((*shape, 3))),
            "rungs": np.array([0, steps]),
            **changes,
        }
    )


class TestToContainer:
    betas = np.linspace(0, 1, 6)

    def test_evidence(self) -> None:
        run = finished_run(self.betas, log_reference=10.0)
        evidence = group(to_container(run, {}, {}, {"by": "test"}), "evidence")
        assert evidence["log_evidence"] == 10.0 + ais(run.log_weight).log_evidence
        assert evidence["interval_lower"] < evidence["log_evidence"] < evidence["interval_upper"]
        assert evidence["steps"] == 5
        expected = {
            "path": "GeometricPath",
            "unit": "nats",
            "by": "test",
            "verdict": str(run.verdict),
        }
        assert expected.items() <= evidence.attrs.items()
        assert Verdict.from_attrs(evidence.attrs) == run.verdict

    def test_reverse_runs_estimate_the_inverse(self) -> None:
        forward, reverse = (
            group(to_container(finished_run(b), {}, {}, {}), "evidence")
            for b in (self.betas, self.betas[::-1])
        )
        assert reverse["log_evidence"] == -forward["log_evidence"]
        assert reverse["interval_lower"] == -forward["interval_upper"]

    @pytest.mark.parametrize("shape", [0.2, 0.6, 0.85])
    @pytest.mark.parametrize("direction", [1, -1])
    def test_an_interval_with_a_heavy_tail(self, monkeypatch, shape, direction) -> None:
        """The ends move away from the estimate as the error grows by the missing mass."""
        quantile = (np.arange(400) + 0.5) / 400
        log_weight = -shape * np.log1p(-quantile).reshape(2, 200)  # Pareto quantiles
        mean = np.exp(log_weight).mean()
        monkeypatch.setattr(
            container,
            "bootstrap_interval",
            lambda *a, **k: (np.log(mean) - 0.1, np.log(mean) + 0.3),
        )
        run = finished_run(self.betas[::direction], log_weight=log_weight)
        found = group(to_container(run, {}, {}, {}), "evidence")
        k = float(found["pareto_k"])
        assert k == pytest.approx(shape, abs=0.1)
        relative = np.exp(log_weight).std() / mean / 20
        plain = np.sqrt(np.log1p(relative**2))
        # A weight beyond the largest of 400, of a Pareto tail from there, would raise the mean.
        missing = (np.exp(log_weight.max()) / ((1 - k) * mean) - 1) / 400
        mcse = np.hypot(plain, np.log1p(missing))
        assert float(found["mcse"]) == pytest.approx(mcse, rel=1e-9)
        ends = np.log(mean) + np.array([-0.1, 0.3]) * mcse / plain
        expected = np.sort(direction * ends)
        np.testing.assert_allclose(
            [found["interval_lower"], found["interval_upper"]], expected, rtol=1e-9
        )

    def test_steps(self) -> None:
        by_step = group(to_container(finished_run(self.betas), {}, {}, {}), "annealing")
        np.testing.assert_allclose(by_step["ess"], 50)
        np.testing.assert_array_equal(by_step["beta"], np.tile(self.betas[1:], (2, 1)))
        assert by_step["step"].values.tolist() == [1, 2, 3, 4, 5]

    @pytest.mark.parametrize("direction", [1, -1])
    def test_steps_by_hand(self, direction: int) -> None:
        """Running estimates of forward runs start at the reference, those of reverse runs end."""
        run = finished_run(self.betas[::direction], log_reference=10.0)
        velocity = np.linspace(1, 2, 10).reshape(5, 2)
        run = replace(run, stats=run.stats._replace(
            velocity=velocity, velocity_squared=velocity**2 + 0.7, nan=np.full((5, 2), 3.0)
        ))  # fmt: skip
        by_step = group(to_container(run, {}, {}, {}), "annealing")
        means = run.stats.log_w - np.log(50)
        log_z = 10 + means if direction == 1 else 10 + means - means[-1]
        np.testing.assert_allclose(by_step["log_z"], log_z.T)
        np.testing.assert_allclose(by_step["fisher_information"], 0.7)
        np.testing.assert_allclose(by_step["nan_share"], 3 / 50)

    def test_estimates_of_the_chains(self) -> None:
        run = finished_run(self.betas, log_reference=10.0)
        found = group(to_container(run, {}, {}, {}), "sample_stats")["log_marginal_likelihood"]
        expected = 10 + np.log(np.exp(run.log_weight).mean(axis=1))
        np.testing.assert_allclose(found, expected)

    def test_a_thousand_steps_are_kept(self) -> None:
        long = finished_run(np.linspace(0, 1, 3001))
        steps = group(to_container(long, {}, {}, {}), "annealing")["step"].values
        assert len(steps) == 1000
        assert steps[[0, -1]].tolist() == [1, 3000]

    def test_ladder(self) -> None:
        """Positions are not stored."""
        ladder = group(to_container(finished_run(self.betas), {}, {}, {}), "ladder")
        assert ladder["beta"].values.tolist() == [0, 1]
        by_rung = {name: v.dims for name, v in ladder.data_vars.items()}
        by_particle = ("log_weight", "log_ratio_up", "log_ratio_down", "velocity")
        assert by_rung == {
            **dict.fromkeys(by_particle, ("rung", "chain", "particle")),
            **dict.fromkeys(("beta", "step"), ("rung",)),
        }

    def test_populations(self) -> None:
        idata = to_container(finished_run(self.betas, population_size=10), {}, {}, {})
        population = group(idata, "annealing")["population"].values
        np.testing.assert_array_equal(population, np.repeat(np.arange(5), 10))
        evidence = group(idata, "evidence")
        half_width = evidence["interval_upper"] - evidence["log_evidence"]
        # Student's quantile for ten populations.
        assert half_width == pytest.approx(2.262157 * float(evidence["mcse"]), rel=1e-6)
