"""Records of an estimated log evidence, in nats."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from pymc_anneal.base.html import html_table, html_verdict, round_to_error
from pymc_anneal.base.meter import Reading
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.evidence.witness import Witness


class EvidenceEstimate(NamedTuple):
    """An estimate of a log evidence, in nats.

    Attributes
    ----------
    log_evidence : float
    mcse : float
        Monte Carlo standard error.
    ess : float
        Effective sample size of the weights.
    """

    log_evidence: float
    mcse: float
    ess: float


@dataclass(frozen=True)
class LogEvidence:
    """A log marginal likelihood and what speaks for its accuracy; everything in nats.

    With the verdict "do not trust" its text shows neither error nor interval: those of a run that
    missed something mean nothing. In notebooks "trust" is green where something looked for what
    the run may have missed (:attr:`is_examined`), and amber where nothing did.

    Attributes
    ----------
    log_evidence : float
        The estimate. Its exponential is unbiased for the marginal likelihood.
    mcse : float
        Monte Carlo standard error.
    interval : tuple of float
        95 % interval, by bootstrap over particles.
    ess : float
        Effective sample size of the weights.
    pareto_k : float
        Shape of the upper tail of the weights; above 0.7 the error is unreliable.
    barrier : float
        Path length Lambda between prior and posterior; NaN if the estimate used no path.
    verdict : Verdict
        Whether to trust the estimate, with reasons; its text is ``"trust"``,
        ``"more steps needed: ..."`` or ``"do not trust: ..."``.
    notes : str
        Remarks on the model, for example that a potential is tempered with the likelihood; usually
        empty.
    bounds : tuple of float, optional
        Stochastic bounds, if reverse runs were made: the estimate of the forward runs alone, below
        the truth in expectation, and that of the reverse runs, above it.
    data_hash : str
        Hash of the observed data; "" if there are none, or if they are not known.
    witnesses : tuple of Witness
        What looked for parts of the posterior that the run may have missed; empty if nothing could.
    stages : dict of str to Reading
        What each stage of the call has taken: ``evaluations`` of gradient or density, and
        ``seconds`` with compilation (of a run that was resumed, those since then).
    """

    log_evidence: float
    mcse: float
    interval: tuple[float, float]
    ess: float
    pareto_k: float
    barrier: float
    verdict: Verdict
    notes: str = ""
    bounds: tuple[float, float] | None = None
    data_hash: str = ""
    witnesses: tuple[Witness, ...] = ()
    stages: Mapping[str, Reading] = field(default_factory=dict, compare=False)

    @property
    def is_examined(self) -> bool:
        """Whether something looked for what the run may have missed, or nothing had to."""
        return bool(self.witnesses) or not self.verdict.reasons

    @property
    def headline(self) -> str:
        """The estimate with its error, in words; without an error if it is not trusted."""
        if not self._has_error:
            return f"log evidence {self.log_evidence:.2f} nats, error not known"
        return f"log evidence {self.log_evidence:.3f} +- {self.mcse:.2g} nats"

    @property
    def _has_error(self) -> bool:
        """Whether the error means something: that of a run that missed something does not."""
        return self.verdict.status != "do not trust"

    def __repr__(self) -> str:
        """Return a summary of a few lines."""
        low, high = self.interval
        barrier = "" if np.isnan(self.barrier) else f", barrier {self.barrier:.1f}"
        interval = f" (95 % interval {low:.3f} to {high:.3f})" if self._has_error else ""
        return (
            f"{self.headline}{interval}\n"
            f"{self._bounds()}ESS {self.ess:.0f}, Pareto k {self.pareto_k:.2f}{barrier}\n"
            f"verdict: {self.verdict}"
            + (f"\nwitnesses: {self._witnesses()}" if self.witnesses else "")
            + (f"\nnote: {self.notes}" if self.notes else "")
        )

    def _repr_html_(self) -> str:
        """Return a table for notebooks, with the verdict in colour."""
        return html_table([(name, value) for name, value in self._html_cells().items() if value])

    def _html_cells(self) -> dict[str, str]:
        value = partial(round_to_error, error=self.mcse)
        low, high = self.interval
        bounds = self.bounds and [value(bound) for bound in self.bounds]
        estimate = f"{value(self.log_evidence)} ± {self.mcse:.2g} nats"
        unknown = f"{self.log_evidence:.2f} nats, error not known"
        return {
            "log evidence": estimate if self._has_error else unknown,
            "95 % interval": f"{value(low)} to {value(high)}" if self._has_error else "",
            "forward, reverse runs": f"{bounds[0]}, {bounds[1]}" if bounds else "",
            "effective sample size": f"{self.ess:.0f}",
            "Pareto k": f"{self.pareto_k:.2f}",
            "barrier": "" if np.isnan(self.barrier) else f"{self.barrier:.1f}",
            "verdict": html_verdict(self.verdict.status, self.verdict.reasons, self.is_examined),
            "witnesses": self._witnesses(),
            "note": self.notes,
        }

    def _witnesses(self) -> str:
        return ", ".join(str(witness) for witness in self.witnesses)

    def _bounds(self) -> str:
        if self.bounds is None:
            return ""
        return f"forward runs {self.bounds[0]:.3f}, reverse runs {self.bounds[1]:.3f}\n"
