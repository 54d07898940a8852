"""Run the first example of a README: `python readme_example.py README.md`."""

import re
import sys

from pathlib import Path


def first_example(text: str) -> str:
    """Return the first Python block of a Markdown text."""
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    if found is None:
        raise ValueError("There is no Python block in the text.")
    return found.group(1)


if __name__ == "__main__":
    # exec: the code is the documentation itself.
    exec(first_example(Path(sys.argv[1]).read_text(encoding="utf-8")))
