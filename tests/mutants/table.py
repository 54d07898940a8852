"""The table of bugs."""

from dataclasses import replace

from tests.mutants import estimates, fits, kernels, others, questions
from tests.mutants.mutant import Mutant

# Bugs that make no difference, or none that is worth a test, by name, with the reason.
_REASONS: dict[str, str] = {
    "transitions/discrete_walk.py: jnp.where(outside, -jnp.inf, log_density) -> log_density": (
        "the density is -inf or NaN there, and both are rejected"
    ),
    "adaptation/moment_matching.py: np.concatenate([knots, np.arange(2.0, extra + 2)]) -> "
    "np.concatenate([knots, np.ones(extra)])": "no temperature is above the last knot",
    "adaptation/variational_normal.py: np.concatenate([z, -z]) -> np.concatenate([z, z])": (
        "draws with their opposites make the fit less noisy, and any draws a valid one"
    ),
}


def _read() -> list[Mutant]:
    parts = kernels.ROWS, fits.ROWS, estimates.ROWS, others.ROWS, questions.ROWS
    found = [
        Mutant(f"pymc_anneal/{file}.py", old, new, tuple(tests.split()))
        for rows in parts
        for file, tests, bugs in rows
        for old, new in bugs
    ]
    return [replace(m, reason=_REASONS.get(m.name, "")) for m in found]


MUTANTS = _read()
