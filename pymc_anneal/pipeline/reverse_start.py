"""Starts of reverse runs: draws of the target, exact or approximate."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pymc_anneal.annealing.resampling import equal_weights
from pymc_anneal.execution.blocks import make_blocks
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.posterior_draws import posterior_draws
from pymc_anneal.pipeline.counted_run import ForwardStages
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.settings import Settings

# Moves after which resampled copies of a particle count as separate draws.
_MIN_MOVES, _MOVES_PER_TAU = 20, 5


class ReverseStart(Protocol):
    """Draws of the target with which the reverse run starts."""

    @property
    def name(self) -> str:
        """Source of the draws, for the result."""

    def draw(
        self, session: Session, forward: ForwardStages, seed: np.random.SeedSequence
    ) -> np.ndarray:
        """Return as many positions as the forward run has, shape ``(chains, particles, d)``.

        Neighbours in a chain may be autocorrelated.
        """


@dataclass(frozen=True)
class OwnDraws(ReverseStart):
    """Draws of the forward run, after further MCMC moves at ``beta = 1``."""

    name = "draws of this run, after further MCMC moves"

    def draw(
        self, session: Session, forward: ForwardStages, seed: np.random.SeedSequence
    ) -> np.ndarray:
        """Resample the forward particles and move them."""
        last = forward.run
        seed_index, seed_moves = seed.spawn(2)
        rng, n = np.random.default_rng(seed_index), last.log_weight.shape[1]
        start = equal_weights(last.position, last.log_weight, n, rng)
        tau = forward.pilot.tau[-1] if forward.pilot else 1.0
        moves = max(_MIN_MOVES, int(np.ceil(_MOVES_PER_TAU * tau)))
        return move_at_target(session, forward, start, moves, seed_moves)


@dataclass(frozen=True, eq=False)
class PosteriorDraws(ReverseStart):
    """Draws of the posterior from elsewhere.

    Parameters
    ----------
    draws : ndarray, shape (chains, draws, d)
        In unconstrained space.
    """

    draws: np.ndarray
    name = "posterior draws"

    def draw(
        self, session: Session, forward: ForwardStages, seed: np.random.SeedSequence
    ) -> np.ndarray:
        """Take evenly spaced draws, in their order."""
        chains, particles = forward.run.log_weight.shape
        flat = self.draws.reshape(-1, self.draws.shape[2])
        index = np.linspace(0, len(flat) - 1, chains * particles).round().astype(int)
        return np.asarray(flat[index].reshape(chains, particles, -1))


def move_at_target(
    session: Session,
    forward: ForwardStages,
    position: np.ndarray,
    moves: int,
    seed: np.random.SeedSequence,
) -> np.ndarray:
    """Move positions of shape ``(chains, particles, d)`` at ``beta = 1``."""
    path, m = forward.candidate.path, session.settings.block_draws
    blocks = make_blocks(path, forward.transition, np.ones(moves + 1), position, m, seed)
    return session.anneal_fully("Further moves", blocks).position


def check_not_resampled(start: ReverseStart | None, settings: Settings) -> None:
    """Raise `ValueError` if the trajectories that are to be reversed would be cut."""
    if start is not None and settings.resample:
        raise ValueError(
            "`reverse_from` reverses single trajectories, which resampling has cut: leave out "
            "`resample`."
        )


def resolve_reverse(reverse_from: Any, compiled: CompiledModel) -> ReverseStart | None:
    """Return the start of reverse runs, None for no such runs.

    Raises
    ------
    ValueError
        The argument is another string than "draws", or a container whose posterior is not of the
        model.
    """
    if reverse_from is None:
        return None
    if isinstance(reverse_from, str):
        if reverse_from == "draws":
            return OwnDraws()
        raise ValueError(
            f'`reverse_from` is {reverse_from!r}, expected "draws", a container with a group '
            "'posterior', or None."
        )
    return PosteriorDraws(posterior_draws(reverse_from, compiled))
