"""The pooled tests fail as seldom as they say, and see what they say."""

from pathlib import Path

import numpy as np
import pytest

from tests.pooled import FAMILIES, Family, family, level, relative_mean

CASES, REPETITIONS = 40, 1_000
ROOT = Path(__file__).parent


def simulate(seed: int, shift: float = 0.0, scale: float = 1.0) -> Family:
    """Return estimates of zero with errors between 0.5 and 2, all shifted by ``shift``."""
    rng = np.random.default_rng(seed)
    error = rng.uniform(0.5, 2.0, size=CASES)
    estimate = shift + scale * error * rng.normal(size=CASES)
    names = [str(i) for i in range(CASES)]
    return Family(FAMILIES[0], names, estimate, np.zeros(CASES), error)


def test_p_values_are_uniform() -> None:
    values = [list(simulate(seed).p_values.values()) for seed in range(REPETITIONS)]
    for level_ in (0.01, 0.1, 0.5):
        share = np.mean(np.array(values) < level_, axis=0)
        # Four standard deviations of a binomial share, for nine of them.
        assert np.abs(share - level_).max() < 4 * np.sqrt(level_ * (1 - level_) / REPETITIONS)


def test_the_visible_shift_is_seen_with_95_percent() -> None:
    shift = simulate(0).visible_shift
    seen = 0
    for seed in range(1_000):
        found = simulate(seed, shift=simulate(seed).visible_shift)
        seen += found.p_values["common shift"] < level()
    assert seen / 1_000 == pytest.approx(0.95, abs=0.03)
    # Far less than one case shows: 5 standard errors of the most precise.
    assert shift < 0.5 * 5 * simulate(0).error.min()


@pytest.mark.parametrize("scale", [0.4, 2.5])
def test_errors_that_are_wrong_are_seen(scale: float) -> None:
    assert not simulate(1, scale=scale).agrees


def test_one_wrong_case_is_named() -> None:
    rows = {f"case {i}": (0.0, 0.1, 1.0) for i in range(20)} | {"odd": (8.0, 0.0, 1.0)}
    with pytest.raises(AssertionError, match=r"worst \['odd: \+8\.00'"):
        family(FAMILIES[0], rows).check()


def test_a_family_that_is_not_counted() -> None:
    with pytest.raises(AssertionError, match="add 'new' to the families"):
        family("new", {"case": (0.0, 0.0, 1.0)})


def test_the_mean_of_weights() -> None:
    mean, exact, error = relative_mean(np.log([[1.0, 3.0]]), np.log(2.0))
    assert (mean, exact) == (1.0, 1.0)
    assert error == pytest.approx(0.5)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_tested(name: str) -> None:
    """A family that nobody tests would take a part of the level for nothing."""
    texts = [path.read_text() for path in ROOT.rglob("test_*.py")]
    assert any(f'"{name}"' in text for text in texts)
