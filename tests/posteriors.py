"""Exact draws of a posterior, by rejection from the prior.

A draw of the prior is accepted with probability ``L(x) / max L``; the accepted draws follow the
posterior exactly. One accepted draw costs ``max L / Z`` draws of the prior on average, which limits
the method to models with weak data.
"""

import jax
import numpy as np

from scipy.optimize import minimize

from pymc_anneal.model.compile import CompiledModel

_BATCH = 100_000
_MAX_BATCHES = 200


def exact_draws(compiled: CompiledModel, draws: int, seed: int) -> np.ndarray:
    """Return draws from the posterior of a compiled model, shape ``(draws, d)``.

    Parameters
    ----------
    compiled : CompiledModel
        A model with a bounded likelihood, all of whose modes are found by prior draws.
    draws : int
        Number of draws.
    seed : int
    """
    with jax.enable_x64(True):
        log_likelihood = jax.jit(jax.vmap(lambda x: compiled.log_terms(x).log_likelihood))
        seed_first, seed_accept, *seeds = np.random.SeedSequence(seed).spawn(2 + _MAX_BATCHES)
        bound = _maximise(log_likelihood, compiled.sample_prior(seed_first, _BATCH))
        rng, accepted, count = np.random.default_rng(seed_accept), [], 0
        for child in seeds:
            x = compiled.sample_prior(child, _BATCH)
            value = np.asarray(log_likelihood(x))
            assert (value <= bound).all(), "the likelihood exceeds its bound"
            accepted.append(x[np.log(rng.uniform(size=_BATCH)) < value - bound])
            count += len(accepted[-1])
            if count >= draws:
                return np.concatenate(accepted)[:draws]
    raise RuntimeError(
        f"{count} of {_MAX_BATCHES * _BATCH} draws were accepted, fewer than {draws}"
    )


def _maximise(log_likelihood, x: np.ndarray) -> float:
    """Return the maximum of the log likelihood, searched from the five best of several draws."""
    values = np.asarray(log_likelihood(x))
    best = x[np.argsort(values)[-5:]]
    optima = [
        minimize(
            lambda x: -float(log_likelihood(x[None])[0]),
            start,
            method="Nelder-Mead",
            options={"maxfev": 20_000, "maxiter": 20_000, "xatol": 1e-6, "fatol": 1e-9},
        )
        for start in best
    ]
    return max(-o.fun for o in optima) + 1e-6
