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

from the same particles, and an error is the root of the sum of squares over ``n``. Which parameters
took the information is in `occam.py`.
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
from pymc_anneal.results.occam import blocks_of, table_of


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
    log_prior_volume, log_prior_volume_mcse : float
        Minus the posterior mean of the log prior density, and its error.
    dependence, dependence_mcse : float
        Information that blocks of parameters share, and its error.
    """

    fit: float
    fit_mcse: float
    information: float
    information_mcse: float
    dimension: int
    log_prior_volume: float
    log_prior_volume_mcse: float
    dependence: float
    dependence_mcse: float


def decompositions(
    results: Mapping[str, Container | LogEvidence],
    evidences: Mapping[str, LogEvidence],
    models: Mapping[str, Any],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the parts of each model, in the order of the evidences, and its blocks."""
    missing = [name for name in evidences if name not in models]
    if missing:
        raise ValueError(
            "`decompose=True` evaluates likelihoods at the draws: pass `models`, a dict of models "
            f"by the names of `results`; found none for {missing}."
        )
    found = {
        name: decompose(name, results[name], as_compiled(models[name]), evidence)
        for name, evidence in evidences.items()
    }
    rows = {name: parts for name, (parts, _) in found.items()}
    parts = pd.DataFrame.from_dict(rows, orient="index", columns=Decomposition._fields)
    return parts, pd.concat({name: blocks for name, (_, blocks) in found.items()}, names=["model"])


def decompose(
    name: str, idata: Container | LogEvidence, compiled: CompiledModel, evidence: LogEvidence
) -> tuple[Decomposition, pd.DataFrame]:
    """Split the log evidence of a run into fit and information, and that by block.

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
    x = draws.reshape(-1, compiled.ndim)
    terms = terms_at(compiled, x)
    value, log_prior = (np.asarray(t) for t in (terms.log_likelihood, terms.log_prior))
    weights = _Weights.of(idata, draws.shape[1])
    mean, volume = float(value.mean()), -float(log_prior.mean())
    fit, price = weights.influence(value - mean), weights.influence(log_prior + volume)
    gained = fit - (weights.weight - 1)
    if evidence.bounds is not None:  # reverse runs have a part in the evidence
        information_mcse = weights.error(fit) + evidence.mcse
    else:
        information_mcse = weights.error(gained)
    information = mean - evidence.log_evidence
    blocks = blocks_of(compiled, x, min(evidence.ess, len(x)))
    table = table_of(blocks, lambda value: weights.error(weights.influence(value)))
    shared = gained + sum(weights.influence(block.influence) for block in blocks)
    parts = Decomposition(
        fit=mean,
        fit_mcse=weights.error(fit),
        information=information,
        information_mcse=information_mcse,
        dimension=compiled.ndim,
        log_prior_volume=volume,
        log_prior_volume_mcse=weights.error(price),
        dependence=float(information + table["log_occam"].sum(skipna=False)),
        dependence_mcse=weights.error(shared),
    )
    return parts, table


class _Weights(NamedTuple):
    """The weighted particles of a run, and which of them its draws copy.

    Attributes
    ----------
    weight : ndarray, shape (chains, n)
        Of mean 1.
    number : ndarray, shape (chains, draws)
        The particle that each draw copies.
    size : int
        Number of particles that were resampled together.
    """

    weight: np.ndarray
    number: np.ndarray
    size: int

    @classmethod
    def of(cls, idata: Container, draws: int) -> "_Weights":
        """Read them from the result of a run with so many draws in each chain."""
        log_weight = group(idata, "annealing")["log_weight"]
        weight = np.exp(log_weight.values - logsumexp(log_weight.values)) * log_weight.size
        number = group(idata, "sample_stats")["particle"].values
        size = _population_size(log_weight.coords.get("population"))
        return cls(weight, number.reshape(-1, draws), size)

    def influence(self, value: np.ndarray) -> np.ndarray:
        """Return the influence of particles, shape ``(chains, n)``, from that of draws, ``(m,)``.

        The values of draws add up for each particle that they copy.
        """
        chains, draws = self.number.shape
        total = np.zeros(self.weight.shape)
        rows = np.arange(chains)[:, None]
        np.add.at(total, (rows, self.number), value.reshape(chains, draws))
        return np.asarray(total * self.weight.shape[1] / draws)

    def error(self, influence: np.ndarray) -> float:
        """Return the error of a mean by influences of particles, shape ``(chains, n)``."""
        units = influence.reshape(len(influence), -1, self.size).sum(axis=2)
        variance = np.square(units).sum() * units.size / (units.size - 1)
        return float(np.sqrt(variance) / influence.size)


def _has_particles(idata: Container) -> bool:
    present = has_group(idata, "annealing") and has_group(idata, "sample_stats")
    return present and "particle" in group(idata, "sample_stats")


def _population_size(population: object | None) -> int:
    """Return the number of particles that were resampled together."""
    return 1 if population is None else int((np.asarray(population) == 0).sum())
