"""Agreement of the estimates of one evidence that a run makes on its way.

Pilot, fits, trials and chains estimate the same ``Z``. Three tests share one level:

- chains, or the halves of a single chain, agree with each other (chi-squared);
- no estimate made before the run exceeds its result, which would have missed what that one saw;
- estimates do not rise with the number of steps ``K``. Those of runs whose transitions lag behind
  the path do, because the typical weight is too small by a factor whose log falls as ``1/K``
  (Grosse, Maddison & Salakhutdinov 2013, theorem 1: ``K x bias -> F``). ``F`` is the slope of the
  weighted least squares line

      log Z_i = log Z - F / K_i + s_i e_i,

  and ``F / (target / 2)`` is the number of steps for a bias of half the wanted error. A bias of
  at most half the error of the result is part of it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scipy.stats import chi2, norm

from pymc_anneal.evidence.ais import ais

# Probability of a false alarm by the three tests together, if all errors are right.
LEVEL = 1e-3
# Bias, as a share of the error, that makes no difference to a result.
HARMLESS_BIAS = 0.5
# Runs of so many times fewer steps than the longest one are left out: the law of the bias holds for
# many steps.
_SHORT = 10
# Least error of an estimate, in nats: log densities are rounded.
_ROUNDING = 1e-8


class Estimate(NamedTuple):
    """An estimate of the log evidence that was made before the result.

    Attributes
    ----------
    name : str
        The estimator, in words.
    log_evidence, mcse : float
        In nats.
    steps : int or None
        Number of steps of the annealed run that made it; None for other estimators.
    """

    name: str
    log_evidence: float
    mcse: float
    steps: int | None = None

    def is_above(self, other: "Estimate", level: float) -> bool:
        """Whether it is higher than another one by more than their errors, at a level."""
        error = np.hypot(self.mcse, max(other.mcse, _ROUNDING))
        return bool(self.log_evidence - other.log_evidence > norm.isf(level) * error)


class Lag(NamedTuple):
    """The bias of an annealed run by transitions that lag behind the path.

    Attributes
    ----------
    coefficient : float
        ``F``: the bias of a run of ``K`` steps is ``-F / K`` nats.
    mcse : float
        Its standard error.
    steps : int
        Largest number of steps among the runs.
    """

    coefficient: float
    mcse: float
    steps: int

    @property
    def significant(self) -> bool:
        """Whether the estimates rise with the number of steps beyond their errors."""
        return bool(self.coefficient > norm.isf(LEVEL / 3) * self.mcse)

    @property
    def bias(self) -> float:
        """What is missing at the largest number of steps, in nats."""
        return self.coefficient / self.steps

    def matters(self, mcse: float) -> bool:
        """Whether the bias is significant, and above half of the error of the result."""
        return self.significant and self.bias > HARMLESS_BIAS * mcse

    def describe(self, target_mcse: float) -> str:
        """Say by how much the transitions lag, and how many steps would do."""
        wanted = max(2 * self.steps, int(np.ceil(self.coefficient / (target_mcse / 2))))
        return (
            f"the estimates rise with the number of steps, by {self.coefficient:.3g} +- "
            f"{self.mcse:.2g} divided by it: the transitions lag behind the path, and "
            f"{self.bias:.2g} nats are missing at {self.steps} steps; try "
            f"steps={wanted}"
        )


def chain_doubts(log_weight: np.ndarray) -> list[str]:
    """Doubt that the chains, or the halves of a single one, agree within their errors.

    Log weights have the shape ``(chains, particles)``.
    """
    estimates = [ais(weights) for weights in _parts(log_weight)]
    values = np.array([e.log_evidence for e in estimates])
    errors = np.maximum([e.mcse for e in estimates], _ROUNDING)
    if len(values) < 2 or not np.isfinite(values).all():
        return []
    centre = np.average(values, weights=errors**-2)
    score = (((values - centre) / errors) ** 2).sum()
    if chi2.sf(score, len(values) - 1) > LEVEL / 3:
        return []
    name = "chains" if len(log_weight) > 1 else "halves of the run"
    return [
        f"the {name} disagree by more than their errors ({values.min():.3f} to "
        f"{values.max():.3f}); take more steps"
    ]


def _parts(log_weight: np.ndarray) -> list[np.ndarray]:
    """Return independent parts of a run: its chains, or the halves of a single one."""
    if len(log_weight) > 1:
        return list(log_weight)
    chain = log_weight[0]
    return [chain[::2], chain[1::2]] if len(chain) > 1 else []


def excess_doubts(result: Estimate, earlier: Sequence[Estimate]) -> list[str]:
    """Name estimates that are above the result: it may have missed what they have seen.

    One below it raises no doubt: an unbiased estimate of the evidence is ``a`` times too large with
    a probability of at most ``1/a``, whatever it has missed.
    """
    level = LEVEL / 3 / max(len(earlier), 1)
    return [
        f"{e.name} found {e.log_evidence:.2f} +- {e.mcse:.2f}, more than the run; the transitions "
        "may miss a part of the posterior: take more steps or another transition"
        for e in earlier
        if e.is_above(result, level)
    ]


def lag(estimates: Sequence[Estimate]) -> Lag | None:
    """Fit the bias by lagging transitions to estimates with several numbers of steps.

    Parameters
    ----------
    estimates : sequence of Estimate
        Independent estimates by annealed runs; others are left out, and runs that are far shorter
        than the longest one.

    Returns
    -------
    Lag or None
        None if fewer than two numbers of steps have an estimate with a finite error.
    """
    found = [(e.steps, e) for e in estimates if e.steps and np.isfinite(e.mcse)]
    longest = max((count for count, _ in found), default=0)
    runs = [e for count, e in found if _SHORT * count >= longest]
    steps = np.array([e.steps for e in runs], dtype=float)
    if len(np.unique(steps)) < 2:
        return None
    weight = np.maximum([e.mcse for e in runs], _ROUNDING) ** -2.0
    value = np.array([e.log_evidence for e in runs])
    centred = 1 / steps - np.average(1 / steps, weights=weight)
    information = (weight * centred**2).sum()
    slope = (weight * centred * value).sum() / information
    return Lag(-float(slope), float(information**-0.5), int(steps.max()))
