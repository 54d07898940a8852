"""Where the parts of a model without a JAX form are called during a run.

Blocks of particles go to the workers of an executor whole, unless the model calls compiled PyTensor
code: its calls are what takes time, in the pilot as in the counted run, so that the workers then
evaluate the positions of a block beside each other.
"""

import pickle

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager

from pymc_anneal.execution.workers import check_executor, count_workers, runs_processes
from pymc_anneal.model.compile import CompiledModel


@contextmanager
def calls_on(
    compiled: CompiledModel, executor: Executor | None, cores: int | None
) -> Iterator[Executor | None]:
    """Record the calls of a model, make them on workers, and yield the executor of blocks.

    Threads of this process run blocks even if the model has calls: most solvers are not safe in
    several threads. `cores` is the number of workers, if the executor does not tell.

    Raises
    ------
    TypeError
        The executor is none, or the model cannot be sent to its workers.
    """
    check_executor(executor)
    workers = executor if compiled.calls and runs_processes(executor) else None
    if workers is not None:
        _check_sendable(compiled)
    # In this process, one call follows the other.
    count = 1 if workers is None else count_workers(workers, cores)
    with ExitStack() as stack:
        for calls in compiled.calls:
            stack.enter_context(calls.recorded(workers, count))
        yield executor if workers is None else None


def _check_sendable(compiled: CompiledModel) -> None:
    try:
        pickle.dumps(compiled.log_terms)
    except Exception as error:  # The Ops of users raise errors of any class.
        raise TypeError(
            "`executor` cannot receive the model, whose Ops have to be pickled "
            f"({type(error).__name__}: {error}). Define functions and Ops at the top level of a "
            "module, or derive a class from `pytensor.graph.op.Op`."
        ) from error
