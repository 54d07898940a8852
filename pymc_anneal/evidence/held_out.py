"""Held-out particles: whether a density, or draws, miss mass that independent particles show.

Particles ``x_i`` of a posterior ``f / Z`` that no part of a run was fitted to are witnesses. If
weighted draws ``y_j`` come from the same posterior, the log ratio to any density ``q``,

    T(x) = log f(x) - log q(x),

has one distribution at both. Where ``q`` has next to no mass but ``f`` has, ``T`` is large: a hole.
For each threshold ``t``, the share of the witnesses above it is compared with the mass that the
draws have there. A hole needs no mode, no gradient and no smooth density to be seen.

Particles of one family descend from the same particle at the start, and may stand for one mode.
Their effective number is ``n^2 / sum_e n_e^2`` over the families (the variance of Lee & Whiteley
2018, eq. 8, when those of a family agree). With ``m`` of them above a threshold, the share ``s`` is
that of a Poisson number, whose mean is ``m a / s`` if the mass is ``a``: so many or more have the
probability ``P(m, m a / s)``, a regularised gamma function, for one family Markov's inequality.
Where families are few, as after many temperatures, the estimate of the evidence that came with the
particles is the better witness (`is_too_low`).
"""

from typing import NamedTuple

import numpy as np

from scipy.special import betaincinv, gammainc

# Masses of the draws above the thresholds; zero: above all of them.
_MASSES = np.array([0.5, 0.1, 0.02, 0.004, 0.0])
# Probability of an objection to a run that is right, and to a reference or coordinates: another
# choice costs time, a wrong alarm trust.
LEVEL, LEVEL_OF_CHOICES = 1e-3, 1e-2


class Hole(NamedTuple):
    """A region that witnesses find and draws do not.

    Attributes
    ----------
    share : float
        Share of the witnesses in it.
    mass : float
        Largest mass there that the draws allow.
    witnesses : float
        Effective number of witnesses.
    p_value : float
        Probability of so many there, for the worst of all thresholds together.
    """

    share: float
    mass: float
    witnesses: float
    p_value: float

    def __str__(self) -> str:
        """Say where the witnesses are and the draws are not."""
        return (
            f"{self.share:.2g} of the held-out particles (effectively {self.witnesses:.3g}) lie "
            f"where at most {self.mass:.2g} of the posterior could be"
        )


def is_too_low(
    log_evidence: float, rough_log_evidence: float, families: float, level: float
) -> bool:
    """Return whether an estimate is too low for a rough one by sequential Monte Carlo to be right.

    The families of ``n`` draws of the prior reach the posterior. Their number is about Poisson, and
    the rough estimate ``Z^`` proportional to it, of a relative variance ``1/n`` (Chan & Lai 2013).
    If its mean is ``Z``, so many or more have the probability ``P(n, n Z / Z^)``, a regularised
    gamma function. For one family this is Markov's inequality, for many the normal limit.

    The log evidences are in nats, the rough one may be NaN; ``families`` is an effective number,
    and ``level`` the probability of a wrong objection.
    """
    with np.errstate(over="ignore"):
        expected = families * np.exp(log_evidence - rough_log_evidence)
    return bool(gammainc(families, expected) < level)


def find_hole(
    at_witnesses: np.ndarray,
    family: np.ndarray,
    at_draws: np.ndarray,
    weight: np.ndarray,
    effective_draws: float | None = None,
    known: float = 1.0,
) -> Hole:
    """Return the hole that contradicts weighted draws most.

    Witnesses have the log ratio of the target to some density, shape ``(n,)``, and the ancestor of
    each; draws that claim to be of the target have it too, ``(m,)``, with weights that sum to one,
    of which so many are effective. Where the draws have found more than the witnesses know of, a
    share of the posterior, each part of the rest has a larger share among the witnesses.
    """
    order = np.argsort(-at_draws)
    above = np.concatenate([[0.0], np.cumsum(weight[order])])
    last = np.searchsorted(above[1:], _MASSES, side="left").clip(max=len(order) - 1)
    threshold = at_draws[order][last]
    mass = np.array([weight[at_draws > t].sum() for t in threshold])
    share = np.array([(at_witnesses > t).mean() for t in threshold])
    draws = effective_draws or 1 / np.square(weight).sum()
    witnesses = effective_witnesses(family)
    each = LEVEL / (2 * len(_MASSES))
    most = betaincinv(mass * draws + 1, np.maximum(draws * (1 - mass), 1e-9), 1 - each)
    most = np.minimum(most / known, 1.0)
    inside = [effective_witnesses(family[at_witnesses > t]) for t in threshold]
    p_value = np.minimum(_at_least(np.array(inside), share, most) * 2 * len(_MASSES), 1.0)
    worst = int(p_value.argmin())
    return Hole(float(share[worst]), float(most[worst]), witnesses, float(p_value[worst]))


def effective_witnesses(family: np.ndarray) -> float:
    """Return the effective number of particles if those of a family count as one kind."""
    count = np.unique(family, return_counts=True)[1]
    return float(len(family) ** 2 / max(np.square(count).sum(), 1))


def _at_least(families: np.ndarray, share: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return the probability that so many families have such a share of a mass, or a larger one."""
    expected = families * mass / np.maximum(share, np.finfo(float).tiny)
    found: np.ndarray = np.where(families > 0, gammainc(families, expected), 1.0)
    return found
