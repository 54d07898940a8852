"""The example of the README is complete: a program that compiles and calls the package."""

import ast

from pathlib import Path

from tests.readme_example import first_example

README = Path(__file__).parent.parent / "README.md"


def test_first_example() -> None:
    tree = ast.parse(first_example(README.read_text(encoding="utf-8")))
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert {"pma.sample_ais", "pma.log_evidence"} <= calls
