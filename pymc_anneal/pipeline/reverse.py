"""Reverse annealing: from the posterior back to the prior (Grosse, Ghahramani & Adams 2015).

The schedule decreases, every kernel is replaced by its reversal, and a trajectory gets the weight
``b`` that the forward run would have given it in the other direction. From exact draws of the
posterior ``E[e^{-b}] = 1/Z``, so that

    log Z_up = -log mean_j e^{-b_j},    E[log Z_up] >= log Z >= E[log Z_forward]:

two estimates with errors of opposite sign. Bennett's acceptance ratio (`evidence/bennett.py`)
combines both directions with the least variance. From approximate draws the upper bound is
approximate; from the forward run's own draws it is blind to a mode that they all missed.
"""

from dataclasses import dataclass

import numpy as np

from pymc_anneal.base.arviz_compat import draws_ess
from pymc_anneal.evidence.ais import ais
from pymc_anneal.evidence.bennett import (
    BridgeEstimate,
    both_directions,
    disagreement,
    reweighting_p_value,
)
from pymc_anneal.evidence.diagnostics import MAX_DISAGREEMENT, MAX_PARETO_K, weight_pareto_k
from pymc_anneal.execution.blocks import AnnealedRun, make_blocks
from pymc_anneal.pipeline.counted_run import ForwardStages
from pymc_anneal.pipeline.reverse_start import ReverseStart
from pymc_anneal.pipeline.session import Session

# Level of the test that the weights turn one direction into the other: false alarms in about one
# run of 10,000.
_REWEIGHTING_LEVEL = 1e-4


@dataclass(frozen=True)
class Reverse:
    """A reverse run, combined with the forward round that it reverses.

    Attributes
    ----------
    forward, backward : ndarray, shape (chains, particles)
        Log weights ``a`` of the forward round and ``b`` of the reverse run, target over reference,
        in nats, with the log normaliser of the reference.
    run : AnnealedRun
        The reverse run; its log weights estimate reference over target.
    bridge : BridgeEstimate
        Estimate from both directions.
    start : str
        Source of the draws they start from.
    """

    forward: np.ndarray
    backward: np.ndarray
    run: AnnealedRun
    bridge: BridgeEstimate
    start: str

    @property
    def mcse(self) -> float:
        """Monte Carlo standard error of the combined estimate, in nats."""
        return self.bridge.mcse()

    @property
    def upper(self) -> tuple[float, float]:
        """Estimate from the reverse run alone, and its standard error, in nats."""
        weight = np.exp(self.backward.min() - self.backward)
        # Trajectories that start at neighbouring draws are not independent.
        ess = min(draws_ess(weight), float(weight.size))
        mcse = np.sqrt(np.log1p(weight.var() / weight.mean() ** 2 / ess))
        return -ais(-self.backward).log_evidence, float(mcse)

    @property
    def scalars(self) -> dict[str, float]:
        """Scalars of the group ``evidence``, in nats."""
        lower, upper = ais(self.forward), self.upper
        interval = self.bridge.interval()
        finite = self.forward[np.isfinite(self.forward)]
        return {
            "log_evidence": self.bridge.log_evidence,
            "mcse": self.mcse,
            "interval_lower": interval[0],
            "interval_upper": interval[1],
            "lower_bound": lower.log_evidence,
            "lower_bound_mcse": lower.mcse,
            "upper_bound": upper[0],
            "upper_bound_mcse": upper[1],
            "gap": float(self.backward.mean() - finite.mean()),
        }

    @property
    def note(self) -> str:
        """What the upper bound rests on, if it is little; "" otherwise."""
        k = weight_pareto_k(-self.backward)
        if not k > MAX_PARETO_K:
            return ""
        return (
            f"Pareto k of the reverse weights is {k:.2f} (above {MAX_PARETO_K}): a few trajectories"
            " determine the upper bound (more steps would lower it), though not the estimate."
        )

    @property
    def doubts(self) -> list[str]:
        """Signs that the estimate is wrong."""
        conflict = self._conflict()
        if not conflict:
            return []
        lower, (upper, upper_mcse) = ais(self.forward), self.upper
        return [
            f"forward runs give {lower.log_evidence:.3f} +- {lower.mcse:.2g}, reverse runs "
            f"{upper:.3f} +- {upper_mcse:.2g}, and {conflict}: the transitions do not mix, or the "
            "draws that the reverse runs started from are not of the posterior"
        ]

    def _conflict(self) -> str:
        """Describe how the weights of the two directions contradict each other, if they do."""
        a, b = self.forward, self.backward
        score = abs(disagreement(a, b))
        if score > MAX_DISAGREEMENT:
            return f"their weights contradict each other by {score:.1f} standard errors"
        if reweighting_p_value(a, b, self.bridge.reverse_ess) < _REWEIGHTING_LEVEL:
            return "one direction leaves out a part of what the other one samples"
        return ""


def run_reverse(session: Session, forward: ForwardStages, start: ReverseStart) -> Reverse:
    """Run backwards from draws of the target."""
    seed_start, seed_run = session.seeds.reverse.spawn(2)
    log_reference = session.target.log_reference
    run = anneal_back(session, forward, start.draw(session, forward, seed_start), seed_run)
    a, b = forward.run.log_weight + log_reference, log_reference - run.log_weight
    return Reverse(a, b, run, both_directions(a, b), start.name)


def anneal_back(
    session: Session,
    forward: ForwardStages,
    position: np.ndarray,
    seed: np.random.SeedSequence,
) -> AnnealedRun:
    """Anneal draws of the target, shape ``(chains, particles, d)``, back to the reference."""
    m = min(session.settings.block_draws, position.shape[1])
    betas, kernel = forward.run.betas[::-1].copy(), forward.transition.reversal()
    blocks = make_blocks(forward.candidate.path, kernel, betas, position, m, seed)
    return session.anneal("Reverse", blocks)
