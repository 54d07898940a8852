"""What a run that ended early has kept, in one line."""

from pymc_anneal.execution.blocks import AnnealedRun


def describe_interruption(run: AnnealedRun, reverse_stopped: bool) -> str:
    """Say what is kept of an interrupted run; empty if it was not interrupted.

    Parameters
    ----------
    run
        The counted run.
    reverse_stopped
        Whether the reverse run was stopped.
    """
    if run.interrupted:
        return (
            f"{run.particles} of {run.planned} particles are kept, those that were finished early: "
            "a biased set if the time that a particle takes depends on where it is"
        )
    return "the forward run is complete and kept" if reverse_stopped else ""
