"""What a run from draws may have missed at its end: modes, and mass where its start has none.

Particles that start at draws of one posterior do not show what lies beside them in another one. A
mixture fitted to the particles at the end, and to modes that a search finds elsewhere
(`adaptation/fit_mixture.py`), is compared with them. A log-concave posterior is not searched.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from pymc_anneal.adaptation.fit_mixture import fit_to_particles, may_have_mixture
from pymc_anneal.adaptation.fitted_reference import FittedReference, draw_start, normalised
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.programs import forgettable
from pymc_anneal.evidence.mode_audit import audit_draws
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.log_concavity import is_log_concave_model
from pymc_anneal.paths.geometric import ReferencePath

# Particles to which the mixture is fitted, at least and for each coordinate.
_PARTICLES, _PER_COORDINATE = 128, 4
# Draws of it that look for mass outside of the support, and the share of the posterior there that
# matters.
_DRAWS, _LEAST_SHARE = 1024, 1e-3


class EndAudit(NamedTuple):
    """Doubts about the end of a run, and the evaluations of gradient or density they took."""

    doubts: list[str]
    evaluations: int


def audit_end(
    compiled: CompiledModel,
    position: np.ndarray,
    log_weight: np.ndarray,
    is_outside: Callable[[np.ndarray], np.ndarray],
    seed: np.random.SeedSequence,
) -> EndAudit:
    """Look for modes of a posterior that weighted draws missed, and for mass out of their reach.

    Parameters
    ----------
    compiled
        The model.
    position : ndarray, shape (n, d)
        Draws of its posterior.
    log_weight : ndarray, shape (n,)
        Their log weights.
    is_outside : Callable
        From positions ``(m, d)`` to whether no particle could have reached them, ``(m,)``.
    seed
        Source of randomness.
    """
    seed_pick, seed_fit, seed_draws = seed.spawn(3)
    if not may_have_mixture(compiled):
        return _audit_prior(compiled, is_outside, seed_draws)
    weight = normalised(log_weight)
    count = max(_PARTICLES, _PER_COORDINATE * compiled.ndim)
    index = np.random.default_rng(seed_pick).choice(len(weight), size=count, p=weight)
    log_concave = is_log_concave_model(compiled.model)
    fitted = fit_to_particles(compiled, position[index], seed_fit, log_concave=log_concave)
    doubts = audit_draws(fitted, position, weight).doubts(
        compiled, "the run between the models missed it; compare the evidences of two runs"
    )
    draws = draw_start(fitted.path, compiled.sample_prior)(seed_draws, _DRAWS)
    doubts += _doubt_support(float(_weights(fitted, draws) @ is_outside(draws)))
    return EndAudit(doubts, fitted.evaluations + 2 * _DRAWS)


def _audit_prior(
    compiled: CompiledModel,
    is_outside: Callable[[np.ndarray], np.ndarray],
    seed: np.random.SeedSequence,
) -> EndAudit:
    """Look for mass out of reach of a model without a likelihood: its posterior is its prior."""
    if compiled.has_likelihood or not compiled.ndim:
        return EndAudit([], 0)
    share = float(is_outside(compiled.sample_prior(seed, _DRAWS)).mean())
    return EndAudit(_doubt_support(share), _DRAWS)


def _doubt_support(share: float) -> list[str]:
    """Return the doubt that a share of the posterior at the end is out of reach."""
    if share <= _LEAST_SHARE:
        return []
    return [
        f"about {share:.2g} of the posterior at the end lies where the density at the start is "
        "zero, and no particle gets there: start from draws of the other model, or compare the "
        "evidences of two runs"
    ]


@double_precision
def _weights(fitted: FittedReference, draws: np.ndarray) -> np.ndarray:
    terms = _evaluate(fitted.path, draws)
    return normalised(np.asarray(terms[1] - terms[0]))


@forgettable
@jax.jit
def _evaluate(path: ReferencePath, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    terms = path.evaluate(x)
    return terms.log_reference, terms.log_target
