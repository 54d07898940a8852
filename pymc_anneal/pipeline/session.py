"""What all stages of a run share: target, settings, seeds, display, checkpoint."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from pymc_anneal.annealing.block import Block
from pymc_anneal.base.contracts import NanDensityError, Path, Transition
from pymc_anneal.base.seeds import seed_sequence
from pymc_anneal.execution.blocks import AnnealedRun, anneal
from pymc_anneal.execution.checkpoint import StageLog
from pymc_anneal.execution.progress import ProgressDisplay
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.pipeline.settings import Options


@dataclass(frozen=True)
class Session:
    """What all stages of a run share; ``draw_reference`` draws what the path starts with.

    Stages whose result depends on the clock, or that take long, go through the ``journal``.
    """

    compiled: CompiledModel
    path: Path
    draw_reference: Callable[[np.random.SeedSequence, int], np.ndarray]
    options: Options
    display: ProgressDisplay
    seed: np.random.SeedSequence
    executor: Executor | None = None
    journal: StageLog = field(default_factory=StageLog)

    @property
    def pilot_seed(self) -> np.random.SeedSequence:
        """Seed of the pilot, wherever it is run."""
        return seed_sequence(self.seed).spawn(1)[0]

    def blocks(
        self,
        transition: Transition,
        betas: np.ndarray,
        particles: int,
        seed: np.random.SeedSequence,
    ) -> list[Block]:
        """Return blocks of at least so many particles, each with draws of its own to start."""
        chains, m = self.options.chains, self.options.block_draws
        count, blocks = -(-particles // (chains * m)), []
        for child in seed.spawn(count):
            seed_start, seed_run = child.spawn(2)
            position = self.draw_reference(seed_start, chains * m)
            blocks.append(Block(self.path, transition, betas, position, chains, seed_run))
        return blocks

    def run(self, name: str, blocks: list[Block]) -> AnnealedRun:
        """Anneal blocks on the workers."""
        store = self.journal.blocks(name)
        try:
            run = anneal(blocks, self.display, name, self.options.cores, self.executor, store)
        except KeyboardInterrupt:
            self.journal.close()
            raise
        if run.interrupted:
            self.journal.close()
        return run


@contextmanager
def explaining_nan(compiled: CompiledModel) -> Iterator[None]:
    """Turn a log density that is NaN into an error that names the term of the model."""
    try:
        yield
    except NanDensityError as error:
        raise ValueError(compiled.explain_nan(error.position)) from error
