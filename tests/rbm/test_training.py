"""Training by contrastive divergence, and the scores that it monitors."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scipy.special import expit

from pymc_anneal.rbm import training
from pymc_anneal.rbm.exact import log_partition_function
from pymc_anneal.rbm.model import RBM
from pymc_anneal.rbm.training import (
    TrainedRBM,
    fit_moments_pcd,
    pseudo_log_likelihood,
    reconstruction_error,
    train,
)
from tests.rbm_cases import enumerate_states, exact_draws, parameters, random_rbm, states

# Two bars of three units, each on or off, and some noise: dependent units.
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
    """Return the mean log likelihood of independent units with the frequencies of the data."""
    p = data.mean(axis=0)
    return float((p * np.log(p) + (1 - p) * np.log(1 - p)).sum())


# Independent units, plus most of the information that the bars share.
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
    @pytest.mark.slow
    @pytest.mark.parametrize("method", ["cd", "pcd"])
    def test_raises_the_likelihood(self, trained, method: str) -> None:
        model = trained[method].model
        assert (model.n_visible, model.n_hidden) == (6, HIDDEN)
        assert model.weights.dtype == np.float32
        assert mean_log_likelihood(model) > LEARNED

    @pytest.mark.slow
    @pytest.mark.parametrize("method", ["cd", "pcd"])
    def test_few_updates_are_not_enough(self, trained, method: str) -> None:
        assert trained[method].history["log_likelihood"][0] < independent() + 0.3

    def test_the_wrong_sign_is_found(self) -> None:
        def backwards(share):
            return -0.01

        result = train(DATA, HIDDEN, **QUICK | {"learning_rate": backwards, "updates": 523})
        assert mean_log_likelihood(result.model) < independent()
        assert result.history["update"][-1] == 523  # not a multiple of the number of reports

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
        # The first updates only: later ones differ by rounding.
        with jax.enable_x64(True):
            result = train(DATA, HIDDEN, method="pcd", monitor=monitor, **QUICK)
        assert result.model.weights.dtype == np.float32
        found, expected = (r.history["log_likelihood"][0] for r in (result, trained["pcd"]))
        assert found == pytest.approx(expected, rel=1e-5)

    def test_monitor(self, trained) -> None:
        values = trained["pcd"].history["log_likelihood"]
        assert values[-1] == pytest.approx(mean_log_likelihood(trained["pcd"].model))
        assert values[-1] > values[0] + 0.5

    def test_ctrl_c_returns_the_last_report(self) -> None:
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
        np.testing.assert_allclose(
            enumerate_states(model).moments.visible, grey.mean(axis=0), atol=0.06
        )


class TestCheckpoint:
    @pytest.mark.parametrize("method", ["cd", "pcd"])
    def test_an_interrupted_training_resumes_to_the_same_bits(self, tmp_path, method: str) -> None:
        settings = QUICK | {"updates": 500, "method": method, "momentum": 0.5}
        whole = train(DATA, HIDDEN, **settings)
        file, calls = tmp_path / "training.npz", []

        def interrupt_once(model: RBM) -> dict[str, float]:
            calls.append(model)
            if len(calls) == 20:
                raise KeyboardInterrupt
            return {}

        settings |= {"checkpoint": file, "monitor": interrupt_once}
        assert train(DATA, HIDDEN, **settings).interrupted
        resumed = train(DATA, HIDDEN, **settings)
        assert not resumed.interrupted
        assert len(calls) == 51  # the twentieth report was made twice
        np.testing.assert_array_equal(parameters(resumed.model), parameters(whole.model))
        assert set(resumed.history) == set(whole.history)
        for name, values in whole.history.items():
            np.testing.assert_array_equal(resumed.history[name], values)
        again = train(DATA, HIDDEN, **settings)  # finished: nothing is left to do
        assert len(calls) == 51
        np.testing.assert_array_equal(parameters(again.model), parameters(whole.model))

    @pytest.mark.parametrize(
        "other", [{"updates": 60}, {"random_seed": 2}, {"learning_rate": 0.2}, {"data": 1 - DATA}]
    )
    def test_of_another_training(self, tmp_path, other: dict[str, Any]) -> None:
        settings = {"data": DATA, "n_hidden": HIDDEN} | QUICK | {"updates": 50}
        settings |= {"checkpoint": tmp_path / "training.npz"}
        train(**settings)
        with pytest.raises(ValueError, match="belongs to another training"):
            train(**settings | other)

    def test_without_a_seed(self, tmp_path) -> None:
        settings = QUICK | {"checkpoint": tmp_path / "training.npz", "random_seed": None}
        with pytest.raises(ValueError, match="`checkpoint` needs a `random_seed`"):
            train(DATA, HIDDEN, **settings)

    def test_ctrl_c_while_fitting_moments_is_no_result(self, monkeypatch) -> None:
        def interrupt(*arguments: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("pymc_anneal.rbm.training.run_updates", interrupt)
        model = random_rbm(4, 3)
        with pytest.raises(KeyboardInterrupt):
            fit_moments_pcd(enumerate_states(model).moments, model, updates=10, random_seed=1)


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
        # The frequencies of single units stay.
        np.testing.assert_allclose(
            enumerate_states(decayed).moments.visible, DATA.mean(axis=0), atol=0.15
        )

    def test_momentum_goes_further(self, trained) -> None:
        slow = QUICK | {"learning_rate": 0.01, "updates": 1000}
        model = train(DATA, HIDDEN, momentum=0.9, **slow).model
        assert mean_log_likelihood(model) > independent() + 0.3
        # The same total step without momentum: a tenth of the updates at ten times the rate.
        history = trained["pcd"].history
        assert history["log_likelihood"][history["update"] <= 100].max() < independent() + 0.2

    def test_start_continues(self, trained) -> None:
        start = trained["pcd"].model
        result = train(DATA, HIDDEN, start=start, monitor=monitor, **QUICK)
        assert result.history["log_likelihood"][0] > LEARNED
        assert (parameters(result.model) != parameters(start)).any()

    def test_a_start_in_double_precision(self) -> None:
        # As `RBM` makes from lists, and scikit-learn from float64 data.
        start = random_rbm(6, HIDDEN)
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
            ({"data": 255 * DATA}, "`data` ranges from 0.0 to 255.0, expected binary values"),
            ({"data": -DATA}, "`data` ranges from -1.0 to"),
            ({"data": np.where(DATA > 2, 0, np.nan)}, "`data` ranges from nan to nan"),
            ({"data": DATA[0]}, r"shape \(6,\)"),
            ({"data": DATA[:0]}, r"shape \(0, 6\)"),
            ({"start": random_rbm(5, HIDDEN, dtype=np.float32)}, "`start`"),
            ({"start": random_rbm(6, 3, dtype=np.float32)}, "`start`"),
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
        model, data = random_rbm(4, 3), states(4)
        rebuilt = model.visible_probability(model.hidden_probability(data))
        expected = np.mean([((a - b) ** 2).sum() for a, b in zip(data, rebuilt, strict=True)])
        assert reconstruction_error(model, data) == pytest.approx(expected, rel=1e-12)

    def test_pseudo_log_likelihood(self) -> None:
        # The average over many rows of one random unit each is that over all units.
        model = random_rbm(4, 3, scale=2.0)
        table = enumerate_states(model).probability.reshape([2] * 4)
        total = np.zeros([2] * 4)
        for axis in range(4):
            total += np.log(table / table.sum(axis=axis, keepdims=True))
        rows = exact_draws(model, 20_000, np.random.default_rng(1))
        each = total.ravel()[(rows @ 2 ** np.arange(4)).astype(int)]
        found = pseudo_log_likelihood(model, rows, random_seed=2)
        assert found == pytest.approx(each.mean(), abs=0.05)
        assert abs(found - model.log_likelihood(rows, enumerate_states(model).log_z).mean()) > 0.06

    def test_of_what_a_machine_excludes(self) -> None:
        assert pseudo_log_likelihood(RBM([800.0], [0.0], [[0.0]]), [[0]]) == -800.0

    def test_of_independent_units_it_is_the_likelihood(self) -> None:
        model = RBM(np.full(5, 0.7), np.zeros(2), np.zeros((5, 2)))
        data = np.ones((30, 5))
        assert pseudo_log_likelihood(model, data) == pytest.approx(5 * np.log(expit(0.7)))

    def test_grey_values_are_rounded(self) -> None:
        model = random_rbm(4, 3)
        data = np.random.default_rng(3).uniform(size=(20, 4))
        assert pseudo_log_likelihood(model, data) == pseudo_log_likelihood(model, data.round())

    @pytest.mark.parametrize("function", [reconstruction_error, pseudo_log_likelihood])
    def test_bad_data(self, function) -> None:
        with pytest.raises(ValueError, match="`data` has shape"):
            function(random_rbm(4, 3), np.zeros((5, 3)))
        with pytest.raises(ValueError, match="`data` ranges from 0.0 to 2.0"):
            function(random_rbm(4, 3), np.array([[0.0, 2.0, 0.0, 0.0]]))


def test_a_training_that_diverges() -> None:
    def rate(share):
        return 0.1 / jnp.maximum(0.5 - share, 0.0)

    with pytest.raises(ValueError, match="diverged: after .* updates parameters are infinite"):
        train(np.eye(4), 2, updates=20, learning_rate=rate, random_seed=1, progressbar=False)


def test_a_trained_machine_in_place_of_its_rbm() -> None:
    found = train(np.eye(4), 2, updates=2, random_seed=1, progressbar=False)
    with pytest.raises(AttributeError, match="its RBM has: pass `trained.model`"):
        log_partition_function(found)
    with pytest.raises(AttributeError, match="has no attribute 'colour'$"):
        _ = found.colour


def test_weights_and_particles_have_streams_of_their_own(monkeypatch) -> None:
    streams = []

    def sample(self, draws, *, steps, random_seed):
        streams.append(np.random.default_rng(random_seed).random())
        return np.zeros((draws, self.n_visible))

    def first(data, n_hidden, seed):
        streams.append(np.random.default_rng(seed).random())
        return initial(data, n_hidden, seed)

    initial = training._initial_rbm
    monkeypatch.setattr(training, "_initial_rbm", first)
    monkeypatch.setattr(RBM, "sample", sample)
    train(np.eye(4), 2, updates=2, random_seed=1, progressbar=False)
    assert streams[0] != streams[1]
