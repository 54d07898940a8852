"""However bad its plan, the counted run is unbiased: nothing that it finds decides about it.

The log weights of a run of ``K`` steps are drawn from ``N(-S / (2 K), S / K)``, whose mean weight
is one, in place of annealing; everything else is the package's own. The twin is a run that longer
ones follow if its error misses the target, all of them counted in proportion to their costs.
"""

from dataclasses import replace

import numpy as np
import pytest

from pymc_anneal.adaptation.plan import Plan
from pymc_anneal.annealing.block import Ladder
from pymc_anneal.annealing.step_statistics import Stats
from pymc_anneal.evidence.ais import ais
from pymc_anneal.evidence.diagnostics import log_weight_variance
from pymc_anneal.evidence.heavy_tail import ais_with_tail
from pymc_anneal.execution.blocks import AnnealedRun
from pymc_anneal.pipeline.run import run_forward
from pymc_anneal.pipeline.session import Seeds, Session
from tests.pipeline.log_gamma_target import KERNEL, LogGammaTarget, log_gamma_session

RUNS, PARTICLES, TARGET = 2_000, 2_000, 0.1
SETTINGS = {"draws": 1_000, "chains": 2, "target_mcse": TARGET, "block_size": PARTICLES}
BLANK = np.zeros((1, 2))


def draw_log_weights(rng: np.random.Generator, variance: float, shape) -> np.ndarray:
    return rng.normal(-variance / 2, np.sqrt(variance), shape)


def anneal_by_chance(single: float):
    """Return a replacement for annealing, with a variance of ``single`` for one step."""

    def anneal(session: Session, name: str, blocks) -> AnnealedRun:
        steps, shape = blocks[0].steps, (2, sum(len(b.position) for b in blocks) // 2)
        rng = np.random.default_rng(blocks[0].seed)
        return AnnealedRun(
            betas=blocks[0].betas,
            log_weight=draw_log_weights(rng, single / steps, shape),
            position=np.zeros((*shape, 2)),
            stats=Stats(*[BLANK] * len(Stats._fields)),
            interrupted=False,
            seconds=1e-3,
            rungs=np.zeros(0, dtype=int),
            ladder=Ladder(*[BLANK] * len(Ladder._fields)),
            planned=2 * shape[1],
        )

    return anneal


def estimates(monkeypatch, single: float, plan: Plan | None, seed: int) -> np.ndarray:
    """Return the estimates of ``Z / Z = 1`` of many runs, shape ``(RUNS,)``."""
    monkeypatch.setattr(Session, "anneal", anneal_by_chance(single))
    if plan is not None:
        monkeypatch.setattr("pymc_anneal.pipeline.run.plan_run", lambda *_: (plan, ()))
    with log_gamma_session(seed, **SETTINGS) as session:
        pilot = session.pilot(LogGammaTarget().candidate(), KERNEL, session.seeds.pilot)
        candidate = replace(LogGammaTarget().candidate(), pilot=pilot)
        # The starts do not matter here, and take most of the time.
        candidate = replace(candidate, draw_reference=lambda _, n: np.zeros((n, 2)))
        own = (Seeds.spawn(s) for s in np.random.SeedSequence(seed).spawn(RUNS))
        runs = [run_forward(replace(session, seeds=s), candidate, KERNEL) for s in own]
    return np.exp([ais(forward.run.log_weight).log_evidence for forward in runs])


def is_unbiased(found: np.ndarray) -> bool:
    """Return whether the mean is one within three standard errors."""
    return abs(found.mean() - 1) < 3 * found.std() / np.sqrt(len(found))


@pytest.mark.quick_cases("4.0-1")
@pytest.mark.parametrize(
    ("variance", "seed"),
    [
        (2.0, 1),
        (4.0, 1),
        pytest.param(4.0, 2, marks=pytest.mark.slow),
        pytest.param(6.0, 1, marks=pytest.mark.slow),
    ],
)
def test_a_plan_of_too_few_steps(variance: float, seed: int, monkeypatch) -> None:
    plan = Plan(steps=1, particles=PARTICLES, predicted_mcse=0.0, predicted_seconds=0.0)
    assert is_unbiased(estimates(monkeypatch, variance, plan, seed))


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [2.0, 4.0, 6.0])
def test_trials_that_are_too_short(deviation: float, monkeypatch) -> None:
    """Longer ones follow, and the run that they lead to."""
    monkeypatch.setattr("pymc_anneal.pipeline.trial.trial_steps", lambda pilot: 1)
    assert is_unbiased(estimates(monkeypatch, deviation**2, None, 3))


@pytest.mark.slow
def test_longer_runs_that_are_counted_with_the_first() -> None:
    """The twin: a sequence of counted runs that goes on while the error misses the target."""
    rng = np.random.default_rng(4)
    found = np.array([_estimate_of_sequence(rng, 16.0) for _ in range(RUNS)])
    assert not is_unbiased(found)
    assert found.mean() < 0.99


def _estimate_of_sequence(rng: np.random.Generator, single: float) -> float:
    means, costs, steps = [], [], 1
    while len(means) < 3:
        log_weight = draw_log_weights(rng, single / steps, PARTICLES)
        means.append(np.exp(log_weight).mean())
        costs.append(steps)
        estimate, k = ais_with_tail(log_weight)
        if estimate.mcse <= TARGET and k <= 0.7:
            break
        excess = (estimate.mcse / TARGET) ** 2 if k <= 0.7 else log_weight_variance(log_weight)
        steps *= int(np.clip(2 * excess, 2, 8))
    return float(np.average(means, weights=costs))
