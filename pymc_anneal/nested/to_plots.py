"""Draws in the containers of nested samplers, for the plots that were written for these.

Posterior draws with likelihoods ``L_1 <= ... <= L_n`` have equal weights ``Z / n = L_i dX_i``: each
stands for the prior mass ``dX_i = Z / (n L_i)``, and

    X_i = sum_{j >= i} Z / (n L_j)

is the prior mass above a likelihood, the volume of nested sampling (Skilling 2006). It is near
where the draws are, and noisy where there are few: a plot of the posterior against it is as good as
the draws, and one of the course of a nested run (live points, errors) is not there.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm

from pymc_anneal.base.arviz_compat import Container, required_group
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.evidence.posterior_density import terms_at
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.posterior_draws import posterior_draws
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.nested.optional_package import import_optional
from pymc_anneal.results.entries import labelled_entries
from pymc_anneal.results.log_evidence import log_evidence


@double_precision
def to_dynesty(
    idata: Container,
    *,
    model: pm.Model | CompiledModel | None = None,
    var_names: Sequence[str] | None = None,
) -> Any:
    """Convert a result to one of dynesty, for ``dynesty.plotting``.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais` or :func:`nested_evidence`.
    model : pymc.Model or CompiledModel, optional
        Its model, whose likelihood is evaluated at the draws. Default: the model on the context
        stack.
    var_names : sequence of str, optional
        Variables to convert. Default: the free variables.

    Returns
    -------
    dynesty.results.Results
        Equally weighted draws, in the order of their likelihoods, with the prior mass above each as
        ``logvol``. ``cornerplot`` and ``traceplot`` take it; ``runplot`` shows the
        course of a nested run, and there is none. Its ``samples_u`` are NaN. The names of the
        columns are those of :func:`to_anesthetic`.

    Raises
    ------
    ImportError
        dynesty is not installed.
    ValueError
        The container has no evidence, is of other data, or lacks a variable.

    References
    ----------
    Skilling (2006), Nested sampling for general Bayesian computation.

    Examples
    --------
    >>> from dynesty import plotting
    >>> plotting.cornerplot(pymc_anneal.to_dynesty(idata, model=model))
    """
    results = import_optional("dynesty.results", "Results", "dynesty>=3")
    columns, log_l = _columns(idata, as_compiled(model), var_names)
    evidence, order = log_evidence(idata), np.argsort(log_l, kind="stable")
    samples, log_l, n = np.stack(list(columns.values()), axis=1)[order], log_l[order], len(log_l)
    log_z = evidence.log_evidence
    log_mass = log_z - np.log(n) - log_l
    return results(
        {
            "nlive": n,
            "niter": n,
            "ncall": np.ones(n, dtype=int),
            "eff": 100.0,
            "samples": samples,
            "samples_u": np.full_like(samples, np.nan),
            "samples_id": np.arange(n),
            "samples_it": np.zeros(n, dtype=int),
            "logl": log_l,
            "logvol": np.logaddexp.accumulate(log_mass[::-1])[::-1],
            "logwt": np.full(n, log_z - np.log(n)),
            "logz": log_z + np.log(np.arange(1, n + 1) / n),
            "logzerr": np.full(n, evidence.mcse),
        }
    )


@double_precision
def to_anesthetic(
    idata: Container,
    *,
    model: pm.Model | CompiledModel | None = None,
    var_names: Sequence[str] | None = None,
) -> Any:
    """Convert a result to samples of anesthetic.

    Parameters
    ----------
    idata, model, var_names
        As for :func:`to_dynesty`; ``idata`` may be a result of :func:`pymc.sample` as well.

    Returns
    -------
    anesthetic.MCMCSamples
        Equally weighted draws with their log likelihoods, one column for each entry of a variable:
        ``plot_1d`` and ``plot_2d`` take them.

    Raises
    ------
    ImportError
        anesthetic is not installed.
    ValueError
        The container is of other data, or lacks a variable.

    References
    ----------
    Handley (2019), anesthetic: nested sampling visualisation, JOSS 4.

    Examples
    --------
    >>> pymc_anneal.to_anesthetic(idata, model=model).plot_2d(["mu", "tau"])
    """
    samples = import_optional("anesthetic", "MCMCSamples", "anesthetic>=2")
    columns, log_l = _columns(idata, as_compiled(model), var_names)
    return samples(
        data=np.stack(list(columns.values()), axis=1),
        columns=list(columns),
        logL=log_l,
        labels=list(columns),
    )


def _columns(
    idata: Container, compiled: CompiledModel, var_names: Sequence[str] | None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the entries of variables by label, shapes ``(n,)``, and the log likelihoods."""
    posterior = required_group(idata, "posterior", "pymc_anneal.sample_ais")
    given = [var_names] if isinstance(var_names, str) else var_names
    names = list(given or [variable.name for variable in compiled.variables])
    missing = [name for name in names if name not in posterior]
    if missing:
        known = sorted(str(name) for name in posterior.data_vars)
        raise ValueError(f"`var_names` has {missing}, expected variables of the draws: {known}.")
    columns = {
        label: np.asarray(value, dtype=float).ravel()
        for name in names
        for label, value in labelled_entries(posterior[name], ("chain", "draw"))
    }
    x = posterior_draws(idata, compiled).reshape(-1, compiled.ndim)
    return columns, np.asarray(terms_at(compiled, x).log_likelihood)
