"""Averages over models, weighted by their posterior probabilities.

For a quantity ``x`` with mean ``m_k`` and variance ``v_k`` in model ``k`` of probability ``p_k``,

    E[x] = sum_k p_k m_k,    Var[x] = sum_k p_k (v_k + (m_k - E[x])^2)

(Hoeting et al. 1999, eq. 4-5). The error of ``E[x]`` is that of the means of the draws and that of
the probabilities, by normal draws of the log evidences; the two are independent.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr

from scipy.special import softmax

from pymc_anneal.base.arviz_compat import Container, draws_ess, required_group
from pymc_anneal.results.compare_models import (
    read_evidences,
    resolve_log_odds,
    simulate_log_evidences,
)
from pymc_anneal.results.entries import labelled_entries


def average(
    results: Mapping[str, Container],
    var_names: Sequence[str] | str,
    prior_odds: Mapping[str, float] | Sequence[float] | None = None,
) -> pd.DataFrame:
    """Average quantities over models, by their posterior probabilities.

    Parameters
    ----------
    results : dict of str to InferenceData or DataTree
        Results of :func:`sample_ais` for all models, as :func:`sample_models` returns them.
    var_names : str or sequence of str
        Variables or deterministics that all models have, of the same shapes and meaning: a
        prediction, or a coefficient that is zero in some models (a ``pm.Deterministic``).
    prior_odds : dict of str to float, or sequence of float, optional
        Prior odds of the models, up to a common factor. Default: equal.

    Returns
    -------
    pandas.DataFrame
        One row for each entry of each variable (``"name[label]"``): ``mean`` and ``sd`` of the
        averaged posterior; the Monte Carlo standard error ``mcse`` of the mean, which includes
        the errors of the evidences; and ``between``, the share of the variance that is due to
        differences of the models.

    Raises
    ------
    ValueError
        A model lacks a variable or has it in another shape, or the results cannot be compared.

    See Also
    --------
    inclusion : Which variables belong to the model.

    References
    ----------
    Hoeting, Madigan, Raftery & Volinsky (1999), Bayesian model averaging: a tutorial.

    Examples
    --------
    >>> pymc_anneal.average(results, "prediction")
    """
    evidences = read_evidences(results)
    log_prior = np.array(list(resolve_log_odds(list(results), prior_odds).values()))
    log_z = np.array([e.log_evidence for e in evidences.values()])
    weight = softmax(log_z + log_prior)
    simulated = softmax(simulate_log_evidences(evidences) + log_prior, axis=1)
    posteriors = {n: required_group(r, "posterior", "sample_ais") for n, r in results.items()}
    rows = {}
    for name in [var_names] if isinstance(var_names, str) else var_names:
        _check(name, posteriors)
        for label, draws in _entries(name, posteriors):
            rows[label] = _row(draws, weight, simulated)
    return pd.DataFrame.from_dict(rows, orient="index")


def _check(name: str, posteriors: Mapping[str, xr.Dataset]) -> None:
    """Raise unless all models have a variable of this name and of one shape."""
    shapes = {}
    for model, posterior in posteriors.items():
        if name not in posterior:
            raise ValueError(
                f"Model '{model}' has no variable '{name}', expected one in every model: "
                f"{sorted(map(str, posterior.data_vars))}."
            )
        shapes[model] = posterior[name].transpose("chain", "draw", ...).shape[2:]
    if len(set(shapes.values())) > 1:
        raise ValueError(f"Variable '{name}' has the shapes {shapes}, expected one for all models.")


def _entries(
    name: str, posteriors: Mapping[str, xr.Dataset]
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Yield the label of each entry, and its draws in each model, shapes ``(chains, draws)``."""
    by_model = {
        m: dict(labelled_entries(p[name], ("chain", "draw"))) for m, p in posteriors.items()
    }
    first, *others = by_model
    for model in others:
        differing = sorted(by_model[first].keys() ^ by_model[model].keys())
        if differing:
            raise ValueError(
                f"Variable '{name}' has other entries in '{model}' than in '{first}': "
                f"{', '.join(differing)}. Give them the same coordinates."
            )
    for label in by_model[first]:
        yield label, [np.asarray(entries[label], dtype=float) for entries in by_model.values()]


def _row(
    draws: Sequence[np.ndarray], weight: np.ndarray, simulated: np.ndarray
) -> dict[str, float]:
    """Return the row of an entry from its draws in each model and the models' weights."""
    means = np.array([d.mean() for d in draws])
    variances = np.array([d.var() for d in draws])
    errors = np.array([d.var() / draws_ess(d) if np.ptp(d) > 0 else 0.0 for d in draws])
    mean = float(weight @ means)
    between = float(weight @ (means - mean) ** 2)
    total = float(weight @ variances) + between
    of_weights = float((simulated @ means).std())
    return {
        "mean": mean,
        "sd": float(np.sqrt(total)),
        "mcse": float(np.sqrt(weight**2 @ errors + of_weights**2)),
        "between": between / total if total > 0 else 0.0,
    }
