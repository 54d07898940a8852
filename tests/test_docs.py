"""The documentation: narrow code, few top entries, all statuses, messages that exist, true sums."""

import ast
import builtins
import re

from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.evidence.verdict import Status

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)
# Characters of code that fit beside both sidebars at 1280 pixels.
WIDTH = 75
TOP_ENTRIES = 14

CODE = re.compile(r"```(?:\{code-cell\} ipython3|python|bash)\n(.*?)```", re.DOTALL)
TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def code_lines(text: str) -> list[str]:
    return [line for block in CODE.findall(text) for line in block.splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_code_is_narrow(page) -> None:
    wide = [line for line in code_lines(page.read_text(encoding="utf-8")) if len(line) > WIDTH]
    assert not wide


def test_wide_code_would_be_found() -> None:
    assert len(code_lines(f"```python\n{'x' * 80}\n```")[0]) > WIDTH


# What a reader has: the cheat sheet and short forms stand for models and draws of their own.
OWN = {"model", "idata", "idata_a", "idata_b", "nuts"}
PYTHON = re.compile(r"```(?:\{code-cell\} ipython3|python)\n(?::tags:[^\n]*\n)?(.*?)```", re.DOTALL)


def undefined_names(page: str) -> set[str]:
    """Return the names that the code of a page uses and nothing on the page defines before."""
    known, missing = {*dir(builtins), *OWN}, set()
    for block in PYTHON.findall(page):
        tree = ast.walk(ast.parse(block.replace("...}", "}")))
        nodes = list(tree)
        known |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        known |= {a.arg for a in nodes if isinstance(a, ast.arg)}
        known |= {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        known |= {
            (alias.asname or alias.name).split(".")[0]
            for n in nodes
            if isinstance(n, ast.Import | ast.ImportFrom)
            for alias in n.names
        }
        known |= {n.name for n in nodes if isinstance(n, ast.ExceptHandler) and n.name}
        missing |= {n.id for n in nodes if isinstance(n, ast.Name)} - known
    return missing - {"__name__"}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_code_uses_only_what_the_page_defines(page) -> None:
    assert undefined_names(page.read_text(encoding="utf-8")) == set()


def test_undefined_names_are_found() -> None:
    first = "```{code-cell} ipython3\n:tags: [remove-stderr]\n\nx = 1\n```\n"
    assert undefined_names(f"{first}```python\nprint(unknown)\n```\n{first}") == {"unknown"}


def test_help_starts_with_what_to_call() -> None:
    first = (pma.__doc__ or "").splitlines()[:6]
    assert any("pymc_anneal.sample_ais(model)" in line for line in first)


def entries(page: str) -> list[str]:
    lines = [line for block in TOCTREE.findall(read(page)) for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith(":")]


def test_the_site_has_few_top_entries() -> None:
    top = entries("index.md")
    assert len(top) == len(set(top)) <= TOP_ENTRIES
    assert {"install", "quickstart", "which", "interpret", "trust", "troubleshooting"} <= set(top)


def test_every_status_has_a_row() -> None:
    rows = re.findall(r'^\| "([a-z ]+)" \|', read("trust.md"), re.MULTILINE)
    assert sorted(rows) == sorted(get_args(Status))


def texts_of_the_package() -> str:
    """Return all strings of the package, with a space for what is formatted into them."""
    found = []
    for file in Path(pma.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append(
                    "".join(
                        getattr(v, "value", "\0") if isinstance(v, ast.Constant) else "\0"
                        for v in node.values
                    )
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


def unknown_messages(page: str, known: str) -> list[str]:
    """Return the quoted messages of a page of which a part is in no text of the package."""
    quoted = re.findall(r'"([^"]+)"', "\n".join(re.findall(r'^"[^\n]*$', page, re.MULTILINE)))
    parts = {m: re.split(r"\.\.\.|\b(?:[A-Z]{1,8}s?)\b|\b[\d.]+\b", m) for m in quoted}
    return [m for m, ps in parts.items() if any(p.strip(" ,:'()") not in known for p in ps)]


def test_messages_are_those_of_the_package() -> None:
    known, page = texts_of_the_package(), read("troubleshooting.md")
    assert len(re.findall(r'^"', page, re.MULTILINE)) > 40
    assert unknown_messages(page, known) == []
    assert unknown_messages('"the moon is full"\n: Wait.', known) == ["the moon is full"]


def long_terms(page: str) -> list[str]:
    """Return the last lines of terms of several lines, which make no list of definitions."""
    return re.findall(r"^[^\n:|]+\n([^\n]+)\n: ", page, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_terms_are_lines(page) -> None:
    assert long_terms(page.read_text(encoding="utf-8")) == []


def test_long_terms_are_found() -> None:
    assert long_terms('"one",\n"two"\n: What.') == ['"two"']


def test_readme_has_the_commands_and_the_limits() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme
    named = re.findall(r"\*\*(.*?)\.?\*\*", read("_limits.md"))
    assert len(named) == 3
    assert all(f"**{name}.**" in readme for name in named)
    for page in ("index.md", "quickstart.md", "trust.md"):
        assert "{include} _limits.md" in read(page)


def test_readme_and_site_lead_to_each_other() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert {"docs/index.md", "docs/quickstart.md", "docs/trust.md"} <= set(links)
    assert all((ROOT / link).exists() for link in links)
    assert "../README.md" in read("index.md")


CLAIMS = ("honest error", "no tuning", "silent miss", "bound the evidence from above")


def test_no_claim_is_too_strong() -> None:
    files = [*PAGES, ROOT / "README.md", ROOT / "pyproject.toml", ROOT / "CITATION.cff"]
    for file in files:
        text = " ".join(file.read_text(encoding="utf-8").lower().split())
        assert not [claim for claim in CLAIMS if claim in text], file


TEAMS = ("own", "diaz", "nelson", "rajpaul", "puc", "multinest")
ROW = re.compile(r"^\| (\d) \| (narrow|wide) \| (\d) \| \*\*(.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def cells() -> dict[tuple[str, str, str], dict[str, float]]:
    """Return the estimates of the table by data set, prior and number of planets."""
    found = {}
    for data, prior, planets, rest in ROW.findall(read("gallery/exoplanets.md")):
        values = [value.split("**")[0].strip() for value in rest.split("|")][: len(TEAMS)]
        numbers = [float(value or "nan") for value in values]
        found[data, prior, planets] = dict(zip(TEAMS, numbers, strict=True))
    return found


class TestExoplanets:
    """What the page says of the teams follows from its table."""

    def differences(self, cells, team: str, planets: str, prior: str = "narrow|wide") -> np.ndarray:
        values = [c[team] - c["own"] for k, c in cells.items() if k[2] in planets and k[1] in prior]
        return np.array(values)[np.isfinite(values)]

    def test_the_table_is_read(self, cells) -> None:
        assert len(cells) == 15

    def test_puc(self, cells) -> None:
        hard = {("2", "narrow", "2"), ("2", "narrow", "3")}
        others = [c["puc"] - c["own"] for k, c in cells.items() if k not in hard]
        assert np.abs(others).max() < 0.06

    def test_nelson(self, cells) -> None:
        one, two = (self.differences(cells, "nelson", n) for n in "12")
        assert ((one.round(2) <= -0.68) & (one.round(2) >= -0.72)).all()
        assert ((two.round(2) <= -1.37) & (two.round(2) >= -1.40)).all()
        assert sorted(self.differences(cells, "nelson", "3").round(1)) == [-2.1, -2.0, -1.3]
        known = [n * np.log(2) + self.differences(cells, "nelson", str(n)) for n in (1, 2, 3)]
        left = np.sort(np.abs(np.concatenate(known)))
        assert len(left) == 12
        assert left[-2] < 0.04 < left[-1]

    def test_multinest(self, cells) -> None:
        one = sorted(self.differences(cells, "multinest", "1").round(1))
        assert one[0] == -2.4
        assert 0.2 <= one[1] <= one[-1] <= 0.9
        more = self.differences(cells, "multinest", "23").round(1)
        assert (more.min(), more.max()) == (-0.3, 3.2)

    def test_diaz_and_rajpaul(self, cells) -> None:
        for team in ("diaz", "rajpaul"):
            assert np.abs(self.differences(cells, team, "1", "narrow")).max() < 0.1
            assert np.abs(self.differences(cells, team, "1", "wide")).max() < 1.5
            assert np.abs(self.differences(cells, team, "23")).max() < 2.3

    def test_no_planets(self, cells) -> None:
        for team in TEAMS[1:]:
            assert np.abs(self.differences(cells, team, "0")).max() < 0.04


def stored(name: str, pattern: str) -> list[float]:
    """Return the numbers that a pattern finds in a stored output of the gallery."""
    found = re.findall(pattern, read(f"gallery/{name}.txt"))
    assert found, (name, pattern)
    return [float(number) for number in found]


class TestGallery:
    """What the pages say of their stored outputs follows from these."""

    def page(self, name: str) -> str:
        return " ".join(read(f"gallery/{name}.md").split())

    def test_outputs_are_folded(self) -> None:
        for file in (DOCS / "gallery").glob("*.txt"):
            lines = file.read_text(encoding="utf-8").splitlines()
            assert max(map(len, lines)) <= 88, file

    def test_radiata_pine(self) -> None:
        assert stored("radiata_pine", r"factor is (\d+)") == pytest.approx([4500], rel=0.02)
        assert "a factor of about 4,500" in self.page("radiata_pine")

    def test_cement(self) -> None:
        best, second = stored("cement", r"probability\s+(0\.\d+),\s+trust")[:2]
        assert 0.25 < best < 0.3
        assert second == pytest.approx(0.25, abs=0.005)

    def test_crime(self) -> None:
        assert stored("crime", r"probability\s+(0\.\d+),\s+trust")[0] < 0.2
        (share,) = stored("crime", r"effect\[unemployment\].* (\S+)\n")
        assert f"{share:.0%}".replace("%", " %") in self.page("crime")

    def test_radon(self) -> None:
        names = "one line", "no pooling", "intercepts", "slopes", "both", "uranium"
        found = {name: stored("radon", rf"{name}: log evidence (\S+)")[0] for name in names}
        assert found["intercepts"] - found["one line"] == pytest.approx(40, abs=0.5)
        assert found["one line"] - found["no pooling"] == pytest.approx(175, abs=0.5)
        assert found["both"] < found["intercepts"] < found["uranium"] - 10
        assert stored("radon", r"sd of counties (\S+),")[0] < 0.2
        assert stored("radon", r"without it (\S+)")[0] > 0.3

    def test_sleep(self) -> None:
        (largest,) = stored("sleep", r"delta +(\S+)")
        (smallest,) = stored("sleep", r"delta +\S+ +\S+ +(\S+)")
        assert f"goes from {smallest:.0f} to {largest:.1f}:" in self.page("sleep")
        assert len(stored("sleep", r"r = (\S+): .*, trust")) == 15

    def test_magnesium(self) -> None:
        first = stored("magnesium", r"\((\S+) : 1\)")[0]
        assert first == pytest.approx(75, rel=0.02)
        both = stored("magnesium", r"(?:effect and size|size alone) .* (\S+) +trust\n")
        assert f"{sum(both):.0%}" == "97%"
        assert stored("magnesium", r"effect +(-?0\.\d+)") == pytest.approx([-0.70, 0.03], abs=0.01)

    def test_galaxies(self) -> None:
        two, one = stored("galaxies", r"\n[12] +\d +\S+ +\S+ +(\S+) +\S+ +trust")
        assert np.exp(-one) == pytest.approx(2.9e8, rel=0.03)
        assert np.exp(-two) == pytest.approx(500, rel=0.1)

    def test_coal_disasters(self) -> None:
        assert stored("coal_disasters", r"log Bayes factor (\S+)")[0] == pytest.approx(29, abs=0.1)

    def test_exoplanets(self, cells) -> None:
        found = re.findall(
            r"set (\d), narrow, (\d) planet.*?evidence (\S+)", read("gallery/exoplanets.txt")
        )
        assert len(found) == 6
        for data, planets, value in found:
            assert float(value) == cells[data, "narrow", planets]["own"]
