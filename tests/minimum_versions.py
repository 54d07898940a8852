"""Print the oldest versions that pyproject.toml allows, as constraints of pip.

python tests/minimum_versions.py > /tmp/oldest.txt
python -m pip install -e '.[test]' -c /tmp/oldest.txt
"""

import re
import tomllib

from pathlib import Path


def oldest(dependencies: list[str]) -> list[str]:
    """Return requirements of the form ``name>=version`` as ``name==version``; skip the others."""
    found = (re.fullmatch(r"([\w.-]+)>=([\w.]+)", entry) for entry in dependencies)
    return [f"{match[1]}=={match[2]}" for match in found if match]


if __name__ == "__main__":
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    print("\n".join(oldest(tomllib.loads(text)["project"]["dependencies"])))  # noqa: T201
