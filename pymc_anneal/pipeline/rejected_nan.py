"""What a run met that has no likelihood: NaN that counts as zero, and exceptions of black boxes."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pymc_anneal.pipeline.counted_run import ForwardStages
from pymc_anneal.pipeline.session import Session

# Share of the proposals at the posterior with a likelihood of NaN, above which the region that
# counts as zero may hold a part of the posterior.
_MAX_SHARE = 0.25


class RejectedNan(NamedTuple):
    """Shares of positions without a likelihood.

    Attributes
    ----------
    prior : float
        Share of the draws of the prior at which the log likelihood is NaN; NaN if it was not
        measured, because the run needed no pilot from the prior.
    posterior : float
        Share of the proposals of the transitions at the posterior.
    failures : int
        Calls of a black box that raised an exception.
    allowed : bool
        Whether NaN counts as zero likelihood.
    """

    prior: float
    posterior: float
    failures: int
    allowed: bool

    @classmethod
    def of(cls, session: Session, forward: ForwardStages) -> "RejectedNan":
        """Count them in the stages of a run."""
        candidates = replace(forward.candidate, pilot=forward.pilot).lineage
        pilots = [c.pilot for c in candidates if c.reference == "prior"]
        shares = [pilot.nan_share for pilot in pilots if pilot is not None]
        last = forward.run
        return cls(
            prior=shares[-1] if shares else np.nan,
            posterior=float(last.stats.nan[-1].sum() / last.particles),
            failures=int(session.target.scalars.get("call_failures", 0)),
            allowed=session.settings.reject_nan,
        )

    @property
    def scalars(self) -> dict[str, float]:
        """Shares for the group ``evidence``."""
        return {"nan_share_prior": self.prior, "nan_share_posterior": self.posterior}

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons not to trust the estimate."""
        if self.failures and not self.allowed:
            return (
                f"{self.failures} calls of the likelihood or its gradient raised an exception "
                "(attribute `first_error` of the group `evidence`)",
            )
        if self.posterior > _MAX_SHARE:
            return (
                f"the log likelihood was NaN at {self.posterior:.0%} of the proposals at the "
                f"posterior (above {_MAX_SHARE:.0%}): the region that counts as zero may hold a "
                "part of the posterior",
            )
        return ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was counted as zero; nothing if there was none."""
        if not self.allowed or not (self.prior > 0 or self.posterior > 0 or self.failures):
            return ()
        where = f"{100 * self.posterior:.2g} % of the proposals at the posterior"
        if np.isfinite(self.prior):
            where = f"{100 * self.prior:.2g} % of the draws of the prior and {where}"
        remark = f"the log likelihood was NaN at {where}, and counts as zero there"
        raised = f" ({self.failures} calls raised an exception)" if self.failures else ""
        return (remark + raised,)
