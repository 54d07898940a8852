"""The built documentation in a real browser: whole at two widths, without errors, all links alive.

Runs after `make docs`, where Chromium and chromedriver are installed.
"""

import os
import re

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.browser import CHROMIUM, DRIVER, Browser, open_browser

ROOT = Path(__file__).parent.parent
SITE = Path(os.environ.get("PYMC_ANNEAL_SITE", ROOT / "docs" / "_build" / "html"))
PAGES = sorted(p for p in SITE.rglob("*.html") if "_static" not in p.parts and p.stem != "search")
WIDTHS = (1280, 480)
LARGEST = 100_000  # bytes of a page of the API

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no Chromium with chromedriver here"),
    pytest.mark.skipif(not PAGES, reason="the documentation is not built: `make docs`"),
]

# What a reader would miss at this width: elements beyond the edge of the window that no box
# scrolls, text that a box hides, pictures that did not load, formulas without a size.
MEASURE = """
const shown = e => e.checkVisibility({visibilityProperty: true, opacityProperty: true});
const name = e => `${e.tagName}.${e.className}: ${e.textContent.trim().slice(0, 60)}`;
const scrolls = e => ["auto", "scroll"].includes(getComputedStyle(e).overflowX);
const boxed = e => { for (; e; e = e.parentElement) if (scrolls(e)) return true; return false; };
const hides = e => ["hidden", "clip"].includes(getComputedStyle(e).overflowX);
const repeats = e => e.closest(".bd-breadcrumbs");  // the heading, shortened
const cut = e => hides(e) && !repeats(e) && e.clientWidth > 1 && e.scrollWidth > e.clientWidth + 1;
const formulas = [...document.querySelectorAll("math")];
const all = [...document.querySelectorAll("body *")].filter(shown);
const beyond = e => {
  const b = e.getBoundingClientRect();
  return b.width > 1 && (b.right > innerWidth + 1 || b.left < -1) && !boxed(e.parentElement);
};
return {
  width: document.documentElement.scrollWidth,
  window: innerWidth,
  beyond: all.filter(beyond).map(name),
  hidden: all.filter(cut).map(name),
  scrolling: [...document.querySelectorAll("div.highlight pre")].filter(shown)
    .filter(e => e.scrollWidth > e.clientWidth + 1).map(name),
  pictures: [...document.images].filter(i => !i.naturalWidth).map(i => i.src),
  formulas: formulas.filter(e => !e.getBoundingClientRect().width).length,
  links: [...document.links].map(a => a.href),
  loaded: performance.getEntriesByType("resource").map(r => r.name),
};
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Browser]:
    with open_browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@cache
def anchors(page: Path) -> set[str]:
    """Return the names to which links of a page can lead."""
    return set(re.findall(r'\bid="([^"]+)"', page.read_text(encoding="utf-8")))


def dead(links: list[str]) -> list[str]:
    """Return the links to files or places in them that do not exist; those of the web are left out.

    Listings of the source name an object by the first module that shows one, whose page has others.
    """
    found = []
    for link in links:
        parts = urlsplit(link)
        if parts.scheme != "file":
            continue
        file, place = Path(unquote(parts.path)), unquote(parts.fragment)
        shows_source = re.fullmatch(r"pymc_anneal\.Reference(\.\w+)?", place)
        named = not place or file.suffix != ".html" or shows_source or place in anchors(file)
        if not (file.is_file() and named):
            found.append(link)
    return found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "page", PAGES, ids=lambda p: p.relative_to(SITE).with_suffix("").as_posix()
)
def test_a_page_is_whole(browser, page, width) -> None:
    browser.open(page.as_uri(), width)
    seen = browser.run(MEASURE)
    assert seen["window"] == width
    assert seen["width"] <= width
    assert seen["beyond"] == seen["hidden"] == seen["pictures"] == []
    assert seen["formulas"] == 0
    # Code and outputs fit beside the sidebars; in narrow windows their boxes scroll.
    assert width < max(WIDTHS) or "_modules" in page.parts or seen["scrolling"] == []
    assert [r for r in seen["loaded"] if not r.startswith(("file:", "data:"))] == []
    assert dead(seen["links"]) == []
    assert browser.complaints() == []


BROKEN = {
    "beyond": '<p style="width: 3000px">wide</p>',
    "hidden": '<p style="width: 9em; overflow: hidden; white-space: nowrap">one two three four</p>',
    "pictures": '<img src="missing.png">',
    "scrolling": f'<div class="highlight"><pre style="overflow: auto">{"x" * 200}</pre></div>',
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_broken_is_found(browser, tmp_path, kind) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><body>{BROKEN[kind]}</body>", encoding="utf-8")
    browser.open(page.as_uri(), 480)
    assert browser.run(MEASURE)[kind]
    assert bool(browser.complaints()) == (kind == "pictures")


def test_dead_links_are_found() -> None:
    page = (SITE / "index.html").as_uri()
    assert dead([page, f"{page}#nowhere", page.replace("index", "nowhere")]) == [
        f"{page}#nowhere",
        page.replace("index", "nowhere"),
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_every_box_of_code_has_a_copy_button(browser, width) -> None:
    browser.open((SITE / "quickstart.html").as_uri(), width)
    boxes, buttons = browser.run(
        'return ["div.cell_input pre", "div.cell_input button.copybtn"]'
        ".map(q => document.querySelectorAll(q).length)"
    )
    assert boxes == buttons > 3


def test_pages_of_the_api_are_small() -> None:
    pages = [SITE / "api.html", *SITE.glob("generated/*.html")]
    assert len(pages) > 100
    assert max(p.stat().st_size for p in pages) < LARGEST
