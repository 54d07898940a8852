"""The mode audit: whether draws of a posterior know all of its modes.

A mixture is fitted to the posterior, with a component for each mode among the draws and for each
that a search finds elsewhere (`adaptation/peaks.py`). With draws ``x_i ~ r`` of the mixture,
``W_i ~ f(x_i) / r(x_i)``, and ``m_j(x)`` the share that mode ``j`` has in the mixture at ``x``,

    s_j = sum_i W_i m_j(x_i)        estimates        E_posterior[m_j],

and so does the average of ``m_j`` over the draws. A mode that they missed has a share by importance
sampling and none among them. Where the weights of a mode have a heavy tail, as those of a normal
component at a cusp, what counts is the share that the mode has at least, whatever its tail.

Of thousands of modes each holds too little to be measured. Those that the draws know nothing of are
measured together as well, as if they were one.
"""

from dataclasses import dataclass, replace

import numpy as np

from pymc_anneal.adaptation.fitted_reference import (
    LEAST_ESS,
    FittedReference,
    membership,
    normalised,
)
from pymc_anneal.evidence.ais import effective_sample_size
from pymc_anneal.evidence.diagnostics import MAX_PARETO_K, weight_pareto_k
from pymc_anneal.model.compile import CompiledModel

# Standard errors by which a share by importance sampling may exceed that among the draws: false
# alarms for one mode in 30,000.
_MAX_DISAGREEMENT = 4.0
# Share of the evidence that may be missed: less does not matter beside the error of an estimate.
_LEAST_SHARE = 1e-3


@dataclass(frozen=True)
class ModeAudit:
    """The modes of a posterior, by importance sampling and among draws.

    Attributes
    ----------
    centre : ndarray, shape (modes, d)
        Where they are, in the unconstrained space.
    log_mass : ndarray, shape (modes,)
        Log of the evidence that each holds, by importance sampling, in nats.
    share, share_mcse, ess : ndarray, shape (modes,)
        Their shares in the evidence by importance sampling, the errors, and the effective number
        of draws; zero draws if the weights have a heavy tail.
    rest_ess : ndarray, shape (modes,)
        Effective number of draws of all other modes together.
    among_draws, among_draws_mcse : ndarray, shape (modes,)
        Their shares among the draws, and the errors.
    at_least : ndarray, shape (modes,)
        The shares that they have at least, whatever the tails of the weights.
    unmet : ModeAudit or None
        All modes together that hardly a draw is in, as one; None if there are fewer than two.
    """

    centre: np.ndarray
    log_mass: np.ndarray
    share: np.ndarray
    share_mcse: np.ndarray
    ess: np.ndarray
    rest_ess: np.ndarray
    among_draws: np.ndarray
    among_draws_mcse: np.ndarray
    at_least: np.ndarray
    unmet: "ModeAudit | None" = None

    @property
    def missed(self) -> np.ndarray:
        """Whether the draws have less of a mode than there is, shape ``(modes,)``."""
        share = np.where(self._measured, self._least_share(), self.at_least)
        error = np.hypot(self.share_mcse * self._measured, self.among_draws_mcse)
        least = np.maximum(_MAX_DISAGREEMENT * error, _LEAST_SHARE)
        return np.asarray(share - self.among_draws > least)

    @property
    def _measured(self) -> np.ndarray:
        """Whether importance sampling has measured a mode."""
        return np.asarray(self.ess >= LEAST_ESS)

    def _least_share(self) -> np.ndarray:
        """Return the shares if the other modes held as much more as their few draws allow."""
        # No other modes have no draws.
        error = 1 / np.sqrt(np.maximum(self.rest_ess, 1))
        rest = (1 - self.share) * np.exp(_MAX_DISAGREEMENT * error)
        return np.asarray(self.share / (self.share + rest))

    def doubts(self, compiled: CompiledModel, advice: str) -> list[str]:
        """Name the largest mode that the draws missed, and say what to do."""
        missed = np.flatnonzero(self.missed)
        if not len(missed):
            return [] if self.unmet is None else self.unmet._doubts_of_all(compiled, advice)
        j = missed[self.share[missed].argmax()]
        others = f" ({len(missed) - 1} more were missed too)" if len(missed) > 1 else ""
        return [f"a mode at {self._describe(compiled, j)}{others}: {advice}"]

    def _doubts_of_all(self, compiled: CompiledModel, advice: str) -> list[str]:
        """Say that the draws missed modes that are too small one by one, and what to do."""
        if not self.missed[0]:
            return []
        return [f"modes, one of them at {self._describe(compiled, 0, ', hold together')}: {advice}"]

    def _describe(self, compiled: CompiledModel, j: int, verb: str = " holds") -> str:
        held = f"{self.share[j]:.2g} +- {self.share_mcse[j]:.1g}"
        if not self._measured[j]:
            held = f"at least {self.at_least[j]:.2g}"
        return (
            f"{describe_position(compiled, self.centre[j])}{verb} {held} of the evidence "
            f"by importance sampling, and {self.among_draws[j]:.2g} of the draws"
        )


def audit_draws(
    fitted: FittedReference,
    position: np.ndarray,
    weight: np.ndarray,
    log_evidence: float = -np.inf,
) -> ModeAudit:
    """Compare the shares of modes by importance sampling with those among weighted draws.

    Parameters
    ----------
    fitted
        The mixture.
    position : ndarray, shape (n, d)
        The draws.
    weight : ndarray, shape (n,)
        Their weights, which sum to one.
    log_evidence
        Estimate of the log evidence by the draws, in nats: where importance sampling with the
        mixture finds less, its modes have smaller shares.
    """
    member = membership(fitted.path, position, fitted.modes)
    each = _audit(fitted, fitted.centres, member, weight, log_evidence)
    few = each.among_draws < _LEAST_SHARE
    if few.sum() < 2:
        return each
    largest = fitted.centres[few][[each.share[few].argmax()]]
    fitted = replace(fitted, membership=_sum_of(fitted.membership, few))
    return replace(each, unmet=_audit(fitted, largest, _sum_of(member, few), weight, log_evidence))


def _sum_of(member: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the membership in any of some modes, shape ``(n, modes)`` to ``(n, 1)``."""
    return np.asarray(np.minimum(member[:, chosen].sum(axis=1, keepdims=True), 1.0))


def _audit(
    fitted: FittedReference,
    centre: np.ndarray,
    member: np.ndarray,
    weight: np.ndarray,
    log_evidence: float,
) -> ModeAudit:
    """Compare shares by the membership of the draws of a mixture and of the weighted ones."""
    own, drawn = normalised(fitted.log_ratio_draws), fitted.membership
    part = min(np.exp(fitted.log_z - log_evidence), 1.0)
    share = part * (own @ drawn)
    with np.errstate(divide="ignore"):
        log_weight = (np.log(own)[:, None] + np.log(drawn)).T
        log_rest = (np.log(own)[:, None] + np.log1p(-drawn)).T
    # The tail of a mode's weights is that of its own draws: beside those of others, which weigh
    # next to nothing, even equal weights look like a heavy tail.
    own_draws = drawn.T > 0.5
    reliable = [
        not weight_pareto_k(row[chosen]) > MAX_PARETO_K
        for row, chosen in zip(log_weight, own_draws, strict=True)
    ]
    return ModeAudit(
        centre=centre,
        log_mass=fitted.log_z + np.log(np.maximum(own @ drawn, np.finfo(float).tiny)),
        share=share,
        share_mcse=part * _error_of_mean(own, drawn),
        ess=np.array([effective_sample_size(row) for row in log_weight]) * reliable,
        rest_ess=np.array([effective_sample_size(row) for row in log_rest]),
        among_draws=weight @ member,
        among_draws_mcse=_error_of_mean(weight, member),
        at_least=fitted.least_share(log_evidence),
    )


def describe_position(compiled: CompiledModel, position: np.ndarray) -> str:
    """Name the values of the free variables at a position, shape ``(d,)``."""
    values = compiled.constrain(position[None])
    names = [v.name for v in compiled.variables if v.name in values]
    return ", ".join(
        f"{name} = {np.array2string(values[name][0], precision=3, threshold=6)}" for name in names
    )


def _error_of_mean(weight: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return the errors of weighted means of columns, shape ``(n, k)`` to ``(k,)``."""
    square: np.ndarray = np.square(weight[:, None] * (value - weight @ value)).sum(axis=0)
    return np.asarray(np.sqrt(square))
