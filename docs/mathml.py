"""Sphinx extension: formulas as MathML, which needs no script and no network."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator

# Names of functions, which latex2mathml sets as identifiers, without the space around operators.
FUNCTION = re.compile(r"<mi>(exp|log|max|min|sinh|Pr)</mi>")
THIN_SPACES = r'<mo form="prefix" lspace="0.167em" rspace="0.167em">\1</mo>'


def mathml(formula: str, display: str) -> str:
    """Convert a formula, and raise an error if a command was not understood."""
    found = FUNCTION.sub(THIN_SPACES, convert(formula, display=display))
    found = found.replace("negativethinmathspace", "-0.167em")  # MathML Core has no named lengths
    if "\\" in found or "merror" in found:
        raise ValueError(f"latex2mathml cannot convert the formula {formula!r}.")
    return found


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math"))
    self.body.append(mathml(node.astext(), "block") + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
