"""The evidence atlas: a complete registry, log densities of literal loops, rows that resume."""

import json
import sys

from pathlib import Path

import numpy as np
import pytest

from scipy import stats
from scipy.special import expit, logsumexp

from benchmarks.atlas import campaign, families, moments, page, stored, table
from benchmarks.atlas.registry import ALL, POSTERIORS, TABLE
from benchmarks.atlas.samplers import TARGETS

# Log densities of an earlier, independent translation of the Stan programs, at `shifted` points.
VALUES = Path(__file__).parent / "atlas_log_densities.json"


# The registry


def test_the_registry_is_complete() -> None:
    assert len(POSTERIORS) == len(TABLE) == 132
    files = {f.name.removesuffix(".json.xz") for f in stored.FOLDER.glob("*.json.xz")}
    assert files - {"moments"} == {p.dataset for p in ALL.values() if p.needs_data}
    assert len(set(stored.evidences()) & set(POSTERIORS)) == 93
    assert len(stored.moments()) == 47
    assert {*stored.evidences(), *stored.moments()} <= set(ALL)
    assert set(TARGETS) - set(stored.evidences()) == {"finpines-cox_40x40"}
    assert set(json.loads(VALUES.read_text())) == set(POSTERIORS)


def test_evidences_have_a_kind_and_two_forms_of_a_model_have_one() -> None:
    known = stored.evidences()
    assert {e.kind for e in known.values()} == {"closed form", "quadrature", "importance sampling"}
    assert all(np.isfinite(e.value) and 0 <= e.error < 0.03 for e in known.values())
    pairs = [n for n in known if n.endswith("_noncentered")]
    assert len(pairs) == 10
    for name in pairs:
        assert known[name] == known[name.replace("noncentered", "centered")]


def test_a_flat_prior_is_named_with_what_replaces_it() -> None:
    replaced = [p for p in TABLE if not p.proper]
    assert len(replaced) == 46
    assert all(" flat " in p.replaces and "-> " in p.replaces for p in replaced)


def test_parameters_of_stan() -> None:
    assert stored.parse("mu") == ("mu", ())
    assert stored.parse("theta[2,10]") == ("theta", (1, 9))


# Log densities


def shifted(model) -> dict:
    """Return the initial point, moved by up to 0.1 in each coordinate."""
    point = model.initial_point()
    for name, value in point.items():
        moves = 0.1 * np.sin(1.0 + np.arange(np.size(value)))
        point[name] = np.asarray(value) + moves.reshape(np.shape(value))
    return point


def log_densities(name: str, jacobian: bool) -> tuple[float, dict]:
    """Return the log density at the shifted point, and that point in the parameters of Stan."""
    model = POSTERIORS[name].model()
    point = shifted(model)
    value = float(model.compile_logp(jacobian=jacobian)(point))
    outputs = [model[v.name] for v in model.free_RVs]
    inputs = model.replace_rvs_by_values(outputs)
    parameters = model.compile_fn(inputs, inputs=model.value_vars, on_unused_input="ignore")(point)
    return value, {v.name: p for v, p in zip(model.free_RVs, parameters, strict=True)}


def half_cauchy(x: float, scale: float) -> float:
    return stats.halfcauchy(scale=scale).logpdf(x)


def arma11(d: dict, p: dict, sign: int = 1) -> float:
    """Follow Stan's program line by line; `sign` of the moving average is 1."""
    y, mu, phi, theta = d["y"], p["mu"], p["phi"], sign * p["theta"]
    nu = [mu + phi * mu]
    err = [y[0] - nu[0]]
    for t in range(1, len(y)):
        nu.append(mu + phi * y[t - 1] + theta * err[t - 1])
        err.append(y[t] - nu[t])
    prior = stats.norm(0, [10, 2, 2]).logpdf([mu, phi, theta]).sum()
    likelihood = stats.norm(0, p["sigma"]).logpdf(err).sum()
    return prior + half_cauchy(p["sigma"], 2.5) + likelihood


def hmm_example(d: dict, p: dict) -> float:
    """Sum over the states by Stan's loops; the initial state has weight 1, not 1/2."""
    theta = [p["theta1"], p["theta2"]]
    y, mu = d["y"], p["mu"]
    gamma = [normal(y[0], mu[k]) for k in range(2)]
    for t in range(1, len(y)):
        gamma = [
            logsumexp([gamma[j] + np.log(theta[j][k]) for j in range(2)]) + normal(y[t], mu[k])
            for k in range(2)
        ]
    return logsumexp(gamma) + sum(normal(mu[k], (3, 10)[k]) for k in range(2))


def normal(x: float, mean: float) -> float:
    return -0.5 * (x - mean) ** 2 - 0.5 * np.log(2 * np.pi)


def m0(d: dict, p: dict) -> float:
    """Animal by animal, those never seen among them."""
    omega, total = p["omega"], 0.0
    counts = d["y"].sum(axis=1)
    for s, captured in zip(counts, stats.binom(d["T"], p["p"]).logpmf(counts), strict=True):
        seen = np.log(omega) + captured
        total += seen if s > 0 else np.logaddexp(seen, np.log1p(-omega))
    return total


def bones(d: dict, p: dict) -> float:
    """Graded responses as differences of cumulative probabilities."""
    total = stats.norm(0, 36).logpdf(p["theta"]).sum()
    for i in range(d["nChild"]):
        for j in range(d["nInd"]):
            n = d["ncat"][j]
            steps = expit(d["delta"][j] * (p["theta"][i] - d["gamma"][j][: n - 1]))
            probabilities = -np.diff([1.0, *steps, 0.0])
            grade = d["grade"][i, j]
            total += 0.0 if grade == -1 else np.log(probabilities[grade - 1])
    return total


LOOPS = {
    "arma-arma11": arma11,
    "hmm_example-hmm_example": hmm_example,
    "M0_data-M0_model": m0,
    "bones_data-bones_model": bones,
}


@pytest.mark.parametrize("name", LOOPS)
def test_log_density_of_a_literal_loop(name: str) -> None:
    value, parameters = log_densities(name, jacobian=False)
    data = stored.load(POSTERIORS[name].dataset)
    np.testing.assert_allclose(value, LOOPS[name](data, parameters), rtol=1e-7)
    if name == "arma-arma11":  # a wrong twin
        assert abs(value - arma11(data, parameters, sign=-1)) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", POSTERIORS)
def test_log_density_and_dimensions(name: str) -> None:
    model = POSTERIORS[name].model()
    point = shifted(model)
    assert sum(np.size(v) for v in point.values()) == POSTERIORS[name].dims
    known = json.loads(VALUES.read_text())[name]
    np.testing.assert_allclose(model.compile_logp()(point), known, rtol=1e-8)
    names = {stored.parse(parameter)[0] for parameter in stored.moments().get(name, {})}
    assert names <= set(model.named_vars)


# Moments


def test_errors_are_those_of_the_moments() -> None:
    draws = np.random.default_rng(0).normal(size=4000)
    draws = (draws - draws.mean()) / draws.std(ddof=1)
    exact = moments.errors(draws, 4000, stored.Moments(0.0, 1.0, 0.01))
    assert exact == pytest.approx({"mean": 0.0, "sd": 0.0}, abs=1e-9)
    joint = np.hypot(1 / np.sqrt(4000), 0.01)
    moved = moments.errors(draws + 3 * joint, 4000, stored.Moments(0.0, 1.0, 0.01))
    assert moved["mean"] == pytest.approx(3)
    # A normal density: the relative error of a standard deviation is 1 / sqrt(2 n).
    wide = moments.errors(draws * np.exp(3 * joint / np.sqrt(2)), 4000, stored.Moments(0, 1, 0.01))
    assert wide["sd"] == pytest.approx(3, rel=0.1)


def test_the_effective_number_of_draws_counts() -> None:
    draws = np.random.default_rng(1).normal(0.2, 1, size=1000)
    few, many = (moments.errors(draws, n, stored.Moments(0, 1, 0.01)) for n in (10, 1000))
    assert abs(few["mean"]) < 2 < abs(many["mean"])


def test_worst_parameter() -> None:
    draws = np.random.default_rng(2).normal(size=(4, 500))
    name = "kilpisjarvi_mod-kilpisjarvi"
    known = stored.moments()[name]
    posterior = {}
    for parameter, m in known.items():
        shift = 30 if parameter == "beta" else 0
        posterior[parameter] = draws_like(m.mean + (draws + shift) * m.sd)
    assert moments.worst(posterior, name, 2000)["mean"][0] == "beta"
    assert moments.worst(posterior, "Rate_1_data-Rate_1_model", 2000) == {}


class draws_like:
    """An array where xarray would be."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values


# Rows


ON = {"date": "2026-01-01", "cores": 2, "load": 0.5, "machine": "none", "python": "3"}
ON |= dict.fromkeys(("pymc_anneal", "pymc", "jax"), "1")
NAME = "M0_data-M0_model"


def record(method: str, call: str, value: float, **more) -> dict:
    found = {"log_evidence": value, "mcse": 0.03, "verdict": "trust", "seconds": 9.0, "cpu": 8.0}
    found |= {"model": NAME, "method": method, "seed": 0, "call": call, "on": ON, "reasons": []}
    return found | {"evaluations": 2e5} | more


def test_a_row_has_both_methods_and_their_errors() -> None:
    exact = stored.evidences()[NAME].value
    moments = {"mean": ["p", -1.5]}
    records = [
        record("ais", "cold", exact + 0.06, moments=moments),
        record("ais", "warm", exact, seconds=1.0),
        record("bridge", "cold", exact + 0.02, mcse=0.04),
    ]
    [row] = table.rows_of(records)
    assert (row["z"], row["bridge_z"], row["worst_mean"]) == (2.0, 0.8, -1.5)
    assert (row["cold_seconds"], row["warm_seconds"], row["dims"]) == (9.0, 1.0, 2)
    assert row["exact_kind"] == "quadrature"
    text = table.as_csv([row]).splitlines()
    assert text[0].split(",") == list(table.COLUMNS)
    assert f"| {NAME} | 2 |" in table.as_markdown([row], records)
    assert "z +2.00" in table.line(records[0])


def test_a_row_without_error_or_end() -> None:
    [row] = table.rows_of([record("ais", "cold", -3.0, mcse=float("nan"))])
    assert (row["mcse"], row["z"]) == ("", "")
    lost = {"model": NAME, "method": "ais", "seed": 0, "call": "cold", "on": ON}
    lost["failure"] = "no end in 300 s"
    [row] = table.rows_of([lost])
    assert (row["failure"], row["verdict"], row["log_evidence"]) == ("no end in 300 s", "", "")
    assert "no end in 300 s" in table.line(lost)
    assert "| no end in 300 s |" in table.as_markdown([row], [lost])
    assert table.faults([lost]) == [f"{NAME}, cold: no end in 300 s"]


def test_only_what_is_trusted_can_be_wrong() -> None:
    exact = stored.evidences()[NAME].value
    assert table.faults([record("ais", "cold", exact + 0.08)]) == []
    [fault] = table.faults([record("ais", "cold", exact + 0.1)])
    assert fault == f"{NAME}: 3.33 joint errors from the known evidence"
    assert table.faults([record("ais", "cold", exact + 0.1, verdict="do not trust")]) == []


def test_rows_of_the_file_are_not_run_again(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    assert campaign.read(file) == []
    ended = record("ais", "cold", -3.0)
    failed = {**ended, "seed": 1, "failure": "no end in 1 s"}
    file.write_text("".join(json.dumps(r) + "\n" for r in (ended, failed)))
    rows = [campaign.Row(NAME, "ais", seed) for seed in range(3)]
    found = campaign.read(file)
    assert campaign.missing(rows, found, retry=False) == rows[2:]
    assert campaign.missing(rows, found, retry=True) == rows[1:]


def test_what_ended_before_the_limit_is_kept(tmp_path: Path, monkeypatch) -> None:
    program = 'import time; print(\'{"call": "cold", "value": 1}\', flush=True); time.sleep(60)'
    monkeypatch.setattr(campaign, "command", lambda *row: [sys.executable, "-c", program])
    monkeypatch.setattr(campaign, "PATIENCE", 1)
    file, reported = tmp_path / "records.jsonl", []
    campaign.run([campaign.Row(NAME, "ais", 0)], file, 1.0, 1, reported.append)
    cold, warm = campaign.read(file)
    assert (cold["value"], warm["failure"]) == (1, "no end in 1 s")
    assert (cold["model"], warm["call"], len(reported)) == (NAME, "warm", 2)


@pytest.mark.slow
def test_a_row_ends_after_cpu_seconds(monkeypatch) -> None:
    program = "from benchmarks.atlas.row import end_after; end_after(0.5)\nwhile True: pass"
    monkeypatch.setattr(campaign, "command", lambda *row: [sys.executable, "-c", program])
    found = list(campaign.records(campaign.Row(NAME, "bridge", 0), 20.0))
    assert [r["failure"] for r in found] == ["no end in 20 CPU s"]


def test_a_process_that_fails_says_why(monkeypatch) -> None:
    monkeypatch.setattr(
        campaign, "command", lambda *row: [sys.executable, "-c", "raise ValueError('no data')"]
    )
    found = list(campaign.records(campaign.Row(NAME, "bridge", 0), 20.0))
    assert [r["failure"] for r in found] == ["ValueError: no data"]


def test_a_message_of_several_lines_is_whole() -> None:
    errors = "Traceback:\n  raise\nKeyError: 1\n\nTraceback:\npkg.ModelError: b = [1\n 2]\n"
    assert campaign.message(errors) == "pkg.ModelError: b = [1 2]"
    assert campaign.message("killed\n") == "killed"


# The page


def test_the_page_shows_the_records() -> None:
    for name, text in page.texts().items():
        assert (page.DOCS / name).read_text() == text
    for file in (campaign.RESULTS, page.SAMPLERS):
        rows = table.rows_of(campaign.read(file))
        assert file.with_suffix(".csv").read_text() == table.as_csv(rows)
    assert sum(f.stat().st_size for f in page.DOCS.iterdir()) < 400_000


def test_a_bridge_that_is_not_trusted_is_no_second_method() -> None:
    records = [
        record("ais", "cold", -3.0),
        record("bridge", "cold", -9.0, mcse=0.04, verdict="do not trust"),
    ]
    [row] = rows = table.rows_of(records)
    assert (row["bridge"], row["bridge_z"]) == (-9.0, "")
    assert "1 further bridges are not trusted." in page.summary(rows)


def test_the_summary_counts_what_is_trusted_and_wrong() -> None:
    exact = stored.evidences()[NAME].value
    [text, *_] = page.summary(table.rows_of([record("ais", "cold", exact + 0.1)]))
    assert NAME in text
    doubted = record("ais", "cold", exact + 0.1, verdict="do not trust")
    [text, *_] = page.summary(table.rows_of([doubted]))
    assert "from a known value: none" in text


def test_posteriors_without_a_record_stand_in_the_table() -> None:
    rows = page.complete(table.rows_of([record("ais", "cold", -3.0)]))
    assert len(rows) == len(POSTERIORS)
    assert {r["failure"] for r in rows if r["model"] != NAME} == {"not run yet"}
    assert page.summary(rows)[0].startswith("132 posteriors, 131 of them not run yet. 1 ended, 1 ")


def test_families_are_compared() -> None:
    names = families.members(families.FAMILIES["Log weight of mesquite bushes"])
    assert len(names) == 5
    low, high, doubted, *_ = names
    rows = table.rows_of(
        [
            {**record("ais", "cold", value, verdict=verdict), "model": name}
            for name, value, verdict in (
                (low, -1.0, "trust"),
                (high, np.log(3) - 1, "trust"),
                (doubted, 9.0, "do not trust"),
            )
        ]
    )
    found = families.compare(rows, names).table
    assert list(found.index) == [high, low]
    assert found["probability"].to_numpy() == pytest.approx(
        [0.75, 0.25], abs=1e-4
    )  # rows have four digits
    assert doubted in families.as_html(rows)
    assert families.compare(rows[:1], names) is None


@pytest.mark.parametrize("title", families.FAMILIES)
def test_members_of_a_family_have_the_same_data(title: str) -> None:
    first, *others = families.members(families.FAMILIES[title])
    own = data_of(first)
    assert all(np.array_equal(data_of(name), own) for name in others)


def data_of(name: str) -> np.ndarray:
    model = POSTERIORS[name].model()
    [observed] = model.observed_RVs
    return model.rvs_to_values[observed].eval()


def test_values_are_known_ones_or_those_of_trusted_runs() -> None:
    unknown = "wells_data-wells_dae_model"
    assert unknown not in stored.evidences()
    for verdict, expected in (("trust", {NAME, unknown}), ("do not trust", {NAME})):
        records = [record("ais", "cold", -3.0, verdict=verdict, random_seed=1)]
        records.append({**records[0], "model": unknown})
        found = json.loads(page.as_json(table.rows_of(records), records))
        assert set(found) == expected
        assert found[NAME]["log_evidence"] == [round(stored.evidences()[NAME].value, 4)]
