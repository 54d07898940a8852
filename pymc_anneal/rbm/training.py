"""Training by contrastive divergence (Hinton 2002) and its persistent form (Tieleman 2008).

The gradient of the mean log likelihood is the difference of moments of data and model,

    d/d(a, b, W) = E_data[(v, h, v h')] - E_model[(v, h, v h')].

CD-k estimates the second from ``k`` Gibbs sweeps that start at the mini-batch, PCD from particles
that are kept from one update to the next.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from scipy.special import expit

from pymc_anneal.base.arguments import check_count
from pymc_anneal.base.seeds import key_of, seed_sequence
from pymc_anneal.execution.progress import ProgressDisplay
from pymc_anneal.rbm.exact import Moments
from pymc_anneal.rbm.model import RBM, check_rows
from pymc_anneal.rbm.moments import batch_moments, check_moments, sweep

_MONITORED = 1000  # rows of the data that are monitored


_REPORTS = 50


class TrainedRBM(NamedTuple):
    """A trained machine.

    Attributes
    ----------
    model : RBM
    history : dict of str to ndarray
        ``update`` and what was monitored at it.
    interrupted : bool
        Training was stopped by Ctrl-C; the machine is that of the last report.
    """

    model: RBM
    history: dict[str, np.ndarray]
    interrupted: bool


def train(
    data: np.ndarray,
    n_hidden: int,
    *,
    method: str = "pcd",
    gibbs_steps: int = 1,
    updates: int = 20_000,
    batch_size: int = 100,
    particles: int = 100,
    learning_rate: float | Callable[[Any], Any] = 0.05,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    start: RBM | None = None,
    monitor: Callable[[RBM], Mapping[str, float]] | None = None,
    random_seed: Any = None,
    progressbar: bool = True,
) -> TrainedRBM:
    """Train a machine on data.

    Parameters
    ----------
    data : array_like, shape (n, n_visible)
        Binary, or probabilities in [0, 1], which enter as they are.
    n_hidden
        Number of hidden units.
    method
        "pcd" (persistent) or "cd" (contrastive divergence).
    gibbs_steps
        Sweeps for each update, the k of CD-k.
    updates
        Number of updates of the parameters.
    batch_size
        Rows drawn for an update, with replacement.
    particles
        Persistent chains of "pcd".
    learning_rate
        Rate, or a JAX function of the share of training done, in [0, 1], to one.
    momentum
        Share of the last update that is repeated.
    weight_decay
        L2 penalty of the weights.
    start
        Machine to go on from; default: small random weights, the base rates as visible biases.
    monitor
        Function of the machine to named numbers, added to the history; for example its log
        likelihood, exact or by :func:`sample_ais`.
    random_seed
        Seed.
    progressbar
        Whether to show progress.

    Returns
    -------
    TrainedRBM
        Its history has ``reconstruction_error`` and ``pseudo_log_likelihood`` of some rows.

    Raises
    ------
    ValueError
        Data are outside [0, 1], or another argument makes no sense.
    """
    data = check_rows(data)
    if method not in ("cd", "pcd"):
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
    seed_start, seed_run = seed_sequence(random_seed).spawn(2)
    model = start or _initial(data, n_hidden, seed_start)
    rate = learning_rate if callable(learning_rate) else _Constant(float(learning_rate))
    rule = _Rule(
        learning_rate=rate,
        momentum=float(momentum),
        weight_decay=float(weight_decay),
        gibbs_steps=gibbs_steps,
        persistent=method == "pcd",
        batch_size=batch_size,
        updates=updates,
    )
    fantasy = model.sample(particles, steps=1, random_seed=seed_start)
    source = np.asarray(data, model.weights.dtype)
    watched = data[np.linspace(0, len(data) - 1, min(len(data), _MONITORED)).astype(int)]

    def report(machine: RBM) -> dict[str, float]:
        numbers = {
            "reconstruction_error": reconstruction_error(machine, watched),
            "pseudo_log_likelihood": pseudo_log_likelihood(machine, watched),
        }
        return numbers | dict(monitor(machine) if monitor else {})

    return _fit(model, source, rule, fantasy, seed_run, report, progressbar)


def fit_moments_pcd(
    target: Moments,
    start: RBM,
    *,
    updates: int = 50_000,
    learning_rate: float = 0.01,
    particles: int = 100,
    random_seed: Any = None,
) -> RBM:
    """Fit a machine to given moments by persistent contrastive divergence.

    Parameters
    ----------
    target
        Moments to match, for example averages (Grosse, Maddison & Salakhutdinov 2013, section 5.2:
        50,000 updates with rate 0.01; the cheap variant 1,000 updates with 100 particles).
    start
        Machine to begin with.
    updates, learning_rate, particles
        As for :func:`train`.
    random_seed
        Seed.
    """
    check_count("updates", updates)
    check_count("particles", particles)
    _check_rates(learning_rate, 0.0, 0.0)
    check_moments(target, start)
    rule = _Rule(_Constant(learning_rate), updates=updates)
    seed_start, seed_run = seed_sequence(random_seed).spawn(2)
    fantasy = start.sample(particles, steps=100, random_seed=seed_start)
    dtype = start.weights.dtype
    source = Moments(*(np.asarray(x, dtype) for x in target))
    return _fit(start, source, rule, fantasy, seed_run, lambda machine: {}, False).model


def reconstruction_error(model: RBM, data: np.ndarray) -> float:
    """Mean square difference, summed over units, of data and their mean-field reconstruction."""
    data = check_rows(data, model.n_visible)
    rebuilt = model.visible_probability(model.hidden_probability(data))
    return float(((data - rebuilt) ** 2).sum(axis=1).mean())


def pseudo_log_likelihood(model: RBM, data: np.ndarray, random_seed: Any = 0) -> float:
    """Mean log pseudo-likelihood of data, ``sum_i log p(v_i | v_-i)``, in nats.

    One unit of each row is flipped, drawn at random, and stands for all (as in scikit-learn).
    Values in [0, 1] are rounded.
    """
    visible = np.round(check_rows(data, model.n_visible))
    rows = np.arange(len(visible))
    unit = np.random.default_rng(random_seed).integers(0, model.n_visible, len(visible))
    flipped = visible.copy()
    flipped[rows, unit] = 1 - flipped[rows, unit]
    odds = model.log_density(visible) - model.log_density(flipped)
    return float(model.n_visible * np.log(np.maximum(expit(odds), 1e-300)).mean())


def _check_rates(learning_rate: Any, momentum: float, weight_decay: float) -> None:
    if not callable(learning_rate) and not np.isfinite(learning_rate):
        raise ValueError(f"`learning_rate` is {learning_rate}, expected a finite number.")
    if not 0 <= momentum < 1:
        raise ValueError(f"`momentum` is {momentum}, expected a number in [0, 1).")
    if not 0 <= weight_decay < np.inf:
        raise ValueError(f"`weight_decay` is {weight_decay}, expected a number >= 0.")


@dataclass(frozen=True)
class _Constant:
    """A learning rate that stays the same."""

    value: float

    def __call__(self, share: Any) -> float:
        return self.value


class _Rule(NamedTuple):
    """How parameters are updated; without a batch size the positive moments are given."""

    learning_rate: Callable[[Any], Any]
    momentum: float = 0.0
    weight_decay: float = 0.0
    gibbs_steps: int = 1
    persistent: bool = True
    batch_size: int | None = None
    updates: int = 1


class _State(NamedTuple):
    model: RBM
    velocity: RBM
    fantasy: jax.Array


def _initial(data: np.ndarray, n_hidden: int, seed: np.random.SeedSequence) -> RBM:
    """Small weights; visible biases at the base rates (Hinton 2012, section 8)."""
    rng = np.random.default_rng(seed)
    rate = (data.sum(axis=0, dtype=float) + 1) / (len(data) + 2)
    weights = 0.01 * rng.normal(size=(data.shape[1], n_hidden))
    return RBM(np.log(rate / (1 - rate)), np.zeros(n_hidden), weights.astype(np.float32))


def _fit(
    model: RBM,
    source: Any,
    rule: _Rule,
    fantasy: np.ndarray,
    seed: np.random.SeedSequence,
    report: Callable[[RBM], Mapping[str, float]],
    progressbar: bool,
) -> TrainedRBM:
    """Update in a few dozen compiled calls, with a report after each."""
    rows: list[dict[str, float]] = []
    done, interrupted, size = 0, False, -(-rule.updates // _REPORTS)
    # Double precision is on whatever the caller has set: the type is that of the machine.
    with jax.enable_x64(True), ProgressDisplay(progressbar) as display:
        source = jax.tree.map(jnp.asarray, source)
        machine = jax.tree.map(jnp.asarray, model)
        still = jax.tree.map(jnp.zeros_like, machine)
        state = _State(machine, still, jnp.asarray(fantasy, model.weights.dtype))
        display.start_training(rule.updates)
        try:
            while done < rule.updates:
                count = min(size, rule.updates - done)
                state = _updated(state, source, key_of(seed), done, count, rule)
                done += count
                model = jax.tree.map(np.asarray, state.model)
                rows.append({"update": done, **report(model)})
                display.training(rows[-1])
        except KeyboardInterrupt:
            interrupted = True
    history = {name: np.array([row[name] for row in rows]) for name in rows[0]} if rows else {}
    return TrainedRBM(model, history, interrupted)


@partial(jax.jit, static_argnames="rule")
def _updated(state: _State, source: Any, key: jax.Array, first, count, rule: _Rule) -> _State:
    def update(i, state: _State) -> _State:
        return _update(state, source, jax.random.fold_in(key, first + i), first + i, rule)

    return jax.lax.fori_loop(0, count, update, state)


def _update(state: _State, source: Any, key: jax.Array, number, rule: _Rule) -> _State:
    key_batch, key_sweep = jax.random.split(key)
    model, start, positive = state.model, state.fantasy, source
    if rule.batch_size is not None:
        batch = source[jax.random.randint(key_batch, (rule.batch_size,), 0, len(source))]
        positive = batch_moments(model, batch)
        start = state.fantasy if rule.persistent else batch
    fantasy = sweep(model, key_sweep, start, rule.gibbs_steps)
    negative = batch_moments(model, fantasy)
    rate = rule.learning_rate(number / rule.updates)
    slope = RBM.of(*(p - n for p, n in zip(positive, negative, strict=True)))
    slope = RBM.of(
        slope.visible_bias,
        slope.hidden_bias,
        slope.weights - rule.weight_decay * model.weights,
    )
    velocity = jax.tree.map(
        lambda v, s: (rule.momentum * v + rate * s).astype(v.dtype), state.velocity, slope
    )
    moved = jax.tree.map(jnp.add, model, velocity)
    return _State(moved, velocity, fantasy if rule.persistent else state.fantasy)
