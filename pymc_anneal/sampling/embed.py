"""Draws of a model with one component less, embedded in a model with one more.

A variable of the same name whose axis is longer by one gets the entry of a prior draw of the larger
model; shares, which add up to one, make room for it; a variable that is new comes from that draw.
The new entry has the same place in all variables, the last one for which the draw lies in the
support (means that are in order stay so). Of many embedded draws some of the better ones are kept:
they are starts of climbs, and nothing else.
"""

import numpy as np

from pymc_anneal.base.arviz_compat import Container
from pymc_anneal.evidence.posterior_density import terms_at
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.posterior_draws import posterior_values

# Draws that are embedded, the share with the highest density, and those of it that are kept.
_EMBEDDED, _BETTER, _KEPT = 1024, 0.25, 64
# Deviation from one of the sum of shares.
_ROUNDING = 1e-6


def embedded(
    idata: Container, compiled: CompiledModel, seed: np.random.SeedSequence
) -> dict[str, np.ndarray] | None:
    """Embed posterior draws of a smaller model in a larger one.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Of the smaller model.
    compiled : CompiledModel
        The larger one.
    seed : SeedSequence

    Returns
    -------
    dict of str to ndarray, shapes (n, ...), or None
        Free variables; None if the models share no variable or no embedded draw has a density.
    """
    seed_prior, seed_choice = seed.spawn(2)
    rng, old = np.random.default_rng(seed_choice), posterior_values(idata)
    names = [variable.name for variable in compiled.variables]
    if not set(names) & set(old):
        return None
    new = compiled.constrain(compiled.sample_prior(seed_prior, _EMBEDDED))
    row = rng.integers(len(next(iter(old.values()))), size=_EMBEDDED)
    values = {name: new[name] for name in names}
    longest = max(max(new[name].shape[1:], default=0) for name in names)
    placed = np.zeros(_EMBEDDED, dtype=bool)
    for place in range(longest - 1, -1, -1):
        trial = {n: _one(old[n][row], new[n], place) if n in old else new[n] for n in names}
        with np.errstate(all="ignore"):
            inside = np.isfinite(compiled.unconstrain(trial)).all(axis=1) & ~placed
        for name in names:
            values[name] = np.where(_beside(inside, values[name]), trial[name], values[name])
        placed |= inside
    return _better(compiled, values, placed, rng)


def _one(old: np.ndarray, new: np.ndarray, place: int) -> np.ndarray:
    """Return values of a variable with the new entry at a place along the axis that is longer."""
    longer = [i for i in range(1, new.ndim) if old.ndim == new.ndim and old.shape[i] < new.shape[i]]
    if old.shape == new.shape:
        return old
    (axis, *others) = longer or [0]
    if not axis or others or old.shape[axis] + 1 != new.shape[axis]:
        return new
    entry = np.take(new, [-1], axis=axis)
    if axis == new.ndim - 1 and np.abs(new.sum(axis=-1) - 1).max() < _ROUNDING:
        old = old * (1 - entry)
    place = min(place, old.shape[axis])
    before, after = np.split(old, [place], axis=axis)
    return np.concatenate([before, entry, after], axis=axis)


def _beside(mask: np.ndarray, value: np.ndarray) -> np.ndarray:
    return mask.reshape(-1, *(1,) * (value.ndim - 1))


def _better(
    compiled: CompiledModel,
    values: dict[str, np.ndarray],
    placed: np.ndarray,
    rng: np.random.Generator,
) -> dict[str, np.ndarray] | None:
    """Return some of the values of the highest density."""
    x = compiled.unconstrain(values)
    height = np.where(placed, np.asarray(terms_at(compiled, x).log_posterior), -np.inf)
    height = np.nan_to_num(height, nan=-np.inf, posinf=-np.inf)
    best = np.argsort(-height)[: int(_BETTER * len(height))]
    best = best[np.isfinite(height[best])]
    if not len(best):
        return None
    kept = rng.choice(best, min(_KEPT, len(best)), replace=False)
    return {name: value[kept] for name, value in values.items()}
