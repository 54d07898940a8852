"""References whose log density does not belong to their draws raise errors; all others pass."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.pipeline.check_reference import check_agreement


@dataclass(frozen=True)
class Given:
    """A reference of two functions."""

    log_density: Callable[[jax.Array], jax.Array]
    draw: Callable[[np.random.Generator, int], np.ndarray]

    def sample(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        return self.draw(np.random.default_rng(seed), draws)


def normal(scale: float = 1.0, log_constant: float = 0.0, d: int = 2, drawn: float = 1.0) -> Given:
    """A normal density of one scale, off by a constant, with draws of another scale."""

    def log_density(x: jax.Array) -> jax.Array:
        z = x / scale
        return log_constant - 0.5 * (z**2).sum(axis=1) - d * jnp.log(scale * jnp.sqrt(2 * jnp.pi))

    return Given(log_density, lambda rng, n: drawn * rng.normal(size=(n, d)))


def cauchy(d: int) -> Given:
    return Given(
        lambda x: -(jnp.log(jnp.pi) + jnp.log1p(x**2)).sum(axis=1),
        lambda rng, n: rng.standard_cauchy((n, d)),
    )


def two_modes(d: int, distance: float) -> Given:
    def log_density(x: jax.Array) -> jax.Array:
        squares = [((x - s * distance) ** 2).sum(axis=1) for s in (-0.5, 0.5)]
        constant = jnp.log(2) + 0.5 * d * jnp.log(2 * jnp.pi)
        return jnp.logaddexp(*(-0.5 * s for s in squares)) - constant

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.normal(size=(n, d)) + distance * (rng.integers(2, size=(n, 1)) - 0.5)

    return Given(log_density, draw)


def exponential(d: int) -> Given:
    return Given(
        lambda x: jnp.where((x > 0).all(axis=1), -x.sum(axis=1), -jnp.inf),
        lambda rng, n: rng.exponential(size=(n, d)),
    )


CORRECT = {
    "normal": lambda: normal(),
    "normal_in_60": lambda: normal(d=60),
    "normal_in_none": lambda: normal(d=0),
    "cauchy": lambda: cauchy(1),
    "cauchy_in_10": lambda: cauchy(10),
    "two_modes": lambda: two_modes(2, 8.0),
    "two_far_modes": lambda: two_modes(3, 200.0),
    "exponential": lambda: exponential(4),
    "student_t": lambda: pma.StudentTReference(np.zeros(8), np.geomspace(1e-3, 1e3, 8), 2.5),
    "gaussian_in_300": lambda: pma.GaussianReference(np.zeros(300), np.ones(300)),
}


@pytest.mark.parametrize("name", CORRECT)
def test_correct_references_pass(name: str) -> None:
    reference = CORRECT[name]()
    check_agreement(reference, reference.sample(np.random.SeedSequence(1), 1).shape[1])


@pytest.mark.parametrize(
    ("reference", "ndim", "message"),
    [
        (normal(log_constant=0.1), 2, r"density of Given integrates to 1.1\d* by its own draws"),
        (normal(log_constant=-2.0, d=20), 20, "integrates to 0.1"),
        (normal(scale=1.3), 2, "integrates to"),
        (normal(scale=0.5, d=5), 5, "integrates to|do not follow"),
        (normal(), 3, r"1000 draws of Given have shape \(1000, 2\), expected \(1000, 3\)"),
        (normal(drawn=np.inf), 2, "draws of Given are not finite"),
        (normal(log_constant=np.nan), 2, "not finite at some of its own draws"),
        (Given(lambda x: x, normal().draw), 2, r"has shape \(1000, 2\), expected \(1000,\)"),
        (Given(normal().log_density, lambda rng, n: np.ones((n, 2))), 2, "do not vary"),
        (
            pma.GaussianReference(np.zeros(2), np.ones(2), whitening=np.full(2, 0.7)),
            2,
            "density of GaussianReference integrates to",
        ),
    ],
)
def test_references_that_are_wrong(reference, ndim: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_agreement(reference, ndim)


def test_a_log_density_that_jax_cannot_trace() -> None:
    given = Given(lambda x: -0.5 * (np.asarray(x) ** 2).sum(axis=1), normal().draw)
    with pytest.raises(TypeError, match=r"log density of Given, which has to be written in jax"):
        check_agreement(given, 2)


def test_a_run_with_a_wrong_reference() -> None:
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        pm.Normal("y", x, 1.0, observed=[0.5, 1.0])
    with pytest.raises(ValueError, match="normalising constant, and its draws must follow it"):
        pma.sample_ais(model=model, reference=normal(log_constant=0.3), progressbar=False)


@pytest.mark.parametrize("make", [normal, lambda: cauchy(2), lambda: two_modes(1, 6.0)])
@pytest.mark.slow
def test_no_false_alarm(make: Callable[[], Given], monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of correct references are about standard normal, far below the limit of 6."""
    scores = []
    monkeypatch.setattr("pymc_anneal.pipeline.check_reference._MAX_ERRORS", 0.0)
    original = make()
    for k in range(100):

        def draw(rng: np.random.Generator, n: int, k: int = k) -> np.ndarray:
            return original.draw(np.random.default_rng([k, rng.integers(2**32)]), n)

        with pytest.raises(ValueError, match=r"integrates to .*log") as raised:
            check_agreement(
                Given(original.log_density, draw), draw(np.random.default_rng(0), 1).shape[1]
            )
        value, error = str(raised.value).split("(log ")[1].split(")")[0].split(" +- ")
        scores.append(float(value) / float(error))
    assert np.std(scores) < 1.5
    assert np.abs(scores).max() < 4.5
