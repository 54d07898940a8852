"""Training of RBMs on data, and fits to given moments."""

import os

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, NoReturn, get_args

import jax
import jax.numpy as jnp
import numpy as np

from numpy.typing import ArrayLike
from scipy.special import log_expit

from pymc_anneal.base.arguments import check_count
from pymc_anneal.base.contracts import Scalar
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed, key_of, seed_sequence
from pymc_anneal.execution.fingerprint import name_of
from pymc_anneal.execution.progress import ProgressDisplay
from pymc_anneal.rbm.contrastive_divergence import (
    LearningRate,
    TrainingState,
    UpdateRule,
    run_updates,
)
from pymc_anneal.rbm.model import RBM, check_rows
from pymc_anneal.rbm.moments import check_moments
from pymc_anneal.rbm.state_sums import Moments
from pymc_anneal.rbm.training_file import Progress, TrainingFile, columns_of, describe_training

Method = Literal["cd", "pcd"]

# A function that returns named numbers for the history of the training.
Monitor = Callable[[RBM], Mapping[str, float]]

# Largest number of rows of the data for which the history is computed.
_MONITORED_ROWS = 1000

# Entries of the history.
_REPORTS = 50


class TrainedRBM(NamedTuple):
    """Result of :func:`train`.

    Attributes
    ----------
    model : RBM
        The RBM after the last update.
    history : dict of str to ndarray
        ``update``, ``reconstruction_error``, ``pseudo_log_likelihood`` and the values returned by
        ``monitor``, each of shape ``(n_reports,)``.
    interrupted : bool
        Whether training was stopped by Ctrl-C; the RBM is then that of the last report.
    """

    model: RBM
    history: dict[str, np.ndarray]
    interrupted: bool

    def __getattr__(self, name: str) -> NoReturn:
        own = f"a TrainedRBM has no attribute {name!r}"
        hint = ", its RBM has: pass `trained.model`" if hasattr(self.model, name) else ""
        raise AttributeError(own + hint)


def train(
    data: ArrayLike,
    n_hidden: int,
    *,
    method: Method = "pcd",
    gibbs_steps: int = 1,
    updates: int = 20_000,
    batch_size: int = 100,
    particles: int = 100,
    learning_rate: float | LearningRate = 0.05,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    start: RBM | None = None,
    monitor: Monitor | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> TrainedRBM:
    """Train an RBM on data.

    Parameters
    ----------
    data : array_like, shape (n, n_visible)
        Binary values, or probabilities in [0, 1], which are used without rounding.
    n_hidden : int
        Number of hidden units.
    method : {"pcd", "cd"}
        Persistent contrastive divergence or contrastive divergence.
    gibbs_steps : int
        Sweeps per update, the k of CD-k.
    updates : int
        Number of updates of the parameters.
    batch_size : int
        Rows drawn for an update, with replacement.
    particles : int
        Persistent chains of "pcd".
    learning_rate : float or callable
        Rate, or a JAX function of the fraction of the updates done, in [0, 1], that returns it.
    momentum : float
        Fraction of the last update that is added to the next one, in [0, 1).
    weight_decay : float
        L2 penalty of the weights.
    start : RBM, optional
        Initial RBM. By default small random weights, with the base rates as visible biases.
    monitor : callable, optional
        Function of the RBM that returns named numbers for the history, for example its log
        likelihood, exact or by :func:`sample_ais`.
    checkpoint : str or path, optional
        File (``.npz``) that is written with each of the 50 entries of the history. If it exists,
        the training resumes there, to the same result as without a break; `random_seed` must be
        given.
    random_seed
        Seed: int, sequence of int, numpy SeedSequence or Generator.
    progressbar : bool
        Whether to show progress.

    Returns
    -------
    TrainedRBM

    Raises
    ------
    ValueError
        Values of `data` lie outside [0, 1], `start` has another shape, another argument is out of
        range, or `checkpoint` belongs to another training.
    RuntimeError
        Another training is writing to `checkpoint`.
    """
    data = check_rows(data)
    if method not in get_args(Method):
        raise ValueError(f'Unknown `method` {method!r}; expected "cd" or "pcd".')
    counts = {
        "n_hidden": n_hidden,
        "gibbs_steps": gibbs_steps,
        "updates": updates,
        "batch_size": batch_size,
        "particles": particles,
    }
    for name, value in counts.items():
        check_count(name, value)
    _check_rates(learning_rate, momentum, weight_decay)
    if start is not None and start.weights.shape != (data.shape[1], n_hidden):
        raise ValueError(
            f"`start` has weights of shape {start.weights.shape}, expected "
            f"{(data.shape[1], n_hidden)}."
        )
    if checkpoint is not None and random_seed is None:
        raise ValueError("`checkpoint` needs a `random_seed`: the file resumes the same training.")
    seed_start, seed_run = seed_sequence(random_seed).spawn(2)
    model = start or _initial_rbm(data, n_hidden, seed_start)
    rule = UpdateRule(
        learning_rate=_as_function(learning_rate),
        momentum=float(momentum),
        weight_decay=float(weight_decay),
        gibbs_steps=gibbs_steps,
        persistent=method == "pcd",
        batch_size=batch_size,
        updates=updates,
    )
    # A stream of its own: the weights have taken that of the seed.
    fantasy = model.sample(particles, steps=1, random_seed=seed_start.spawn(1)[0])
    source = np.asarray(data, model.weights.dtype)
    rows = np.linspace(0, len(data) - 1, min(len(data), _MONITORED_ROWS)).astype(int)
    report = partial(_report, data=data[rows], monitor=monitor)
    parts = source, jax.tree.leaves(model), fantasy, tuple(rule), seed_run.generate_state(2)
    # What a monitor holds may grow in a training: its name has to do.
    described = describe_training(*parts, name_of(monitor)) if checkpoint else ""
    file = TrainingFile(checkpoint, described)
    with file.locked():
        return _fit(model, source, rule, fantasy, seed_run, report, file, progressbar)


def fit_moments_pcd(
    target: Moments,
    start: RBM,
    *,
    updates: int = 50_000,
    learning_rate: float | LearningRate = 0.01,
    particles: int = 100,
    random_seed: RandomSeed = None,
) -> RBM:
    """Fit an RBM to given moments by persistent contrastive divergence.

    Parameters
    ----------
    target : Moments
        Moments to match, for example averages (Grosse, Maddison & Salakhutdinov 2013, section 5.2:
        50,000 updates with rate 0.01; the cheap variant has 1,000 updates with 100 particles).
    start : RBM
        Initial RBM.
    updates, learning_rate, particles
        As for :func:`train`.
    random_seed
        Seed: int, sequence of int, numpy SeedSequence or Generator.

    Returns
    -------
    RBM
        In the floating type of `start`.

    Raises
    ------
    ValueError
        The shapes of `target` and `start` differ, or another argument is out of range.
    """
    check_count("updates", updates)
    check_count("particles", particles)
    _check_rates(learning_rate, 0.0, 0.0)
    check_moments(target, start)
    rule = UpdateRule(_as_function(learning_rate), updates)
    seed_start, seed_run = seed_sequence(random_seed).spawn(2)
    fantasy = start.sample(particles, steps=100, random_seed=seed_start)
    source = Moments(*(np.asarray(x, start.weights.dtype) for x in target))
    file = TrainingFile(None, "")
    fitted = _fit(start, source, rule, fantasy, seed_run, lambda rbm: {}, file, False)
    if fitted.interrupted:  # an RBM that is not fitted is no result
        raise KeyboardInterrupt
    return fitted.model


def reconstruction_error(model: RBM, data: ArrayLike) -> float:
    """Return the mean over rows of the squared distance to the mean-field reconstruction.

    Parameters
    ----------
    model : RBM
    data : array_like, shape (n, n_visible)
        Binary values, or probabilities in [0, 1].

    Returns
    -------
    float
        ``|v - P(v = 1 | P(h = 1 | v))|^2``, summed over units.

    Raises
    ------
    ValueError
        Values of `data` lie outside [0, 1], or their shape is wrong.
    """
    data = check_rows(data, model.n_visible)
    rebuilt = model.visible_probability(model.hidden_probability(data))
    return float(((data - rebuilt) ** 2).sum(axis=1).mean())


def pseudo_log_likelihood(model: RBM, data: ArrayLike, random_seed: RandomSeed = 0) -> float:
    """Estimate the mean log pseudo-likelihood of data, ``sum_i log p(v_i | v_-i)``.

    One random unit of each row is flipped and stands for all units (as in scikit-learn).

    Parameters
    ----------
    model : RBM
    data : array_like, shape (n, n_visible)
        Values in [0, 1], which are rounded.
    random_seed
        Seed of :func:`numpy.random.default_rng`.

    Returns
    -------
    float
        In nats per row.

    Raises
    ------
    ValueError
        Values of `data` lie outside [0, 1], or their shape is wrong.
    """
    visible = np.round(check_rows(data, model.n_visible))
    rows = np.arange(len(visible))
    unit = np.random.default_rng(random_seed).integers(0, model.n_visible, len(visible))
    flipped = visible.copy()
    flipped[rows, unit] = 1 - flipped[rows, unit]
    odds = model.log_density(visible) - model.log_density(flipped)
    return float(model.n_visible * log_expit(odds).mean())


def _report(rbm: RBM, data: np.ndarray, monitor: Monitor | None) -> dict[str, float]:
    scores = {
        "reconstruction_error": reconstruction_error(rbm, data),
        "pseudo_log_likelihood": pseudo_log_likelihood(rbm, data),
    }
    return scores | dict(monitor(rbm) if monitor else {})


def _check_rates(learning_rate: float | LearningRate, momentum: float, weight_decay: float) -> None:
    if not callable(learning_rate) and not np.isfinite(learning_rate):
        raise ValueError(f"`learning_rate` is {learning_rate}, expected a finite number.")
    if not 0 <= momentum < 1:
        raise ValueError(f"`momentum` is {momentum}, expected a number in [0, 1).")
    if not 0 <= weight_decay < np.inf:
        raise ValueError(f"`weight_decay` is {weight_decay}, expected a number >= 0.")


@dataclass(frozen=True)
class _ConstantRate:
    """A constant learning rate; equal rates share compiled code."""

    value: float

    def __call__(self, fraction: Scalar) -> float:
        return self.value


def _as_function(learning_rate: float | LearningRate) -> LearningRate:
    return learning_rate if callable(learning_rate) else _ConstantRate(float(learning_rate))


def _finite(model: RBM, updates: int) -> RBM:
    """Return an RBM, or raise if training has led to infinite parameters."""
    if all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(model)):
        return model
    raise ValueError(
        f"The training has diverged: after {updates} updates parameters are infinite or NaN. "
        "Take a smaller `learning_rate`; a checkpoint holds the state before."
    )


def _initial_rbm(data: np.ndarray, n_hidden: int, seed: np.random.SeedSequence) -> RBM:
    """Return small weights, with visible biases at the base rates (Hinton 2012, section 8)."""
    rng = np.random.default_rng(seed)
    rate = (data.sum(axis=0, dtype=float) + 1) / (len(data) + 2)
    weights = 0.01 * rng.normal(size=(data.shape[1], n_hidden))
    return RBM(np.log(rate / (1 - rate)), np.zeros(n_hidden), weights.astype(np.float32))


@double_precision
def _fit(
    model: RBM,
    source: np.ndarray | Moments,
    rule: UpdateRule,
    fantasy: np.ndarray,
    seed: np.random.SeedSequence,
    report: Monitor,
    file: TrainingFile,
    progressbar: bool,
) -> TrainedRBM:
    """Update in a few dozen compiled calls, with a report after each.

    Double precision is on so that arrays keep the floating type of the RBM.
    """
    interrupted, size = False, -(-rule.updates // _REPORTS)
    source, rbm = jax.tree.map(jnp.asarray, (source, model))
    particles = jnp.asarray(fantasy, model.weights.dtype)
    start = TrainingState(rbm, jax.tree.map(jnp.zeros_like, rbm), particles)
    done, state, history = file.read(start)
    model = jax.tree.map(np.asarray, state.model)
    with ProgressDisplay(progressbar) as display:
        bar = display.add_bar("Training", rule.updates)
        try:
            while done < rule.updates:
                count = min(size, rule.updates - done)
                state = run_updates(state, source, key_of(seed), done, count, rule)
                done += count
                model = _finite(jax.tree.map(np.asarray, state.model), done)
                history.append({"update": done, **report(model)})
                file.write(Progress(done, state, history))
                bar.update(done, "  ".join(f"{k} {v:.6g}" for k, v in history[-1].items()))
        except KeyboardInterrupt:
            interrupted = True
    return TrainedRBM(model, columns_of(history), interrupted)
