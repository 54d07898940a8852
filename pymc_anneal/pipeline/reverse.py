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
from typing import Any, Literal, TypeAlias

import numpy as np

from pymc_anneal.annealing.resampling import equal_weights
from pymc_anneal.base.arviz_compat import draws_ess
from pymc_anneal.evidence.ais import ais
from pymc_anneal.evidence.bennett import BridgeEstimate, both_directions, disagreement
from pymc_anneal.evidence.diagnostics import MAX_DISAGREEMENT, MAX_PARETO_K, weight_pareto_k
from pymc_anneal.execution.blocks import AnnealedRun, make_blocks
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.posterior_draws import posterior_draws
from pymc_anneal.pipeline.rounds import ForwardStages
from pymc_anneal.pipeline.session import Session

# Unconstrained draws of shape (chains, draws, d), or "draws": those of the forward run.
ReverseStart: TypeAlias = np.ndarray | Literal["draws"]

# Moves after which resampled copies of a particle count as separate draws.
_MIN_MOVES, _MOVES_PER_TAU = 20, 5


@dataclass(frozen=True)
class Reverse:
    """A reverse run, combined with the forward round that it reverses.

    Attributes
    ----------
    forward : ndarray, shape (chains, particles)
        Log weights of the forward round.
    run : AnnealedRun
        The reverse run; its log weights estimate reference over target.
    bridge : BridgeEstimate
        Estimate from both directions.
    start : str
        Source of the draws they start from.
    evaluations : int
        Evaluations of gradient or density, with those of the start.
    """

    forward: np.ndarray
    run: AnnealedRun
    bridge: BridgeEstimate
    start: str
    evaluations: int

    @property
    def mcse(self) -> float:
        """Monte Carlo standard error of the combined estimate, in nats."""
        return self.bridge.mcse()

    @property
    def upper(self) -> tuple[float, float]:
        """Estimate from the reverse run alone, and its standard error, in nats."""
        weight = np.exp(self.run.log_weight - self.run.log_weight.max())
        # Trajectories that start at neighbouring draws are not independent.
        ess = min(draws_ess(weight), float(weight.size))
        mcse = np.sqrt(np.log1p(weight.var() / weight.mean() ** 2 / ess))
        return -ais(self.run.log_weight).log_evidence, float(mcse)

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
            "gap": float(-self.run.log_weight.mean() - finite.mean()),
        }

    @property
    def doubts(self) -> list[str]:
        """Signs that the estimate is wrong."""
        return [*self._doubt_tail(), *self._doubt_agreement()]

    def _doubt_tail(self) -> list[str]:
        k = weight_pareto_k(self.run.log_weight)
        if not k > MAX_PARETO_K:
            return []
        return [
            f"Pareto k of the reverse weights is {k:.2f} (above {MAX_PARETO_K}): a few "
            "trajectories determine the upper bound; take more steps"
        ]

    def _doubt_agreement(self) -> list[str]:
        score = disagreement(self.forward, -self.run.log_weight)
        if abs(score) <= MAX_DISAGREEMENT:
            return []
        lower, (upper, upper_mcse) = ais(self.forward), self.upper
        return [
            f"forward runs give {lower.log_evidence:.3f} +- {lower.mcse:.2g}, reverse runs "
            f"{upper:.3f} +- {upper_mcse:.2g}, and their weights contradict each other by "
            f"{abs(score):.1f} standard errors: the transitions do not mix, or the draws that the "
            "reverse runs started from are not of the posterior"
        ]


def resolve_reverse(reverse_from: Any, compiled: CompiledModel) -> ReverseStart | None:
    """Return the draws from which reverse runs start, "draws" for the run's own, or None.

    Raises
    ------
    ValueError
        The argument is another string, or a container whose posterior is not of the model.
    """
    if reverse_from is None:
        return None
    if isinstance(reverse_from, str):
        if reverse_from == "draws":
            return "draws"
        raise ValueError(
            f'`reverse_from` is {reverse_from!r}, expected "draws", a container with a group '
            "'posterior', or None."
        )
    return posterior_draws(reverse_from, compiled)


def run_reverse(session: Session, forward: ForwardStages, start: ReverseStart) -> Reverse:
    """Run the last round backwards.

    Parameters
    ----------
    session
        Settings, seeds.
    forward
        The forward stages.
    start : ndarray, shape (chains, draws, d), or "draws"
        Unconstrained draws to start from, or "draws": those of the forward run after further
        MCMC moves at ``beta = 1``.

    Returns
    -------
    Reverse
    """
    seed_start, seed_run = session.seeds.reverse.spawn(2)
    last = forward.last
    if isinstance(start, str):
        own = _move_on(session, forward, seed_start)
        position, name, spent = (
            own.position,
            "draws of this run, after further MCMC moves",
            (own.evaluations),
        )
    else:
        position, name, spent = _spaced(start, last.log_weight.shape), "posterior draws", 0
    run = anneal_back(session, forward, position, seed_run)
    bridge = both_directions(last.log_weight, -run.log_weight)
    return Reverse(last.log_weight, run, bridge, name, spent + run.evaluations)


def anneal_back(
    session: Session,
    forward: ForwardStages,
    position: np.ndarray,
    seed: np.random.SeedSequence,
) -> AnnealedRun:
    """Anneal draws of the target, shape ``(chains, particles, d)``, back to the reference."""
    m = min(session.settings.block_draws, position.shape[1])
    betas, kernel = forward.last.betas[::-1].copy(), forward.transition.reversal()
    blocks = make_blocks(forward.candidate.path, kernel, betas, position, m, seed)
    return session.anneal("Reverse", blocks)


def _spaced(draws: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Take evenly spaced draws, in their order, shape ``(chains, particles, d)``."""
    flat = draws.reshape(-1, draws.shape[2])
    index = np.linspace(0, len(flat) - 1, shape[0] * shape[1]).round().astype(int)
    spaced: np.ndarray = flat[index].reshape(*shape, -1)
    return spaced


def _move_on(session: Session, forward: ForwardStages, seed: np.random.SeedSequence) -> AnnealedRun:
    """Resample the forward particles and move them at ``beta = 1``."""
    last = forward.last
    seed_index, seed_moves = seed.spawn(2)
    rng, n = np.random.default_rng(seed_index), last.log_weight.shape[1]
    start = equal_weights(last.position, last.log_weight, n, rng)
    tau = forward.pilot.tau[-1] if forward.pilot else 1.0
    betas = np.ones(max(_MIN_MOVES, int(np.ceil(_MOVES_PER_TAU * tau))) + 1)
    path, m = forward.candidate.path, session.settings.block_draws
    blocks = make_blocks(path, forward.transition, betas, start, m, seed_moves)
    return session.anneal_fully("Further moves", blocks)
