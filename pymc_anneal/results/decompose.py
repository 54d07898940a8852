"""The log evidence as fit minus information: why a model won.

With the prior ``p``, the likelihood ``L`` and the posterior ``p(x | y) = p(x) L(x) / Z``,

    log Z = E[log L] - KL(posterior || prior)

(Lindley 1956; MacKay 1992): the fit of the posterior to the data, and the price of the information
that it has taken from them, the log of the Occam factor. ``N`` draws of the posterior are copies of
``n`` weighted particles of one run. With ``V = log L``, its mean ``U`` over the draws, ``c_i`` the
number of copies of particle ``i`` times ``n / N``, and weights ``w_i`` of mean 1, the influence of
a particle is

    c_i (V_i - U)                 on E[log L],
    c_i (V_i - U) - (w_i - 1)     on the information, the difference of two estimates

from the same particles, and an error is the root of the sum of squares over ``n``.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from scipy.special import logsumexp

from pymc_anneal.base.arviz_compat import Container, group, has_group
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.posterior_density import terms_at
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.posterior_draws import posterior_draws
from pymc_anneal.model.recent import as_compiled


class Decomposition(NamedTuple):
    """The two parts of a log evidence, in nats.

    Attributes
    ----------
    fit, fit_mcse : float
        Posterior mean of the log likelihood, potentials included, and its error.
    information, information_mcse : float
        Kullback-Leibler divergence of the posterior from the prior, and its error.
    dimension : int
        Number of free parameters, unconstrained.
    """

    fit: float
    fit_mcse: float
    information: float
    information_mcse: float
    dimension: int


def decompositions(
    results: Mapping[str, Container | LogEvidence],
    evidences: Mapping[str, LogEvidence],
    models: Mapping[str, Any],
) -> pd.DataFrame:
    """Return fit, information and dimension of each model, in the order of the evidences."""
    missing = [name for name in evidences if name not in models]
    if missing:
        raise ValueError(
            "`decompose=True` evaluates likelihoods at the draws: pass `models`, a dict of models "
            f"by the names of `results`; found none for {missing}."
        )
    rows = {
        name: decompose(name, results[name], as_compiled(models[name]), evidence)
        for name, evidence in evidences.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=Decomposition._fields)


def decompose(
    name: str, idata: Container | LogEvidence, compiled: CompiledModel, evidence: LogEvidence
) -> Decomposition:
    """Split the log evidence of a run into fit and information.

    Parameters
    ----------
    name : str
        Name of the model, for messages.
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`.
    compiled : CompiledModel
        Its model.
    evidence : LogEvidence
        Read from it.

    Raises
    ------
    ValueError
        It is no result of `sample_ais`, or of another model.
    """
    if isinstance(idata, LogEvidence) or not _has_particles(idata):
        raise ValueError(
            f"`decompose` needs the draws and weights of one run: model '{name}' is no result of "
            "this version's `sample_ais`."
        )
    draws = posterior_draws(idata, compiled)
    chains, count, ndim = draws.shape
    value = np.asarray(terms_at(compiled, draws.reshape(-1, ndim)).log_likelihood)
    value = value.reshape(chains, count)
    log_weight = group(idata, "annealing")["log_weight"]
    weight = np.exp(log_weight.values - logsumexp(log_weight.values)) * log_weight.size
    mean = float(value.mean())
    deviation = _sum_over_copies(idata, value - mean) * log_weight.shape[1] / count
    size = _population_size(log_weight.coords.get("population"))
    fit_mcse = _error(deviation, size)
    information_mcse = _error(deviation - (weight - 1), size)
    if evidence.bounds is not None:  # reverse runs have a part in the evidence
        information_mcse = fit_mcse + evidence.mcse
    return Decomposition(
        mean, fit_mcse, mean - evidence.log_evidence, information_mcse, compiled.ndim
    )


def _has_particles(idata: Container) -> bool:
    present = has_group(idata, "annealing") and has_group(idata, "sample_stats")
    return present and "particle" in group(idata, "sample_stats")


def _sum_over_copies(idata: Container, value: np.ndarray) -> np.ndarray:
    """Add up the values of draws, shape ``(chains, draws)``, for each particle they copy."""
    number = group(idata, "sample_stats")["particle"].values
    total = np.zeros(group(idata, "annealing")["log_weight"].shape)
    np.add.at(total, (np.arange(len(number))[:, None], number), value)
    return total


def _population_size(population: object | None) -> int:
    """Return the number of particles that were resampled together."""
    return 1 if population is None else int((np.asarray(population) == 0).sum())


def _error(influence: np.ndarray, size: int) -> float:
    """Return the error of a mean by influences of particles, shape ``(chains, n)``."""
    units = influence.reshape(len(influence), -1, size).sum(axis=2)
    return float(np.sqrt(np.square(units).sum() * units.size / (units.size - 1)) / influence.size)
