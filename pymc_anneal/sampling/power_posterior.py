"""Draws at any inverse temperature.

The power posterior ``f_beta(x) = prior(x) L(x)^beta`` is the prior at 0 and the posterior at 1;
above 1 the data count more than once. One run anneals from the prior to the largest ``beta`` asked
for, through all the others: the particles recorded there, with their running weights, are a sample
of ``f_beta``, and the mean weight estimates its normaliser (Neal 2001, section 2).
"""

import math
import os
import time
import warnings

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
import pymc as pm
import xarray as xr

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.base.caller import levels_to_caller
from pymc_anneal.base.contracts import LogTerms, Transition
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed
from pymc_anneal.evidence.ais import ais, population_means
from pymc_anneal.evidence.diagnostics import weight_pareto_k
from pymc_anneal.evidence.verdict import EvidenceWarning
from pymc_anneal.execution.blocks import AnnealedRun
from pymc_anneal.execution.checkpoint import Checkpoint
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.misplaced_model import check_not_model
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.pipeline.choose_transition import TransitionName, choose_transition
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.result import describe_interruption, draw_posterior
from pymc_anneal.pipeline.run import run_forward
from pymc_anneal.pipeline.session import Session, open_session
from pymc_anneal.pipeline.settings import Resample, Settings, Steps, resolve_resample
from pymc_anneal.pipeline.target import RunCandidate
from pymc_anneal.results.container import library_attrs

_LEADING = ("chain", "draw", "power")


@dataclass(frozen=True)
class PoweredLikelihood:
    """Log terms with the likelihood raised to a power, of which the path's beta is a share."""

    log_terms: Callable[[jax.Array], LogTerms]
    power: float

    def __call__(self, x: jax.Array) -> LogTerms:
        """Return ``log prior`` and ``power V`` at one position of shape ``(d,)``."""
        terms = self.log_terms(x)
        return LogTerms(terms.log_prior, self.power * terms.log_likelihood)


class _Sample(NamedTuple):
    """Weighted particles at one temperature.

    Attributes
    ----------
    beta : float
    position, log_weight : ndarray, shapes (chains, particles, d) and (chains, particles)
    population_size : int
    """

    beta: float
    position: np.ndarray
    log_weight: np.ndarray
    population_size: int = 1


@double_precision
def power_posterior(
    betas: Sequence[float] | np.ndarray | float,
    *,
    draws: int = 500,
    chains: int = 4,
    steps: Steps = "auto",
    target_mcse: float = 0.1,
    transition: TransitionName | Transition = "auto",
    resample: Resample = None,
    max_minutes: float = 20.0,
    cores: int | None = None,
    block_size: int | None = None,
    executor: Executor | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    model: pm.Model | CompiledModel | None = None,
) -> Any:
    """Draw from power posteriors, ``prior x likelihood^beta``.

    Parameters
    ----------
    betas : float or sequence of float
        One or several inverse temperatures: 0 is the prior, 1 the posterior, 2 the posterior had
        all the data been seen twice.
    draws : int
        Draws in each chain at each of them.
    chains, steps, target_mcse, transition, resample, max_minutes, cores, block_size, executor
        As for :func:`sample_ais`; steps and error are those of the path to the largest beta.
    checkpoint, random_seed, progressbar, model
        As for :func:`sample_ais`.

    Returns
    -------
    InferenceData or DataTree
        ``posterior`` with dimensions (chain, draw, power, ...), where ``power`` is the inverse
        temperature; draws at different temperatures share an index but nothing else.
        ``sample_stats`` holds the ``log_likelihood`` of each draw (nats), the group ``power`` by
        temperature the log normaliser ``log_z`` with its ``mcse`` (nats), the ``ess`` of the
        weights and their ``pareto_k``. See :func:`power_sensitivity` and
        :func:`plot_sensitivity`. After Ctrl-C the particles that were finished, and the attribute
        ``interruption`` of all groups says how many.

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        A beta is negative or not finite, or as for :func:`sample_ais`.

    Warns
    -----
    EvidenceWarning
        The run was interrupted.

    References
    ----------
    Neal (2001), Annealed importance sampling, section 2. Friel & Pettitt (2008), Marginal
    likelihood estimation via power posteriors.

    Examples
    --------
    >>> idata = pymc_anneal.power_posterior([0.5, 1, 2], model=model)
    >>> pymc_anneal.power_sensitivity(idata)
    """
    check_not_model("betas", betas)
    powers, begin = _check_betas(betas), time.perf_counter()
    largest = float(powers[-1]) or 1.0
    settings = Settings(
        draws=draws,
        chains=chains,
        steps=steps,
        target_mcse=target_mcse,
        max_minutes=max_minutes,
        cores=cores,
        block_size=block_size,
        resample=resolve_resample(resample),
        stops=tuple((powers / largest).tolist()),
    )
    target = ModelTarget(as_compiled(model))
    _check_names(target.compiled)
    kernel = choose_transition(transition, target.compiled)
    path = GeometricPath(PoweredLikelihood(target.compiled.log_terms, largest))
    candidate = RunCandidate("prior", target.compiled.sample_prior, path)
    with open_session(
        target,
        settings,
        random_seed=random_seed,
        executor=executor,
        checkpoint=checkpoint,
        progressbar=progressbar,
        choices={"transition": kernel, "betas": powers},
    ) as session:
        if powers[-1] == 0:
            samples, stopped = [_prior_sample(session, candidate)], ""
        else:
            run = run_forward(session, candidate, kernel).run
            samples = [_recorded_sample(run, beta, largest) for beta in powers]
            stopped = describe_interruption(run, False)
    attrs: dict[str, Any] = {"sampling_time": time.perf_counter() - begin}
    if stopped:
        attrs["interruption"] = stopped
        message = f"The run was interrupted: {stopped}."
        warnings.warn(message, EvidenceWarning, stacklevel=levels_to_caller())
    return _build_container(session, target, samples, attrs)


def _check_betas(betas: Any) -> np.ndarray:
    values = np.unique(np.asarray(betas, dtype=float).ravel())
    if not len(values) or not np.isfinite(values).all() or values[0] < 0:
        raise ValueError(
            f"`betas` is {betas}, expected inverse temperatures: finite numbers, 0 or above."
        )
    return values


def _check_names(compiled: CompiledModel) -> None:
    coords, _ = compiled.coords_and_dims()
    if "power" in {*coords, *(v.name for v in compiled.model.unobserved_RVs)}:
        raise ValueError(
            "The model has a variable or coordinate 'power', the name of the dimension of inverse "
            "temperatures: rename it."
        )


def _prior_sample(session: Session, candidate: RunCandidate) -> _Sample:
    settings = session.settings
    shape = settings.chains, settings.draws
    draws = candidate.draw_reference(session.seeds.counted, math.prod(shape))
    return _Sample(0.0, draws.reshape(*shape, draws.shape[1]), np.zeros(shape))


def _recorded_sample(run: AnnealedRun, beta: float, largest: float) -> _Sample:
    """Return the particles that the run recorded at one of its stops."""
    rung = int(np.argmin(np.abs(run.betas[run.rungs] - beta / largest)))
    ladder = run.ladder
    return _Sample(beta, ladder.position[rung], ladder.log_weight[rung], run.population_size)


@double_precision
def _build_container(
    session: Session, target: ModelTarget, samples: list[_Sample], attrs: dict[str, Any]
) -> Any:
    drawn = np.stack(
        [draw_posterior(session, s.position, s.log_weight, s.population_size) for s in samples],
        axis=2,
    )
    compiled, shape = target.compiled, drawn.shape[:3]
    flat = drawn.reshape(math.prod(shape), compiled.ndim)
    terms = jax.jit(jax.vmap(compiled.log_terms))(flat)
    values = {"log_likelihood": np.asarray(terms.log_likelihood), **compiled.constrain(flat)}
    shaped = {name: v.reshape(*shape, *v.shape[1:]) for name, v in values.items()}
    powers = ModelTarget(compiled, {"coords": {"power": [s.beta for s in samples]}})
    statistics = {"log_likelihood": shaped.pop("log_likelihood")}
    groups = {
        "posterior": powers.named(shaped, _LEADING),
        "sample_stats": powers.named(statistics, _LEADING),
        "power": _estimates(samples),
        **target.data_groups(),
    }
    attrs = library_attrs() | attrs
    return container({name: g.assign_attrs(attrs) for name, g in groups.items() if g.data_vars})


def _estimates(samples: list[_Sample]) -> xr.Dataset:
    """Return log normalisers and diagnostics by temperature."""
    estimates = [ais(s.log_weight, population_size=s.population_size) for s in samples]
    units = [population_means(s.log_weight, s.population_size) for s in samples]
    values = {
        "log_z": [e.log_evidence for e in estimates],
        "mcse": [e.mcse for e in estimates],
        "ess": [e.ess for e in estimates],
        "pareto_k": [weight_pareto_k(unit) for unit in units],
    }
    coords = {"power": [s.beta for s in samples]}
    return xr.Dataset({k: ("power", np.asarray(v)) for k, v in values.items()}, coords=coords)
