"""The table of bugs."""

from dataclasses import replace

from tests.mutants import estimates, fits, kernels, others
from tests.mutants.mutant import Mutant

# Bugs that make no difference, or none that is worth a test, by name, with the reason.
_REASONS: dict[str, str] = {}


def _read() -> list[Mutant]:
    parts = kernels.ROWS, fits.ROWS, estimates.ROWS, others.ROWS
    found = [
        Mutant(f"pymc_anneal/{file}.py", old, new, tuple(tests.split()))
        for rows in parts
        for file, tests, bugs in rows
        for old, new in bugs
    ]
    return [replace(m, reason=_REASONS.get(m.name, "")) for m in found]


MUTANTS = _read()
