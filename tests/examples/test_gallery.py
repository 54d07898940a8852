"""The gallery: its stored results agree with exact values, and its scripts reproduce them."""

import importlib.util
import re

from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from scipy import integrate, stats

ROOT = Path(__file__).parents[2]
GALLERY, EXAMPLES = ROOT / "docs" / "gallery", ROOT / "examples"
NAMES = sorted(page.stem for page in GALLERY.glob("*.md") if page.stem != "index")
MAX_BYTES = 80_000

# An estimate with its standard error, and the next exact or reference value.
ESTIMATE = re.compile(
    r"(-?\d+\.\d+) \+- (\d+\.?\d*)(?:(?!\+-|\(exact|\(reference).)*"
    r"\((?:exact|reference) (-?\d+\.\d+)(?: \+- (\d+\.\d+))?\)",
    re.DOTALL,
)

# Known values, in the order of the output, that were not computed by the scripts: published, by
# other formulas, or by importance sampling with millions of draws.
KNOWN = {
    "cement": [-13.455, -13.591],
    "coal_disasters": [-177.517, -206.450, 28.933],
    "crime": [-48.434, -48.549, -48.674, -48.795, -49.651],
    "exoplanets": [-488.096, -453.862, -390.621],
    "galaxies": [-246.106, -232.88, -226.79, -226.61],
    "magnesium": [-33.601, -22.510, -26.822, -19.522, -19.989],
    "radiata_pine": [-310.128, -301.705, 8.424],
    # By posteriordb's posteriors of the same name, computed for the atlas.
    "radon": [-1101.0207, -1276.4079, -1061.3104, -1100.3272, -1061.7496, -1045.3175],
    "rbm_bars": [],
    "sleep": [2.848, 2.848],
}


def load(path: Path) -> ModuleType:
    """Import a script without running it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def estimates(text: str) -> np.ndarray:
    """Return the estimates of an output: value, error, known value and its error, shape (n, 4)."""
    unfolded = text.replace("\n    ", " ")
    rows = [[float(number or 0) for number in row] for row in ESTIMATE.findall(unfolded)]
    return np.array(rows).reshape(-1, 4)


def check(name: str, text: str) -> None:
    """Raise an error unless the estimates of an output are within four errors of known values."""
    found, error, exact, exact_error = estimates(text).T
    assert len(found) >= max(1, len(KNOWN[name]))
    assert exact[: len(KNOWN[name])] == pytest.approx(KNOWN[name], abs=2e-3)
    rounding = 1e-3
    assert (np.abs(found - exact) <= 4 * np.hypot(error, exact_error) + rounding).all()
    assert "do not trust" not in text


@pytest.mark.parametrize("name", NAMES)
def test_stored_output(name: str) -> None:
    check(name, (GALLERY / f"{name}.txt").read_text(encoding="utf-8"))


def test_a_wrong_output_is_found() -> None:
    text = (GALLERY / "sleep.txt").read_text(encoding="utf-8")
    right = re.search(r"log Bayes factor (\d\.\d+)", text)
    assert right is not None
    with pytest.raises(AssertionError):
        check("sleep", text.replace(right[1], "3.100", 1))
    with pytest.raises(AssertionError):
        check("sleep", text.replace("(exact 2.848)", "(exact 2.900)"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_script(name: str) -> None:
    check(name, load(GALLERY / "update.py").output_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_page(name: str) -> None:
    page = (GALLERY / f"{name}.md").read_text(encoding="utf-8")
    index = (GALLERY / "index.md").read_text(encoding="utf-8")
    assert all(part in page for part in (f"{name}.png", f"{name}.txt", f"examples/{name}.py"))
    assert all(part in index for part in (f"]({name}.png)", f"]({name}.md)", f"\n{name}\n"))
    assert (GALLERY / f"{name}.png").stat().st_size < MAX_BYTES


def test_every_page_has_known_values() -> None:
    assert set(KNOWN) == set(NAMES)


def test_cement_by_quadrature() -> None:
    """The variance by quadrature gives the multivariate t of the script."""
    cement = load(EXAMPLES / "cement.py")
    data = pd.read_csv(EXAMPLES / "data" / "cement.csv")
    data = (data - data.mean()) / data.std(ddof=0)
    x, y = data.to_numpy()[:, :-1], data["heat"].to_numpy()
    factor = cement.g_prior_factor(x, [1, 1, 0, 0])
    chosen = x[:, :2]
    slopes = len(y) * chosen @ np.linalg.inv(chosen.T @ chosen) @ chosen.T
    shape = np.eye(len(y)) + 25 + slopes

    def integrand(v: float) -> float:
        likelihood = stats.multivariate_normal.pdf(y, np.zeros(len(y)), v * shape)
        return likelihood * stats.invgamma.pdf(v, 3, scale=2)

    mass = (
        integrate.quad(integrand, 0, 1, points=[0.1])[0] + integrate.quad(integrand, 1, np.inf)[0]
    )
    assert cement.exact_log_evidence(x, y, factor) == pytest.approx(np.log(mass), abs=1e-6)


def test_cement_data() -> None:
    """Least squares on two minerals, as published (Draper & Smith 1981)."""
    data = pd.read_csv(EXAMPLES / "data" / "cement.csv")
    design = np.column_stack([np.ones(13), data["aluminate"], data["tricalcium"]])
    fitted = np.linalg.lstsq(design, data["heat"])[0]
    assert fitted == pytest.approx([52.577, 1.468, 0.662], abs=1e-3)


def test_crime_data() -> None:
    """The smallest BIC of the regressions of logarithms, as published for these regressors."""
    _, x, y = load(EXAMPLES / "crime.py").read_data()
    residual = y - x @ np.linalg.lstsq(x, y)[0]
    bic = len(y) * np.log((residual**2).sum() / (y**2).sum()) + 8 * np.log(len(y))
    assert bic == pytest.approx(-55.912, abs=1e-3)


def test_magnesium_data() -> None:
    """The odds ratio of the fixed-effect analysis, as published."""
    _, y, se = load(EXAMPLES / "magnesium.py").log_odds_ratios()
    assert np.exp(np.average(y, weights=se**-2)) == pytest.approx(1.01, abs=5e-3)
