"""Draws at any inverse temperature.

The power posterior ``f_beta(x) = prior(x) L(x)^beta`` is the prior at 0 and the posterior at 1;
above 1 the data count more than once. One run anneals from the prior to the largest ``beta`` asked
for and stops at each of the others on the way: the particles there, with their running weights,
are a sample of ``f_beta``, and the mean weight estimates its normaliser (Neal 2001, section 2).
"""

import math
import time

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np
import pymc as pm
import xarray as xr

from pymc_anneal.adaptation.plan import effective_length
from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.resampling import equal_weights
from pymc_anneal.base.arviz_compat import container
from pymc_anneal.base.contracts import LogTerms, Transition
from pymc_anneal.base.seeds import seed_sequence
from pymc_anneal.evidence.ais import ais
from pymc_anneal.evidence.diagnostics import weight_pareto_k
from pymc_anneal.execution.progress import ProgressDisplay
from pymc_anneal.execution.workers import check_executor
from pymc_anneal.model.compile import CompiledModel, as_compiled
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.pipeline.choose_transition import transition_for
from pymc_anneal.pipeline.rounds import plan_run, survey
from pymc_anneal.pipeline.session import Session, explaining_nan
from pymc_anneal.pipeline.settings import Options
from pymc_anneal.results.container import dataset, library_attrs
from pymc_anneal.schedules.validate import check_schedule
from pymc_anneal.schedules.variational import variational_schedule


@dataclass(frozen=True)
class Powered:
    """Log terms with the likelihood raised to a power, of which the path's beta is a share."""

    log_terms: Callable[[jax.Array], LogTerms]
    power: float

    def __call__(self, x: jax.Array) -> LogTerms:
        """Return ``log prior`` and ``power V`` at one position."""
        terms = self.log_terms(x)
        return LogTerms(terms.log_prior, self.power * terms.log_likelihood)


class _Stop(NamedTuple):
    """The particles at one of the temperatures asked for."""

    beta: float
    position: np.ndarray
    log_weight: np.ndarray


def power_posterior(
    betas: Sequence[float] | np.ndarray | float,
    *,
    draws: int = 500,
    chains: int = 4,
    steps: int | str = "auto",
    target_mcse: float = 0.1,
    transition: str | Transition = "hmc",
    cores: int | None = None,
    executor: Executor | None = None,
    random_seed: Any = None,
    progressbar: bool = True,
    model: pm.Model | CompiledModel | None = None,
) -> Any:
    """Draw from power posteriors, ``prior x likelihood^beta``.

    Parameters
    ----------
    betas
        One or several inverse temperatures: 0 is the prior, 1 the posterior, 2 the posterior had
        all the data been seen twice.
    draws
        Draws in each chain at each of them.
    chains, steps, target_mcse, transition, cores, executor, random_seed, progressbar, model
        As for :func:`sample_ais`; steps and error are those of the path to the largest beta.

    Returns
    -------
    InferenceData or DataTree
        ``posterior`` with dimensions (chain, draw, power, ...), where ``power`` is the inverse
        temperature: draws at different ones share an index but nothing else. ``sample_stats``
        holds the ``log_likelihood`` of each draw (nats), the group ``power`` by temperature the
        log normaliser ``log_z`` with its ``mcse``, the ``ess`` of the weights and their
        ``pareto_k``. See :func:`power_sensitivity` and :func:`plot_sensitivity`.

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        A beta is negative or not finite, or as for :func:`sample_ais`.

    References
    ----------
    Neal (2001), Annealed importance sampling. Friel & Pettitt (2008), Marginal likelihood
    estimation via power posteriors.

    Examples
    --------
    >>> idata = pymc_anneal.power_posterior([0.5, 1, 2], model=model)
    >>> pymc_anneal.power_sensitivity(idata)
    """
    stops, begin = _checked(betas), time.perf_counter()
    options = Options(
        draws=draws,
        chains=chains,
        steps=steps,
        target_mcse=target_mcse,
        cores=cores,
    )
    check_executor(executor)
    compiled = as_compiled(model)
    kernel = transition_for(transition, compiled)
    _names(compiled, [])
    seed_stages, seed_run, seed_draws = seed_sequence(random_seed).spawn(3)
    path = GeometricPath(Powered(compiled.log_terms, float(stops[-1]) or 1.0))
    with ProgressDisplay(progressbar) as display:
        session = Session(
            compiled, path, compiled.sample_prior, options, display, seed_stages, executor
        )
        with explaining_nan(compiled):
            found = _anneal(session, kernel, stops, seed_run)
    return _container(session, found, seed_draws, time.perf_counter() - begin)


def _checked(betas: Any) -> np.ndarray:
    values = np.unique(np.asarray(betas, dtype=float).ravel())
    if not len(values) or not np.isfinite(values).all() or values[0] < 0:
        raise ValueError(
            f"`betas` is {betas}, expected inverse temperatures: finite numbers, 0 or above."
        )
    return values


def _anneal(
    session: Session, kernel: Transition, stops: np.ndarray, seed: np.random.SeedSequence
) -> list[_Stop]:
    """Anneal from one temperature to the next, weights running on."""
    seed_start, *seeds = seed.spawn(1 + len(stops))
    particles = session.options.draws * session.options.chains
    if stops[-1] == 0:
        return [_at_prior(session.blocks(kernel, np.zeros(1), particles, seed_start))]
    transition, schedule = _planned(session, kernel, stops / stops[-1])
    blocks = session.blocks(transition, schedule, particles, seed_start)
    now = _at_prior(blocks)
    found = [now] if stops[0] == 0 else []
    for stop, child in zip(stops, seeds, strict=True):
        if stop == 0:
            continue
        part = schedule[(schedule >= now.beta / stops[-1]) & (schedule <= stop / stops[-1])]
        run = session.run(f"To beta {stop:g}", _onward(blocks, part, now.position, child))
        if run.interrupted:
            raise KeyboardInterrupt
        now = _Stop(stop, run.position, now.log_weight + run.log_weight)
        found.append(now)
    return found


def _at_prior(blocks: list[Block]) -> _Stop:
    chains = blocks[0].chains
    parts = [b.position.reshape(chains, -1, b.position.shape[1]) for b in blocks]
    position = np.concatenate(parts, axis=1)
    return _Stop(0.0, position, np.zeros(position.shape[:2]))


def _planned(session: Session, kernel: Transition, stops: np.ndarray):
    """Return the tuned transition, and a schedule that passes through all stops."""
    seed_pilot, seed_trial = session.seed.spawn(2)
    pilot = survey(session, kernel, seed_pilot)
    steps = session.options.fixed_steps or plan_run(session, pilot, seed_trial).steps
    schedule = variational_schedule(pilot.betas, effective_length(pilot), steps)
    return pilot.transition, check_schedule(np.union1d(schedule, stops))


def _onward(
    blocks: list[Block], betas: np.ndarray, position: np.ndarray, seed: np.random.SeedSequence
) -> list[Block]:
    """Return the blocks that go on from where the particles are, shape (chains, particles, d)."""
    parts = np.split(position, len(blocks), axis=1)
    return [
        replace(block, betas=betas, position=part.reshape(block.position.shape), seed=child)
        for block, part, child in zip(blocks, parts, seed.spawn(len(blocks)), strict=True)
    ]


def _container(
    session: Session, found: list[_Stop], seed: np.random.SeedSequence, seconds: float
) -> Any:
    compiled, draws = session.compiled, session.options.draws
    rng = np.random.default_rng(seed)
    chosen = [equal_weights(stop.position, stop.log_weight, draws, rng) for stop in found]
    drawn = np.stack(chosen, axis=2)
    flat = drawn.reshape(math.prod(drawn.shape[:3]), compiled.ndim)
    with jax.enable_x64(True):
        terms = jax.jit(jax.vmap(compiled.log_terms))(flat)
    values = {"log_likelihood": np.asarray(terms.log_likelihood), **compiled.constrain(flat)}
    shaped = {name: v.reshape(*drawn.shape[:3], *v.shape[1:]) for name, v in values.items()}
    leading, coords, dims = _names(compiled, [stop.beta for stop in found])
    statistics = {"log_likelihood": shaped.pop("log_likelihood")}
    attrs = library_attrs() | {"sampling_time": seconds}
    groups = {
        "posterior": dataset(shaped, leading, coords, dims),
        "sample_stats": dataset(statistics, leading, coords),
        "power": _by_beta(found),
        "observed_data": dataset(compiled.observed_data(), (), coords, dims),
        "constant_data": dataset(compiled.constant_data(), (), coords, dims),
    }
    kept = {name: group for name, group in groups.items() if group.data_vars}
    return container({name: group.assign_attrs(attrs) for name, group in kept.items()})


def _names(compiled: CompiledModel, betas: list[float]):
    coords, dims = compiled.coords_and_dims()
    if "power" in {*coords, *(v.name for v in compiled.model.unobserved_RVs)}:
        raise ValueError(
            "The model has a variable or coordinate 'power', the name of the dimension of inverse "
            "temperatures: rename it."
        )
    return ("chain", "draw", "power"), {**coords, "power": betas}, dims


def _by_beta(found: list[_Stop]) -> xr.Dataset:
    estimates = [ais(stop.log_weight) for stop in found]
    values = {
        "log_z": [e.log_evidence for e in estimates],
        "mcse": [e.mcse for e in estimates],
        "ess": [e.ess for e in estimates],
        "pareto_k": [weight_pareto_k(stop.log_weight) for stop in found],
    }
    coords = {"power": [stop.beta for stop in found]}
    return xr.Dataset({k: ("power", np.asarray(v)) for k, v in values.items()}, coords=coords)
