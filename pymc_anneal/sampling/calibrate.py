"""Calibration on data that the model itself has made (bidirectional Monte Carlo).

Parameters and data are drawn from the joint distribution of the model: the parameters are then an
exact draw of the posterior given the data, from which reverse runs may begin (Grosse, Ghahramani &
Adams 2015; Grosse, Ancha & Roy 2016). Where everything is sound, the weight ``b`` of a reverse run
has the distribution of the forward weights ``a``, each counted ``e^a`` times (Crooks 1998). Its
rank

    u = sum_i e^{a_i} 1(a_i < b) / sum_i e^{a_i}

is then uniform between 0 and 1, on every data set. Ranks that crowd at one end, in the middle or
at both ends show kernels that are wrong, steps that are too few, or a mode that forward runs miss.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
import pandas as pd
import pymc as pm

from jax.tree_util import Partial
from scipy.stats import binomtest, ttest_1samp

from pymc_anneal.annealing.block import Block
from pymc_anneal.base.arguments import check_count
from pymc_anneal.base.contracts import LogTerms, Transition, reversal_of
from pymc_anneal.base.seeds import seed_sequence
from pymc_anneal.evidence.ais import ais, bootstrap_interval
from pymc_anneal.evidence.bennett import bar
from pymc_anneal.evidence.diagnostics import log_weight_variance
from pymc_anneal.execution.progress import ProgressDisplay
from pymc_anneal.model.compile import CompiledModel, as_compiled
from pymc_anneal.model.simulate import simulate, with_data
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.pipeline.choose_transition import transition_for
from pymc_anneal.pipeline.rounds import Outcome, run_rounds
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.settings import Options
from pymc_anneal.schedules.named import resolve_schedule

# Three tests; together they raise a false alarm in about one of a hundred calibrations.
_LEVEL = 0.003


_MIN_COVERAGE = 0.95


_MAX_GAP = 0.5


_REVERSE_DRAWS = 64


_WIDE = 2.0  # a variance of the log weights that more steps should bring down


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SimulatedPath(GeometricPath):
    """Geometric path whose data are part of the pytree: other data need no other compilation."""

    log_terms: Callable[[jax.Array], LogTerms] = field(metadata={"static": False})


@dataclass(frozen=True)
class Calibration:
    """What simulated data sets say about a model and the settings of its runs.

    Attributes
    ----------
    table : pandas.DataFrame
        One row for each data set: ``log_evidence`` of the forward runs and its ``mcse``, the
        estimate of ``both`` directions, whether the interval ``covers`` it, the ``gap`` between
        the upper bound of the reverse and the lower bound of the forward runs, the ``rank`` of the
        reverse weights, 1/2 on average, and their ``spread`` about 1/2, 1/4 on average, the
        ``variance`` of the log weights and the number of ``steps``.
    verdict : str
        ``"calibrated"``, or ``"not calibrated: ..."`` with what to raise.
    """

    table: pd.DataFrame = field(repr=False)
    verdict: str

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
        """Share of the data sets whose interval holds the estimate of both directions."""
        return float(self.table["covers"].mean())

    def __repr__(self) -> str:
        """Return some lines to read."""
        return (
            f"{len(self.table)} simulated data sets: gap {self.gap:.2f} nats, "
            f"bias {self.bias:+.3f} nats, coverage {self.coverage:.0%}\n"
            f"mean rank {self.table['rank'].mean():.3f} (0.5), "
            f"mean spread {self.table['spread'].mean():.3f} (0.25)\n"
            f"verdict: {self.verdict}"
        )


def calibrate(
    model: pm.Model | CompiledModel | None = None,
    n_datasets: int = 40,
    *,
    draws: int = 500,
    chains: int = 4,
    steps: int | str = "auto",
    target_mcse: float = 0.1,
    schedule: str | Sequence[float] | np.ndarray | Callable[[int], np.ndarray] = "variational",
    transition: str | Transition = "hmc",
    cores: int | None = None,
    random_seed: Any = None,
    progressbar: bool = True,
) -> Calibration:
    """Check on simulated data that runs with these settings are right for this model.

    Parameters
    ----------
    model
        The model, or the result of :func:`compile_model`; its observed data are replaced by
        simulated ones. Default: the model on the context stack.
    n_datasets
        Number of simulated data sets, each with its pilot, plan, forward and reverse runs.
    draws, chains, steps, target_mcse, schedule, transition, cores
        As for :func:`sample_ais`: the settings to be checked.
    random_seed
        Seed.
    progressbar
        Whether to show progress.

    Returns
    -------
    Calibration

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        An argument makes no sense, or data cannot be simulated: there are potentials, no observed
        variable, or a transform that cuts the prior.

    References
    ----------
    Grosse, Ancha & Roy (2016), Measuring the reliability of MCMC inference with bidirectional
    Monte Carlo.

    Examples
    --------
    >>> pymc_anneal.calibrate(model)
    """
    check_count("n_datasets", n_datasets)
    options = Options(
        draws=draws,
        chains=chains,
        steps=steps,
        target_mcse=target_mcse,
        cores=cores,
        schedule=resolve_schedule(schedule),
    )
    compiled = as_compiled(model)
    kernel = transition_for(transition, compiled)
    log_terms = with_data(compiled)
    seed_data, *seeds = seed_sequence(random_seed).spawn(1 + n_datasets)
    parameters, data = simulate(compiled, seed_data, n_datasets)
    rows = []
    with ProgressDisplay(progressbar) as display:
        for i, seed in enumerate(seeds):
            path = SimulatedPath(Partial(log_terms, tuple(d[i] for d in data)))
            session = Session(compiled, path, compiled.sample_prior, options, display, seed)
            rows.append(_row(session, kernel, parameters[i]))
            display.clear()
    table = pd.DataFrame(rows)
    return Calibration(table, _verdict(table))


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
    below, upto = (mass[np.searchsorted(a, b, side)] for side in ("left", "right"))
    return 0.5 * (below + upto) / mass[-1]


def _row(session: Session, kernel: Transition, exact: np.ndarray) -> dict[str, float]:
    """Run both directions on one data set."""
    outcome = run_rounds(session, kernel)
    last = outcome.rounds[-1]
    a, b = last.log_weight, _reverse(session, outcome, exact)
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
        "steps": last.steps,
    }


def _reverse(session: Session, outcome: Outcome, exact: np.ndarray) -> np.ndarray:
    """Log weights, in the forward sense, of reverse runs from an exact draw of the posterior."""
    chains = session.options.chains
    m = -(-_REVERSE_DRAWS // chains)
    betas = outcome.rounds[-1].betas[::-1].copy()
    start = np.tile(exact, (chains * m, 1))
    (seed,) = session.seed.spawn(1)  # after those that the forward runs have taken
    kernel = reversal_of(outcome.transition)
    block = Block(session.path, kernel, betas, start, chains, seed)
    return -session.run("Reverse", [block]).log_weight.ravel()


def _verdict(table: pd.DataFrame) -> str:
    """Test mean rank, mean spread and coverage against what they are for sound runs."""
    doubts = []
    covered, n = int(table["covers"].sum()), len(table)
    if binomtest(covered, n, _MIN_COVERAGE, alternative="less").pvalue < _LEVEL:
        doubts.append(f"only {covered} of {n} intervals hold the estimate of both directions")
    for column, expected, meaning in (
        ("rank", 0.5, "reverse weights lie {} of the forward ones"),
        ("spread", 0.25, "reverse weights lie {} the forward ones"),
    ):
        values = table[column].to_numpy()
        if np.ptp(values) == 0 or ttest_1samp(values, expected).pvalue < _LEVEL:
            high = values.mean() > expected
            side = {"rank": ("below most", "above most"), "spread": ("amid", "on both sides of")}
            doubts.append(meaning.format(side[column][int(high)]))
    gap = table["gap"].median()
    if gap > _MAX_GAP:
        doubts.append(f"the bounds from both sides are {gap:.1f} nats apart")
    if not doubts:
        return "calibrated"
    if table["variance"].median() > _WIDE:
        advice = f"take more steps than {int(table['steps'].median())}"
    else:
        advice = "the transitions are wrong or miss a part of the posterior: try another"
    return f"not calibrated: {'; '.join(doubts)}; {advice}"
