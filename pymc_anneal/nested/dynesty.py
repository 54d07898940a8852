"""Nested sampling by dynesty, with a fixed number of live points (Speagle 2020; Skilling 2006).

Live points are replaced by draws from ellipsoids around the others, or in ten and more dimensions
by random walks. The error is that of the simulated prior masses (`nested/nested_sampling.py`):
dynesty's own, ``logzerr``, is an approximation to it that leaves out the rest of the walks' error.
"""

from typing import Any

import numpy as np

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

# Live points; dynesty's default.
_N_LIVE = 500


def run_dynesty(
    problem: NestedProblem,
    seed: np.random.SeedSequence,
    *,
    n_live: int | None,
    remainder: float,
    target_mcse: float,
    progressbar: bool,
) -> NestedRun:
    """Run dynesty once.

    Raises
    ------
    ImportError
        dynesty is not installed.
    ValueError
        All live points have the same likelihood.
    """
    sampler_class = import_optional("dynesty", "NestedSampler", "dynesty>=3")
    seed_start, seed_run = seed.spawn(2)
    rng, ndim = np.random.default_rng(seed_run), problem.compiled.ndim
    start = draw_start(
        lambda seed, n: np.random.default_rng(seed).uniform(size=(n, ndim)),
        problem.at,
        seed_start,
        n_live or _N_LIVE,
    )
    if np.ptp(start.log_likelihood) == 0:
        raise ValueError(
            f"dynesty needs live points of different likelihood, and all {len(start.points)} have "
            f"the log likelihood {start.log_likelihood[0]:.4g}. Take more `n_live`, or sample_ais."
        )
    sampler = sampler_class(
        lambda u: float(problem.at(u[None])[0]),
        lambda u: u,
        ndim,
        nlive=len(start.points),
        live_points=[start.points, start.points, start.log_likelihood],
        rstate=rng,
    )
    sampler.run_nested(dlogz=np.log1p(remainder), print_progress=progressbar, save_bounds=False)
    results = sampler.results
    u, log_l, birth = results.samples_u, results.logl, _births(results)
    found = simulate_shrinkage(log_l, count_live(birth, log_l), rng)
    log_z = found.log_evidence + start.log_share
    doubts = problem.doubts(u, np.exp(found.log_weight))
    return NestedRun(
        log_evidence=log_z,
        mcse=float(np.hypot(found.mcse, start.log_share_mcse)),
        position=problem.transform(u),
        log_weight=found.log_weight,
        information=information(log_l, found.log_weight, log_z),
        evaluations=start.draws + int(np.sum(results.ncall)),
        doubts=(*doubts, *doubt_ranks(insertion_ranks(birth, log_l, rng))),
    )


def _births(results: Any) -> np.ndarray:
    """Return the log likelihood above which each point was drawn, -inf for the first ones."""
    log_l = np.concatenate([[-np.inf], results.logl])
    births: np.ndarray = log_l[results.samples_it]
    return births
