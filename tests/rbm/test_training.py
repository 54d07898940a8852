"""Training of machines, their moments, and the splines between them."""

from typing import Any

import jax
import numpy as np
import pytest

from scipy.special import expit

from pymc_anneal import rbm
from pymc_anneal.rbm.exact import Moments, log_partition_function
from pymc_anneal.rbm.model import RBM
from pymc_anneal.rbm.moment_spline import (
    MomentSpline,
    binned_costs,
    fit_moments_exact,
    moment_spline,
)
from pymc_anneal.rbm.moments import average_moments, data_moments, gibbs_moments, reference_moments
from pymc_anneal.rbm.training import (
    TrainedRBM,
    fit_moments_pcd,
    pseudo_log_likelihood,
    reconstruction_error,
    train,
)
from pymc_anneal.schedules.validate import check_schedule
from tests.rbm_cases import (
    enumerated,
    exact_draws,
    flat,
    independent_units,
    machine,
    parameters,
    states,
)

# Two bars of three units, each on or off, and some noise: independent units cannot do it.
BARS = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 3, axis=1)
DATA = np.where(
    np.random.default_rng(1).uniform(size=(200, 6)) < 0.05,
    1 - np.tile(BARS, (50, 1)),
    np.tile(BARS, (50, 1)),
).astype(np.float32)
HIDDEN = 4
QUICK: dict[str, Any] = {
    "updates": 3000,
    "batch_size": 20,
    "particles": 50,
    "learning_rate": 0.1,
    "random_seed": 1,
    "progressbar": False,
}


def mean_log_likelihood(model: RBM, data: np.ndarray = DATA) -> float:
    return float(model.log_likelihood(data, log_partition_function(model)).mean())


def independent(data: np.ndarray = DATA) -> float:
    """Mean log likelihood of independent units with the frequencies of the data."""
    p = data.mean(axis=0)
    return float((p * np.log(p) + (1 - p) * np.log(1 - p)).sum())


# Better than independent units by most of what the bars are worth.
LEARNED = independent() + 1.2


def monitor(model: RBM) -> dict[str, float]:
    return {"log_likelihood": mean_log_likelihood(model)}


@pytest.fixture(scope="module")
def trained() -> dict[str, TrainedRBM]:
    return {
        method: train(DATA, HIDDEN, method=method, monitor=monitor, **QUICK)
        for method in ("cd", "pcd")
    }


class TestTraining:
    @pytest.mark.parametrize("method", ["cd", "pcd"])
    def test_raises_the_likelihood(self, trained, method: str) -> None:
        model = trained[method].model
        assert (model.n_visible, model.n_hidden) == (6, HIDDEN)
        assert model.weights.dtype == np.float32
        assert mean_log_likelihood(model) > LEARNED

    @pytest.mark.parametrize("method", ["cd", "pcd"])
    def test_few_updates_are_not_enough(self, trained, method: str) -> None:
        assert trained[method].history["log_likelihood"][0] < independent() + 0.3

    def test_the_wrong_sign_is_found(self) -> None:
        def backwards(share):
            return -0.01

        result = train(DATA, HIDDEN, **QUICK | {"learning_rate": backwards, "updates": 523})
        assert mean_log_likelihood(result.model) < independent()
        assert result.history["update"][-1] == 523  # no multiple of the number of reports

    def test_the_methods_differ(self, trained) -> None:
        assert (trained["cd"].model.weights != trained["pcd"].model.weights).any()

    def test_history(self, trained) -> None:
        history = trained["pcd"].history
        assert not trained["pcd"].interrupted
        names = {"update", "reconstruction_error", "pseudo_log_likelihood", "log_likelihood"}
        assert set(history) == names
        assert history["update"][-1] == QUICK["updates"]
        assert (np.diff(history["update"]) > 0).all()
        assert all(len(values) == len(history["update"]) for values in history.values())
        model = trained["pcd"].model
        assert history["reconstruction_error"][-1] == pytest.approx(
            reconstruction_error(model, DATA), rel=1e-6
        )
        assert history["pseudo_log_likelihood"][-1] == pytest.approx(
            pseudo_log_likelihood(model, DATA), rel=1e-6
        )
        assert history["reconstruction_error"][-1] < 0.5 * history["reconstruction_error"][0]

    def test_a_seed_is_a_result(self, trained) -> None:
        again = train(DATA, HIDDEN, method="pcd", **QUICK).model
        np.testing.assert_array_equal(parameters(again), parameters(trained["pcd"].model))
        other = train(DATA, HIDDEN, method="pcd", **QUICK | {"random_seed": 2}).model
        assert (parameters(other) != parameters(again)).any()

    def test_the_setting_of_the_caller_does_not_matter(self, trained) -> None:
        # The first updates; later ones part company by rounding.
        with jax.enable_x64(True):
            result = train(DATA, HIDDEN, method="pcd", monitor=monitor, **QUICK)
        assert result.model.weights.dtype == np.float32
        found, expected = (r.history["log_likelihood"][0] for r in (result, trained["pcd"]))
        assert found == pytest.approx(expected, rel=1e-5)

    def test_monitor(self, trained) -> None:
        values = trained["pcd"].history["log_likelihood"]
        assert values[-1] == pytest.approx(mean_log_likelihood(trained["pcd"].model))
        assert values[-1] > values[0] + 0.5

    def test_ctrl_c_keeps_what_there_is(self) -> None:
        calls = []

        def interrupt(model: RBM) -> dict[str, float]:
            calls.append(model)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return {}

        result = train(DATA, HIDDEN, monitor=interrupt, **QUICK)
        assert result.interrupted
        assert len(result.history["update"]) == 2
        assert result.history["update"][-1] < QUICK["updates"]
        assert np.isfinite(parameters(result.model)).all()

    @pytest.mark.parametrize("kind", [bool, np.uint8, np.float64])
    def test_kinds_of_data(self, trained, kind: type) -> None:
        model = train(DATA.astype(kind), HIDDEN, **QUICK).model
        np.testing.assert_array_equal(parameters(model), parameters(trained["pcd"].model))

    def test_probabilities_enter_as_they_are(self) -> None:
        grey = np.tile([[0.2, 0.7], [0.9, 0.4]], (10, 1))
        model = train(grey, 2, **QUICK | {"batch_size": 200, "learning_rate": 0.02}).model
        np.testing.assert_allclose(enumerated(model).moments.visible, grey.mean(axis=0), atol=0.06)


class TestArguments:
    def test_learning_rate_as_a_function_of_the_share_done(self) -> None:
        def first_half(share):
            return 0.1 * (share < 0.5)

        stopped = train(DATA, HIDDEN, **QUICK | {"learning_rate": first_half})
        error = stopped.history["reconstruction_error"]
        half = stopped.history["update"] >= QUICK["updates"] / 2
        assert np.ptp(error[half]) == 0
        assert np.ptp(error[~half]) > 0

    def test_weight_decay_shrinks_weights_only(self, trained) -> None:
        decayed = train(DATA, HIDDEN, method="pcd", weight_decay=0.1, **QUICK).model
        norm = np.linalg.norm(decayed.weights)
        assert norm < 0.7 * np.linalg.norm(trained["pcd"].model.weights)
        # The units by themselves keep their frequencies.
        np.testing.assert_allclose(
            enumerated(decayed).moments.visible, DATA.mean(axis=0), atol=0.15
        )

    def test_momentum_goes_further(self, trained) -> None:
        slow = QUICK | {"learning_rate": 0.01, "updates": 1000}
        model = train(DATA, HIDDEN, momentum=0.9, **slow).model
        assert mean_log_likelihood(model) > independent() + 0.3
        # As far as without it: a tenth of the updates at ten times the rate.
        history = trained["pcd"].history
        assert history["log_likelihood"][history["update"] <= 100].max() < independent() + 0.2

    def test_start_continues(self, trained) -> None:
        start = trained["pcd"].model
        result = train(DATA, HIDDEN, start=start, monitor=monitor, **QUICK)
        assert result.history["log_likelihood"][0] > LEARNED
        assert (parameters(result.model) != parameters(start)).any()

    def test_a_start_in_double_precision(self) -> None:
        # What `RBM` makes of lists, and scikit-learn of float64.
        start = machine(6, HIDDEN)
        model = train(DATA, HIDDEN, start=start, **QUICK | {"updates": 60}).model
        assert model.weights.dtype == np.float64

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"method": "wrong"}, 'Unknown `method` \'wrong\'; expected "cd" or "pcd"'),
            ({"n_hidden": 0}, "`n_hidden` is 0, expected a positive whole number"),
            ({"gibbs_steps": 0}, "`gibbs_steps` is 0, expected a positive whole number"),
            ({"updates": 1.5}, "`updates` is 1.5, expected a positive whole number"),
            ({"batch_size": -1}, "`batch_size` is -1, expected a positive whole number"),
            ({"particles": 0}, "`particles` is 0, expected a positive whole number"),
            ({"random_seed": "a"}, "`random_seed` is 'a'"),
            ({"data": 255 * DATA}, "range from 0.0 to 255.0, expected binary values"),
            ({"data": -DATA}, "range from -1.0 to"),
            ({"data": np.where(DATA > 2, 0, np.nan)}, "range from nan to nan"),
            ({"data": DATA[0]}, r"shape \(6,\)"),
            ({"data": DATA[:0]}, r"shape \(0, 6\)"),
            ({"start": machine(5, HIDDEN, dtype=np.float32)}, "`start`"),
            ({"start": machine(6, 3, dtype=np.float32)}, "`start`"),
            ({"learning_rate": np.nan}, "`learning_rate`"),
            ({"momentum": 1.5}, "`momentum`"),
            ({"weight_decay": -1.0}, "`weight_decay`"),
        ],
    )
    def test_bad_input(self, arguments: dict[str, Any], message: str) -> None:
        arguments = {"data": DATA, "n_hidden": HIDDEN} | QUICK | {"updates": 50} | arguments
        with pytest.raises(ValueError, match=message):
            train(**arguments)


class TestMonitors:
    def test_reconstruction_error(self) -> None:
        model, data = machine(4, 3), states(4)
        rebuilt = model.visible_probability(model.hidden_probability(data))
        expected = np.mean([((a - b) ** 2).sum() for a, b in zip(data, rebuilt, strict=True)])
        assert reconstruction_error(model, data) == pytest.approx(expected, rel=1e-12)

    def test_pseudo_log_likelihood(self) -> None:
        # Over many rows the flipped units stand for all of them.
        model = machine(4, 3, scale=2.0)
        table = enumerated(model).probability.reshape([2] * 4)
        total = np.zeros([2] * 4)
        for axis in range(4):
            total += np.log(table / table.sum(axis=axis, keepdims=True))
        rows = exact_draws(model, 20_000, np.random.default_rng(1))
        each = total.ravel()[(rows @ 2 ** np.arange(4)).astype(int)]
        found = pseudo_log_likelihood(model, rows, random_seed=2)
        assert found == pytest.approx(each.mean(), abs=0.05)
        assert abs(found - model.log_likelihood(rows, enumerated(model).log_z).mean()) > 0.06

    def test_of_independent_units_it_is_the_likelihood(self) -> None:
        model = RBM(np.full(5, 0.7), np.zeros(2), np.zeros((5, 2)))
        data = np.ones((30, 5))
        assert pseudo_log_likelihood(model, data) == pytest.approx(5 * np.log(expit(0.7)))

    def test_grey_values_are_rounded(self) -> None:
        model = machine(4, 3)
        data = np.random.default_rng(3).uniform(size=(20, 4))
        assert pseudo_log_likelihood(model, data) == pseudo_log_likelihood(model, data.round())

    @pytest.mark.parametrize("function", [reconstruction_error, pseudo_log_likelihood])
    def test_bad_data(self, function) -> None:
        with pytest.raises(ValueError, match="Data have shape"):
            function(machine(4, 3), np.zeros((5, 3)))
        with pytest.raises(ValueError, match="range from 0.0 to 2.0"):
            function(machine(4, 3), np.array([[0.0, 2.0, 0.0, 0.0]]))


class TestMoments:
    @pytest.mark.parametrize("hidden", [False, True])
    def test_of_a_reference(self, hidden: bool) -> None:
        reference = independent_units(4, 3, hidden=hidden)
        expected = flat(enumerated(reference).moments)
        np.testing.assert_allclose(flat(reference_moments(reference)), expected, rtol=1e-12)

    def test_of_a_reference_with_weights(self) -> None:
        with pytest.raises(ValueError, match="has weights; expected a machine of independent"):
            reference_moments(machine(4, 3))

    def test_average(self) -> None:
        first, second = (enumerated(machine(4, 3, seed=s)).moments for s in (1, 2))
        found = average_moments(first, second, 0.3)
        assert isinstance(found, Moments)
        np.testing.assert_allclose(flat(found), 0.7 * flat(first) + 0.3 * flat(second))
        np.testing.assert_allclose(flat(average_moments(first, second, 0.0)), flat(first))
        np.testing.assert_allclose(flat(average_moments(first, second, 1.0)), flat(second))

    def test_of_data_by_hand(self) -> None:
        model = RBM([0.0, 0.0], [1.0], [[2.0], [-1.0]])
        found = data_moments(model, [[1, 0], [1, 1]])
        h = expit(np.array([3.0, 2.0]))
        np.testing.assert_allclose(found.visible, [1.0, 0.5])
        np.testing.assert_allclose(found.hidden, [h.mean()])
        np.testing.assert_allclose(found.products, [[h.mean()], [h[1] / 2]])

    def test_of_weighted_data(self) -> None:
        model, data = machine(4, 3), states(4)
        exact = enumerated(model)
        for scale in (1.0, 7.0):
            found = data_moments(model, data, scale * exact.probability)
            np.testing.assert_allclose(flat(found), flat(exact.moments), rtol=1e-12)
        twice = data_moments(model, data[[3, 3, 5]])
        np.testing.assert_allclose(flat(data_moments(model, data[[3, 5]], [2, 1])), flat(twice))
        assert not np.allclose(flat(data_moments(model, data[[3, 5]])), flat(twice))

    @pytest.mark.parametrize(
        "weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [np.nan, 1.0], [[1.0, 1.0]], [1.0, 1.0, 1.0]]
    )
    def test_bad_weights_of_data(self, weights) -> None:
        with pytest.raises(ValueError, match=r"`weights` has shape .*, expected \(2,\) numbers"):
            data_moments(machine(4, 3), np.zeros((2, 4)), weights)


class TestGibbsMoments:
    RUNS = 20
    ARGUMENTS = {"chains": 100, "steps": 150, "burn_in": 50}

    @pytest.fixture(scope="class")
    @classmethod
    def runs(cls) -> tuple[RBM, np.ndarray]:
        model = machine(4, 3, scale=0.8, dtype=np.float32)
        found = [gibbs_moments(model, random_seed=i, **cls.ARGUMENTS) for i in range(cls.RUNS)]
        return model, np.array([flat(f) for f in found])

    def agrees(self, runs: np.ndarray, expected: np.ndarray) -> bool:
        error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
        return bool((np.abs(runs.mean(axis=0) - expected) < 6 * error).all())

    def test_against_exact_ones(self, runs) -> None:
        model, values = runs
        assert self.agrees(values, flat(enumerated(model).moments))
        assert values.std(axis=0).max() < 0.02

    def test_wrong_twins_are_found(self, runs) -> None:
        model, values = runs
        other = RBM(model.visible_bias, model.hidden_bias, model.weights + 0.1)
        assert not self.agrees(values, flat(enumerated(other).moments))
        assert not self.agrees(values, flat(enumerated(model).moments) * 1.02)

    def test_seeds_and_types(self, runs) -> None:
        model, values = runs
        again = gibbs_moments(model, random_seed=0, **self.ARGUMENTS)
        assert isinstance(again, Moments)
        assert [np.shape(m) for m in again] == [(4,), (3,), (4, 3)]
        np.testing.assert_array_equal(flat(again), values[0])
        assert (values[0] != values[1]).all()

    def test_burn_in_forgets_the_start(self) -> None:
        # Held units: the chains stay where they start, unless they have time.
        model = RBM(np.full(2, -2.0), np.full(2, -2.0), 4 * np.eye(2))
        exact = enumerated(model).moments.visible
        start = np.ones((500, 2))
        arguments = {"chains": 500, "start": start, "random_seed": 1}
        cold = gibbs_moments(model, steps=2, burn_in=0, **arguments).visible
        warm = gibbs_moments(model, steps=400, burn_in=200, **arguments).visible
        assert (cold > 0.65).all()
        assert (exact < 0.55).all()
        np.testing.assert_allclose(warm, exact, atol=0.05)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"chains": 0}, "`chains` is 0, expected a positive whole number"),
            ({"steps": 0}, "`steps` is 0, expected a positive whole number"),
            ({"burn_in": 150}, "`burn_in` is 150, expected at least 0 and below `steps`, 150"),
            ({"burn_in": -1}, "`burn_in` is -1, expected at least 0"),
            ({"start": np.zeros((100, 3))}, "shape"),
            ({"start": np.zeros((7, 4))}, "`start`"),
        ],
    )
    def test_bad_input(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            gibbs_moments(machine(4, 3), **self.ARGUMENTS | arguments)


TARGET = machine(4, 3, seed=3, scale=0.8)
START = rbm.uniform_reference(4, 3, np.float32)


def distance(model: RBM, target: Moments) -> float:
    return float(np.abs(flat(enumerated(model).moments) - flat(target)).max())


class TestMatching:
    wanted = enumerated(TARGET).moments

    def test_by_persistent_contrastive_divergence(self) -> None:
        assert distance(START, self.wanted) > 0.2
        found = fit_moments_pcd(
            self.wanted, START, updates=8000, learning_rate=0.05, particles=400, random_seed=1
        )
        assert found.weights.dtype == np.float32
        assert distance(found, self.wanted) < 0.02

    def test_exactly(self) -> None:
        found = fit_moments_exact(self.wanted, START)
        assert found.weights.dtype == np.float32
        assert distance(found, self.wanted) < 5e-5
        double = fit_moments_exact(self.wanted, START.astype(np.float64))
        assert double.weights.dtype == np.float64
        assert distance(double, self.wanted) < 2e-5
        # An exponential family: the moments determine the machine.
        np.testing.assert_allclose(parameters(double), parameters(TARGET), atol=0.02)

    def test_few_iterations_are_not_enough(self) -> None:
        found = fit_moments_exact(self.wanted, START, max_iterations=2)
        assert distance(found, self.wanted) > 1e-3

    def test_a_start_in_double_precision(self) -> None:
        found = fit_moments_pcd(
            self.wanted, START.astype(np.float64), updates=100, particles=400, random_seed=1
        )
        assert found.weights.dtype == np.float64

    @pytest.mark.parametrize("function", [fit_moments_pcd, fit_moments_exact])
    def test_moments_of_another_shape(self, function) -> None:
        with pytest.raises(ValueError, match="shape"):
            function(enumerated(machine(3, 3)).moments, START)

    @pytest.mark.parametrize("name", ["updates", "particles"])
    def test_bad_counts(self, name: str) -> None:
        with pytest.raises(ValueError, match=f"`{name}` is 0, expected a positive whole number"):
            fit_moments_pcd(self.wanted, START, **{name: 0})


REFERENCE = independent_units(4, 3, hidden=True)
KNOTS = [0.2, 0.5, 0.9]


@pytest.fixture(scope="module")
def spline() -> MomentSpline:
    return moment_spline(TARGET, REFERENCE, knots=KNOTS, method="exact")


def path_cost(knots: np.ndarray, models: list[RBM]) -> float:
    """Cost functional of a spline: each bin's divergence over its width."""
    costs = binned_costs(models, [enumerated(m).moments for m in models])
    return float((costs / np.diff(knots)).sum())


class TestMomentSpline:
    def test_ends_and_knots(self, spline: MomentSpline) -> None:
        np.testing.assert_allclose(spline.knots, [0.0, *KNOTS, 1.0])
        assert len(spline.models) == len(spline.moments) == 5
        np.testing.assert_array_equal(parameters(spline.models[0]), parameters(REFERENCE))
        np.testing.assert_array_equal(parameters(spline.models[-1]), parameters(TARGET))
        with jax.enable_x64(True):
            for knot, model in zip(spline.knots, spline.models, strict=True):
                at = jax.tree.map(np.asarray, spline.path.model_at(knot))
                np.testing.assert_allclose(parameters(at), parameters(model), atol=1e-6)

    def test_moments_of_the_knots_are_averages(self, spline: MomentSpline) -> None:
        first, last = (flat(enumerated(m).moments) for m in (REFERENCE, TARGET))
        for knot, model, averaged in zip(spline.knots, spline.models, spline.moments, strict=True):
            expected = (1 - knot) * first + knot * last
            np.testing.assert_allclose(flat(averaged), expected, rtol=1e-10)
            np.testing.assert_allclose(flat(enumerated(model).moments), expected, atol=2e-5)

    def test_a_geometric_average_is_not_one_of_moments(self, spline: MomentSpline) -> None:
        middle = jax.tree.map(lambda a, b: 0.5 * a + 0.5 * b, REFERENCE, TARGET)
        assert distance(middle, spline.moments[2]) > 1e-3

    def test_theorem_2(self, spline: MomentSpline) -> None:
        # Moment averages and averages of parameters cost the same, (eta_1 - eta_0).(s_1 - s_0).
        first, last = (flat(enumerated(m).moments) for m in (REFERENCE, TARGET))
        expected = (parameters(TARGET) - parameters(REFERENCE)) @ (last - first)
        assert path_cost(spline.knots, spline.models) == pytest.approx(expected, rel=1e-3)
        geometric = [
            jax.tree.map(lambda a, b, k=k: (1 - k) * a + k * b, REFERENCE, TARGET)
            for k in spline.knots
        ]
        assert path_cost(spline.knots, geometric) == pytest.approx(expected, rel=1e-9)

    def test_theorem_2_is_about_these_paths(self, spline: MomentSpline) -> None:
        detour = [*spline.models[:2], machine(4, 3, seed=9, scale=0.3), *spline.models[3:]]
        assert path_cost(spline.knots, detour) > 1.05 * path_cost(spline.knots, spline.models)

    def test_costs_by_hand(self) -> None:
        models = [RBM([0.0], [0.0], [[0.0]]), RBM([1.0], [2.0], [[3.0]])]
        expected = [Moments([0.5], [0.5], [[0.25]]), Moments([0.6], [0.8], [[0.55]])]
        np.testing.assert_allclose(binned_costs(models, expected), [0.1 + 0.6 + 0.9])

    @pytest.mark.parametrize("steps", [4, 5, 100, 1001])
    def test_optimal_binned_schedule(self, spline: MomentSpline, steps: int) -> None:
        betas = spline.optimal_binned_schedule(steps)
        assert betas.shape == (steps + 1,)
        check_schedule(betas)
        counts = np.histogram(betas[:-1] + 1e-12, bins=spline.knots)[0]
        assert (counts >= 1).all()
        share = np.sqrt(binned_costs(spline.models, spline.moments))
        ideal = 1 + (steps - 4) * share / share.sum()
        assert np.abs(counts - ideal).max() <= 1

    def test_too_few_steps(self, spline: MomentSpline) -> None:
        with pytest.raises(ValueError, match="at least one for each of 4 bins"):
            spline.optimal_binned_schedule(3)

    def test_persistent_contrastive_divergence(self) -> None:
        model, reference = TARGET.astype(np.float32), REFERENCE
        arguments = {"updates": 5000, "learning_rate": 0.05, "particles": 400, "random_seed": 1}
        found = moment_spline(model, reference, knots=[0.5], **arguments)
        assert distance(found.models[1], found.moments[1]) < 0.03
        again = moment_spline(model, reference, knots=[0.5], **arguments)
        np.testing.assert_array_equal(parameters(found.models[1]), parameters(again.models[1]))
        leaves = jax.tree.leaves((found.path.start, found.path.change))
        assert {leaf.dtype for leaf in leaves} == {np.dtype(np.float32)}

    def test_a_machine_in_double_precision(self) -> None:
        found = moment_spline(TARGET, REFERENCE, knots=[0.5], updates=100, random_seed=1)
        assert {m.weights.dtype for m in found.models} == {np.dtype(np.float64)}
        assert found.path.start.weights.dtype == np.float64

    def test_target_moments_of_ones_own(self) -> None:
        data = exact_draws(TARGET, 500, np.random.default_rng(1))
        target = data_moments(TARGET, data)
        found = moment_spline(TARGET, REFERENCE, knots=[0.5], target=target, method="exact")
        np.testing.assert_array_equal(flat(found.moments[-1]), flat(target))
        averaged = average_moments(reference_moments(REFERENCE), target, 0.5)
        assert distance(found.models[1], averaged) < 2e-5

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"method": "wrong"}, "Unknown `method` 'wrong'; expected \"pcd\" or"),
            ({"knots": [0.5, 0.4]}, "not increasing"),
            ({"knots": [0.0, 0.5]}, "not increasing"),
            ({"reference": TARGET}, "has weights; expected a machine of independent units"),
            ({"reference": rbm.uniform_reference(4, 2)}, "shape"),
            ({"random_seed": "a"}, "`random_seed` is 'a'"),
            ({"method": "pcd", "updates": 0}, "`updates` is 0, expected a positive whole number"),
        ],
    )
    def test_bad_input(self, arguments: dict[str, Any], message: str) -> None:
        arguments = (
            {"model": TARGET.astype(np.float32), "reference": REFERENCE}
            | {
                "method": "exact",
                "knots": [0.5],
            }
            | arguments
        )
        with pytest.raises(ValueError, match=message):
            moment_spline(**arguments)
