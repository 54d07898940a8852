"""Imports go one way, heavy dependencies stay in few modules, and importing changes nothing."""

import ast
import json
import subprocess
import sys

from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import pymc_anneal as pma

from tests.any_line import WITHOUT_PYMC
from tests.cases import DISCRETE_TRANSITIONS, TRANSITIONS
from tests.path_cases import PATHS, REFERENCES
from tests.schedule_cases import SCHEDULES

ROOT = Path(pma.__file__).parent
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted(ROOT.rglob("*.py"))
}
FOLDERS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
MAX_LINES = 400

# Folders and modules that a folder may import besides itself; some modules have their own row.
MAY_IMPORT = {
    "base": "",
    "schedules": "",
    "model": "base",
    "paths": "base",
    "transitions": "base",
    "annealing": "base",
    "evidence": "base annealing",
    "evidence.bridge_sampling": "model adaptation",
    "evidence.bridge_proposals": "model paths adaptation",
    "evidence.draws_audit": "model adaptation",
    "evidence.given_density": "model paths",
    "evidence.mode_audit": "model adaptation",
    "evidence.posterior_density": "model paths",
    "adaptation": "base model paths transitions annealing",
    "adaptation.fit_at_tops": "evidence.diagnostics",
    "execution": "base annealing",
    "execution.fingerprint": "model",
    "results": "base model annealing evidence",
    "pipeline": "base schedules model paths transitions annealing evidence adaptation execution "
    "results",
    "between": "base model paths annealing evidence adaptation execution pipeline",
    "nested": "base model annealing evidence pipeline results",
    "posthoc": "base schedules model paths transitions annealing evidence adaptation execution "
    "results pipeline",
    "sampling": "base schedules model paths transitions annealing evidence adaptation execution "
    "results pipeline between nested",
    "sampling.robustness": "posthoc",
    "rbm": "base schedules transitions annealing evidence execution results pipeline.result "
    "pipeline.reverse_start pipeline.counted_run pipeline.run pipeline.session pipeline.settings "
    "pipeline.target",
    "rbm.target": "adaptation.pilot",
}
# Rooms that stand on the contracts of the others; what `sample_ais` needs imports none of them.
WINGS = {"between", "nested", "posthoc", "rbm"}
# Files and lines behind `sample_ais`. Both are to become fewer, not more.
MOST_FILES, MOST_LINES = 197, 29_291

# Third-party packages, and the folders and modules that may import them.
USERS = {
    "arviz": "base.arviz_compat",
    "arviz_base": "base.arviz_compat",
    "arviz_stats": "base.arviz_compat",
    "blackjax": "",
    "cloudpickle": "base.pickling model.pickling execution.checkpoint",
    "filelock": "base.replaced_file",
    "lazy_loader": "__init__",
    "matplotlib": "results posthoc.plot_bf",
    "pandas": "base.storable results posthoc sampling.calibrate sampling.robustness "
    "sampling.sequential",
    "platformdirs": "base.compilation_cache",
    "pymc": "model adaptation.laplace_reference evidence.bridge_sampling evidence.given_density "
    "execution.fingerprint pipeline results.compare_estimators sampling between nested posthoc",
    "pytensor": "model execution.fingerprint between.constraints nested.prior_transform "
    "posthoc.null_point posthoc.prior_change posthoc.contrast_bayes_factor",
    "rich": "execution.progress",
    "xarray": "base.arviz_compat results pipeline nested posthoc sampling.power_posterior "
    "rbm.log_likelihood "
    "rbm.parameters rbm.target",
}
# Packages that every module may import.
EVERYWHERE = {"jax", "numpy", "scipy", *sys.stdlib_module_names}


def folder_of(module: str) -> str:
    return module.split(".")[0]


def covers(row: str, module: str) -> bool:
    """Whether a row of folders and modules contains a module or its folder."""
    return bool({module, folder_of(module)} & set(row.split()))


def is_allowed(module: str, imported: str) -> bool:
    """Whether a module of the package may import another one."""
    row = f"{MAY_IMPORT[folder_of(module)]} {MAY_IMPORT.get(module, '')}"
    same_folder = folder_of(imported) == folder_of(module)
    return same_folder or imported == "_version" or covers(row, imported)


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Return the dotted names of all modules that a file imports, at any level of nesting."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in submodules if name.removeprefix("pymc_anneal.") in FILES}
            names |= modules or {node.module}
    return frozenset(names)


def own_imports(module: str) -> list[str]:
    """Return the modules of the package that a module imports, without the package's name."""
    prefix = "pymc_anneal."
    names = sorted(imports_of(FILES[module]))
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


MODULES = [name for name in FILES if "__init__" not in name and "." in name]


def closure_of(module: str) -> set[str]:
    """Return a module and all modules of the package that it imports, directly or not."""
    found, ahead = set[str](), [module]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += [imported for imported in own_imports(name) if imported in FILES]
    return found


def test_what_a_call_stands_on() -> None:
    found = closure_of("sampling.sample_ais")
    lines = sum(len(FILES[name].read_text().splitlines()) for name in found)
    print(f"{len(found)} files, {lines} lines behind `sample_ais`, of {len(FILES)} files")  # noqa: T201
    assert not {folder_of(name) for name in found} & WINGS
    assert len(found) <= MOST_FILES
    assert lines <= MOST_LINES


def test_the_table_names_every_folder() -> None:
    assert {folder_of(row) for row in MAY_IMPORT} == set(FOLDERS)
    assert {row for row in MAY_IMPORT if "." in row} <= set(MODULES)


def test_the_table_has_no_cycle() -> None:
    rows = {f: {folder_of(name) for name in MAY_IMPORT[f].split()} for f in FOLDERS}
    assert set(TopologicalSorter(rows).static_order()) == set(FOLDERS)


def test_imports_go_one_way() -> None:
    forbidden = {(m, name) for m in MODULES for name in own_imports(m) if not is_allowed(m, name)}
    assert not forbidden


def test_imports_are_from_the_defining_module() -> None:
    assert not {(m, name) for m in MODULES for name in own_imports(m) if name not in FILES}
    assert not [m for m in MODULES if "pymc_anneal" in imports_of(FILES[m])]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_hands_on_only_its_own_names(folder: str) -> None:
    assert {folder_of(name) for name in own_imports(f"{folder}.__init__")} <= {folder}


@pytest.mark.parametrize(
    ("module", "imported", "allowed"),
    [
        ("sampling.sample_ais", "base.seeds", True),
        ("evidence.bridge_sampling", "model.compile", True),
        ("evidence.ais", "model.compile", False),
        ("schedules.fixed", "base.seeds", False),
        ("base.seeds", "schedules.fixed", False),
        ("pipeline.counted_run", "sampling.sample_ais", False),
        ("rbm.training", "pipeline.counted_run", True),
        ("rbm.training", "pipeline.choose_path", False),
        ("rbm.training", "model.compile", False),
    ],
)
def test_the_rule(module: str, imported: str, allowed: bool) -> None:
    assert is_allowed(module, imported) == allowed


def test_no_cycle_of_files() -> None:
    graph = {module: own_imports(module) for module in MODULES}
    assert set(TopologicalSorter(graph).static_order()) >= set(MODULES)


def test_kernels_import_no_other_kernels() -> None:
    shared = {"metropolis", "hmc", "by_class"}
    for module in (m for m in MODULES if folder_of(m) == "transitions"):
        siblings = {n.split(".")[1] for n in own_imports(module) if folder_of(n) == "transitions"}
        assert siblings <= shared, module


def test_third_party_packages() -> None:
    packages = {m: {folder_of(name) for name in imports_of(path)} for m, path in FILES.items()}
    others = {(m, p) for m, each in packages.items() for p in each - EVERYWHERE - {"pymc_anneal"}}
    assert not {(m, p) for m, p in others if not covers(USERS.get(p, ""), m)}


def test_rooms_that_are_tested_beside_one_version_of_pymc() -> None:
    packages = ("pymc", "pytensor", "arviz", "arviz_base", "arviz_stats")
    users = {folder_of(name) for package in packages for name in USERS[package].split()}
    assert WITHOUT_PYMC <= set(FOLDERS) - users


def test_length_of_files() -> None:
    length = {m: len(path.read_text().splitlines()) for m, path in FILES.items()}
    assert not {m: lines for m, lines in length.items() if lines > MAX_LINES}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_says_what_it_holds(folder: str) -> None:
    assert ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text()))


# Names load what they need when they are first used.
USE_ALL = """
def use_all():
    import pymc_anneal
    return [getattr(pymc_anneal, name) for name in pymc_anneal.__all__]
"""


def probe(code: str) -> dict:
    """Run code, which may `use_all()`, in a new interpreter, and return the JSON it prints."""
    command = [sys.executable, "-W", "ignore", "-c", USE_ALL + code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT.parent)
    assert done.stderr == ""
    return json.loads(done.stdout)


SETTINGS = """
import json, sys, warnings
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import arviz, jax, numpy, pymc, pytensor, xarray
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
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    before = settings()
    use_all()
    after = settings()
print(json.dumps({
    "before": before,
    "after": after,
    "caught": [str(w.message) for w in caught],
    "modules": list(sys.modules),
}))
"""


@pytest.fixture(scope="module")
def used() -> dict:
    """Return what a process has before and after it has used every public name."""
    return probe(SETTINGS)


def test_importing_starts_no_device(used: dict) -> None:
    assert used["after"]["backends"] == used["before"]["backends"] == []


@pytest.mark.parametrize("kind", ["jax", "pytensor", "numpy", "random", "filters"])
def test_importing_changes_no_setting(used: dict, kind: str) -> None:
    assert used["after"][kind] == used["before"][kind]


def test_importing_gives_no_warning(used: dict) -> None:
    assert used["caught"] == []


def test_importing_does_not_import_optional_packages(used: dict) -> None:
    assert "pymc_anneal.sampling.nested_evidence" in used["modules"]
    assert not {"blackjax", "dynesty", "nautilus"} & set(used["modules"])


def test_a_bare_import_loads_nothing() -> None:
    code = """
import json, sys
import pymc_anneal
print(json.dumps(sorted(m for m in sys.modules if m.split(".")[0] in {LIBRARIES})))
"""
    libraries = ("arviz", "jax", "matplotlib", "numpy", "pandas", "pymc", "pymc_anneal", "scipy")
    loaded = probe(code.replace("{LIBRARIES}", repr(libraries)))
    assert loaded == ["pymc_anneal", "pymc_anneal._version"]


def test_public_names() -> None:
    """What is loaded when it is used, what type checkers read, and what `import *` gives, agree."""
    stub = ast.parse((ROOT / "__init__.pyi").read_text())
    imported = [a.name for n in stub.body if isinstance(n, ast.ImportFrom) for a in n.names]
    (stated,) = (ast.literal_eval(n.value) for n in stub.body if isinstance(n, ast.Assign))
    assert sorted(dir(pma)) == sorted(pma.__all__) == sorted(imported) == stated
    assert "rbm" in pma.__all__
    for name in pma.__all__:
        assert getattr(pma, name).__doc__, f"{name} has no docstring"
    visible = {name for name in vars(pma) if not name.startswith("_")}
    assert visible - set(FOLDERS) == set(pma.__all__) - {"rbm"}


def test_cases_cover_every_export() -> None:
    kernels = [*TRANSITIONS, *DISCRETE_TRANSITIONS]
    covered = {case.exported for case in [*SCHEDULES, *PATHS, *kernels, *REFERENCES]}
    plots = {name for name in pma.__all__ if name.startswith("plot_")}
    others = plots | {
        "Between",
        "Calibration",
        "Checkpoint",
        "CompiledModel",
        "EvidenceWarning",
        "Increasing",
        "KernelState",
        "LogBayesFactor",
        "LogEvidence",
        "LogTerms",
        "MAPEstimate",
        "ModelComparison",
        "Path",
        "Design",
        "Robustness",
        "Sequential",
        "StepInfo",
        "Target",
        "TemperedTransition",
        "Transition",
        "Tuning",
        "Verdict",
        "ais",
        "average",
        "bridge_evidence",
        "calibrate",
        "compare",
        "compare_estimators",
        "compile_model",
        "default_transition",
        "constraint_bayes_factor",
        "contrast_bayes_factor",
        "Count",
        "count",
        "find_map",
        "fit_reference",
        "fractional_evidence",
        "from_sample_smc",
        "g_prior",
        "inclusion",
        "IntrinsicBayesFactors",
        "intrinsic_bayes_factor",
        "laplace_reference",
        "log_bayes_factor",
        "log_evidence",
        "nested_evidence",
        "pool_imputations",
        "power_posterior",
        "power_sensitivity",
        "prior_sensitivity",
        "rbm",
        "report",
        "robustness",
        "sample_ais",
        "sample_bayes_factor",
        "sample_models",
        "savage_dickey",
        "design",
        "sequential",
        "summary",
        "to_anesthetic",
        "to_dynesty",
        "update",
    }
    assert covered | others == set(pma.__all__)
    assert not covered & others
