"""Sphinx configuration. `make docs` executes every code cell and treats warnings as errors."""

import os
import re
import sys
import tomllib

from pathlib import Path

import pymc_anneal

sys.path.insert(0, str(Path(__file__).parent))  # for the extension `mathml`

project = "pymc_anneal"
author = "The pymc_anneal developers"
copyright = f"2026, {author}"
release = pymc_anneal.__version__
version = release

extensions = [
    "mathml",
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build", "_limits.md"]
templates_path = ["_templates"]

# Links to other projects need their inventories from the network, which a build here does without.
if os.environ.get("READTHEDOCS"):
    extensions.append("sphinx.ext.intersphinx")
intersphinx_mapping = {
    "arviz": ("https://python.arviz.org/en/stable/", None),
    "numpy": ("https://numpy.org/doc/stable/", None),
    "pandas": ("https://pandas.pydata.org/docs/", None),
    "pymc": ("https://www.pymc.io/projects/docs/en/stable/", None),
    "xarray": ("https://docs.xarray.dev/en/stable/", None),
}

# Pages are MyST Markdown; a cell that raises an error stops the build.
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
# "cache" executes only pages whose cells have changed; it does not notice changes of the package.
nb_execution_mode = os.environ.get("NB_EXECUTION_MODE", "force")
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"
bibtex_reference_style = "author_year"

# One page for each function and class. Records are made by functions: their pages show no
# signature, and the members that are listed here.
autosummary_generate = True
autosummary_context = {
    "records": {
        "Calibration": "",
        "CompiledModel": "",
        "KernelState": "",
        "LogBayesFactor": "bayes_factor, log10, favoured, words",
        "LogEvidence": "",
        "LogLikelihood": "",
        "LogTerms": "",
        "MAPEstimate": "",
        "ModelComparison": "table",
        "MomentAveragedPath": "",
        "MomentSpline": "optimal_binned_schedule",
        "Moments": "",
        "QPath": "",
        "StepInfo": "",
        "TrainedRBM": "",
        "Tuning": "",
        "Verdict": "trusted",
    }
}
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 80
numpydoc_show_class_members = False

html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["cards.css"]
html_theme = "pydata_sphinx_theme"
html_title = f"pymc_anneal {release}"
# Prompts are not copied, and outputs have no button.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = ":not(.cell_output) > :not(.output) > div.highlight > pre"

html_theme_options = {
    "show_prev_next": True,
    "navbar_center": [],
    # Scripts of the gallery, of 100 characters, have the whole page. Patterns must not overlap.
    "secondary_sidebar_items": {"[!g]*": ["page-toc"], "g[!a]*": ["page-toc"], "gallery/*": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Addresses of the repository, if pyproject.toml has any, stand in the header.
_PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
html_theme_options["icon_links"] = [
    {"name": name, "url": address, "icon": "fa-solid fa-code-branch"}
    for name, address in _PROJECT.get("urls", {}).items()
]
html_sidebars = {"**": ["site-map"]}
html_show_sourcelink = False
html_context = {"default_mode": "light"}


def _check_api_is_complete() -> None:
    """Raise an error if a public name has no entry in api.md."""
    page = (Path(__file__).parent / "api.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^   (\w+)$", page, re.MULTILINE))
    public = {*pymc_anneal.__all__, *pymc_anneal.rbm.__all__} - {"rbm"}
    missing = sorted(public - documented)
    if missing:
        raise RuntimeError(f"docs/api.md has no entry for: {', '.join(missing)}")


_check_api_is_complete()
