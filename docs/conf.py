"""Sphinx configuration. `make docs` executes every code cell and treats warnings as errors."""

import os
import sys

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
    "sphinx.ext.viewcode",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build"]

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

autodoc_member_order = "bysource"
python_maximum_signature_line_length = 80
numpydoc_show_class_members = False

html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["cards.css"]
html_theme = "pydata_sphinx_theme"
html_title = f"pymc_anneal {release}"
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"**": ["sidebar-nav-bs"], "index": []}
html_show_sourcelink = False
html_context = {"default_mode": "light"}


def _check_api_is_complete() -> None:
    """Raise an error if a public name has no entry in api.md."""
    page = (Path(__file__).parent / "api.md").read_text(encoding="utf-8")
    entries = [line.split()[-1] for line in page.splitlines() if line.startswith(".. auto")]
    documented = {entry.removesuffix("()") for entry in entries}
    public = {*pymc_anneal.__all__, *pymc_anneal.rbm.__all__} - {"rbm"}
    missing = sorted(public - documented)
    if missing:
        raise RuntimeError(f"docs/api.md has no entry for: {', '.join(missing)}")


_check_api_is_complete()
