"""The mode audit: whether the run knows all modes of the posterior.

A mixture is fitted to the posterior, with a component for each mode among the particles and for
each that a search finds where annealing does not look (`adaptation/peaks.py`). With draws
``x_i ~ r`` of the mixture, ``W_i ~ f(x_i) / r(x_i)``, and ``m_j(x)`` the share that mode ``j`` has
in the mixture at ``x``,

    s_j = sum_i W_i m_j(x_i)        estimates        E_posterior[m_j],

and so does the average of ``m_j`` over the weighted particles of the run. A mode that the run
missed has a share by importance sampling and none among its particles.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
import xarray as xr

from pymc_anneal.adaptation.fitted_reference import FittedReference, membership, normalised
from pymc_anneal.evidence.ais import effective_sample_size
from pymc_anneal.evidence.diagnostics import MAX_PARETO_K, weight_pareto_k
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.pipeline.fitted_mixture import fit_to_particles
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.rounds import ForwardStages
from pymc_anneal.pipeline.session import Session

# Particles of the run to which a mixture is fitted, if none was fitted before.
_PARTICLES = 512
# Standard errors by which the shares of a mode may differ: false alarms in one of two million.
_MAX_DISAGREEMENT = 5.0
# Share of the evidence that a run may miss: less does not matter beside its error.
_LEAST_SHARE = 1e-3
# Effective draws of a mode below which its share by importance sampling says nothing.
_LEAST_ESS = 25.0


@dataclass(frozen=True)
class Audit:
    """The modes of a posterior.

    Attributes
    ----------
    centre : ndarray, shape (modes, d)
        Where they are, in the unconstrained space.
    log_mass : ndarray, shape (modes,)
        Log of the evidence that each holds, by importance sampling, in nats.
    share, share_mcse, ess : ndarray, shape (modes,)
        Their shares in the evidence by importance sampling, the errors, and the effective number
        of draws.
    in_run, in_run_mcse : ndarray, shape (modes,)
        Their shares among the weighted particles of the run, and the errors.
    """

    centre: np.ndarray
    log_mass: np.ndarray
    share: np.ndarray
    share_mcse: np.ndarray
    ess: np.ndarray
    in_run: np.ndarray
    in_run_mcse: np.ndarray

    @property
    def missed(self) -> np.ndarray:
        """Whether the run has less of a mode than there is, shape ``(modes,)``."""
        error = np.hypot(self.share_mcse, self.in_run_mcse)
        less = self.share - self.in_run > np.maximum(_MAX_DISAGREEMENT * error, _LEAST_SHARE)
        missed: np.ndarray = less & (self.ess >= _LEAST_ESS)
        return missed

    def doubts(self, target: ModelTarget) -> list[str]:
        """Name the modes that the run missed."""
        return [
            f"a mode at {_describe(target, self.centre[j])} holds {self.share[j]:.2g} +- "
            f"{self.share_mcse[j]:.1g} of the evidence by importance sampling, and "
            f"{self.in_run[j]:.2g} of the particles: the run missed it; use reference='auto' or "
            "'pilot', which start from all modes that were found"
            for j in np.flatnonzero(self.missed)
        ]

    def dataset(self, target: ModelTarget) -> xr.Dataset:
        """Return the table of modes: the model's variables at each, log mass and shares."""
        known = {rv.name for rv in target.compiled.model.free_RVs}
        values = target.compiled.constrain(self.centre)
        columns = {
            "mode_log_mass": self.log_mass,
            "mode_share": self.share,
            "mode_share_mcse": self.share_mcse,
            "mode_share_of_run": self.in_run,
        }
        here = {name: value for name, value in values.items() if name in known}
        return target.named({**here, **columns}, ("mode",))


def audit_modes(session: Session, target: ModelTarget, forward: ForwardStages) -> Audit | None:
    """Compare the modes of a posterior with those that a run has found.

    Parameters
    ----------
    session
        Seeds.
    target
        The model.
    forward
        The run; the mixture that was fitted on the way is used if there is one.

    Returns
    -------
    Audit or None
        None if no mixture can be fitted: for discrete variables, for priors that are not normalised
        and for runs whose number of steps was given, which nothing is adapted for.
    """
    known = [c.fitted for c in forward.candidate.lineage if c.fitted is not None]
    if known:
        return _compare(known[0], forward)
    planned = forward.pilot is not None and session.settings.fixed_steps is None
    if not planned or target.compiled.ndim == 0 or target.compiled.explain_unnormalised():
        return None
    seed_draws, seed_fit = session.seeds.audit.spawn(2)
    path, position = target.candidate().path, _draw_particles(forward, seed_draws)
    branches = target.compiled.branches
    sampler = target.compiled.sample_prior
    fitted = fit_to_particles(cast(GeometricPath, path), position, sampler, seed_fit, branches)
    return _compare(fitted, forward)


def find_constant_likelihood(target: ModelTarget, forward: ForwardStages) -> list[str]:
    """Doubt a likelihood that has the same value, to the last digit, at all particles."""
    model, log_weight = target.compiled.model, forward.log_weight
    if np.ptp(log_weight) > 0 or not (model.observed_RVs or model.potentials):
        return []
    return [
        "the likelihood has the same value at all particles: it does not depend on the parameters, "
        "or only in a region that was not found"
    ]


def _draw_particles(forward: ForwardStages, seed: np.random.SeedSequence) -> np.ndarray:
    """Resample the particles of a run to equal weights, shape ``(n, d)``."""
    position, weight = _weighted_particles(forward)
    rng = np.random.default_rng(seed)
    return position[rng.choice(len(weight), size=_PARTICLES, p=weight)]


def _weighted_particles(forward: ForwardStages) -> tuple[np.ndarray, np.ndarray]:
    """Return the particles of all rounds, shape ``(n, d)``, and their normalised weights."""
    position = np.concatenate([r.position for r in forward.rounds], axis=1)
    return position.reshape(-1, position.shape[2]), normalised(forward.log_weight.ravel())


def _compare(fitted: FittedReference, forward: ForwardStages) -> Audit:
    """Compare the shares of the modes by importance sampling with those in the run."""
    position, own = _weighted_particles(forward)
    member = membership(fitted.path, position, fitted.modes)
    weight, drawn = normalised(fitted.log_ratio_draws), fitted.membership
    share, in_run = weight @ drawn, own @ member
    with np.errstate(divide="ignore"):
        log_weight = np.log(weight)[:, None] + np.log(drawn)
    reliable = [not weight_pareto_k(column) > MAX_PARETO_K for column in log_weight.T]
    return Audit(
        centre=np.array([c.mean for c in fitted.components]),
        log_mass=fitted.log_z + np.log(np.maximum(share, np.finfo(float).tiny)),
        share=share,
        share_mcse=_error_of_mean(weight, drawn),
        ess=np.array([effective_sample_size(column) for column in log_weight.T]) * reliable,
        in_run=in_run,
        in_run_mcse=_error_of_mean(own, member),
    )


def _error_of_mean(weight: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return the errors of weighted means of columns, shape ``(n, k)`` to ``(k,)``."""
    square: np.ndarray = np.square(weight[:, None] * (value - weight @ value)).sum(axis=0)
    return np.asarray(np.sqrt(square))


def _describe(target: ModelTarget, centre: np.ndarray) -> str:
    """Name the values of the free variables at a position."""
    values = target.compiled.constrain(centre[None])
    names = [rv.name for rv in target.compiled.model.free_RVs]
    return ", ".join(
        f"{name} = {np.array2string(values[name][0], precision=3, threshold=6)}"
        for name in names
        if name in values
    )
