"""Reverse runs of an RBM that start at data (Burda, Grosse & Salakhutdinov 2015).

Let ``p_K`` be the distribution of the last state of a forward run. Reverse runs from a fixed ``v``
estimate its probability without bias, ``E[f(v) e^{-b} / Z_0 | v] = p_K(v)``, with ``f`` the
unnormalised density of the RBM and ``Z_0 = 1`` for a normalised reference. From starts of
distribution ``q``

    log Z_up = -log mean_j e^{-b_j},    E[log Z_up] >= log Z - log E_q[p_K / p].

This is an upper bound on ``log Z`` if ``E_q[p_K / p] <= 1``: exactly, if ``q`` is the RBM ``p``; in
practice, if the forward runs do not visit the neighbourhood of the starts more often than the RBM
does. Data are no draws of the RBM. Gibbs moves bring them nearer, but chains keep the shares of
parts of the distribution between which they do not move. Where ``q`` and ``p`` differ, the two
directions contradict each other, unless no start lies in what the forward runs missed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_anneal.pipeline.counted_run import ForwardStages
from pymc_anneal.pipeline.reverse_start import OwnDraws, ReverseStart, move_at_target
from pymc_anneal.pipeline.session import Session
from pymc_anneal.rbm.bernoulli import bernoulli_numpy
from pymc_anneal.rbm.model import RBM, check_rows

# Gibbs sweeps from the data: at least so many, and so many for each annealing step.
_MIN_SWEEPS, _SWEEPS_PER_STEP = 100, 0.1


@dataclass(frozen=True, eq=False)
class DataStart(ReverseStart):
    """Rows of data, after Gibbs sweeps at ``beta = 1``.

    Parameters
    ----------
    data : ndarray, shape (n, n_visible)
        Binary values, or probabilities in [0, 1], which are replaced by Bernoulli draws.
    """

    data: np.ndarray
    name = "data, after further Gibbs moves"

    def draw(
        self, session: Session, forward: ForwardStages, seed: np.random.SeedSequence
    ) -> np.ndarray:
        """Choose rows at random, each as often as any other, and move them."""
        seed_rows, seed_moves = seed.spawn(2)
        rng, (chains, particles) = np.random.default_rng(seed_rows), forward.run.log_weight.shape
        rows = np.resize(rng.permutation(len(self.data)), (chains, particles))
        start = bernoulli_numpy(rng, self.data[rows])
        sweeps = max(_MIN_SWEEPS, int(_SWEEPS_PER_STEP * forward.run.steps))
        return move_at_target(session, forward, start, sweeps, seed_moves)


def resolve_reverse(reverse_from: Any, model: RBM) -> ReverseStart | None:
    """Return the start of reverse runs, None for no such runs.

    Raises
    ------
    ValueError
        The argument is another string than "draws", or is no matrix of values in [0, 1] with a
        column for each visible unit.
    """
    if reverse_from is None:
        return None
    if not isinstance(reverse_from, str):
        data = check_rows(reverse_from, model.n_visible, "reverse_from")
        return DataStart(data.astype(model.weights.dtype))
    if reverse_from == "draws":
        return OwnDraws()
    raise ValueError(
        f'`reverse_from` is {reverse_from!r}, expected "draws", an array of data of shape '
        f"(n, {model.n_visible}), or None."
    )
