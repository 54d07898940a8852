"""Nested slice sampling by BlackJAX (Yallup, Kroupa & Handley 2026), in the unconstrained space.

Live points are moved by slice sampling of the prior within the likelihood's contour, along
directions with their covariance. It needs draws of the prior and its density, and no map from the
unit cube. The lowest points are replaced in batches.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import NanDensityError
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import key_of
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.nested.nested_sampling import (
    NestedRun,
    count_live,
    doubt_ranks,
    information,
    insertion_ranks,
    simulate_shrinkage,
)
from pymc_anneal.nested.optional_package import import_optional
from pymc_anneal.nested.problem import NestedProblem
from pymc_anneal.nested.start import draw_start

# Live points, and the part of them that is replaced at once.
_N_LIVE, _BATCHES = 1000, 10

# Slice steps for each new point, by dimension: BlackJAX asks for twice the dimension at least.
_STEPS_PER_DIMENSION, _MIN_STEPS = 3, 10


def run_blackjax(
    problem: NestedProblem,
    seed: np.random.SeedSequence,
    *,
    n_live: int | None,
    remainder: float,
    target_mcse: float,
    progressbar: bool,
) -> NestedRun:
    """Run nested slice sampling once.

    Raises
    ------
    ImportError
        BlackJAX is not installed, or has no nested sampling.
    NanDensityError
        The log likelihood is NaN at a point.
    ValueError
        The likelihood has a plateau, from which the run does not come away.
    """
    nss = import_optional("blackjax", "nss", "blackjax>=1.7")
    seed_start, seed_run, seed_mass = seed.spawn(3)
    draw = problem.compiled.sample_prior
    start = draw_start(draw, problem.log_likelihood, seed_start, n_live or _N_LIVE)
    points = _run(nss, problem.compiled, start.points, seed_run, remainder)
    problem.evaluations += points.evaluations
    order = np.argsort(points.log_likelihood, kind="stable")
    birth, death = points.birth[order], points.log_likelihood[order]
    rng = np.random.default_rng(seed_mass)
    live = count_live(birth, death)
    if live.min() < 1:
        raise ValueError(
            "BlackJAX's nested sampling needs points of different likelihood, and found a plateau: "
            f"{np.sum(death == birth)} new points have the likelihood of those that they replace. "
            "Take more `n_live`, another `sampler`, or sample_ais."
        )
    found = simulate_shrinkage(death, live, rng)
    log_z = found.log_evidence + start.log_share
    return NestedRun(
        log_evidence=log_z,
        mcse=float(np.hypot(found.mcse, start.log_share_mcse)),
        position=points.position[order],
        log_weight=found.log_weight,
        information=information(death, found.log_weight, log_z),
        evaluations=start.draws + points.evaluations,
        doubts=doubt_ranks(insertion_ranks(birth, death, rng)),
    )


class _Points(NamedTuple):
    """All points of a run: position, log likelihoods at birth and at death."""

    position: np.ndarray
    birth: np.ndarray
    log_likelihood: np.ndarray
    evaluations: int


@double_precision
def _run(
    nss: Any,
    compiled: CompiledModel,
    position: np.ndarray,
    seed: np.random.SeedSequence,
    remainder: float,
) -> _Points:
    n, ndim = position.shape
    algorithm = nss(
        logprior_fn=lambda x: compiled.log_terms(x).log_prior,
        loglikelihood_fn=lambda x: _flag_nan(compiled.log_terms(x).log_likelihood),
        num_inner_steps=max(_MIN_STEPS, _STEPS_PER_DIMENSION * ndim),
        num_delete=max(1, n // _BATCHES),
    )
    keys, step = key_of(seed), jax.jit(algorithm.step)
    state, dead = algorithm.init(jnp.asarray(position)), []
    evaluations = 0
    while not _is_finished(state, remainder):
        keys, key = jax.random.split(keys)
        state, info = step(key, state)
        dead.append(jax.device_get(info.particles))
        evaluations += _count(info.update_info)
        _check(state.particles)
    rows = [*dead, jax.device_get(state.particles)]
    birth = np.concatenate([row.loglikelihood_birth for row in rows])
    return _Points(
        np.concatenate([row.position for row in rows]),
        np.where(np.isnan(birth), -np.inf, birth),
        np.concatenate([row.loglikelihood for row in rows]),
        evaluations,
    )


def _count(info: Any) -> int:
    """Return the number of evaluations of slice steps: of expansions, and of shrinking."""
    return int(np.sum(info.num_expansions) + np.sum(info.num_shrink))


def _flag_nan(log_likelihood: jax.Array) -> jax.Array:
    """Return +inf in place of NaN: such a point is accepted, and found among the live points."""
    return jnp.where(jnp.isnan(log_likelihood), jnp.inf, log_likelihood)


def _check(particles: Any) -> None:
    infinite = np.isposinf(particles.loglikelihood)
    if infinite.any():
        raise NanDensityError(np.asarray(particles.position)[infinite.argmax()])


def _is_finished(state: Any, remainder: float) -> bool:
    integrator = state.integrator
    return bool(integrator.logZ_live - integrator.logZ < np.log(remainder))
