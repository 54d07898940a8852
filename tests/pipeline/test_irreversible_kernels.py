"""Reverse runs take the reversals of their kernels, all the way from the public calls.

A kernel that is invariant but not reversed leaves the estimate of either direction unbiased; only
the two directions together, and what is concluded from both, are wrong. So the kernel itself says
in which direction it was taken.
"""

from dataclasses import dataclass, field
from functools import partial

import jax
import jax.numpy as jnp
import pytest

import pymc_anneal as pma

from pymc_anneal.base.contracts import StepInfo
from pymc_anneal.pipeline.session import Session
from tests.cases import normal_model

QUICK = {"draws": 10, "chains": 2, "steps": 3, "schedule": "linear", "reference": "prior"}
QUIET = {"progressbar": False, "warnings": False, "random_seed": 1}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Directed(pma.Transition):
    """A kernel that stays where it is, and records the direction in which it is taken."""

    name_of_part: str = field(default="a", metadata={"static": True})
    forward: bool = field(default=True, metadata={"static": True})

    def reversal(self) -> "Directed":
        return Directed(self.name_of_part, not self.forward)

    def step(self, key, state, path, beta):
        jax.debug.callback(partial(TAKEN.append, (self.name_of_part, self.forward)))
        n = len(state.position)
        return state, StepInfo(jnp.ones(n), jnp.zeros(n, dtype=bool), state.position)


TAKEN: list[tuple[str, bool]] = []


@pytest.fixture
def stages(monkeypatch) -> dict[str, list[tuple[str, bool]]]:
    """Return the directions in which kernels are taken, by the stage that takes them."""
    found: dict[str, list[tuple[str, bool]]] = {}
    anneal = Session.anneal

    def recorded(session: Session, name: str, blocks):
        TAKEN.clear()
        run = anneal(session, name, blocks)
        jax.effects_barrier()
        found[name] = sorted(set(TAKEN))
        return run

    monkeypatch.setattr(Session, "anneal", recorded)
    return found


def test_sample_ais(stages) -> None:
    kernel = pma.Composition([Directed("a"), Directed("b")])
    pma.sample_ais(model=normal_model(), transition=kernel, reverse_from="draws", **QUICK, **QUIET)
    assert stages["Annealing"] == [("a", True), ("b", True)]
    assert stages["Reverse"] == [("a", False), ("b", False)]


@pytest.mark.slow
def test_calibrate(stages) -> None:
    settings = {"steps": 3, "draws": 10, "chains": 2, **QUIET}
    settings.pop("warnings")
    pma.calibrate(2, model=normal_model(), transition=Directed("a"), **settings)
    assert stages["Reverse"] == [("a", False)]
