"""The estimate of a container as a record."""

from pymc_anneal.base.arviz_compat import Container, required_group
from pymc_anneal.base.data_hash import stored_hash
from pymc_anneal.base.meter import from_json
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.evidence.witness import from_text


def log_evidence(data: Container) -> LogEvidence:
    """Read the log evidence from a result of :func:`sample_ais`.

    Parameters
    ----------
    data : InferenceData or DataTree
        The result, fresh or loaded from a file.

    Returns
    -------
    LogEvidence
        In nats.

    Raises
    ------
    ValueError
        The container has no group ``evidence``.

    Examples
    --------
    >>> pymc_anneal.log_evidence(pymc_anneal.sample_ais(model=model))
    """
    values = required_group(data, "evidence", "pymc_anneal.sample_ais")
    scalar = {str(name): float(values[name]) for name in values.data_vars}
    return LogEvidence(
        log_evidence=scalar["log_evidence"],
        mcse=scalar["mcse"],
        interval=(scalar["interval_lower"], scalar["interval_upper"]),
        ess=scalar["ess"],
        pareto_k=scalar["pareto_k"],
        barrier=scalar["barrier"],
        verdict=Verdict.from_attrs(values.attrs),
        notes=str(values.attrs.get("notes", "")),
        bounds=(scalar["lower_bound"], scalar["upper_bound"]) if "upper_bound" in scalar else None,
        data_hash=stored_hash(data),
        witnesses=from_text(values.attrs.get("witnesses", "[]")),
        stages=from_json(values.attrs.get("stages", "{}")),
    )
