"""Reports in a real browser, where Chromium is installed: laid out, complete, without errors."""

import shutil
import subprocess

from html import unescape
from json import loads
from pathlib import Path

import numpy as np
import pytest

import pymc_anneal as pma

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")

# Writes what the browser made of the page into its title.
MEASURE = """<script>
addEventListener("load", () => {
  const boxes = q => [...document.querySelectorAll(q)].map(e => e.getBoundingClientRect());
  document.title = JSON.stringify({
    width: document.documentElement.scrollWidth,
    window: innerWidth,
    figures: boxes("svg").map(b => [b.width, b.height]),
    cut: boxes("td").filter(b => b.width < 8 || b.height < 8).length,
    headings: [...document.querySelectorAll("h2")].map(e => e.textContent),
  });
});
</script></body>"""


@pytest.fixture(scope="module")
def report(reported, tmp_path_factory) -> Path:
    results = {"narrow": reported["narrow"], "a<b> & c": reported["a<b>"]}
    return pma.report(results, tmp_path_factory.mktemp("report") / "report.html")


def browse(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Open a page in the browser without a network."""
    folder = page.parent / "profile"
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", *options]
    return subprocess.run(
        [*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )


def measured(report: Path, text: str, width: int) -> dict:
    """Return what the browser made of a page of a given width."""
    page = report.with_name("measured.html")
    page.write_text(text.replace("</body>", MEASURE), encoding="utf-8")
    seen = browse(page, f"--window-size={width},900", "--dump-dom")
    assert "CONSOLE" not in seen.stderr
    title = seen.stdout.partition("<title>")[2].partition("</title>")[0]
    return loads(unescape(title))


@pytest.mark.parametrize("width", [1200, 500])
def test_it_fits_into_the_window(report, width) -> None:
    page = measured(report, report.read_text(encoding="utf-8"), width)
    assert page["width"] <= page["window"]
    assert page["cut"] == 0
    assert len(page["figures"]) == 3
    assert np.min(page["figures"]) > 40
    assert page["headings"][-2:] == ["Run of a<b> & c", "Method"]


def test_a_page_that_is_too_wide_is_found(report) -> None:
    text = report.read_text(encoding="utf-8").replace("<h1>", '<h1 style="width: 3000px">')
    page = measured(report, text, 1200)
    assert page["width"] > page["window"]


def test_it_shows_text_and_figures(report) -> None:
    from matplotlib import image

    picture = report.with_suffix(".png")
    browse(report, "--window-size=1200,1600", f"--screenshot={picture}")
    pixels = image.imread(picture)[..., :3]
    grey = pixels.mean(axis=2)
    assert 0.01 < (grey < 0.5).mean() < 0.3
    assert (np.ptp(pixels, axis=2) > 0.3).mean() > 0.001
