"""Reports: one page that holds everything, well-formed and without references to other files."""

import re

from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container, group
from pymc_anneal.results.bayes_factor_words import jeffreys, kass_raftery

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """Tags that do not match, references to other files, headings and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.sources: list[str] = []
        self.headings: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        if tag not in VOID:
            self.open.append(tag)
        references = [v for k, v in attrs if k in ("src", "href", "xlink:href", "data")]
        self.sources += [v for v in references if v and not v.startswith("#")]
        self.sources += [tag] if tag in ("script", "link", "iframe") else []

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)


@pytest.fixture(scope="module")
def text(reported, tmp_path_factory) -> str:
    import matplotlib as mpl

    mpl.use("Agg")
    file = tmp_path_factory.mktemp("report") / "report.html"
    models = {name: reported[name] for name in ("narrow", "a<b>")}
    written = pma.report(models, file, title="R&D", sensitivity=reported["curve"])
    assert written == Path(file)
    return file.read_text(encoding="utf-8")


def test_the_page_is_well_formed_and_complete(text) -> None:
    page = Page(text)
    assert not page.wrong
    assert not page.open
    assert not page.sources
    assert page.headings == [
        "R&D",
        "Models",
        "Priors",
        "Bayes factors",
        "Probabilities",
        "Other priors",
        "Run of narrow",
        "Run of a<b>",
        "Method",
    ]
    assert text.count("<svg") == 4


def test_numbers_and_words(text, reported) -> None:
    names = ("narrow", "a<b>")
    factor = pma.log_bayes_factor(reported["narrow"], reported["a<b>"], names=names)
    assert factor.words("kass_raftery") in text
    assert factor.words("jeffreys") in text
    assert f"{factor.log_bayes_factor:.1f}" in text
    assert pma.log_evidence(reported["narrow"]).data_hash in text


def row_after(text: str, heading: str) -> list[str]:
    """Return the cells of the first row of the table below a heading."""
    table = text[text.index(f"<h2>{heading}") :]
    row = table[table.index("</thead>") : table.index("</table>")]
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row.partition("</tr>")[0])
    return [unescape(cell) for cell in cells]


def test_the_favoured_model_comes_first(text, reported) -> None:
    factor = pma.log_bayes_factor(reported["narrow"], reported["a<b>"], names=("narrow", "a<b>"))
    assert factor.log_bayes_factor > 0
    favoured, against, value, log, *_ = row_after(text, "Bayes factors")
    assert (favoured, against) == ("narrow", "a<b>")
    assert float(value.partition(" : 1")[0]) == pytest.approx(factor.bayes_factor, rel=0.01)
    assert not log.startswith("-")
    assert escape(factor.favoured[1:]) in text


def test_prior_odds_are_shown(reported, tmp_path) -> None:
    models = {name: reported[name] for name in ("narrow", "a<b>")}
    file = pma.report(models, tmp_path / "r.html", prior_odds={"narrow": 3, "a<b>": 1})
    model, prior, posterior = row_after(file.read_text(encoding="utf-8"), "Probabilities")
    exact = pma.compare(models, prior_odds=[3, 1], warnings=False).details.iloc[0]
    assert (model, prior) == (exact.name, {"narrow": "0.75", "a<b>": "0.25"}[exact.name])
    assert posterior.startswith(f"{exact['probability']:.3g} (")


def test_an_evidence_that_is_not_trusted_has_no_factor(reported, tmp_path) -> None:
    doubtful = replace(
        pma.log_evidence(reported["a<b>"]), verdict=pma.Verdict("do not trust", ("k",))
    )
    with pytest.warns(pma.EvidenceWarning):
        file = pma.report({"narrow": reported["narrow"], "other": doubtful}, tmp_path / "r.html")
    text = file.read_text(encoding="utf-8")
    assert row_after(text, "Bayes factors") == ["narrow", "other", *["not known"] * 5]
    assert row_after(text, "Probabilities") == ["narrow", "0.5", "not known"]


def test_a_run_without_moves_is_called_importance_sampling(reported, tmp_path) -> None:
    """Of a simple posterior; the sentence may be quoted."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        pm.Normal("y", mu, 1, observed=[1.0, 2.0])
    short = pma.sample_ais(model, random_seed=1, progressbar=False)
    file = pma.report({"narrow": reported["narrow"], "short": short}, tmp_path / "r.html")
    text = unescape(file.read_text(encoding="utf-8"))
    assert "of 'narrow' was estimated by annealed importance sampling (Neal 2001)" in text
    assert "of 'short' was estimated by importance sampling from a mixture" in text


def test_evidences_of_other_methods(reported, tmp_path) -> None:
    """A bare evidence, as of `bridge_evidence`, has no run to show."""
    bridge = replace(pma.log_evidence(reported["a<b>"]), barrier=np.nan)
    file = pma.report({"narrow": reported["narrow"], "bridge": bridge}, tmp_path / "r.html")
    page = Page(text := file.read_text(encoding="utf-8"))
    assert "Run of bridge" in page.headings
    assert not page.wrong
    assert "That of &#x27;bridge&#x27; comes from an estimate by another method." in text


def test_results_without_weights(reported, tmp_path) -> None:
    """Those of nested sampling have no group of log weights, and no figure of them."""
    nested = container({"evidence": group(reported["a<b>"], "evidence")})
    file = pma.report({"narrow": reported["narrow"], "nested": nested}, tmp_path / "r.html")
    page = Page(text := file.read_text(encoding="utf-8"))
    assert "Run of nested" in page.headings
    assert text.count("<svg") == 2
    assert "That of &#x27;nested&#x27; comes from" in text


def test_priors_and_seeds(text, reported) -> None:
    """The scale of the prior differs between the models; both have the seed 1."""
    row = text[text.index(">mu</th>") :]
    assert row.index("Normal(0, 1)") < row.index("Normal(0, 30)") < row.index("</tr>")
    assert reported["narrow"]["evidence"].attrs["random_seed"] == "1"
    assert text.count("random seed") == 2


def test_results_without_priors_have_no_such_section(reported, tmp_path) -> None:
    models = {name: reported[name].copy() for name in ("narrow", "a<b>")}
    for model in models.values():
        model["evidence"].attrs = {**model["evidence"].attrs, "priors": ""}
    file = pma.report(models, tmp_path / "report.html")
    assert "Priors" not in Page(file.read_text(encoding="utf-8")).headings


def test_a_folder_that_does_not_exist(reported, tmp_path) -> None:
    with pytest.raises(FileNotFoundError):
        pma.report({n: reported[n] for n in ("narrow", "a<b>")}, tmp_path / "no" / "report.html")


def test_figures_are_closed(text) -> None:
    from matplotlib import pyplot

    assert pyplot.get_fignums() == []


@pytest.mark.parametrize(
    ("factor", "of_jeffreys", "of_kass_raftery"),
    [
        (0.9, "not worth more than a bare mention", "not worth more than a bare mention"),
        (2.5, "strong", "positive"),
        (np.log(31), "strong", "strong"),
        (np.log(33), "very strong", "strong"),
        (np.log(1e-3), "decisive", "very strong"),
        (-np.log(20), "strong", "positive"),
        (-np.log(21), "strong", "strong"),
        (np.log(5), "substantial", "positive"),
    ],
)
def test_words(factor, of_jeffreys, of_kass_raftery) -> None:
    assert jeffreys(factor) == of_jeffreys
    assert kass_raftery(factor) == of_kass_raftery
