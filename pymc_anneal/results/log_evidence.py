"""Read the estimate back from a container."""

from typing import Any

from pymc_anneal.base.arviz_compat import group, has_group
from pymc_anneal.evidence.estimate import LogEvidence


def log_evidence(data: Any) -> LogEvidence:
    """Read the log evidence from a result of :func:`sample_ais`.

    Parameters
    ----------
    data : InferenceData or DataTree
        The result, fresh or loaded from a file.

    Returns
    -------
    LogEvidence

    Raises
    ------
    ValueError
        The container has no group ``evidence``.
    """
    if not has_group(data, "evidence"):
        raise ValueError(
            f"Expected a result of pymc_anneal.sample_ais with a group 'evidence', found "
            f"{type(data).__name__}. Run `idata = pymc_anneal.sample_ais(model=model)` first."
        )
    values = group(data, "evidence")
    number = {name: float(values[name]) for name in values.data_vars}
    return LogEvidence(
        log_evidence=number["log_evidence"],
        mcse=number["mcse"],
        interval=(number["interval_lower"], number["interval_upper"]),
        ess=number["ess"],
        pareto_k=number["pareto_k"],
        barrier=number["barrier"],
        verdict=str(values.attrs["verdict"]),
        notes=str(values.attrs.get("notes", "")),
        bounds=(number["lower_bound"], number["upper_bound"]) if "upper_bound" in number else None,
    )
