"""The built documentation in a real browser: no page is wider than the window.

Runs after `make docs`, where Chromium is installed.
"""

import shutil

from pathlib import Path

import pytest

from tests.results.test_report_in_a_browser import BROWSER, measured

SITE = Path(__file__).parent.parent / "docs" / "_build" / "html"
PAGES = sorted(p for p in SITE.glob("*.html") if p.stem not in ("search", "measured"))
PAGES += sorted(SITE.glob("gallery/*.html"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine"),
    pytest.mark.skipif(not PAGES, reason="the documentation is not built: `make docs`"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Return a copy of the site, in which pages to measure can be written."""
    return Path(shutil.copytree(SITE, tmp_path_factory.mktemp("site") / "html"))


# 500 pixels: the narrowest window of a headless Chromium.
@pytest.mark.parametrize("width", [1280, 500])
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_nothing_is_wider_than_the_window(site, page, width) -> None:
    copy = site / page.relative_to(SITE)
    seen = measured(copy, copy.read_text(encoding="utf-8"), width)
    assert seen["width"] <= seen["window"]


def test_a_page_that_is_too_wide_is_found(site) -> None:
    copy = site / "index.html"
    text = copy.read_text(encoding="utf-8").replace("<article", '<article style="width: 3000px"')
    seen = measured(copy, text, 1280)
    assert seen["width"] > seen["window"]
