"""Reports: one page that holds everything, well-formed and without references to other files."""

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import pymc_anneal as pma

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
        "Other priors",
        "Run of narrow",
        "Run of a<b>",
    ]
    assert text.count("<svg") == 4


def test_numbers_and_words(text, reported) -> None:
    factor = pma.log_bayes_factor(reported["a<b>"], reported["narrow"]).log_bayes_factor
    assert kass_raftery(factor) in text
    assert jeffreys(factor) in text
    assert f"{factor:.1f}" in text
    assert pma.log_evidence(reported["narrow"]).data_hash in text


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
