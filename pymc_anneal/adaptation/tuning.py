"""Tuning of a transition by the pilot, from what its moves report.

A kernel's ``scale`` is set to the spread of the particles, its ``step_size`` to its target
acceptance, and its ``n_steps`` to the least

    cost tau,    tau = 1 + 2 (rho_1 + rho_2 + ...),

evaluations a transition times integrated autocorrelation time, where ``rho`` are the
autocorrelations of the velocity of the path: the weights depend on nothing else. Two moves in a
row give ``rho_1`` and ``rho_2``, and ``rho_{l+1} / rho_l`` is taken to stay what it is there.

Of a composition every part that leaves something open is tuned in turn, the others as they are at
that moment; ``cost`` and ``tau`` are those of the whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.adaptation.preconditioner import estimate_scale
from pymc_anneal.base.contracts import Transition
from pymc_anneal.transitions.by_temperature import TunedTransition
from pymc_anneal.transitions.composition import Composition, parts_of
from pymc_anneal.transitions.on_coordinates import BlockTransition


def needs_pilot(kernel: Any) -> bool:
    """Whether a kernel has parameters that are to be tuned."""
    return any(leaf is None for leaf in jax.tree.leaves(kernel, is_leaf=lambda x: x is None))


_RUNGS = 24


_MOVES = 3


_FIRST_MOVES = 7


_MEMORY = 0.7  # weight of the past in the smoothed scores of the ladder


_PADDING = 32


class Report(NamedTuple):
    """What two moves in a row tell: ``accept_rate`` and ``stuck`` by part, two correlations."""

    accept_rate: Sequence[float]
    stuck: Sequence[float]
    first: float
    second: float


class Trial(NamedTuple):
    """Which part of the transition to try, and on which rung of its ladder of efforts."""

    part: int
    rung: int


def autocorrelation_time(first: float, second: float) -> float:
    """Integrated autocorrelation time from the autocorrelations at lags one and two.

    ``1 + 2 (rho_1 + rho_2 / (1 - rho_2 / rho_1))``, at least 1/2; the ratio is kept within
    [rho_1, 0.95], between a process of first order and one with a slow part.
    """
    first = min(max(first, -0.25), 0.99)
    if first <= 0:
        return max(1 + 2 * first, 0.5)
    ratio = min(max(second / first, first), max(0.95, first))
    return 1 + 2 * first / (1 - ratio)


@dataclass(frozen=True)
class _Part:
    """One kernel under tuning, and what has been learned about it."""

    kernel: Any
    place: BlockTransition | None
    columns: Any  # of the positions: those that it moves
    free: frozenset[str]
    step_limit: float
    scale: np.ndarray
    rung: int
    scores: np.ndarray

    @classmethod
    def of(cls, kernel: Transition, position: np.ndarray) -> "_Part":
        place = kernel if isinstance(kernel, BlockTransition) else None
        coordinates = getattr(kernel, "coordinates", None)
        columns = slice(None) if coordinates is None else np.array(coordinates, dtype=int)
        kernel = kernel.kernel if isinstance(kernel, BlockTransition) else kernel
        names = ("step_size", "n_steps", "scale")
        width = position[:, columns].shape[1]
        d = 1 if getattr(kernel, "one_at_a_time", False) else max(width, 1)
        # Optimal scalings: d^(-1/4) for HMC (Beskos et al. 2013), d^(-1/2) for a random walk.
        limit = 1.2 * d**-0.25 if getattr(kernel, "target_accept", 0) > 0.5 else 2.4 * d**-0.5
        return cls(
            kernel=kernel,
            place=place,
            columns=columns,
            free=frozenset(n for n in names if getattr(kernel, n, False) is None),
            step_limit=limit,
            scale=np.ones(width),
            rung=getattr(kernel, "start_rung", 0),
            scores=np.full(_RUNGS, np.nan),
        )

    def effort(self, rung: int) -> tuple[float, int]:
        """Return the step size and the number of steps of a rung, those fixed by hand kept."""
        fixed_size, fixed_steps = (getattr(self.kernel, n, 1) for n in ("step_size", "n_steps"))
        if "n_steps" not in self.free:
            return self.step_limit if "step_size" in self.free else fixed_size, fixed_steps
        if "step_size" not in self.free:
            return fixed_size, rung + 1
        return self.kernel.effort(rung, self.step_limit)

    def cost(self, rung: int) -> int:
        """Return the evaluations of a transition on a rung."""
        return self.kernel.cost(self.effort(rung)[1]) if hasattr(self.kernel, "cost") else 1

    def built(self, rung: int, dense: bool = False) -> Any:
        """Return the kernel with numbers in place of the free parameters."""
        step_size, n_steps = self.effort(rung)
        values = {
            "step_size": np.asarray(float(step_size)),
            "n_steps": np.asarray(int(n_steps)),
            "scale": np.diag(self.scale) if dense and self.scale.ndim == 1 else self.scale,
        }
        kernel = replace(self.kernel, **{name: values[name] for name in self.free})
        return kernel if self.place is None else replace(self.place, kernel=kernel)

    def rescaled(
        self, position: np.ndarray, weight: np.ndarray, slope: np.ndarray | None
    ) -> "_Part":
        position = position[:, self.columns]
        if "scale" not in self.free or position.shape[1] == 0:
            return self
        if not self.uses_gradient:
            slope = None
        slope = None if slope is None else slope[:, self.columns]
        dense = not getattr(self.kernel, "one_at_a_time", False)
        return replace(self, scale=estimate_scale(position, weight, slope, dense=dense))

    @property
    def uses_gradient(self) -> bool:
        return getattr(self.kernel, "uses_gradient", False)

    def learned(self, rung: int, score: float, accept_rate: float, stuck: float) -> "_Part":
        """Return the part after two moves with the given rung of the ladder."""
        step_size, _ = self.effort(rung)
        scores = self.scores.copy()
        old = scores[rung]
        scores[rung] = score if np.isnan(old) else _MEMORY * old + (1 - _MEMORY) * score
        # The share of rejections is about proportional to the square of the step size.
        wanted_rejected = 1 - getattr(self.kernel, "target_accept", 0.0)
        rejected = max(1 - accept_rate, 1e-3)
        if hasattr(self.kernel, "max_stuck_share"):
            rejected = max(rejected, wanted_rejected * stuck / self.kernel.max_stuck_share)
        ratio = np.sqrt(wanted_rejected / rejected)
        wanted = step_size * np.clip(ratio, 0.25, 4.0)
        return replace(self, scores=scores, step_limit=float(np.sqrt(self.step_limit * wanted)))

    def settled(self) -> "_Part":
        """Return the part on the best rung next to the present one."""
        if "n_steps" not in self.free:
            return self
        low, high = max(self.rung - 1, 0), min(self.rung + 2, _RUNGS)
        near = self.scores[low:high]
        return self if np.isnan(near).all() else replace(self, rung=low + int(np.nanargmin(near)))

    def rungs(self, moves: int) -> list[int]:
        """Return which rungs to try at a temperature: the present one, and its neighbours."""
        if "n_steps" not in self.free:
            return [self.rung] * moves
        near = [self.rung, max(self.rung - 1, 0), min(self.rung + 1, _RUNGS - 1)]
        return (near * moves)[:moves]


@dataclass(frozen=True)
class Tuner:
    """A transition under tuning.

    Attributes
    ----------
    transition : Transition
        As it was given; of a composition every part is tuned.
    tau : float
        Integrated autocorrelation time of the velocity, smoothed.
    accept_rate : float
        Acceptance of the last moves, the mean over the parts.
    """

    transition: Transition
    parts: tuple[_Part, ...]
    tau: float = 2.0
    accept_rate: float = 1.0

    @classmethod
    def of(cls, transition: Transition, position: np.ndarray) -> "Tuner":
        """Begin with nothing learned; positions of shape ``(n, d)``."""
        return cls(transition, tuple(_Part.of(k, position) for k in parts_of(transition)))

    @property
    def free(self) -> bool:
        """Whether there is anything to tune."""
        return any(part.free for part in self.parts)

    @property
    def n_steps(self) -> int:
        """Number of steps of the first part."""
        first = self.parts[0]
        return int(first.effort(first.rung)[1])

    @property
    def cost(self) -> int:
        """Evaluations of gradient or density of a transition."""
        return sum(part.cost(part.rung) for part in self.parts)

    def trials(self, first: bool) -> list[Trial]:
        """Return what to try at a temperature."""
        moves = _FIRST_MOVES if first else _MOVES
        open_parts = [i for i, part in enumerate(self.parts) if part.free] or [0]
        return [Trial(i, rung) for i in open_parts for rung in self.parts[i].rungs(moves)]

    @property
    def present(self) -> list[Trial]:
        """Every part on its present rung."""
        return [Trial(i, part.rung) for i, part in enumerate(self.parts)]

    def built(self, trial: Trial | None = None, dense: Sequence[bool] | None = None) -> Transition:
        """Return the transition with numbers in place of the free parameters.

        Parameters
        ----------
        trial
            What to try; default: the parts as they are.
        dense
            By part, whether a diagonal scale is to be written as a matrix.
        """
        kernels = [
            part.built(
                trial.rung if trial is not None and trial.part == i else part.rung,
                dense is not None and dense[i],
            )
            for i, part in enumerate(self.parts)
        ]
        return Composition(kernels) if isinstance(self.transition, Composition) else kernels[0]

    def rescaled(
        self, position: np.ndarray, weight: np.ndarray, gradient: Callable[[], np.ndarray]
    ) -> "Tuner":
        """Return the tuner with the scales of weighted particles, shapes ``(n, d)``, ``(n,)``."""
        wanted = any("scale" in part.free and part.uses_gradient for part in self.parts)
        slope = gradient() if wanted and position.shape[1] else None
        parts = tuple(part.rescaled(position, weight, slope) for part in self.parts)
        return replace(self, parts=parts)

    def learned(self, trial: Trial, report: Report) -> "Tuner":
        """Return the tuner after two moves."""
        part = self.parts[trial.part]
        tau = autocorrelation_time(float(report.first), float(report.second))
        cost = self.cost - part.cost(part.rung) + part.cost(trial.rung)
        accept, stuck = float(report.accept_rate[trial.part]), float(report.stuck[trial.part])
        new = part.learned(trial.rung, np.log(cost * tau), accept, stuck)
        parts = tuple(new if i == trial.part else p for i, p in enumerate(self.parts))
        if trial.rung != part.rung:
            return replace(self, parts=parts)
        mean = float(np.mean(report.accept_rate))
        return replace(self, parts=parts, tau=float(np.sqrt(tau * self.tau)), accept_rate=mean)

    def settled(self) -> "Tuner":
        """Return the tuner with every part on the best rung next to its present one."""
        return replace(self, parts=tuple(part.settled() for part in self.parts))


def by_temperature(betas: Sequence[float], tuners: Sequence[Tuner]) -> Transition:
    """Return the transition with the parameters that each temperature's tuner has found.

    Parameters
    ----------
    betas, tuners
        Increasing temperatures, and what was learned there.
    """
    if not tuners[0].free:
        return tuners[0].transition
    dense = [max(t.parts[i].scale.ndim for t in tuners) == 2 for i in range(len(tuners[0].parts))]
    numeric = [jax.tree.map(jnp.asarray, t.built(dense=dense)) for t in tuners]
    # Shapes are compiled in: a few sizes serve any number of temperatures. What is added lies
    # above beta = 1 and repeats the last kernel.
    extra = -len(numeric) % _PADDING
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *numeric, *[numeric[-1]] * extra)
    return TunedTransition(jnp.asarray([*betas, *range(2, extra + 2)]), stacked)
