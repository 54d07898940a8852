"""Doubts about draws of a posterior that were made elsewhere: chains that disagree, missed modes.

Whatever is averaged over draws inherits what they miss. A mixture is fitted to them and to modes
that a search finds elsewhere; their shares among the draws are compared with those by importance
sampling (`mode_audit.py`), and the chains with each other. What NUTS could not enter, as the neck
of a hierarchy, is no mode: its trajectories diverge there (Betancourt 2017, section 6.2).
"""

import numpy as np

from pymc_anneal.adaptation.fit_mixture import fit_to_particles, may_have_mixture
from pymc_anneal.adaptation.fitted_reference import FittedReference, membership
from pymc_anneal.base.arviz_compat import Container, draws_rhat, group, has_group
from pymc_anneal.evidence.mean_ratio import MAX_RHAT
from pymc_anneal.evidence.mode_audit import audit_draws, describe_position
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.log_concavity import is_log_concave_model

# Draws to which a mixture is fitted, at least and for each coordinate.
_FITTED, _PER_COORDINATE = 128, 4
# Shares of a mode on which chains may disagree: less, or the whole, hangs on few draws.
_LEAST_SHARE = 0.01
# Share of divergent transitions from which draws are biased. Of eleven NUTS runs of two centred
# hierarchies, with 2 to 6 %, six bridges were trusted, 0.12 nats too low on average with errors of
# 0.03 to 0.06; those of five runs of a non-centred one, with 0.1 to 0.4 %, were right.
_DIVERGENT = 0.005
_ADVICE = "the chains missed it; take the draws of a run of sample_ais"


def judge_draws(
    idata: Container, compiled: CompiledModel, draws: np.ndarray, seed: np.random.SeedSequence
) -> dict[str, Verdict]:
    """Return the verdict on draws, by name, if it is not to trust them.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Where they come from. Draws of a run of this package come with its verdict.
    compiled
        The model.
    draws : ndarray, shape (chains, n, d)
        Unconstrained.
    seed
        Source of randomness.
    """
    if has_group(idata, "evidence"):
        verdict = Verdict.from_attrs(group(idata, "evidence").attrs)
    else:
        missed = look_for_missed_modes(compiled, draws, seed)
        doubts = (*missed, *doubt_divergences(idata))
        verdict = Verdict("do not trust", doubts) if doubts else Verdict("trust")
    return {"draws": verdict} if verdict.status == "do not trust" else {}


def doubt_divergences(idata: Container) -> list[str]:
    """Say how many transitions diverged, if the sampler has noted it and they are many."""
    if not (has_group(idata, "sample_stats") and "diverging" in group(idata, "sample_stats")):
        return []
    diverging = group(idata, "sample_stats")["diverging"].values
    if diverging.mean() <= _DIVERGENT:
        return []
    return [
        f"{diverging.sum()} of the {diverging.size} transitions diverged: the draws may miss a "
        "narrow part of the posterior; take a non-centred parametrisation, or sample_ais"
    ]


def look_for_missed_modes(
    compiled: CompiledModel, draws: np.ndarray, seed: np.random.SeedSequence
) -> list[str]:
    """Fit a mixture to draws, shape ``(chains, n, d)``, and name the modes that they missed.

    Nothing is looked for where the posterior is known to be log-concave, or where no mixture can
    be fitted.
    """
    if not may_have_mixture(compiled) or is_log_concave_model(compiled.model):
        return []
    flat = draws.reshape(-1, draws.shape[2])
    count = min(len(flat), max(_FITTED, _PER_COORDINATE * compiled.ndim))
    spaced = np.linspace(0, len(flat) - 1, count).astype(int)
    return doubt_modes(compiled, fit_to_particles(compiled, flat[spaced], seed), draws, _ADVICE)


def doubt_modes(
    compiled: CompiledModel, fitted: FittedReference, draws: np.ndarray, advice: str
) -> list[str]:
    """Name modes that draws, shape ``(chains, n, d)``, missed, and one on which chains disagree.

    Parameters
    ----------
    compiled
        The model.
    fitted
        A mixture fitted to some of the draws, and to modes found elsewhere.
    draws
    advice
        What to do about a mode that was missed.
    """
    flat = draws.reshape(-1, draws.shape[2])
    weight = np.full(len(flat), 1 / len(flat))
    doubts = audit_draws(fitted, flat, weight).doubts(compiled, advice)
    member = membership(fitted.path, flat, fitted.modes).reshape(*draws.shape[:2], -1)
    for mode in np.argsort(-fitted.share):
        held = _LEAST_SHARE < fitted.share[mode] < 1 - _LEAST_SHARE
        if held and len(draws) > 1 and not draws_rhat(member[:, :, mode]) < MAX_RHAT:
            where = describe_position(compiled, fitted.centres[mode])
            return [*doubts, f"the chains disagree on the share of the mode at {where}"]
    return doubts
