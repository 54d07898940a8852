"""Tuning of a transition by the pilot, from the diagnostics of its moves.

A kernel's ``scale`` is set to the spread of the particles, its ``step_size`` to its target
acceptance, and its ``n_steps`` to the effort level of least

    cost tau,    tau = 1 + 2 (rho_1 + rho_2 + ...),

evaluations of a transition times integrated autocorrelation time, where ``rho`` are the
autocorrelations of the velocity of the path: the weights depend on nothing else. Two consecutive
moves give ``rho_1`` and ``rho_2``; the ratio ``rho_{l+1} / rho_l`` is assumed to stay the same.

Every part of a composition is tuned in turn, the others as they are at that moment; ``cost`` and
``tau`` are those of the whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np

from pymc_anneal.adaptation.preconditioner import estimate_scale, may_be_matrix
from pymc_anneal.base.contracts import Transition, Tuning
from pymc_anneal.transitions.by_temperature import TunedTransition

# Effort levels: the highest is a trajectory of 16 periods at unit scale, or 2,900 proposals.
_LEVELS = 24
# Weight of the past in the smoothed scores of the levels.
_MEMORY = 0.7
# Temperatures of a tuned transition are padded to a multiple: shapes are compiled in.
_PADDING = 32
# Range of the first autocorrelation: antithetic moves are not counted below tau = 1/2, and a first
# autocorrelation near one is too noisy to divide by.
_LEAST_CORRELATION, _MOST_CORRELATION = -0.25, 0.99
# Largest assumed decay rate of autocorrelations: tau at most 1 + 40 rho_1.
_SLOWEST_DECAY = 0.95


class MoveDiagnostics(NamedTuple):
    """Diagnostics of two consecutive moves.

    Attributes
    ----------
    accept_rate, stuck_share : ndarray, shape (parts,)
        Mean acceptance probability, and share of the particles that reject nearly always.
    first, second : float
        Autocorrelation of the velocity at lags one and two.
    """

    accept_rate: Sequence[float]
    stuck_share: Sequence[float]
    first: float
    second: float


class Candidate(NamedTuple):
    """An effort level to try for one part of the transition."""

    part: int
    level: int


def needs_pilot(transition: Transition) -> bool:
    """Whether a transition has parameters to tune."""
    return any(part.tuning.free for part in transition.parts)


def autocorrelation_time(first: float, second: float) -> float:
    """Integrated autocorrelation time from the autocorrelations at lags one and two.

    ``1 + 2 (rho_1 + rho_2 / (1 - rho_2 / rho_1))``, at least 1/2; the ratio is kept within
    [rho_1, 0.95], between a process of first order and one with a slow component.
    """
    first = min(max(first, _LEAST_CORRELATION), _MOST_CORRELATION)
    if first <= 0:
        return max(1 + 2 * first, 0.5)
    ratio = min(max(second / first, first), max(_SLOWEST_DECAY, first))
    return 1 + 2 * first / (1 - ratio)


@dataclass(frozen=True)
class KernelTuning:
    """One kernel under tuning.

    Attributes
    ----------
    kernel : Transition
        The kernel as it was given.
    columns : index
        Columns of the positions that it moves.
    step_limit : float
        Largest step size that reaches the target acceptance.
    scale : ndarray, shape (width,) or (width, width)
        A matrix, though diagonal, if there may be correlations at another temperature.
    level : int
        Current effort level.
    scores : ndarray, shape (levels,)
        Smoothed ``log(cost tau)`` by level; NaN if a level has not been tried.
    """

    kernel: Transition
    columns: Any
    step_limit: float
    scale: np.ndarray
    level: int
    scores: np.ndarray

    @classmethod
    def create(cls, kernel: Transition, position: np.ndarray) -> "KernelTuning":
        """Start the tuning of a kernel with positions of shape ``(n, d)``."""
        moved = kernel.moved_coordinates
        columns = slice(None) if moved is None else np.array(moved, dtype=int)
        n, width = position[:, columns].shape
        # The form that scales may have later: one program serves all temperatures.
        matrix = not kernel.tuning.one_at_a_time and may_be_matrix(n, width)
        return cls(
            kernel=kernel,
            columns=columns,
            step_limit=_initial_step(kernel.tuning, width),
            scale=np.eye(width) if matrix else np.ones(width),
            level=kernel.tuning.first_level,
            scores=np.full(_LEVELS, np.nan),
        )

    @property
    def tuning(self) -> Tuning:
        """Parameters that may be set."""
        return self.kernel.tuning

    def parameters(self, level: int) -> dict[str, float | int]:
        """Return step size and number of steps of an effort level, as far as they are free."""
        free = self.tuning.free
        if {"step_size", "n_steps"} <= free:
            step_size, n_steps = self.kernel.effort(level, self.step_limit)
            return {"step_size": step_size, "n_steps": n_steps}
        if "n_steps" in free:
            return {"n_steps": level + 1}
        return {"step_size": self.step_limit} if "step_size" in free else {}

    def cost(self, level: int) -> int:
        """Return the evaluations of a transition at an effort level."""
        return int(self.build(level).cost(np.zeros(1))[0])

    def build(self, level: int) -> Transition:
        """Return the kernel with its free parameters set."""
        values: dict[str, Any] = {
            name: np.asarray(value) for name, value in self.parameters(level).items()
        }
        if "scale" in self.tuning.free:
            values["scale"] = self.scale
        return self.kernel.with_parameters(values) if values else self.kernel

    def rescale(
        self, position: np.ndarray, weight: np.ndarray, slope: np.ndarray | None
    ) -> "KernelTuning":
        """Set the scale to the spread of weighted particles.

        Parameters
        ----------
        position, weight : ndarray, shapes (n, d) and (n,)
        slope : ndarray, shape (n, d), optional
            Gradients of the log density.
        """
        position = position[:, self.columns]
        if "scale" not in self.tuning.free or position.shape[1] == 0:
            return self
        used = slope if self.tuning.uses_gradient else None
        used = None if used is None else used[:, self.columns]
        matrix = self.scale.ndim == 2
        scale = estimate_scale(position, weight, used, dense=matrix)
        return replace(self, scale=np.diag(scale) if matrix and scale.ndim == 1 else scale)

    def update(
        self, level: int, score: float, accept_rate: float, stuck_share: float
    ) -> "KernelTuning":
        """Learn from two moves at an effort level."""
        scores = self.scores.copy()
        old = scores[level]
        scores[level] = score if np.isnan(old) else _MEMORY * old + (1 - _MEMORY) * score
        # The share of rejections is about proportional to the square of the step size.
        wanted = 1 - self.tuning.target_accept
        rejected = max(1 - accept_rate, 1e-3)
        rejected = max(rejected, wanted * stuck_share / self.tuning.max_stuck_share)
        step_size = self.parameters(level).get("step_size", self.step_limit)
        aimed = step_size * np.clip(np.sqrt(wanted / rejected), 0.25, 4.0)
        return replace(self, scores=scores, step_limit=float(np.sqrt(self.step_limit * aimed)))

    def keep_best(self) -> "KernelTuning":
        """Move to the best level next to the current one."""
        if "n_steps" not in self.tuning.free:
            return self
        low, high = max(self.level - 1, 0), min(self.level + 2, _LEVELS)
        near = self.scores[low:high]
        return self if np.isnan(near).all() else replace(self, level=low + int(np.nanargmin(near)))

    def shortest(self) -> "KernelTuning":
        """Move to the highest of the levels that take the fewest evaluations."""
        costs = [self.cost(level) for level in range(_LEVELS)]
        return replace(self, level=max(i for i, cost in enumerate(costs) if cost == min(costs)))

    def levels(self, moves: int) -> list[int]:
        """Return the levels to try at a temperature: the current one and its neighbours."""
        if "n_steps" not in self.tuning.free:
            return [self.level] * moves
        near = [self.level, max(self.level - 1, 0), min(self.level + 1, _LEVELS - 1)]
        return (near * moves)[:moves]


def _initial_step(tuning: Tuning, width: int) -> float:
    """Return the optimal scaling of the step size, to begin with.

    ``d^(-1/4)`` for HMC (Beskos et al. 2013), ``d^(-1/2)`` for a random walk (Roberts et al. 1997).
    """
    d = 1 if tuning.one_at_a_time else max(width, 1)
    return float(1.2 * d**-0.25 if tuning.target_accept > 0.5 else 2.4 * d**-0.5)


@dataclass(frozen=True)
class Tuner:
    """A transition under tuning, part by part.

    Attributes
    ----------
    transition : Transition
        The transition as it was given.
    parts : tuple of KernelTuning
    tau : float
        Integrated autocorrelation time of the velocity, smoothed.
    accept_rate : float
        Mean acceptance probability of the last moves.
    """

    transition: Transition
    parts: tuple[KernelTuning, ...]
    tau: float = 2.0
    accept_rate: float = 1.0

    @classmethod
    def create(cls, transition: Transition, position: np.ndarray) -> "Tuner":
        """Start the tuning of a transition with positions of shape ``(n, d)``."""
        return cls(transition, tuple(KernelTuning.create(k, position) for k in transition.parts))

    @property
    def cost(self) -> int:
        """Evaluations of gradient or density of a transition."""
        return sum(part.cost(part.level) for part in self.parts)

    def candidates(self, moves: int) -> list[Candidate]:
        """Return the levels to try at a temperature, in turn, so many for each part."""
        tunable = [i for i, part in enumerate(self.parts) if part.tuning.free] or [0]
        return [Candidate(i, level) for i in tunable for level in self.parts[i].levels(moves)]

    def current(self) -> list[Candidate]:
        """Return every part at its current level."""
        return [Candidate(i, part.level) for i, part in enumerate(self.parts)]

    def build(self, candidate: Candidate | None = None) -> Transition:
        """Return the transition with its free parameters set.

        Parameters
        ----------
        candidate
            A level to try; default: the parts at their current levels.
        """
        levels = [part.level for part in self.parts]
        if candidate is not None:
            levels[candidate.part] = candidate.level
        choices = zip(self.parts, levels, strict=True)
        return self.transition.with_parts([part.build(level) for part, level in choices])

    def rescale(
        self, position: np.ndarray, weight: np.ndarray, gradient: Callable[[], np.ndarray]
    ) -> "Tuner":
        """Set the scales to the spread of weighted particles, shapes ``(n, d)`` and ``(n,)``."""
        tunings = [part.tuning for part in self.parts]
        wanted = any("scale" in tuning.free and tuning.uses_gradient for tuning in tunings)
        slope = gradient() if wanted and position.shape[1] else None
        return replace(
            self, parts=tuple(part.rescale(position, weight, slope) for part in self.parts)
        )

    def update(self, candidate: Candidate, moves: MoveDiagnostics) -> "Tuner":
        """Learn from two moves with a candidate."""
        i, level = candidate
        part = self.parts[i]
        tau = autocorrelation_time(float(moves.first), float(moves.second))
        cost = self.cost - part.cost(part.level) + part.cost(level)
        accept, stuck = float(moves.accept_rate[i]), float(moves.stuck_share[i])
        new = part.update(level, np.log(cost * tau), accept, stuck)
        parts = (*self.parts[:i], new, *self.parts[i + 1 :])
        if level != part.level:
            return replace(self, parts=parts)
        mean = float(np.mean(moves.accept_rate))
        return replace(self, parts=parts, tau=float(np.sqrt(tau * self.tau)), accept_rate=mean)

    def shortest(self) -> "Tuner":
        """Move every part to its cheapest level."""
        return replace(self, parts=tuple(part.shortest() for part in self.parts))

    def keep_best(self) -> "Tuner":
        """Move every part to the best level next to its current one."""
        return replace(self, parts=tuple(part.keep_best() for part in self.parts))


def by_temperature(betas: Sequence[float], tuners: Sequence[Tuner]) -> Transition:
    """Return the transition with the parameters found at each temperature.

    Parameters
    ----------
    betas : sequence of float, length m
        Increasing temperatures.
    tuners : sequence of Tuner, length m
        The tuner at each of them.
    """
    first = tuners[0]
    if not needs_pilot(first.transition):
        return first.transition
    kernels = [jax.tree.map(np.asarray, tuner.build()) for tuner in tuners]
    # The padding lies above beta = 1 and repeats the last kernel.
    extra = -len(kernels) % _PADDING
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *kernels, *[kernels[-1]] * extra)
    return TunedTransition(np.array([*betas, *range(2, extra + 2)], dtype=float), stacked)
