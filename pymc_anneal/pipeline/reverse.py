"""Reverse annealing: from the posterior back to the prior (Grosse, Ghahramani & Adams 2015).

The schedule runs downwards, every kernel is replaced by its reversal, and a trajectory is given the
weight ``b`` that the forward run would have given it in the other direction. From exact draws of
the posterior ``E[e^{-b}] = 1/Z``, so that

    log Z_up = -log mean_j e^{-b_j},    E[log Z_up] >= log Z >= E[log Z_forward]:

two estimates that err to opposite sides. Bennett's acceptance ratio (:func:`estimators.bar`) puts
both directions together with the least variance. From draws that only resemble the posterior the
upper bound is approximate; from the forward run's own it cannot know of a mode they all missed.
"""

from typing import Any, NamedTuple

import numpy as np

from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.resampling import equal_weights
from pymc_anneal.base.arviz_compat import draws_ess
from pymc_anneal.base.contracts import Transition, reversal_of
from pymc_anneal.evidence.ais import ais
from pymc_anneal.evidence.bennett import BridgeEstimate, both_directions, disagreement
from pymc_anneal.evidence.diagnostics import MAX_PARETO_K, weight_pareto_k
from pymc_anneal.execution.blocks import AnnealedRun
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.posterior_draws import posterior_draws
from pymc_anneal.pipeline.rounds import Outcome
from pymc_anneal.pipeline.session import Session

_MIN_MOVES = 20


_MOVES_PER_TAU = 5


_MAX_DISAGREEMENT = 4.0


class Reverse(NamedTuple):
    """A reverse run, and what it says together with the forward one.

    Attributes
    ----------
    forward : ndarray, shape (chains, particles)
        Log weights of the forward round that it reverses.
    run : AnnealedRun
        Its log weights estimate reference over target.
    bridge : BridgeEstimate
        Both directions together.
    ess : float
        Effective number of the reverse trajectories.
    start : str
        Where they began.
    evaluations : int
        Of gradient or density, those that the start took included.
    """

    forward: np.ndarray
    run: AnnealedRun
    bridge: BridgeEstimate
    ess: float
    start: str
    evaluations: int

    @property
    def mcse(self) -> float:
        """Monte Carlo standard error of both directions together, in nats."""
        return self.bridge.mcse(self.ess)

    @property
    def upper(self) -> tuple[float, float]:
        """Estimate of the reverse runs alone, and its error, in nats."""
        weight = np.exp(self.run.log_weight - self.run.log_weight.max())
        # Trajectories that began at neighbouring draws are not independent.
        ess = min(draws_ess(weight), float(weight.size))
        mcse = np.sqrt(np.log1p(weight.var() / weight.mean() ** 2 / ess))
        return -ais(self.run.log_weight).log_evidence, float(mcse)

    @property
    def numbers(self) -> dict[str, float]:
        """Scalars for the group ``evidence``, in nats."""
        lower, upper = ais(self.forward), self.upper
        interval = self.bridge.interval(self.ess)
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
        """What speaks against the estimate."""
        return [*self._tail(), *self._disagreement()]

    def _tail(self) -> list[str]:
        k = weight_pareto_k(self.run.log_weight)
        if not k > MAX_PARETO_K:
            return []
        return [
            f"Pareto k of the reverse weights is {k:.2f} (above {MAX_PARETO_K}): the upper bound "
            "hangs on a few trajectories; take more steps"
        ]

    def _disagreement(self) -> list[str]:
        score = disagreement(self.forward, -self.run.log_weight)
        if abs(score) <= _MAX_DISAGREEMENT:
            return []
        lower, (upper, upper_mcse) = ais(self.forward), self.upper
        return [
            f"forward runs say {lower.log_evidence:.3f} +- {lower.mcse:.2g}, reverse runs "
            f"{upper:.3f} +- {upper_mcse:.2g}, and their weights contradict each other by "
            f"{abs(score):.1f} standard errors: the transitions do not mix, or the draws that the "
            "reverse runs began with are not of the posterior"
        ]


def resolve_posterior(posterior: Any, compiled: CompiledModel) -> np.ndarray | str | None:
    """Return the draws that reverse runs are to begin with, "draws" for the run's own, or None.

    Raises, before anything runs, where they cannot begin with what is given.
    """
    if posterior is None or (isinstance(posterior, str) and posterior == "draws"):
        return posterior
    if isinstance(posterior, str):
        raise ValueError(
            f'`reverse_from` is {posterior!r}, expected "draws", a container with a group '
            "'posterior', or None."
        )
    return posterior_draws(posterior, compiled)


def run_reverse(
    session: Session, outcome: Outcome, posterior: np.ndarray | str, seed: np.random.SeedSequence
) -> Reverse:
    """Run the last round backwards.

    Parameters
    ----------
    session
        Model, path, options.
    outcome
        The forward run.
    posterior
        Unconstrained draws to begin with, shape ``(chains, draws, d)``, or "draws": the forward
        run's own, moved on at ``beta = 1``.
    seed
        Source of randomness.

    Returns
    -------
    Reverse
    """
    seed_start, seed_run = seed.spawn(2)
    if isinstance(posterior, str):
        own = _own_draws(session, outcome, seed_start)
        start, name, spent = own.position, "own draws, moved on", own.evaluations
    else:
        shape = outcome.rounds[-1].log_weight.shape
        start, name, spent = _spaced(posterior, shape), "posterior draws", 0
    betas, kernel = outcome.rounds[-1].betas[::-1].copy(), reversal_of(outcome.transition)
    run = session.run("Reverse", _blocks(session, kernel, betas, start, seed_run))
    forward = outcome.rounds[-1].log_weight
    both = both_directions(forward, -run.log_weight)
    return Reverse(forward, run, *both, name, spent + run.evaluations)


def _spaced(draws: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Take evenly spaced draws, in their order, shape ``(chains, particles, d)``."""
    flat = draws.reshape(-1, draws.shape[2])
    index = np.linspace(0, len(flat) - 1, shape[0] * shape[1]).round().astype(int)
    return flat[index].reshape(*shape, -1)


def _own_draws(session: Session, outcome: Outcome, seed: np.random.SeedSequence) -> AnnealedRun:
    """Resample the forward particles and move them on."""
    last, pilot = outcome.rounds[-1], outcome.pilot
    seed_index, seed_moves = seed.spawn(2)
    rng, n = np.random.default_rng(seed_index), last.log_weight.shape[1]
    start = equal_weights(last.position, last.log_weight, n, rng)
    tau = pilot.tau[-1] if pilot else 1.0
    moves = max(_MIN_MOVES, int(np.ceil(_MOVES_PER_TAU * tau)))
    blocks = _blocks(session, outcome.transition, np.ones(moves + 1), start, seed_moves)
    return session.run("Moving on", blocks)


def _blocks(
    session: Session,
    transition: Transition,
    betas: np.ndarray,
    start: np.ndarray,
    seed: np.random.SeedSequence,
) -> list[Block]:
    """Cut start positions of shape ``(chains, particles, d)`` into blocks."""
    m = session.options.block_draws
    parts = np.split(start, range(m, start.shape[1], m), axis=1)
    chains, ndim = start.shape[0], start.shape[2]
    return [
        Block(session.path, transition, betas, part.reshape(chains * m, ndim), chains, child)
        for part, child in zip(parts, seed.spawn(len(parts)), strict=True)
    ]
