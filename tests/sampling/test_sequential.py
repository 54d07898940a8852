"""Growing data: closed forms after each batch, thresholds, and designs of normal means."""

from importlib import import_module
from typing import ClassVar

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import integrate, interpolate, stats

import pymc_anneal as pma

from pymc_anneal.model.other_data import check_fit, copy_with
from pymc_anneal.results.sequential import Design, Sequential, reached
from pymc_anneal.sampling.sequential import _join

MODELS = ("effect", "null")
Y = np.random.default_rng(0).normal(0.6, 1.0, size=60)


def normal_mean(effect: bool) -> pm.Model:
    with pm.Model() as model:
        y = pm.Data("y", np.zeros(3))
        pm.Normal("obs", pm.Normal("mu", 0, 1) if effect else 0.0, 1, observed=y)
    return model


def exact(y: np.ndarray) -> float:
    """Log Bayes factor of ``mu ~ N(0, 1)`` against ``mu = 0`` for unit variance."""
    return float(-0.5 * np.log(1 + len(y)) + 0.5 * y.sum() ** 2 / (1 + len(y)))


def row(lower: float, upper: float, verdict: str = "trust") -> pd.Series:
    return pd.Series({"lower": lower, "upper": upper, "verdict": verdict})


def test_the_whole_interval_passes() -> None:
    assert reached(row(2.4, 9.0), 10.0, MODELS) == "effect"
    assert reached(row(-9.0, -2.4), 10.0, MODELS) == "null"
    assert reached(row(2.2, 9.0), 10.0, MODELS) == ""
    assert reached(row(-9.0, -2.2), 10.0, MODELS) == ""
    assert reached(row(2.4, 9.0, "do not trust: k"), 10.0, MODELS) == ""


def test_shares_by_hand() -> None:
    """Four studies: one for each model at once, one that turns, and one that never knows."""
    log_factor = np.array([[3.0, 3.0], [-3.0, -3.0], [3.0, -3.0], [0.0, 1.0]])
    found = Design(log_factor, 0 * log_factor, np.array([10, 20]), 10.0, MODELS)
    table = found.table
    assert table["effect"].tolist() == [0.5, 0.25]
    assert table["null"].tolist() == [0.25, 0.5]
    assert table["neither"].tolist() == [0.25, 0.25]
    assert table["effect, by n"].tolist() == [0.5, 0.5]
    assert table["null, by n"].tolist() == [0.25, 0.25]  # the third one had stopped
    assert "4 simulated studies" in repr(found)
    assert "effect, by n" in found._repr_html_()
    assert pma.plot_design(found).get_ylabel() == "share with 10 : 1 or more"


def test_rows_of_batches_are_joined() -> None:
    joined = _join([{"y": [1.0]}, {"y": [2.0, 3.0]}])
    assert joined["y"].tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match=r"different names, expected \['y'\]"):
        _join([{"y": [1.0]}, {"x": [1.0]}])
    with pytest.raises(ValueError, match="different shapes by name"):
        _join([{"y": [1.0]}, {"y": [[1.0, 2.0]]}])


@pytest.fixture
def no_run(monkeypatch) -> None:
    """Let runs fail: what is refused is refused before the first one."""

    def run(*args, **settings):
        pytest.fail("a run was made")

    for name in ("sequential", "intrinsic_bayes_factor", "count", "fractional_evidence"):
        module = import_module(f"pymc_anneal.sampling.{name}")
        monkeypatch.setattr(module, "sample_ais", run)


# Data that are none, with what the error says of them.
NO_DATA = [
    ({"y": [1.0, np.nan]}, "'y' in .* has 1 NaN of 2 entries"),
    ({"y": []}, "'y' in .* is an array without rows"),
    ({"y": 1.0}, "'y' in .* is a single number"),
    ({"y": ["a", "b"]}, "'y' in .* has entries of type"),
    ({"y": np.zeros((2, 2))}, r"'y' have the shape .*, expected 1 dimensions"),
    ({}, "is empty, expected arrays of pm.Data by name"),
    (Y, "is of type ndarray, expected a dict of pm.Data"),
    (None, "is None, expected a dict of pm.Data"),
]


@pytest.mark.usefixtures("no_run")
@pytest.mark.parametrize(("data", "message"), NO_DATA)
def test_data_that_are_none(data, message: str) -> None:
    models = {"effect": normal_mean(True), "null": normal_mean(False)}
    calls = [
        lambda: pma.sequential(models, [data]),
        lambda: pma.intrinsic_bayes_factor(models, data, training=1),
        lambda: pma.design(models, lambda rng, n: data, 2, draws=1),
    ]
    for call in calls:
        with pytest.raises((ValueError, TypeError), match=message):
            call()


@pytest.mark.usefixtures("no_run")
def test_later_batches_are_looked_at_first() -> None:
    models = {"effect": normal_mean(True), "null": normal_mean(False)}
    with pytest.raises(ValueError, match=r"`batches\[1\]` has 1 NaN"):
        pma.sequential(models, [{"y": [1.0]}, {"y": [np.nan]}])
    with pytest.raises(TypeError, match="`batches` is of type dict, expected a list"):
        pma.sequential(models, {"y": Y})
    with pytest.raises(ValueError, match="has the rows {'y': 3}, expected 5"):
        pma.design(models, lambda rng, n: {"y": Y[:3]}, [2, 5], draws=1)


def of_fixed_shape(kind: str) -> pm.Model:
    """Return a model whose shapes do not follow its data."""
    with pm.Model(coords={"row": range(3)}) as model:
        y, x = pm.Data("y", np.zeros(3)), pm.Data("x", np.zeros(3))
        mu = {"effects": lambda: pm.Normal("effect", dims="row")}.get(kind, lambda: 0.0)()
        fixed = {"dims": {"dims": "row"}, "shape": {"shape": 3}}.get(kind, {})
        pm.Normal("obs", mu + (x if kind == "another" else 0.0), 1, observed=y, **fixed)
        pm.Bernoulli("of no observation", 0.5)
    return model


@pytest.mark.usefixtures("no_run")
@pytest.mark.parametrize("kind", ["dims", "shape", "effects", "another"])
def test_shapes_that_do_not_follow_the_data(kind: str) -> None:
    models = {"free": normal_mean(True), "fixed": of_fixed_shape(kind)}
    batches, message = [{"y": Y[:3]}, {"y": Y[3:6]}], "The model 'fixed' does not take data"
    with pytest.raises(ValueError, match=message):
        pma.sequential(models, batches)
    with pytest.raises(ValueError, match=message):
        pma.intrinsic_bayes_factor(models, {"y": Y[:3]}, training=1)
    with pytest.raises(ValueError, match=message):
        pma.design(models, lambda rng, n: {"y": Y[:n]}, [3, 6], draws=1)


@pytest.mark.parametrize("first", ["y", "x"])
def test_data_that_share_a_dimension_grow_together(first: str) -> None:
    with pm.Model() as model:
        data = {n: pm.Data(n, np.zeros(3), dims="row") for n in sorted("xy", key=first.__ne__)}
        pm.Normal("obs", data["x"], 1, observed=data["y"], dims="row")
    values = dict.fromkeys("xy", Y[:5])
    check_fit({"model": model}, values)
    assert copy_with(model, values)["obs"].shape.eval() == 5
    assert model["y"].get_value().shape == (3,)


@pytest.mark.usefixtures("no_run")
def test_a_dimension_that_a_variable_has_fixed() -> None:
    with pm.Model() as fixed:
        effect = pm.Normal("effect", shape=3, dims="row")
        pm.Normal("obs", effect, 1, observed=pm.Data("y", np.zeros(3), dims="row"), dims="row")
    models = {"free": normal_mean(True), "fixed": fixed}
    with pytest.raises(ValueError, match=r"pm.Data 'y' cannot have the shape \(5,\): .* `dims`"):
        pma.sequential(models, [{"y": Y[:5]}])


class TestArgumentsOfOneRun:
    """A file holds one run, and draws are of one posterior: refused before anything runs."""

    MODELS: ClassVar[dict] = {"effect": normal_mean(True), "null": normal_mean(False)}
    CALLS: ClassVar[dict] = {
        "sequential": lambda models, **s: pma.sequential(models, [{"y": Y}], **s),
        "design": lambda models, **s: pma.design(models, lambda rng, n: {"y": Y}, 60, **s),
        "intrinsic_bayes_factor": lambda models, **s: pma.intrinsic_bayes_factor(
            models, {"y": Y}, training=1, **s
        ),
        "count": lambda models, **s: pma.count(lambda k: models["null"], [0, 1], **s),
        "sample_models": lambda models, **s: pma.sample_models(models, **s),
        "robustness": lambda models, **s: pma.robustness(None, {"mu": "y"}, [1.0], **s),
    }

    @pytest.mark.usefixtures("no_run")
    @pytest.mark.parametrize("name", CALLS)
    def test_refused(self, name: str) -> None:
        with pytest.raises(TypeError, match=rf"A checkpoint holds one run, and `{name}` makes sev"):
            self.CALLS[name](self.MODELS, checkpoint="file")
        for argument in ("moments_from", "reverse_from"):
            with pytest.raises(TypeError, match=f"`{argument}` holds draws of one .*`{name}`"):
                self.CALLS[name](self.MODELS, **{argument: object()})


def test_errors() -> None:
    models = {"effect": normal_mean(True), "null": normal_mean(False)}
    with pytest.raises(ValueError, match="expected a dict of two models"):
        pma.sequential({"effect": models["effect"]}, [{"y": Y}])
    with pytest.raises(ValueError, match="`batches` is empty"):
        pma.sequential(models, [])
    with pytest.raises(ValueError, match="`stop` is 1.0, expected a Bayes factor above 1"):
        pma.sequential(models, [{"y": Y}], stop=1.0)
    with pytest.raises(ValueError, match=r"\['x'\] are not pm.Data"):
        pma.sequential(models, [{"x": Y}])
    with pytest.raises(ValueError, match="positive numbers of rows"):
        pma.design(models, lambda rng, n: {"y": Y[:n]}, [0])
    with pytest.raises(ValueError, match="`draws` is 0"):
        pma.design(models, lambda rng, n: {"y": Y[:n]}, 10, draws=0)


def test_data_are_those_that_were_given() -> None:
    """Integers of a placeholder round nothing, and masks are not lost."""
    with pm.Model() as counted:
        pm.Normal("obs", pm.Normal("mu"), 1, observed=pm.Data("y", [0]))
    models = {"effect": counted, "null": normal_mean(False)}
    masked = np.ma.masked_array(Y[:3], mask=[False, False, True])
    for data, message in ((Y[:3], "of type int.., which would round"), (masked, "'y' are masked")):
        with pytest.raises(ValueError, match=message):
            pma.sequential(models, [{"y": data}], random_seed=1)
        with pytest.raises(ValueError, match=message):
            pma.intrinsic_bayes_factor(models, {"y": data}, training=1, random_seed=1)


def test_dimensions_and_variables_grow_with_the_data() -> None:
    """Effects of rows, and a dimension of them: ``y ~ N(mu, 2)`` with the effects integrated."""

    def effects(free: bool) -> pm.Model:
        with pm.Model(coords={"row": [0]}) as model:
            y = pm.Data("y", [0.0], dims="row")
            mu = pm.Normal("mu", 0, 1) if free else 0.0
            effect = pm.Normal("effect", mu, 1, shape=y.shape[0])
            pm.Normal("obs", effect, 1, observed=y, dims="row")
        return model

    batches = [{"y": Y[:3]}, {"y": Y[3:5]}]
    models = {"effect": effects(True), "null": effects(False)}
    found = pma.sequential(models, batches, stop=1e9, random_seed=1)
    covariance = 2 * np.eye(5)
    normal = [stats.multivariate_normal(np.zeros(5), covariance + free) for free in (1, 0)]
    factor = normal[0].logpdf(Y[:5]) - normal[1].logpdf(Y[:5])
    error = found.table["log_bayes_factor"].iloc[-1] - factor
    assert abs(error) < 4 * found.table["mcse"].iloc[-1]
    assert models["null"].dim_lengths["row"].eval() == 1


@pytest.mark.slow
def test_each_look_is_exact() -> None:
    models = {"effect": normal_mean(True), "null": normal_mean(False)}
    batches = [{"y": part} for part in np.split(Y, 6)]
    found = pma.sequential(models, batches, stop=10.0, random_seed=1)
    expected = [exact(Y[: 10 * k]) for k in range(1, 1 + len(found.table))]
    error = found.table["log_bayes_factor"] - expected
    assert (np.abs(error) < 4 * found.table["mcse"]).all()
    assert found.favoured == "effect"
    assert found.table["rows"].tolist() == [10, 20, 30, 40]
    assert models["effect"]["y"].get_value().tolist() == [0.0, 0.0, 0.0]
    null = stats.norm.logpdf(Y[:40]).sum()
    assert found.table["null"].iloc[-1] == pytest.approx(null)
    # The evidence is that of all data: batches in another order end at the same one.
    turned = pma.sequential(models, batches[3::-1], stop=1e9, random_seed=2)
    difference = turned.table["effect"].iloc[-1] - found.table["effect"].iloc[-1]
    assert abs(difference) < 4 * np.hypot(turned.table["mcse"], found.table["mcse"]).iloc[-1]
    assert turned.favoured == ""
    assert "10 : 1 for effect after 40 rows" in repr(found)
    assert "neither" in turned._repr_html_()
    assert pma.plot_sequential(found).get_yscale() == "log"


def test_the_record_of_a_study() -> None:
    table = pd.DataFrame(
        {
            "rows": [10, 20],
            "log_bayes_factor": [1.0, 3.0],
            "lower": [0.9, 2.9],
            "upper": [1.1, 3.1],
            "verdict": "trust",
        },
        index=pd.RangeIndex(1, 3, name="look"),
    )
    found = Sequential(table, 10.0, MODELS)
    assert found.favoured == "effect"
    assert pma.plot_sequential(found).get_xlabel() == "rows of data"


def t_test(effect: bool) -> pm.Model:
    with pm.Model() as model:
        y = pm.Data("y", np.arange(5.0))
        delta = pm.Cauchy("delta", 0, np.sqrt(0.5)) if effect else 0.0
        sigma = pm.math.exp(pm.Uniform("log_sigma", -5, 5))
        pm.Normal("obs", delta * sigma, sigma, observed=y)
    return model


def jzs(y: np.ndarray) -> float:
    """Log Bayes factor of the t-test by quadrature (Rouder et al. 2009, eq. 1)."""
    n = len(y)
    t = y.mean() / y.std(ddof=1) * np.sqrt(n)

    def integrand(delta: float) -> float:
        likelihood = stats.nct.pdf(t, n - 1, delta * np.sqrt(n))
        return float(likelihood * stats.cauchy.pdf(delta, 0, np.sqrt(0.5)))

    mean = y.mean() / y.std(ddof=1)
    parts = [integrate.quad(integrand, mean + a, mean + a + 0.5)[0] for a in np.arange(-3, 3, 0.5)]
    return float(np.log(sum(parts) / stats.t.pdf(t, n - 1)))


@pytest.mark.slow
def test_design_of_a_t_test() -> None:
    """Each Bayes factor by quadrature, and the shares by 10,000 exact ones."""

    def simulate(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
        return {"y": rng.normal(0.5, 1.0, size=n)}

    models = {"effect": t_test(True), "null": t_test(False)}
    found = pma.design(models, simulate, 30, draws=200, random_seed=3)
    seed_data, _ = np.random.SeedSequence(3).spawn(2)
    studies = [simulate(np.random.default_rng(s), 30)["y"] for s in seed_data.spawn(200)]
    expected = np.array([jzs(y) for y in studies])
    score = (found.log_bayes_factor[:, 0] - expected) / found.mcse[:, 0]
    assert np.mean(np.abs(score) < 1.96) > 0.88
    assert np.abs(score).max() < 6
    rng = np.random.default_rng(8)
    many = by_statistic(rng.normal(0.5, 1.0, size=(10_000, 30)))
    share = np.mean(many >= np.log(10))
    error = np.sqrt(share * (1 - share) * (1 / 200 + 1 / 10_000))
    assert abs(found.table["effect"].iloc[0] - share) < 4 * error
    other = np.mean(by_statistic(rng.normal(0.8, 1.0, size=(10_000, 30))) >= np.log(10))
    assert abs(found.table["effect"].iloc[0] - other) > 4 * error  # of another effect


def by_statistic(y: np.ndarray) -> np.ndarray:
    """Exact log Bayes factors of studies, ``(m, n)`` to ``(m,)``, which |t| alone decides.

    Interpolated between values of t so that the error is below 1e-4.
    """
    n = y.shape[1]
    unit = np.linspace(-1, 1, n)
    unit = unit / unit.std(ddof=1)
    grid = np.linspace(0, 8, 161)
    value = [jzs(unit + t / np.sqrt(n)) for t in grid]
    t = np.abs(y.mean(axis=1)) / y.std(axis=1, ddof=1) * np.sqrt(n)
    return np.asarray(interpolate.CubicSpline(grid, value)(t))


@pytest.mark.slow
def test_interpolated_bayes_factors() -> None:
    y = np.random.default_rng(9).normal(0.5, 1.0, size=(20, 30))
    np.testing.assert_allclose(by_statistic(y), [jzs(one) for one in y], atol=1e-4)
