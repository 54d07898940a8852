"""Calls that make several runs: arguments that none of them takes, and Ctrl-C in one of them."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pymc_anneal.base.arviz_compat import group

_Result = TypeVar("_Result")

# Arguments that may hold draws of a posterior.
OF_ONE_POSTERIOR = ("moments_from", "reverse_from")


def check_several_runs(function: str, settings: Mapping[str, Any]) -> None:
    """Raise `TypeError` for arguments of one run, given to a function that makes several.

    A file holds the stages of one run, and draws are of one posterior.
    """
    if settings.get("checkpoint") is not None:
        raise TypeError(
            f"`checkpoint` is {settings['checkpoint']!r}. A checkpoint holds one run, and "
            f"`{function}` makes several: leave it out, or call `sample_ais` for each run with a "
            "file of its own."
        )
    for name in OF_ONE_POSTERIOR:
        if settings.get(name) is not None and not isinstance(settings[name], str):
            raise TypeError(
                f"`{name}` holds draws of one posterior, and `{function}` makes runs for several: "
                "leave it out, or call `sample_ais` for each of them."
            )


def is_interrupted(result: Any) -> bool:
    """Whether a run was stopped by Ctrl-C, and has returned what it had."""
    return "interruption" in group(result, "evidence").attrs


def unless_interrupted(result: _Result) -> _Result:
    """Return the result of a run, or end the call that needs all of its runs.

    Raises
    ------
    KeyboardInterrupt
        The run was stopped.
    """
    if is_interrupted(result):
        raise KeyboardInterrupt("Stopped in one of several runs, all of which are needed.")
    return result
