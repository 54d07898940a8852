"""Write what the page "Atlas" of the documentation shows, from the records of a campaign.

    python -m benchmarks.atlas.page

`docs/atlas/table.html`, `families.html` and `samplers.html` have summaries and tables, `atlas.png`
the figure, and `log_evidences.json` the values in the format of posteriordb's summary statistics.
"""

import html
import json

from pathlib import Path

import numpy as np

from scipy import stats

from benchmarks.atlas import campaign, families, table
from benchmarks.atlas.registry import POSTERIORS

DOCS = Path(__file__).parents[2] / "docs" / "atlas"
SAMPLERS = campaign.RESULTS.with_name("samplers.jsonl")
SHOWN = {k: v for k, v in table.SHOWN.items() if k not in ("model", "verdict")}
SCRIPT = '<script src="_static/atlas.js"></script>\n'
TITLES = {
    "z": "difference from the known value in joint errors",
    "bridge": "NUTS and a bridge on its draws",
    "bridge_z": "difference from the bridge in joint errors, where that is trusted",
    "worst_mean": "posterior mean farthest from posteriordb's draws, in joint errors",
    "worst_sd": "standard deviation farthest from posteriordb's draws, in joint errors",
}


def main() -> None:
    DOCS.mkdir(exist_ok=True)
    for name, text in texts().items():
        (DOCS / name).write_text(text, encoding="utf-8")
    picture(complete(table.rows_of(campaign.read(campaign.RESULTS))), DOCS / "atlas.png")


def texts() -> dict[str, str]:
    """Return what the files of the page hold, but for the figure."""
    records, others = campaign.read(campaign.RESULTS), campaign.read(SAMPLERS)
    rows, targets = complete(table.rows_of(records)), table.rows_of(others)
    return {
        "table.html": page(rows, records),
        "families.html": families.as_html(first_seeds(rows)),
        "samplers.html": about(targets, others) + table_of(targets, "samplers-table") + SCRIPT,
        "log_evidences.json": as_json(rows, records),
    }


def complete(rows: list[dict]) -> list[dict]:
    """Return the rows with those of posteriors that have no record yet, in the registry's order."""
    ran = {row["model"] for row in rows}
    empty = [
        {**table.row_of(name, 0, []), "failure": "not run yet"}
        for name in POSTERIORS
        if name not in ran
    ]
    return sorted(rows + empty, key=lambda row: table.in_registry((row["model"], row["seed"])))


def first_seeds(rows: list[dict]) -> list[dict]:
    """Return the first row of each posterior."""
    return list({row["model"]: row for row in reversed(rows)}.values())


# Table


def page(rows: list[dict], records: list[dict]) -> str:
    """Return the summary and the table as HTML, which `_static/atlas.js` sorts and filters."""
    return (
        about(rows, records)
        + '<p><label>Show posteriors with <input id="atlas-filter" type="search"></label></p>\n'
        + table_of(rows, "atlas-table")
    )


def about(rows: list[dict], records: list[dict]) -> str:
    """Return what the rows say together, and where they were measured."""
    texts = (" ".join(summary(rows)), table.measured(records))
    return "".join(f"<p>{html.escape(text)}</p>\n" for text in texts)


def table_of(rows: list[dict], identity: str) -> str:
    titled = {"model": "posterior", **SHOWN, "verdict": "verdict"}
    head = "".join(
        f'<th title="{TITLES.get(c, "")}"><button>{name}</button></th>'
        for c, name in titled.items()
    )
    body = "\n".join(line(row) for row in rows)
    return (
        f'<div class="atlas"><table id="{identity}">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>\n"
    )


def line(row: dict) -> str:
    """Return a row of the table; what replaces a flat prior stands below the name."""
    replaces = f"<small>{html.escape(row['replaces'])}</small>" if row["replaces"] else ""
    known = f' title="{row["exact_kind"]}"' if row["exact_kind"] else ""
    cells = [f"<td>{row['model']}{replaces}</td>"]
    for column in SHOWN:
        title = known if column == "exact" else ""
        cells.append(f"<td{title}>{shown(column, row[column])}</td>")
    cells.append(f"<td>{html.escape(row['verdict'] or row['failure'])}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def shown(column: str, value) -> str:
    return f"{value:.1e}" if column == "evaluations" and value != "" else str(value)


def summary(rows: list[dict]) -> list[str]:
    """Return sentences on how many rows ended, were trusted, and agree with other values."""
    ended = [r for r in rows if r["verdict"]]
    waiting = sum(r["failure"] == "not run yet" for r in rows)
    trusted = [r for r in ended if r["verdict"] == "trust"]
    wrong = [r["model"] for r in trusted if r["z"] != "" and abs(r["z"]) > table.WRONG]
    found = [
        f"{len(rows)} posteriors, {waiting} of them not run yet. {len(ended)} ended, "
        f"{len(trusted)} with the verdict trust; "
        f"trusted and more than {table.WRONG:g} joint errors from a known value: "
        f"{', '.join(wrong) or 'none'}."
    ]
    for column, name in (("z", "known values"), ("bridge_z", "NUTS with a bridge")):
        scores = numbers(trusted, column)
        if len(scores) > 1:
            found.append(
                f"Against {name} ({len(scores)} trusted rows): largest difference "
                f"{np.abs(scores).max():.1f} joint errors, their standard deviation "
                f"{np.sqrt(np.mean(scores**2)):.2f}."
            )
    doubted = [r for r in ended if r["bridge"] != "" and r["bridge_verdict"] != "trust"]
    if doubted:
        found.append(f"{len(doubted)} further bridges are not trusted.")
    mean, sd = numbers(ended, "worst_mean"), numbers(ended, "worst_sd")
    if len(mean):
        found.append(
            f"Against posteriordb's draws ({len(mean)} posteriors, worst parameter of each): means "
            f"within {np.abs(mean).max():.1f} and standard deviations within "
            f"{np.abs(sd).max():.1f} joint errors."
        )
    return found


def numbers(rows: list[dict], column: str) -> np.ndarray:
    return np.array([r[column] for r in rows if r[column] != ""], float)


# Figure


def picture(rows: list[dict], file: Path) -> None:
    """Draw the errors in joint errors, and the CPU seconds against the dimensions."""
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    scores = np.sort(numbers(rows, "z"))
    ranks = np.arange(1, len(scores) + 1)
    left.axhspan(-table.WRONG, table.WRONG, color="0.93")
    left.plot(ranks, scores, "o", ms=4, color="C0")
    normal = stats.norm.ppf((ranks - 0.5) / len(scores))
    left.plot(ranks, normal, color="0.4", lw=1, label="standard normal")
    left.set(xlabel="posteriors, sorted", ylabel="difference from the known value\n(joint errors)")
    left.legend(frameon=False)
    for call, marker in (("cold", "o"), ("warm", "x")):
        pairs = [(r["dims"], r[f"{call}_cpu"]) for r in rows if r[f"{call}_cpu"] != ""]
        right.loglog(*zip(*pairs, strict=True), marker, ms=4, label=f"{call} call")
    right.set(xlabel="dimensions", ylabel="CPU seconds")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=110)
    plt.close(figure)


# Values


def as_json(rows: list[dict], records: list[dict]) -> str:
    """Return the best value of each posterior: the known one, or that of a trusted run."""
    entries = {}
    for row in rows:
        if row["exact"] != "":
            entries[row["model"]] = known_entry(row)
        elif row["verdict"] == "trust":
            [on] = [
                r["on"]
                for r in records
                if (r["model"], r["method"], r["call"]) == (row["model"], "ais", "cold")
            ][-1:]
            entries[row["model"]] = run_entry(row, on)
    return json.dumps(entries, indent=1) + "\n"


def known_entry(row: dict) -> dict:
    return entry(row, row["exact"], row["exact_error"], method=row["exact_kind"])


def run_entry(row: dict, on: dict) -> dict:
    diagnostics = {"evaluations": row["evaluations"], "verdict": row["verdict"]}
    if row["bridge"] != "":
        diagnostics |= {k: row[k] for k in ("bridge", "bridge_mcse", "bridge_verdict")}
    return entry(
        row,
        row["log_evidence"],
        row["mcse"],
        method="annealed importance sampling",
        arguments={"random_seed": row["random_seed"]},
        diagnostics=diagnostics,
        versions={k: on[k] for k in ("pymc_anneal", "pymc", "jax", "python")},
        added_date=on["date"],
    )


def entry(
    row: dict, value: float, error: float, *, method: str, arguments: dict | None = None, **info
) -> dict:
    """Return value and info as posteriordb keeps them for a summary statistic."""
    comments = f"priors replaced: {row['replaces']}" if row["replaces"] else None
    return {
        "names": ["log_evidence"],
        "log_evidence": [value],
        "mcse_log_evidence": [error],
        "info": {
            "name": row["model"],
            "inference": {"method": method, "method_arguments": arguments or {}},
            "comments": comments,
            **info,
        },
    }


if __name__ == "__main__":
    main()
