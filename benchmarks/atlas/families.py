"""Models of the atlas that explain the same data, compared by `pymc_anneal.compare`.

Their probabilities depend on the priors, most of which are as wide as those that replace flat ones:
each further coefficient then costs the logarithm of its prior width over its posterior one.
"""

import fnmatch
import html

import pymc_anneal as pma

from benchmarks.atlas.registry import POSTERIORS
from pymc_anneal.evidence.verdict import Verdict

# Patterns of names; centred and non-centred versions of a model have the same evidence.
FAMILIES = {
    "Test scores of children": ("kidiq-*", "kidiq_with_mom_work-*"),
    "Log earnings": ("earnings-logearn*",),
    "Log weight of mesquite bushes": ("mesquite-logmesquite*",),
    "Wells that people change to": ("wells_data-*",),
    "Radon in Minnesota": ("radon_mn-*_centered", "radon_mn-radon_pooled", "radon_mn-*county*"),
}


def members(patterns: tuple[str, ...]) -> list[str]:
    """Return the posteriors of a family."""
    return [n for n in POSTERIORS if any(fnmatch.fnmatchcase(n, p) for p in patterns)]


def read(row: dict) -> pma.LogEvidence:
    """Return the evidence of a row of the table, with the interval of a normal error."""
    value, error = row["log_evidence"], row["mcse"]
    interval = value - 1.96 * error, value + 1.96 * error
    nan = float("nan")
    return pma.LogEvidence(value, error, interval, nan, nan, nan, Verdict(row["verdict"]))


def compare(rows: list[dict], names: list[str]) -> pma.ModelComparison | None:
    """Compare the members that have been run; None for fewer than two."""
    found = {r["model"]: read(r) for r in rows if r["model"] in names and r["verdict"] == "trust"}
    return pma.compare(found, warnings=False) if len(found) > 1 else None


def as_html(rows: list[dict]) -> str:
    """Return a table for each family, and which members are not in it."""
    return "".join(section(rows, title, members(p)) for title, p in FAMILIES.items())


def section(rows: list[dict], title: str, names: list[str]) -> str:
    comparison = compare(rows, names)
    if comparison is None:
        return ""
    table = comparison.table
    body = "".join(
        f"<tr><td>{name}</td><td>{r['log_evidence']:.3f}</td><td>{r['mcse']:.3f}</td>"
        f"<td>{r['probability']:.3g}</td></tr>\n"
        for name, r in table.iterrows()
    )
    lacking = ", ".join(n for n in names if n not in table.index)
    caption = f"{title}{f'; without a trusted run: {lacking}' if lacking else ''}"
    head = "".join(f"<th>{h}</th>" for h in ("posterior", "log evidence", "MCSE", "probability"))
    return (
        f'<div class="atlas"><table><caption>{html.escape(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )
