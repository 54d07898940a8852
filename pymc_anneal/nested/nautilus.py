"""Nested sampling by nautilus: importance sampling from nested shells (Lange 2023).

The shells are differences of bounds, unions of ellipsoids that small neural networks cut to the
likelihood's contours. With ``V_i`` the volume of shell ``i``, found by counting, and the mean
likelihood of the points in it,

    Z = sum_i V_i mean_i(L),

    RSE^2 = sum_i (Z_i / Z)^2 (1 / ESS_i - 1 / n_i + variances of log V_i).

Points that were drawn while the shells were built are not counted, so that ``Z`` is unbiased.
"""

from typing import Any

import numpy as np

from scipy.special import logsumexp

from pymc_anneal.nested.nested_sampling import NestedRun, information
from pymc_anneal.nested.optional_package import import_optional
from pymc_anneal.nested.problem import NestedProblem

# Live points, from which the bounds are built; nautilus' default.
_N_LIVE = 2000

# Smallest effective sample size of a run: its error is then about 0.03.
_MIN_ESS = 1000

# The neural networks of a bound: one gives half as efficient shells as four in a third of the time.
_NETWORKS = 1


def run_nautilus(
    problem: NestedProblem,
    seed: np.random.SeedSequence,
    *,
    n_live: int | None,
    remainder: float,
    target_mcse: float,
    progressbar: bool,
) -> NestedRun:
    """Run nautilus once.

    Raises
    ------
    ImportError
        nautilus is not installed.
    """
    sampler_class = import_optional("nautilus", "Sampler", "nautilus-sampler>=1")
    ndim = problem.compiled.ndim
    sampler = sampler_class(
        lambda u: u,
        lambda u: problem.at(u[:, :ndim]),
        n_dim=max(ndim, 2),  # nautilus takes at least two coordinates; the second has no effect
        n_live=n_live or _N_LIVE,
        n_networks=_NETWORKS,
        vectorized=True,
        pass_dict=False,
        seed=int(seed.generate_state(1)[0]),
    )
    n_eff = max(_MIN_ESS, int(np.ceil(target_mcse**-2)))
    sampler.run(f_live=remainder, n_eff=n_eff, discard_exploration=True, verbose=progressbar)
    points, log_weight, log_l = sampler.posterior()
    u = points[:, :ndim]
    log_z = float(sampler.log_z)
    return NestedRun(
        log_evidence=log_z,
        mcse=shell_error(sampler),
        position=problem.transform(u),
        log_weight=log_weight,
        information=information(log_l, log_weight, log_z),
        evaluations=int(sampler.n_like),
        doubts=problem.doubts(u, np.exp(log_weight)),
    )


def shell_error(sampler: Any) -> float:
    """Return the relative standard error of the evidence of a nautilus sampler."""
    log_z = sampler.shell_log_l + sampler.shell_log_v
    filled = sampler.shell_n > 0
    share = np.exp(log_z[filled] - logsumexp(log_z[filled]))
    drawn = (sampler.shell_n_sample - sampler.shell_n_sample_exp)[filled]
    n, ess = sampler.shell_n[filled], sampler.shell_n_eff[filled]
    bounds = [bound for bound, held in zip(sampler.bounds, filled, strict=True) if held]
    volume = np.array([_bound_variance(bound) for bound in bounds]) + (drawn - n) / (n * drawn)
    return float(np.sqrt((share**2 * (1 / ess - 1 / n + volume)).sum()))


def _bound_variance(bound: Any) -> float:
    """Return the variance of the log volume of a bound, which is counted among random points."""
    if not hasattr(bound, "outer_bound"):
        return 0.0  # the unit cube
    parts = (bound, bound.outer_bound)
    return float(sum(p.n_reject / (p.n_sample * max(p.n_sample - p.n_reject, 1)) for p in parts))
