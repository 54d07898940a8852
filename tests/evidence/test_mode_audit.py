"""Shares of modes by importance sampling against those among draws."""

import dataclasses

from typing import Any

import jax
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.fitted_reference import FittedReference
from pymc_anneal.adaptation.mode_mixture import ModeMixture
from pymc_anneal.evidence import mode_audit as module
from pymc_anneal.evidence.mode_audit import ModeAudit, audit_draws
from tests.cases import log_gamma_terms

# A mode of 0.3 % by importance sampling and 1.2 % of the draws, as once found in eight schools.
SMALL = ModeAudit(
    centre=np.zeros((2, 1)),
    log_mass=np.log([0.9971, 0.0029]),
    share=np.array([0.9971, 0.0029]),
    share_mcse=np.array([0.0009, 0.0009]),
    ess=np.array([743.0, 9.7]),
    rest_ess=np.array([9.7, 743.0]),
    among_draws=np.array([0.9883, 0.0117]),
    among_draws_mcse=np.array([0.0017, 0.0017]),
    at_least=np.array([0.9, 1e-5]),
)


def test_a_few_draws_of_a_small_mode_do_not_accuse_the_large_one() -> None:
    assert not SMALL.missed.any()


def test_many_draws_do() -> None:
    audit = dataclasses.replace(SMALL, rest_ess=np.array([500.0, 743.0]))
    assert audit.missed.tolist() == [True, False]


@pytest.mark.parametrize("rest_ess", [9.7, 100.0])
def test_a_mode_without_draws_is_missed_however_few_draws_the_others_have(rest_ess) -> None:
    audit = dataclasses.replace(
        SMALL,
        share=np.array([0.7, 0.3]),
        share_mcse=np.array([0.05, 0.05]),
        rest_ess=np.array([rest_ess, 743.0]),
        among_draws=np.array([0.0, 1.0]),
        among_draws_mcse=np.array([0.001, 0.001]),
    )
    assert audit.missed.tolist() == [True, False]


def test_a_single_mode_is_not_missed() -> None:
    values = {f.name: getattr(SMALL, f.name) for f in dataclasses.fields(SMALL)}
    one = {name: value[:1] for name, value in values.items() if value is not None}
    one |= {"share": np.ones(1), "rest_ess": np.zeros(1), "among_draws": np.ones(1)}
    assert not ModeAudit(**one).missed.any()


class TestHeavyTail:
    """A mode whose weights have a heavy tail, and that is missed by what it holds at least."""

    HEAVY = dataclasses.replace(
        SMALL,
        ess=np.array([0.0, 743.0]),
        at_least=np.array([0.6, 1e-5]),
        among_draws=np.array([0.01, 0.99]),
        among_draws_mcse=np.array([0.002, 0.002]),
    )

    def test_is_missed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.HEAVY.missed.tolist() == [True, False]
        monkeypatch.setattr(module, "describe_position", lambda compiled, position: "x = 0")
        compiled: Any = None
        (doubt,) = self.HEAVY.doubts(compiled, "look")
        assert "holds at least 0.6 of the evidence" in doubt

    @pytest.mark.parametrize(("at_least", "missed"), [(0.0179, False), (0.0181, True)])
    def test_within_four_errors_it_is_not(self, at_least: float, missed: bool) -> None:
        audit = dataclasses.replace(self.HEAVY, at_least=np.array([at_least, 1e-5]))
        assert audit.missed[0] == missed


def test_audit_by_hand() -> None:
    """Two modes far apart: fifteen draws of the mixture, and four of the posterior."""
    normals = [pma.GaussianReference(np.array([c, 0.0]), np.eye(2)) for c in (-90.0, 90.0)]
    mixture = ModeMixture.at(normals, np.array([0.4, 0.1, 0.4, 0.1]))
    ratio = np.repeat([0.5, 0.3, 0.2], 5)
    weight, member = ratio / 5, np.repeat([[0.9, 0.1], [0.2, 0.8], [0.0, 1.0]], 5, axis=0)
    fitted = FittedReference(
        path=pma.ReferencePath(log_gamma_terms, mixture),
        log_ratio_draws=np.log(ratio) + 7,
        log_ratio_particles=np.zeros(1),
        modes=2,
        evaluations=0,
        membership=member,
        particle_share=np.array([0.5, 0.5]),
    )
    draws, own = (
        np.array([[-90.0, 0], [-89.0, 0], [90.0, 0], [89.0, 0]]),
        np.array([0.1, 0.2, 0.3, 0.4]),
    )
    with jax.enable_x64(True):
        found = audit_draws(fitted, draws, own)
    share = weight @ member
    np.testing.assert_allclose(found.share, share)
    error = np.sqrt(((weight[:, None] * (member - share)) ** 2).sum(axis=0))
    np.testing.assert_allclose(found.share_mcse, error)
    for name, part in (
        ("ess", weight[:, None] * member),
        ("rest_ess", weight[:, None] * (1 - member)),
    ):
        np.testing.assert_allclose(
            getattr(found, name), part.sum(axis=0) ** 2 / (part**2).sum(axis=0)
        )
    np.testing.assert_allclose(found.among_draws, [0.3, 0.7], atol=1e-9)
    there = np.repeat(np.eye(2), 2, axis=0)
    error = np.sqrt(((own[:, None] * (there - [0.3, 0.7])) ** 2).sum(axis=0))
    np.testing.assert_allclose(found.among_draws_mcse, error, atol=1e-9)
    assert found.log_mass == pytest.approx(7 - np.log(3) + np.log(share))
    with jax.enable_x64(True):
        beside = audit_draws(fitted, draws, own, 9.0)
    np.testing.assert_array_equal(beside.at_least, fitted.least_share(9.0))


class TestManySmallModes:
    """Twenty modes that share two draws with each neighbour, beside one of forty, all equal."""

    CENTRES = 100.0 * np.arange(21)

    def audit(self, draws: np.ndarray) -> ModeAudit:
        normals = [pma.GaussianReference(np.array([c]), np.eye(1)) for c in self.CENTRES]
        of = np.concatenate([np.zeros(40, dtype=int), np.repeat(np.arange(1, 21), 2)])
        next_to = np.where(of > 0, of % 20 + 1, 0)
        fitted = FittedReference(
            path=pma.ReferencePath(log_gamma_terms, ModeMixture.at(normals, np.full(42, 1 / 42))),
            log_ratio_draws=np.full(80, 2.0),
            log_ratio_particles=np.zeros(1),
            modes=21,
            evaluations=0,
            membership=(np.eye(21)[of] + np.eye(21)[next_to]) / 2,
            particle_share=np.eye(21)[0],
        )
        with jax.enable_x64(True):
            return audit_draws(fitted, draws[:, None], np.full(len(draws), 1 / len(draws)))

    def test_are_missed_together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        audit = self.audit(np.zeros(50))
        assert not audit.missed.any()
        assert audit.unmet is not None
        np.testing.assert_allclose(
            [audit.unmet.share[0], audit.unmet.ess[0], audit.unmet.rest_ess[0]], [0.5, 40, 40]
        )
        assert audit.unmet.centre[0] in self.CENTRES[1:]
        monkeypatch.setattr(module, "describe_position", lambda compiled, position: "x = 100")
        compiled: Any = None
        (doubt,) = audit.doubts(compiled, "look")
        assert doubt.startswith(
            "modes, one of them at x = 100, hold together 0.5 +- 0.06 of the evidence "
            "by importance sampling, and "
        )
        assert doubt.endswith(" of the draws: look")

    def test_are_not_missed_by_draws_of_each(self) -> None:
        audit = self.audit(np.concatenate([np.zeros(20), self.CENTRES[1:]]))
        assert audit.unmet is None
        compiled: Any = None
        assert not audit.doubts(compiled, "look")

    def test_that_hold_nothing_are_not_missed(self) -> None:
        audit = self.audit(np.zeros(50))
        assert audit.unmet is not None
        nothing = dataclasses.replace(
            audit.unmet, share=np.array([5e-4]), at_least=np.zeros(1), rest_ess=np.array([40.0])
        )
        compiled: Any = None
        assert not dataclasses.replace(audit, unmet=nothing).doubts(compiled, "look")
