"""Arguments of `sample_ais` that other calls hand on to their runs, with their types."""

import os

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, TypedDict

import numpy as np

from pymc_anneal.base.contracts import Path, Transition
from pymc_anneal.base.seeds import RandomSeed
from pymc_anneal.execution.checkpoint import Checkpoint
from pymc_anneal.paths.references import Reference
from pymc_anneal.pipeline.choose_path import PathName
from pymc_anneal.pipeline.choose_transition import TransitionName
from pymc_anneal.pipeline.options import ReferenceName
from pymc_anneal.pipeline.path_choice import PathChoice
from pymc_anneal.pipeline.settings import Audit, Discrete, OnNan, Resample, Steps
from pymc_anneal.schedules.named import ScheduleLike


class RunArguments(TypedDict, total=False):
    """Arguments of :func:`sample_ais` that say how a run is made."""

    chains: int
    steps: Steps
    target_mcse: float
    path: PathName | PathChoice | Path
    reference: ReferenceName | Reference
    schedule: ScheduleLike
    max_step: float | None
    transition: TransitionName | Transition
    resample: Resample
    max_minutes: float
    cores: int | None
    block_size: int | None
    moments_from: Any
    reverse_from: Any
    search_from: Mapping[str, np.ndarray] | None
    idata_kwargs: Mapping[str, Any] | None
    nan: OnNan
    discrete: Discrete
    audit: Audit


class DrawArguments(RunArguments, total=False):
    """How a run is made, of how many draws, and whether it warns."""

    draws: int
    warnings: bool


class CallArguments(DrawArguments, total=False):
    """All arguments of :func:`sample_ais` but the model and the seed."""

    executor: Executor | None
    checkpoint: str | os.PathLike[str] | Checkpoint | None
    progressbar: bool


class SeededArguments(CallArguments, total=False):
    """All arguments of :func:`sample_ais` but the model."""

    random_seed: RandomSeed
