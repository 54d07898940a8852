"""The verdict on a quantity that depends on several estimates."""

from collections.abc import Mapping

from pymc_anneal.evidence.verdict import Verdict, verdict_from


def combined_verdict(verdicts: Mapping[str, Verdict]) -> Verdict:
    """Return the verdict on a quantity that depends on several estimates.

    Parameters
    ----------
    verdicts : mapping of str to Verdict
        Verdicts on the estimates, by name.

    Returns
    -------
    Verdict
        ``"do not trust"`` if one of them is, otherwise the first shortfall; each reason begins with
        the name of the estimate.
    """
    objections = {name: v for name, v in verdicts.items() if not v.trusted}
    doubts = [_named(n, v) for n, v in objections.items() if v.status == "do not trust"]
    if doubts or not objections:
        return verdict_from(doubts, [])
    status = next(iter(objections.values())).status
    return verdict_from([], [_named(n, v) for n, v in objections.items()], status)


def _named(name: str, verdict: Verdict) -> str:
    return f"{name}: {'; '.join(verdict.reasons) or verdict.status}"
