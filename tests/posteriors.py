"""Exact draws of a posterior, by rejection from the prior.

A draw of the prior is kept with probability ``L(x) / max L``: what is kept follows the posterior,
whatever its shape. It takes ``max L / Z`` draws for one, which bounds the models it serves.
"""

import jax
import numpy as np

from scipy.optimize import minimize

from pymc_anneal.model.compile import CompiledModel

_BATCH = 100_000
_MAX_BATCHES = 200


def exact_draws(compiled: CompiledModel, draws: int, seed: int) -> np.ndarray:
    """Draw from the posterior of a compiled model, shape ``(draws, d)``.

    Parameters
    ----------
    compiled
        A model whose likelihood is bounded, with one region of large likelihood or several that
        prior draws find.
    draws, seed
        Number of draws, and where they come from.
    """
    with jax.enable_x64(True):
        log_likelihood = jax.jit(jax.vmap(lambda x: compiled.log_terms(x).log_likelihood))
        seed_first, seed_accept, *seeds = np.random.SeedSequence(seed).spawn(2 + _MAX_BATCHES)
        first = compiled.sample_prior(seed_first, _BATCH)
        highest = _highest(log_likelihood, first)
        rng, kept, count = np.random.default_rng(seed_accept), [], 0
        for child in seeds:
            x = compiled.sample_prior(child, _BATCH)
            value = np.asarray(log_likelihood(x))
            assert (value <= highest).all(), "the bound of the likelihood does not hold"
            kept.append(x[np.log(rng.uniform(size=_BATCH)) < value - highest])
            count += len(kept[-1])
            if count >= draws:
                return np.concatenate(kept)[:draws]
    raise RuntimeError(f"{count} draws of {_MAX_BATCHES * _BATCH} were accepted: too few")


def _highest(log_likelihood, x: np.ndarray) -> float:
    """Return the maximum of the log likelihood, climbing from the best of several draws."""
    values = np.asarray(log_likelihood(x))
    best = x[np.argsort(values)[-5:]]
    climbed = [
        minimize(
            lambda x: -float(log_likelihood(x[None])[0]),
            start,
            method="Nelder-Mead",
            options={"maxfev": 20_000, "maxiter": 20_000, "xatol": 1e-6, "fatol": 1e-9},
        )
        for start in best
    ]
    return max(-c.fun for c in climbed) + 1e-6
