"""A stacked mixture is the mixture of its components, with or without room for more."""

import jax
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation import mode_mixture
from pymc_anneal.adaptation.mode_mixture import ModeMixture

DENSE = pma.GaussianReference(np.array([0.5, -1.0]), np.array([[0.7, 0.0], [0.3, 0.4]]))
DIAGONAL = pma.GaussianReference(np.array([3.0, 2.0]), np.array([0.2, 1.5]))
WEIGHT = np.array([0.5, 0.1, 0.3, 0.1])
POSITION = np.random.default_rng(1).normal(1, 2, (50, 2))
CASES = {"dense": [DENSE, DENSE], "diagonal": [DIAGONAL, DIAGONAL], "both": [DIAGONAL, DENSE]}


def mixture_of(normals: list[pma.GaussianReference]) -> pma.MixtureReference:
    students = [pma.StudentTReference(n.mean, n.scale, 5.0) for n in normals]
    pairs = zip(normals, students, strict=True)
    return pma.MixtureReference(WEIGHT, tuple(component for pair in pairs for component in pair))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("room", [False, True])
class TestStacked:
    def make(self, case: str, room: bool) -> ModeMixture:
        stacked = ModeMixture.at(CASES[case], WEIGHT)
        return stacked.with_room() if room else stacked

    def test_components(self, case: str, room: bool) -> None:
        found = self.make(case, room).log_components(POSITION)
        assert isinstance(found, np.ndarray)  # nothing is compiled
        expected = mixture_of(CASES[case]).log_components(POSITION)
        np.testing.assert_allclose(found[:4], expected, rtol=1e-12)
        assert np.isneginf(found[4:]).all()

    def test_parts(self, case: str, room: bool, monkeypatch) -> None:
        stacked = self.make(case, room)
        whole = stacked.log_components(POSITION)[:4]  # the modes that are there
        monkeypatch.setattr(mode_mixture, "_LARGEST_PART", 50)
        np.testing.assert_allclose(stacked.evaluate_components(POSITION), whole, rtol=1e-14)

    def test_far_away(self, case: str, room: bool) -> None:
        far = np.array([[1e200, 0.0], [-np.inf, 1.0], [np.nan, 0.0]])
        found = self.make(case, room).evaluate_components(far)
        assert np.isneginf(found[:, 0]).all()
        assert not np.isfinite(found[:, 1:]).any()

    def test_density(self, case: str, room: bool) -> None:
        stacked, expected = self.make(case, room), mixture_of(CASES[case]).log_density(POSITION)
        np.testing.assert_allclose(stacked.log_density(POSITION), expected, rtol=1e-12)
        with jax.enable_x64(True):
            compiled = jax.jit(lambda r, x: r.log_density(x))(stacked, POSITION)
        np.testing.assert_allclose(compiled, expected, rtol=1e-12)

    @pytest.mark.quick_cases("True-dense")
    def test_gradient(self, case: str, room: bool) -> None:
        with jax.enable_x64(True):
            found, expected = (
                jax.grad(lambda x, r=r: r.log_density(x).sum())(jax.numpy.asarray(POSITION))
                for r in (self.make(case, room), mixture_of(CASES[case]))
            )
        np.testing.assert_allclose(found, expected, rtol=1e-9)

    def test_draws(self, case: str, room: bool) -> None:
        found = self.make(case, room).sample(np.random.SeedSequence(2), 300)
        expected = mixture_of(CASES[case]).sample(np.random.SeedSequence(2), 300)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(("modes", "d", "room"), [(1, 3, 5), (6, 3, 32), (1, 40, 1), (3, 40, 4)])
def test_room(modes: int, d: int, room: int) -> None:
    normal = pma.GaussianReference(np.zeros(d), np.ones(d))
    mixture = ModeMixture.at([normal] * modes, np.full(2 * modes, 0.5 / modes))
    assert len(mixture.with_room().mean) == room
    assert len(mixture.with_room().weight) == 2 * room
