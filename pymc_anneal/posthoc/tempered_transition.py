"""Tempered transitions (Neal 1996): a PyMC step that heats the chain and cools it down again.

From ``x`` at ``beta_K = 1`` the path is followed to the reference at ``beta_0 = 0`` and back,
moving at ``beta_k`` with ``T_k`` while heating and with its reversal while cooling. With ``x^_k``
and ``x~_k`` the points at which beta changes between ``beta_k`` and ``beta_{k-1}``, heating and
cooling, the end is accepted with probability

    min(1, prod_k f_{k-1}(x^_k)/f_k(x^_k) prod_k f_k(x~_k)/f_{k-1}(x~_k))

(Neal 1996, eq. 3), which leaves the posterior invariant. Here the move at ``beta_0`` is a fresh
draw of the reference, so the end of an accepted excursion is independent of its start. A move by
``T_K`` follows, whether the excursion was accepted or not.

Reference: Neal (1996), Sampling from multimodal distributions using tempered transitions.
"""

import math

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.util import get_random_generator

from pymc_anneal.adaptation.pilot import run_pilot
from pymc_anneal.adaptation.plan import effective_length, trial_steps
from pymc_anneal.adaptation.tuning import needs_pilot
from pymc_anneal.base.contracts import KernelState, Path, Scalar, Transition
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.pickling import SharedPickle
from pymc_anneal.base.programs import forgettable
from pymc_anneal.base.seeds import key_from_words
from pymc_anneal.model.compile import CompiledModel, compile_model
from pymc_anneal.paths.references import Reference
from pymc_anneal.pipeline.choose_transition import TransitionName, choose_transition
from pymc_anneal.pipeline.given_start import reference_candidate
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.target import RunCandidate
from pymc_anneal.schedules.validate import check_schedule, check_steps
from pymc_anneal.schedules.variational import variational_schedule

# Particles of the pilot, as in a default run.
_PILOT_PARTICLES = 512
# Draws of the reference made at a time: one evaluation of the model's graph gives that many.
_BUFFER = 512


class Statistics(TypedDict):
    """Statistics of one step."""

    accept: float
    accepted: float
    log_accept_ratio: float
    inner_accept: float
    tune: bool


class TemperedTransition(BlockedStep):  # type: ignore[misc]  # PyMC has no types
    """A step method that moves between separated modes.

    Pass it to ``pymc.sample(step=...)``, alone or after another one that explores each mode
    (``step=[pymc.NUTS(), TemperedTransition()]``). It moves all free variables together. Its
    pilot runs when it is made; nothing adapts while sampling, so ``tune`` may be short.

    Parameters
    ----------
    vars : list of variables, optional
        All value variables of the model, which is the default.
    schedule : array or int, optional
        Inverse temperatures from 0 to 1, or the number of steps. Default: from the pilot, long
        enough for excursions to be accepted often if the transitions mix.
    transition : str or Transition
        As for :func:`sample_ais`.
    reference : "prior" or Reference
        "prior", or an object like those that :func:`fit_reference` returns.
    model : pymc.Model, optional
        Default: the model on the context stack.
    rng : seed or Generator, optional
        Seed of the pilot and, outside of :func:`pymc.sample`, of the steps.
    blocked : bool
        For PyMC; has to be true.

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        ``vars`` are not all of the model's, an argument makes no sense, or the model cannot be
        annealed (see :func:`compile_model`).

    Notes
    -----
    Statistics of each step: ``accept`` (probability of the excursion), ``accepted``,
    ``log_accept_ratio`` (nats), ``inner_accept`` (mean acceptance probability of the inner
    moves), ``tune``.

    With more than one core PyMC runs chains in processes; JAX is not safe to be forked: use
    ``cores=1`` or ``mp_ctx="spawn"``.

    References
    ----------
    Neal (1996), Sampling from multimodal distributions using tempered transitions, Statistics
    and Computing 6, 353-366.

    Examples
    --------
    >>> with model:
    ...     idata = pymc.sample(step=pymc_anneal.TemperedTransition(), cores=1)
    """

    name = "tempered_transition"
    default_blocked = True
    stats_dtypes_shapes: dict[str, Any] = {
        "accept": (np.float64, []),
        "accepted": (np.float64, []),  # as PyMC's Metropolis: names are shared in a compound
        "log_accept_ratio": (np.float64, []),
        "inner_accept": (np.float64, []),
        "tune": (bool, []),
    }
    _state_class = StepMethodState

    @double_precision
    def __init__(
        self,
        vars: Sequence[Any] | None = None,
        *,
        schedule: Sequence[float] | np.ndarray | int | None = None,
        transition: TransitionName | Transition = "auto",
        reference: Literal["prior"] | Reference = "prior",
        model: pm.Model | None = None,
        rng: Any = None,
        blocked: bool = True,
    ) -> None:
        model = pm.modelcontext(model)
        self.vars = _all_variables(vars, model)
        self.var_names = tuple(v.name for v in self.vars)
        self.blocked, self.tune = blocked, True
        self.rng = get_random_generator(rng)
        compiled = compile_model(model)
        self._slices = compiled.variables
        start = _candidate(compiled, reference)
        kernel = choose_transition(transition, compiled)
        tuned, self._betas = self._plan(start, kernel, schedule)
        # In other processes, to which PyMC sends the step, arrays keep their precision.
        self._moves = SharedPickle((start.path, tuned, start.draw_reference))

    @property
    def _path(self) -> Path:
        return self._moves.value[0]

    @property
    def _transition(self) -> Transition:
        return self._moves.value[1]

    @property
    def _draw(self) -> Callable[[np.random.SeedSequence, int], np.ndarray]:
        return self._moves.value[2]

    def _plan(
        self, start: RunCandidate, kernel: Transition, schedule: Any
    ) -> tuple[Transition, np.ndarray]:
        """Tune the kernel and set the schedule."""
        given = schedule is not None and not np.isscalar(schedule)
        if given and not needs_pilot(kernel):
            return kernel, check_schedule(schedule)
        seed_start, seed_run = self._seed().spawn(2)
        position = start.draw_reference(seed_start, _PILOT_PARTICLES)
        pilot = run_pilot(start.path, kernel, position, seed_run)
        if given:
            return pilot.transition, check_schedule(schedule)
        # Each leg then has a variance of half a nat^2: 6 of 10 excursions are accepted.
        steps = check_steps(schedule) if schedule is not None else 2 * trial_steps(pilot)
        length = effective_length(pilot)
        return pilot.transition, variational_schedule(pilot.betas, length, steps)

    @property
    def rng(self) -> np.random.Generator:
        """Source of randomness; each chain has its own."""
        return self._rng

    @rng.setter
    def rng(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._fresh: list[np.ndarray] = []  # no draws of another chain

    @property
    def betas(self) -> np.ndarray:
        """The schedule, shape ``(K + 1,)``."""
        return self._betas

    @staticmethod
    def competence(var: Any, has_grad: bool = False) -> Competence:
        """Return that PyMC must not assign the step method by itself."""
        return Competence.INCOMPATIBLE

    def step(self, point: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], list[Statistics]]:
        """Make one excursion and one move.

        Parameters
        ----------
        point
            Unconstrained values by variable.

        Returns
        -------
        dict of str to ndarray, list of dict
            The next point, and the statistics of the step.
        """
        parts = [np.ravel(point[v.name]) for v in self.vars]
        position = np.concatenate([np.empty(0), *parts])
        found = self._run_excursion(position)
        statistics = Statistics(
            accept=math.exp(min(float(found.log_ratio), 0.0)),
            accepted=float(found.accepted),
            log_accept_ratio=float(found.log_ratio),
            inner_accept=float(found.inner_accept),
            tune=bool(self.tune),
        )
        end = np.asarray(found.position)
        new = {
            v.name: end[s.start : s.stop].reshape(s.shape).astype(point[v.name].dtype)
            for v, s in zip(self.vars, self._slices, strict=True)
        }
        return {**point, **new}, [statistics]

    @double_precision
    def _run_excursion(self, position: np.ndarray) -> "_Excursion":
        key = key_from_words(self.rng.integers(2**32, size=2, dtype=np.uint32))
        draw = self._next_draw()
        found: _Excursion = jax.device_get(
            _excursion(self._path, self._transition, self._betas, key, position, draw)
        )
        return found

    def _next_draw(self) -> np.ndarray:
        """Return a draw of the reference that has not been used."""
        if not self._fresh:
            self._fresh = list(self._draw(self._seed(), _BUFFER))
        return self._fresh.pop()

    def _seed(self) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.rng.integers(2**63, size=4).tolist())


def _all_variables(vars: Sequence[Any] | None, model: pm.Model) -> list[Any]:
    """Return the model's value variables, in the order of the vector."""
    if vars is not None:
        given = vars if isinstance(vars, list | tuple) else [vars]
        names = {model.rvs_to_values.get(v, v).name for v in given}
        missing = [v.name for v in model.value_vars if v.name not in names]
        if missing:
            raise ValueError(
                f"TemperedTransition was given {sorted(names)}, without {missing}; it moves all "
                "free variables together. Leave out `vars`."
            )
    return list(model.value_vars)


def _candidate(compiled: CompiledModel, reference: Literal["prior"] | Reference) -> RunCandidate:
    """Return the path from a reference, and the draws at its start."""
    if isinstance(reference, str):
        if reference != "prior":
            raise ValueError(
                f"Unknown `reference` {reference!r}; expected 'prior' or an object like those "
                "that fit_reference returns."
            )
        return ModelTarget(compiled).candidate()
    compiled.require_normalised("A reference other than the prior")
    return reference_candidate(compiled, reference, type(reference).__name__)


class _Excursion(NamedTuple):
    """End of an excursion.

    Attributes
    ----------
    position : Array, shape (d,)
    log_ratio : Array, shape ()
        Log acceptance ratio, in nats.
    accepted : Array of bool, shape ()
    inner_accept : Array, shape ()
        Mean acceptance probability of the inner moves.
    """

    position: jax.Array
    log_ratio: jax.Array
    accepted: jax.Array
    inner_accept: jax.Array


class _Leg(NamedTuple):
    """State after heating or cooling, sum of log ratios and of acceptance probabilities."""

    state: KernelState
    log_ratio: jax.Array
    accept: jax.Array


@forgettable
@jax.jit
def _excursion(
    path: Path,
    transition: Transition,
    betas: jax.Array,
    key: jax.Array,
    position: jax.Array,
    fresh: jax.Array,
) -> _Excursion:
    """Heat, draw from the reference, cool, accept or reject, and move once more."""
    keys = jax.random.split(key, 6)
    here = _particle(path, transition, keys[0], position)
    heating = _run_leg(path, transition, betas[::-1], keys[1], here)
    back = transition.reversal()
    far = _particle(path, back, keys[2], fresh)
    cooling = _run_leg(path, back, betas, keys[3], far)
    total = heating.log_ratio + cooling.log_ratio
    log_ratio = jnp.where(jnp.isnan(total), -jnp.inf, total)
    accepted = jnp.log(jax.random.uniform(keys[4])) < log_ratio
    chosen = jnp.where(accepted, cooling.state.position[0], here.position[0])
    key_own, key_move = jax.random.split(keys[5])
    moved, info = transition.step(
        key_move, _particle(path, transition, key_own, chosen), path, jnp.asarray(1.0)
    )
    inner = (heating.accept + cooling.accept + info.accept_rate[0]) / (2 * len(betas) - 3)
    return _Excursion(moved.position[0], log_ratio, accepted, inner)


def _particle(
    path: Path, transition: Transition, key: jax.Array, position: jax.Array
) -> KernelState:
    """Return the state of one particle, with newly drawn auxiliary variables."""
    position = jnp.asarray(position)[None]
    return KernelState(position, path.evaluate(position), transition.init(key, position))


def _run_leg(
    path: Path, transition: Transition, betas: jax.Array, key: jax.Array, state: KernelState
) -> _Leg:
    """Change beta and move, up to the last change, after which there is no move."""

    def body(leg: _Leg, inputs: tuple[jax.Array, Scalar, Scalar]) -> tuple[_Leg, None]:
        key, start, stop = inputs
        log_ratio = leg.log_ratio + path.log_ratio(leg.state.terms, start, stop)[0]
        state, info = transition.step(key, leg.state, path, stop)
        return _Leg(state, log_ratio, leg.accept + info.accept_rate[0]), None

    keys = jax.random.split(key, len(betas) - 1)[: len(betas) - 2]
    inputs = (keys, betas[:-2], betas[1:-1])
    zero = jnp.zeros(())
    leg, _ = jax.lax.scan(body, _Leg(state, zero, zero), inputs)
    last = path.log_ratio(leg.state.terms, betas[-2], betas[-1])[0]
    return leg._replace(log_ratio=leg.log_ratio + last)
