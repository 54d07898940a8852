"""The record of a bug."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

# File of the package without its ending, targets of pytest, and bugs: old text and new.
Rows: TypeAlias = list[tuple[str, str, list[tuple[str, str]]]]


@dataclass(frozen=True)
class Mutant:
    """A bug, and the tests nearest to it.

    Attributes
    ----------
    file : str
        File of the package, from the root of the project.
    old, new : str
        Text that occurs once in the file, and what replaces it.
    tests : tuple of str
        Targets of pytest.
    reason : str
        Why it may survive: the change makes no difference, or none that is worth a test; "" for
        bugs that have to be found.
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    reason: str = ""

    @property
    def name(self) -> str:
        """The file and the replacement, on one line."""
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.file.removeprefix('pymc_anneal/')}: {old} -> {new}"

    def apply(self, root: Path) -> str:
        """Put the bug into a copy of the project; return the text of the file before.

        Raises
        ------
        ValueError
            The old text does not occur exactly once: the table is out of date.
        """
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: the old text occurs {text.count(self.old)} times.")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")
        return text
