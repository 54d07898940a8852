"""A comparison of models as one self-contained web page.

Tables are HTML, plots are SVG in the page itself: it needs no other file, no script and no network.
"""

import os

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

from pymc_anneal._version import __version__
from pymc_anneal.base.arviz_compat import Container, has_group, required_group
from pymc_anneal.base.html import Html, html_table
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.results.compare_models import compare, resolve_log_odds
from pymc_anneal.results.log_evidence import log_evidence
from pymc_anneal.results.model_comparison import ModelComparison
from pymc_anneal.results.plot_compare import plot_compare
from pymc_anneal.results.plot_prior_sensitivity import plot_prior_sensitivity
from pymc_anneal.results.plot_robustness import plot_robustness
from pymc_anneal.results.plot_weights import plot_log_weights
from pymc_anneal.results.report_sections import bayes_factors, method, probabilities
from pymc_anneal.results.robustness import Robustness

_STYLE = """
body {font: 16px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em;
      color: #1b1b1b; background: #fff}
table {border-collapse: collapse; margin: 1em 0; display: block; overflow-x: auto}
th, td {padding: .25em .7em; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top}
svg {max-width: 100%; height: auto}
footer {color: #666; border-top: 1px solid #ddd; margin-top: 3em}
"""

# Scalars and attributes of the group "evidence" that a reader needs to repeat a run.
_SETTINGS = ("steps", "particles", "evaluations", "seconds")
_CHOICES = (
    "path",
    "schedule",
    "transition",
    "reference",
    "random_seed",
    "observed_data_hash",
    "versions",
)


def report(
    results: Mapping[str, Container | LogEvidence],
    path: str | os.PathLike[str],
    *,
    title: str = "Comparison of models",
    prior_odds: Mapping[str, float] | Sequence[float] | None = None,
    sensitivity: pd.DataFrame | Robustness | None = None,
) -> Path:
    """Write a comparison of models as a self-contained web page.

    Parameters
    ----------
    results : dict of str to InferenceData, DataTree or LogEvidence
        Results of :func:`sample_ais`, or evidences such as those of :func:`bridge_evidence`, by
        name; of the same data.
    path : path
        The file, which is overwritten if it exists.
    title : str
        Heading of the page.
    prior_odds : dict of str to float, or sequence of float, optional
        Prior odds of the models, up to a common factor. Default: equal.
    sensitivity : pandas.DataFrame or Robustness, optional
        Result of :func:`prior_sensitivity` or :func:`robustness`, for a section with its plot and
        table; of the latter with one row for each effect.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ValueError
        The results cannot be compared, or hold no evidence.
    FileNotFoundError
        The folder of the file does not exist.

    See Also
    --------
    compare : The table alone.

    References
    ----------
    Jeffreys (1961), Theory of probability, appendix B. Kass & Raftery (1995), Bayes factors,
    section 3.2.

    Examples
    --------
    >>> pymc_anneal.report({"pooled": idata_pooled, "hierarchical": idata}, "report.html")
    """
    comparison = compare(results, prior_odds)
    runs = {name: r for name, r in results.items() if not isinstance(r, LogEvidence)}
    sections = {
        "Models": _models(comparison),
        **_priors(runs),
        "Bayes factors": bayes_factors(comparison),
        "Probabilities": probabilities(comparison, resolve_log_odds(list(results), prior_odds)),
        **({} if sensitivity is None else {"Other priors": _sensitivity(sensitivity)}),
        **{f"Run of {name}": _run(result) for name, result in results.items()},
        "Method": method(results),
    }
    target = Path(path)
    target.write_text(_page(title, sections), encoding="utf-8")
    return target


def _page(title: str, sections: Mapping[str, str]) -> str:
    body = "".join(f"<h2>{escape(name)}</h2>{content}" for name, content in sections.items())
    made = f"pymc_anneal {__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>{body}"
        f"<footer>{escape(made)}. Logarithms are natural (nats) unless marked.</footer>"
        "</body></html>"
    )


def _models(comparison: ModelComparison) -> str:
    figure = plot_compare(comparison)[0].figure
    return comparison._repr_html_() + _svg(figure)


def _priors(results: Mapping[str, Container]) -> dict[str, str]:
    """Return a section with the prior of each variable in each model, if the results have them."""
    by_model = {name: _read_priors(result) for name, result in results.items()}
    variables = list(dict.fromkeys(v for priors in by_model.values() for v in priors))
    rows = [[v, *(priors.get(v, "") for priors in by_model.values())] for v in variables]
    header = ["variable", *by_model]
    return {"Priors": html_table(rows, header=header)} if rows else {}


def _read_priors(result: Container) -> dict[str, str]:
    group = required_group(result, "evidence", "pymc_anneal.sample_ais")
    lines = str(group.attrs.get("priors", "")).split("; ")
    pairs = (line.partition(" ~ ") for line in lines)
    return {variable: prior for variable, mark, prior in pairs if mark}


def _run(result: Container | LogEvidence) -> str:
    """Return estimate, settings and log weights of a run; of a bare evidence the estimate alone."""
    if isinstance(result, LogEvidence):
        return result._repr_html_()
    drawn = has_group(result, "annealing")
    group = required_group(result, "evidence", "pymc_anneal.sample_ais")
    settings = [(n, f"{float(group[n]):.4g}") for n in _SETTINGS if n in group]
    choices = [(n.replace("_", " "), str(group.attrs[n])) for n in _CHOICES if group.attrs.get(n)]
    made = [("made at", _minute(group.attrs["created_at"]))] if "created_at" in group.attrs else []
    tables = log_evidence(result)._repr_html_() + html_table([*settings, *choices, *made])
    return tables + (_svg(plot_log_weights(result).figure) if drawn else "")


def _minute(moment: str) -> str:
    """Return a moment, in ISO format, to the minute."""
    return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _sensitivity(table: pd.DataFrame | Robustness) -> str:
    if isinstance(table, Robustness):
        return table._repr_html_() + _svg(plot_robustness(table)[0].figure)
    figure = plot_prior_sensitivity(table)[0].figure
    header = [*table.index.names, *table.columns]
    rows = [
        [*map(str, index), *map(_number, row)]
        for index, row in zip(table.index, table.to_numpy(), strict=True)
    ]
    return _svg(figure) + html_table(rows, header=header)


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _svg(figure: Any) -> Html:
    """Return a figure as SVG without the XML prologue, and close it."""
    from matplotlib import pyplot

    text = StringIO()
    figure.savefig(text, format="svg")
    pyplot.close(figure)
    return Html(text.getvalue()[text.getvalue().index("<svg") :])
