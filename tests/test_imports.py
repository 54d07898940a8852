"""Imports go one way, heavy dependencies stay where they belong, and importing changes nothing."""

import ast
import json
import subprocess
import sys

from pathlib import Path

import pytest

import pymc_anneal as pma

from tests.cases import DISCRETE_TRANSITIONS, PATHS, REFERENCES, SCHEDULES, TRANSITIONS

ROOT = Path(pma.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# A module imports only modules of a lower line.
LAYERS = [
    {"base", "scores"},
    {
        "paths",
        "schedules",
        "families",
        "estimators",
        "preconditioning",
        "jaxify",
        "compat",
        "portable",
        "prior",
        "resampling",
        "stats",
        "supports",
        "refusals",
        "custom_path",
        "qpath",
        "tilted",
    },
    {"transitions"},
    {"engine", "model", "options", "evaluations"},
    {
        "tuner",
        "diagnostics",
        "discrete",
        "checkpoint",
        "fingerprint",
        "power_sensitivity",
        "simulation",
    },
    {"cloud"},
    {"pilot", "moments"},
    {"plan", "results", "progress", "executors"},
    {"frozen", "bridge"},
    {"rounds", "rbm", "references", "comparison", "panel", "plots", "smc", "summaries"},
    {"reverse", "start"},
    {"selection", "assembly"},
    {"sampling", "calibration", "tempered", "power_posterior", "modes"},
    {"__init__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# Who may import what.
ALLOWED = {
    "pymc": {
        "model",
        "prior",
        "jaxify",
        "supports",
        "discrete",
        "assembly",
        "sampling",
        "bridge",
        "references",
        "panel",
        "calibration",
        "fingerprint",
        "modes",
        "power_posterior",
        "tempered",
        "simulation",
        "refusals",
    },
    "pytensor": {"refusals", "model", "prior", "jaxify", "supports", "fingerprint", "simulation"},
    "xarray": {
        "results",
        "compat",
        "assembly",
        "plots",
        "power_posterior",
        "power_sensitivity",
        "smc",
    },
    "pandas": {"calibration", "comparison", "panel", "plots", "power_sensitivity", "summaries"},
    "arviz": {"compat"},
    "arviz_stats": {"compat"},
    "rich": {"progress"},
    "blackjax": set(),
}


def module_of(path: Path) -> str:
    """Name of the module, or of the subpackage, below ``pymc_anneal``."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Dotted names of everything that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"a relative import in {path}"
            if node.module == "pymc_anneal":
                names |= {f"pymc_anneal.{alias.name}" for alias in node.names}
            else:
                names.add(node.module)
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    own = module_of(path)
    assert own in LEVEL, f"give the new module {own} a place in LAYERS"
    for name in imported(path):
        package, *rest = name.split(".")
        if package != "pymc_anneal" or not rest:
            continue
        if rest[0] == own and own in ("rbm", "transitions"):
            continue
        assert LEVEL[rest[0]] < LEVEL[own], f"{own} imports {name}"


def test_kernels_import_no_kernels_but_what_they_share() -> None:
    for path in (ROOT / "transitions").glob("*.py"):
        if path.stem == "__init__":
            continue
        siblings = {n.split(".")[2] for n in imported(path) if n.startswith("pymc_anneal.trans")}
        assert siblings <= {"metropolis", "hmc"}, path


@pytest.mark.parametrize("package", ALLOWED)
def test_dependencies_stay_where_they_belong(package: str) -> None:
    users = {
        module_of(path)
        for path in FILES
        for name in imported(path)
        if name.split(".")[0] == package
    }
    assert users <= ALLOWED[package]


def probe(code: str) -> dict:
    """Run code in a fresh interpreter and read the JSON object it prints."""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT.parent)
    assert done.stderr == ""
    return json.loads(done.stdout)


SETTINGS = """
import json, warnings
import jax, numpy, pytensor, pymc, arviz
import jax._src.xla_bridge as bridge
def settings():
    return {
        "jax": {k: repr(v) for k, v in jax.config.values.items()},
        "pytensor": str(pytensor.config),
        "numpy": [repr(numpy.get_printoptions()), repr(numpy.geterr())],
        "random": repr(numpy.random.get_state()[1].tolist()),
        "filters": len(warnings.filters),
        "backends": sorted(bridge._backends),
    }
before = settings()
import pymc_anneal
after = settings()
print(json.dumps({"before": before, "after": after}))
"""


@pytest.fixture(scope="module")
def settings() -> dict:
    return probe(SETTINGS)


def test_importing_starts_no_device(settings: dict) -> None:
    assert settings["after"]["backends"] == settings["before"]["backends"] == []


@pytest.mark.parametrize("what", ["jax", "pytensor", "numpy", "random", "filters"])
def test_importing_changes_no_setting(settings: dict, what: str) -> None:
    assert settings["after"][what] == settings["before"][what]


def test_importing_warns_of_nothing() -> None:
    code = """
import json, warnings
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import arviz, jax, pymc, xarray
    import pytensor.link.jax.dispatch
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import pymc_anneal
print(json.dumps({"caught": [str(w.message) for w in caught]}))
"""
    assert probe(code) == {"caught": []}


def test_importing_does_not_import_optional_packages() -> None:
    code = """
import json, sys
import pymc_anneal
print(json.dumps({"optional": [m for m in ("blackjax", "netCDF4", "zarr") if m in sys.modules]}))
"""
    assert "blackjax" not in probe(code)["optional"]


def test_public_names() -> None:
    assert sorted(pma.__all__) == sorted(set(pma.__all__))
    for name in pma.__all__:
        assert getattr(pma, name).__doc__, f"{name} has no docstring"


def test_cases_cover_every_export() -> None:
    kernels = [*TRANSITIONS, *DISCRETE_TRANSITIONS]
    covered = {case.exported for case in [*SCHEDULES, *PATHS, *kernels, *REFERENCES]}
    plots = {name for name in pma.__all__ if name.startswith("plot_")}
    others = plots | {
        "Calibration",
        "Checkpoint",
        "CompiledModel",
        "LogBayesFactor",
        "LogEvidence",
        "MAPEstimate",
        "TemperedTransition",
        "bridge_evidence",
        "calibrate",
        "compare",
        "compare_estimators",
        "compile_model",
        "default_transition",
        "find_map",
        "fit_reference",
        "laplace_reference",
        "log_bayes_factor",
        "log_evidence",
        "power_posterior",
        "rbm",
        "from_sample_smc",
        "sample_ais",
        "power_sensitivity",
        "summary",
    }
    assert covered | others == set(pma.__all__)
    assert not covered & others
