"""Calibration on data that the model itself generates (bidirectional Monte Carlo).

Parameters and data are drawn from the joint distribution of the model: the parameters are then an
exact draw of the posterior given the data, from which reverse runs may start (Grosse, Ghahramani &
Adams 2015; Grosse, Ancha & Roy 2016). If everything is correct, the weight ``b`` of a reverse run
has the distribution of the forward weights ``a``, each counted ``e^a`` times (Crooks 1998). Its
rank

    u = sum_i e^{a_i} 1(a_i < b) / sum_i e^{a_i}

is then uniform between 0 and 1, on every data set. Ranks that concentrate at one end, in the middle
or at both ends reveal wrong kernels, too few steps, or a mode that forward runs miss.
"""

import os

from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pymc as pm

from scipy.stats import binomtest, ttest_1samp

from pymc_anneal.base.arguments import check_count
from pymc_anneal.base.contracts import Transition
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.meter import Meter
from pymc_anneal.base.seeds import RandomSeed
from pymc_anneal.evidence.ais import ais, bootstrap_interval
from pymc_anneal.evidence.bennett import bar
from pymc_anneal.evidence.diagnostics import log_weight_variance
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.execution.checkpoint import Checkpoint
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.misplaced_model import check_not_model
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.model.simulate import check_simulable, simulate, with_data
from pymc_anneal.pipeline.choose_transition import TransitionName, choose_transition
from pymc_anneal.pipeline.counted_run import ForwardStages
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.options import Options, ReferenceName, check_reference
from pymc_anneal.pipeline.reverse import anneal_back
from pymc_anneal.pipeline.run import run_model
from pymc_anneal.pipeline.session import Seeds, Session, open_session
from pymc_anneal.pipeline.settings import Settings, Steps
from pymc_anneal.schedules.named import ScheduleLike, resolve_schedule

# Level of each of three tests; together they raise a false alarm in about one of 100 calibrations.
_LEVEL = 0.003
# Nominal coverage of the intervals.
_COVERAGE = 0.95
# Data sets below which the tests find gross faults only: at 10, one of 1.3 standard deviations.
_LEAST_DATASETS = 10
# Largest median gap between the bounds, in nats, of runs that are long enough.
_MAX_GAP = 0.5
# Reverse trajectories from each exact draw.
_REVERSE_DRAWS = 64
# Variance of the log weights, in nats squared, above which more steps should help.
_MAX_VARIANCE = 2.0


@dataclass(frozen=True)
class Calibration:
    """Results on simulated data sets, and the verdict on the settings of the runs.

    Attributes
    ----------
    table : pandas.DataFrame
        One row for each data set: ``log_evidence`` of the forward runs and its ``mcse``, the
        estimate of ``both`` directions, whether the interval ``covers`` it, the ``gap`` between
        the upper bound of the reverse and the lower bound of the forward runs (all in nats), the
        ``rank`` of the reverse weights, 1/2 on average, and their ``spread`` about 1/2, 1/4 on
        average, the ``variance`` of the log weights, the ``reference`` of the runs and their number
        of ``steps``.
    verdict : Verdict
        ``"calibrated"``; ``"not calibrated: ..."`` with what to change; or ``"more evidence
        needed"`` if nothing speaks against the settings and the data sets are fewer than ten.
    """

    table: pd.DataFrame = field(repr=False)
    verdict: Verdict

    @property
    def gap(self) -> float:
        """Median gap between the bounds, in nats."""
        return float(self.table["gap"].median())

    @property
    def bias(self) -> float:
        """Mean of the forward estimate minus that of both directions, in nats."""
        return float((self.table["log_evidence"] - self.table["both"]).mean())

    @property
    def coverage(self) -> float:
        """Share of the data sets whose interval contains the estimate of both directions."""
        return float(self.table["covers"].mean())

    def __repr__(self) -> str:
        """Return a summary of a few lines."""
        return (
            f"{len(self.table)} simulated data sets: gap {self.gap:.2f} nats, "
            f"bias {self.bias:+.3f} nats, coverage {self.coverage:.0%}\n"
            f"mean rank {self.table['rank'].mean():.3f} (0.5), "
            f"mean spread {self.table['spread'].mean():.3f} (0.25)\n"
            f"verdict: {self.verdict}"
        )


@double_precision
def calibrate(
    n_datasets: int = 40,
    *,
    draws: int = 500,
    chains: int = 4,
    steps: Steps = "auto",
    target_mcse: float = 0.1,
    reference: ReferenceName = "auto",
    schedule: ScheduleLike = "variational",
    transition: TransitionName | Transition = "auto",
    cores: int | None = None,
    block_size: int | None = None,
    executor: Executor | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    model: pm.Model | CompiledModel | None = None,
) -> Calibration:
    """Check on simulated data that runs with these settings are correct for a model.

    Parameters
    ----------
    n_datasets : int
        Number of simulated data sets, each with its pilot, plan, forward and reverse runs. Fewer
        than ten can show that settings are wrong, and not that they are right.
    draws, chains, steps, target_mcse, reference, schedule, transition
        As for :func:`sample_ais`: the settings to be checked. Variables keep the coordinates of the
        model, and the search for modes does not climb the terms of sums of densities.
    cores, block_size, executor, checkpoint, random_seed, progressbar
        As for :func:`sample_ais`.
    model : pymc.Model or CompiledModel, optional
        The model, or the result of :func:`compile_model`; its observed data are replaced by
        simulated ones. Default: the model on the context stack.

    Returns
    -------
    Calibration

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        An argument makes no sense, there is no free variable, or data cannot be simulated: there
        are potentials, no observed variable, or a transform that cuts the prior.

    See Also
    --------
    compare_estimators : Checks of a single run.

    References
    ----------
    Grosse, Ancha & Roy (2016), Measuring the reliability of MCMC inference with bidirectional
    Monte Carlo.

    Examples
    --------
    >>> pymc_anneal.calibrate(model=model)
    """
    check_not_model("n_datasets", n_datasets)
    check_count("n_datasets", n_datasets)
    settings = Settings(
        draws=draws,
        chains=chains,
        steps=steps,
        target_mcse=target_mcse,
        cores=cores,
        block_size=block_size,
        schedule=resolve_schedule(schedule),
    )
    check_reference(reference)
    compiled = as_compiled(model)
    _check_free(compiled)
    kernel = choose_transition(transition, compiled)
    check_simulable(compiled)
    with open_session(
        ModelTarget(compiled),
        settings,
        random_seed=random_seed,
        executor=executor,
        checkpoint=checkpoint,
        progressbar=progressbar,
        choices={"transition": kernel, "reference": reference, "n_datasets": n_datasets},
    ) as session:
        parameters, data = simulate(compiled, session.seeds.prior, n_datasets)
        rows = []
        for i, seed in enumerate(session.seeds.counted.spawn(n_datasets)):
            target = ModelTarget(with_data(compiled, [d[i] for d in data]))
            own = replace(session, target=target, seeds=Seeds.spawn(seed), meter=Meter())
            forward = _run_forward(own, target, kernel, reference)
            rows.append(_compare_directions(own, forward, parameters[i]))
            session.display.clear()
    table = pd.DataFrame(rows)
    return Calibration(table, _assess(table))


def _check_free(compiled: CompiledModel) -> None:
    if not compiled.ndim:
        raise ValueError(
            "The model has no free variable, and there are no runs to calibrate: its evidence is "
            "the density of the data, which `sample_ais` returns exactly."
        )


def weighted_rank(b: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return the ranks of reverse weights among weighted forward ones, each in [0, 1].

    Parameters
    ----------
    b : ndarray, shape (m,)
        Log weights of reverse runs, in the forward sense.
    a : ndarray, shape (n,)
        Log weights of forward runs.

    Returns
    -------
    ndarray, shape (m,)
    """
    a = np.sort(np.ravel(a))
    mass = np.concatenate([[0.0], np.cumsum(np.exp(a - a[-1]))])
    below = mass[np.searchsorted(a, b, "left")]
    up_to = mass[np.searchsorted(a, b, "right")]
    ranks: np.ndarray = 0.5 * (below + up_to) / mass[-1]
    return ranks


def _run_forward(
    session: Session, target: ModelTarget, transition: Transition, reference: ReferenceName
) -> ForwardStages:
    """Run all stages on one data set."""
    forward = run_model(session, target, Options(transition, reference)).forward
    if forward.run.interrupted:
        raise KeyboardInterrupt
    return forward


def _compare_directions(
    session: Session, forward: ForwardStages, exact: np.ndarray
) -> dict[str, Any]:
    """Run back from an exact draw, and return the row of the table."""
    a, b = forward.run.log_weight, _reverse_log_weights(session, forward, exact)
    estimate, both = ais(a), bar(a, b)
    low, high = bootstrap_interval(a, rng=np.random.default_rng(0))
    rank = weighted_rank(b, a)
    return {
        "log_evidence": estimate.log_evidence,
        "mcse": estimate.mcse,
        "both": both.log_evidence,
        "covers": low <= both.log_evidence <= high,
        "gap": -ais(-b).log_evidence - estimate.log_evidence,
        "rank": float(rank.mean()),
        "spread": float(np.abs(rank - 0.5).mean()),
        "variance": log_weight_variance(a),
        "reference": forward.candidate.reference,
        "steps": forward.run.steps,
    }


def _reverse_log_weights(session: Session, forward: ForwardStages, exact: np.ndarray) -> np.ndarray:
    """Return log weights, in the forward sense, of reverse runs from an exact posterior draw."""
    settings = session.settings
    wanted = -(-_REVERSE_DRAWS // settings.chains)
    m = min(settings.block_draws, wanted)
    start = np.tile(exact, (settings.chains, m * -(-wanted // m), 1))  # whole blocks
    run = anneal_back(session, forward, start, session.seeds.reverse)
    if run.interrupted:
        raise KeyboardInterrupt
    return -run.log_weight.ravel()


class _RankTest(NamedTuple):
    """A statistic of the ranks, its mean for correct runs, and the doubts otherwise."""

    column: str
    expected: float
    lower: str
    higher: str


_RANK_TESTS = (
    _RankTest(
        "rank",
        0.5,
        "reverse weights lie below most of the forward ones",
        "reverse weights lie above most of the forward ones",
    ),
    _RankTest(
        "spread",
        0.25,
        "reverse weights are under-dispersed relative to the forward ones",
        "reverse weights are over-dispersed relative to the forward ones",
    ),
)


def _assess(table: pd.DataFrame) -> Verdict:
    """Test mean rank, mean spread, coverage and gap against their values for correct runs."""
    doubts = [*_doubt_coverage(table), *(d for test in _RANK_TESTS for d in _doubt(test, table))]
    gap = table["gap"].median()
    if gap > _MAX_GAP:
        doubts.append(f"the bounds from both sides are {gap:.1f} nats apart")
    if not doubts:
        return _without_doubts(len(table))
    if table["variance"].median() > _MAX_VARIANCE:
        advice = f"take more steps than {int(table['steps'].median())}"
    else:
        advice = "the transitions are wrong or miss a part of the posterior: try another"
    return Verdict("not calibrated", (*doubts, advice))


def _without_doubts(n: int) -> Verdict:
    """Return the verdict on settings that nothing speaks against."""
    if n >= _LEAST_DATASETS:
        return Verdict("calibrated")
    reason = (
        f"{n} simulated data sets would show gross faults only; take {_LEAST_DATASETS} or more, "
        "40 by default"
    )
    return Verdict("more evidence needed", (reason,))


def _doubt_coverage(table: pd.DataFrame) -> list[str]:
    covered, n = int(table["covers"].sum()), len(table)
    if binomtest(covered, n, _COVERAGE, alternative="less").pvalue >= _LEVEL:
        return []
    return [f"only {covered} of {n} intervals contain the estimate of both directions"]


def _doubt(test: _RankTest, table: pd.DataFrame) -> list[str]:
    values = table[test.column].to_numpy()
    if len(values) < 2:  # one value has no spread to be compared with
        return []
    constant = np.ptp(values) == 0
    if not constant and ttest_1samp(values, test.expected).pvalue >= _LEVEL:
        return []
    return [test.higher if values.mean() > test.expected else test.lower]
