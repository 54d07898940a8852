"""Records of a campaign as lines, CSV and Markdown: one row for each posterior and seed."""

import csv
import io
import math

from pathlib import Path

from benchmarks.atlas import stored
from benchmarks.atlas.registry import ALL

COLUMNS = (
    "model",
    "dims",
    "replaces",
    "seed",
    "random_seed",
    "log_evidence",
    "mcse",
    "verdict",
    "exact",
    "exact_error",
    "exact_kind",
    "z",
    "bridge",
    "bridge_mcse",
    "bridge_verdict",
    "bridge_z",
    "evaluations",
    "cold_seconds",
    "warm_seconds",
    "cold_cpu",
    "warm_cpu",
    "bridge_seconds",
    "worst_mean",
    "worst_mean_parameter",
    "worst_sd",
    "worst_sd_parameter",
    "failure",
)
TIMES = ("seconds", "cpu")
WRONG = 3.0  # joint errors
ROUNDED = {
    "log_evidence": 4,
    "mcse": 4,
    "exact": 4,
    "z": 2,
    "bridge": 4,
    "bridge_mcse": 4,
    "bridge_z": 2,
    "worst_mean": 2,
    "worst_sd": 2,
}


def write(records: list[dict], file: Path) -> None:
    """Write the tables beside the file of the records."""
    rows = rows_of(records)
    file.with_suffix(".csv").write_text(as_csv(rows), encoding="utf-8")
    file.with_suffix(".md").write_text(as_markdown(rows, records), encoding="utf-8")


def rows_of(records: list[dict]) -> list[dict]:
    """Return a row for each posterior and seed, in the order of the registry."""
    keys = sorted({(r["model"], r["seed"]) for r in records}, key=in_registry)
    return [row_of(*key, [r for r in records if (r["model"], r["seed"]) == key]) for key in keys]


def in_registry(key: tuple[str, int]) -> tuple[int, int]:
    return list(ALL).index(key[0]), key[1]


def row_of(model: str, seed: int, records: list[dict]) -> dict:
    """Return the columns for a posterior and a seed; the last record of a call counts."""
    calls = {(r["method"], r["call"]): r for r in records}
    cold, warm = (calls.get(("ais", call), {}) for call in ("cold", "warm"))
    bridge = calls.get(("bridge", "cold"), {})
    row = {"model": model, "seed": seed, **about(model), **cold}
    row |= {f"{call}_{k}": r.get(k) for call, r in (("cold", cold), ("warm", warm)) for k in TIMES}
    row |= {"bridge": bridge.get("log_evidence"), "bridge_seconds": bridge.get("seconds")}
    row |= {f"bridge_{k}": bridge.get(k) for k in ("mcse", "verdict")}
    row["z"] = score(row, "exact", "exact_error")
    if row["bridge_verdict"] == "trust":
        row["bridge_z"] = score(row, "bridge", "bridge_mcse")
    for moment, (parameter, value) in cold.get("moments", {}).items():
        row |= {f"worst_{moment}": value, f"worst_{moment}_parameter": parameter}
    return {c: rounded(c, row.get(c)) for c in COLUMNS}


def about(model: str) -> dict:
    """Return what is known of a posterior before a run."""
    known = stored.evidences().get(model)
    posterior = ALL[model]
    found = {"dims": posterior.dims, "replaces": posterior.replaces}
    if known:
        found |= {"exact": known.value, "exact_error": known.error, "exact_kind": known.kind}
    return found


def score(row: dict, value: str, error: str) -> float | None:
    """Return the difference from another estimate in joint errors, None if one has no error."""
    numbers = [row.get(k) for k in ("log_evidence", "mcse", value, error)]
    if any(n is None or math.isnan(n) for n in numbers):
        return None
    ours, mcse, other, uncertainty = numbers
    return (ours - other) / math.hypot(mcse, uncertainty)


def rounded(column: str, value):
    """Return a value as it is printed; what has no value is empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return round(value, ROUNDED[column]) if column in ROUNDED else value


def faults(records: list[dict]) -> list[str]:
    """Return the rows that did not end, and those that are trusted and wrong."""
    found = [f"{r['model']}, {r['call']}: {r['failure']}" for r in records if "failure" in r]
    for row in rows_of(records):
        if row["verdict"] == "trust" and row["z"] != "" and abs(row["z"]) > WRONG:
            found.append(f"{row['model']}: {row['z']} joint errors from the known evidence")
    return found


def as_csv(rows: list[dict]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


SHOWN = {
    "model": "model",
    "dims": "dims",
    "log_evidence": "log evidence",
    "mcse": "MCSE",
    "exact": "known",
    "z": "z",
    "bridge": "bridge",
    "bridge_z": "z",
    "evaluations": "evaluations",
    "cold_cpu": "cold CPU s",
    "warm_cpu": "warm CPU s",
    "worst_mean": "mean",
    "worst_sd": "sd",
    "verdict": "verdict",
}


def as_markdown(rows: list[dict], records: list[dict]) -> str:
    """Return the table with its most important columns, and a line on where it was measured."""
    lines = ["# The evidence atlas", "", measured(records), ""]
    lines += ["| " + " | ".join(SHOWN.values()) + " |", "|" + " --- |" * len(SHOWN)]
    for row in rows:
        cells = {c: row[c] for c in SHOWN} | {"verdict": row["verdict"] or row["failure"]}
        if cells["evaluations"]:
            cells["evaluations"] = f"{cells['evaluations']:.1e}"
        lines.append("| " + " | ".join(str(v) for v in cells.values()) + " |")
    return "\n".join([*lines, ""])


def measured(records: list[dict]) -> str:
    """Return dates, versions and machine of the records, as a sentence."""
    names = ("pymc_anneal", "commit", "pymc", "jax", "python", "cores", "machine")
    values = {n: sorted({str(r["on"].get(n, "unknown")) for r in records}) for n in names}
    dates = sorted({r["on"]["date"] for r in records})
    loads = [r["on"]["load"] for r in records]
    what = ", ".join(f"{n} {' and '.join(v)}" for n, v in values.items())
    return (
        f"Measured {dates[0]} to {dates[-1]}: {what}. Load of the machine {min(loads)} to "
        f"{max(loads)}, on which other work ran: times are CPU seconds, of all threads."
    )


def line(record: dict) -> str:
    """Return what is printed while a campaign runs."""
    name = f"{record['model']:46s} {record['method']:6s} {record['call']:4s}"
    if "failure" in record:
        return f"{name} {record['failure']}"
    known = stored.evidences().get(record["model"])
    row = record | ({"exact": known.value, "error": known.error} if known else {})
    z = score(row, "exact", "error")
    worst = " ".join(f"{m} {v:+.1f}" for m, (_, v) in record.get("moments", {}).items())
    return (
        f"{name} {record['log_evidence']:.4f} +- {record['mcse']:.4f}"
        f"{'' if z is None else f' z {z:+.2f}'} {record['seconds']:.1f} s "
        f"{record['cpu']:.1f} CPU s {record['verdict']} {worst}"
    )
