"""Tempered transitions (Neal 1996): a PyMC step that heats the chain up and cools it down again.

From ``x`` at ``beta_K = 1`` the path is followed down to the reference at ``beta_0 = 0`` and back,
moving at ``beta_k`` with ``T_k`` on the way up in temperature and with its reversal on the way
down. With ``x^_k``, ``x~_k`` the points at which beta
changes between ``beta_k`` and ``beta_{k-1}``, heating and cooling, the end is accepted with
probability

    min(1, prod_k f_{k-1}(x^_k)/f_k(x^_k) prod_k f_k(x~_k)/f_{k-1}(x~_k))

(Neal 1996, eq. 3), which leaves the posterior invariant. Here the move at
``beta_0`` is a fresh draw of the reference, so one accepted excursion forgets where it came from.
A move by ``T_K`` follows, whether it was accepted or not.

Reference: Neal (1996), Sampling from multimodal distributions using tempered transitions.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.util import get_random_generator

from pymc_anneal.adaptation.pilot import run_pilot
from pymc_anneal.adaptation.plan import effective_length, trial_steps
from pymc_anneal.adaptation.tuning import needs_pilot
from pymc_anneal.base.contracts import KernelState, Path, Transition, reversal_of
from pymc_anneal.model.compile import compile_model
from pymc_anneal.paths.geometric import GeometricPath, ReferencePath
from pymc_anneal.paths.references import Reference
from pymc_anneal.pipeline.choose_transition import transition_for
from pymc_anneal.schedules.named import resolve_schedule
from pymc_anneal.schedules.validate import check_steps
from pymc_anneal.schedules.variational import variational_schedule

_PILOT_PARTICLES = 512


_BUFFER = 512  # prior draws come in batches of this size


class TemperedTransition(BlockedStep):
    """A step method that crosses between separated modes.

    Pass it to ``pymc.sample(step=...)``, alone or after another one that explores each mode
    (``step=[pymc.NUTS(), TemperedTransition()]``). It moves all free variables together. Its
    pilot runs when it is made; nothing adapts while sampling, so ``tune`` may be short.

    Parameters
    ----------
    vars
        All value variables of the model, the default.
    schedule
        Inverse temperatures from 0 to 1, their number of steps, or None: from the pilot, long
        enough for the excursions to be accepted often where the transitions mix.
    transition
        As for :func:`sample_ais`.
    reference
        "prior", or an object like those that :func:`fit_reference` returns.
    model
        Default: the model on the context stack.
    rng
        Seed of the pilot and, outside of :func:`pymc.sample`, of the steps.
    blocked
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

    def __init__(
        self,
        vars: Sequence[Any] | None = None,
        *,
        schedule: Sequence[float] | np.ndarray | int | None = None,
        transition: str | Transition = "hmc",
        reference: str | Reference = "prior",
        model: pm.Model | None = None,
        rng: Any = None,
        blocked: bool = True,
    ):
        model = pm.modelcontext(model)
        self.vars = _all_variables(vars, model)
        self.var_names = tuple(v.name for v in self.vars)
        self.blocked, self.tune = blocked, True
        self.rng = get_random_generator(rng)
        compiled = compile_model(model)
        self._slices = compiled.variables
        self._path, self._draw = _start(compiled, reference)
        kernel = transition_for(transition, compiled)
        self._transition, self._betas = self._planned(kernel, schedule)

    def _planned(self, kernel: Transition, schedule: Any) -> tuple[Transition, np.ndarray]:
        """Tune the kernel and lay out the schedule."""
        given = schedule is not None and not np.isscalar(schedule)
        if given and not needs_pilot(kernel):
            return kernel, resolve_schedule(schedule)
        seed_start, seed_run = self._seed().spawn(2)
        pilot = run_pilot(self._path, kernel, self._draw(seed_start, _PILOT_PARTICLES), seed_run)
        if given:
            return pilot.transition, resolve_schedule(schedule)
        # Both legs then have a variance of half a nat^2: accepted 6 times in 10.
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
        self._fresh: list[np.ndarray] = []  # draws made by another chain are not this one's

    @property
    def betas(self) -> np.ndarray:
        """The schedule, shape ``(K + 1,)``."""
        return self._betas

    @staticmethod
    def competence(var: Any, has_grad: bool = False) -> Competence:
        """Never assigned by PyMC itself."""
        return Competence.INCOMPATIBLE

    def step(self, point: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], list[dict]]:
        """Make one excursion, and one move.

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
        with jax.enable_x64(True):
            key = jax.random.wrap_key_data(
                jnp.asarray(self.rng.integers(2**32, size=2, dtype=np.uint32)), impl="threefry2x32"
            )
            found = jax.device_get(
                _excursion(
                    self._path, self._transition, self._betas, key, position, self._next_draw()
                )
            )
        statistics = {
            "accept": float(np.exp(min(found.log_ratio, 0.0))),
            "accepted": float(found.accepted),
            "log_accept_ratio": float(found.log_ratio),
            "inner_accept": float(found.inner_accept),
            "tune": bool(self.tune),
        }
        new = {
            v.name: found.position[s.start : s.stop].reshape(s.shape).astype(point[v.name].dtype)
            for v, s in zip(self.vars, self._slices, strict=True)
        }
        return {**point, **new}, [statistics]

    def _next_draw(self) -> np.ndarray:
        """Return a draw of the reference, used once."""
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


def _start(compiled, reference: str | Reference):
    """Return the path, and what draws from its beginning."""
    if isinstance(reference, str):
        if reference != "prior":
            raise ValueError(
                f"Unknown `reference` {reference!r}; expected 'prior' or an object like those "
                "that fit_reference returns."
            )
        return GeometricPath(compiled.log_terms), compiled.sample_prior
    compiled.require_normalised("A reference other than the prior")
    return ReferencePath(compiled.log_terms, reference), reference.sample


class _Excursion(NamedTuple):
    position: jax.Array
    log_ratio: jax.Array
    accepted: jax.Array
    inner_accept: jax.Array


@jax.jit
def _excursion(path: Path, transition, betas, key, position, fresh) -> _Excursion:
    """Heat up, draw afresh, cool down, accept or reject, move once more."""
    keys = jax.random.split(key, 6)
    here = _particle(path, transition, keys[0], position)
    _, heating, inner_up = _leg(path, transition, betas[::-1], keys[1], here)
    back = reversal_of(transition)
    far = _particle(path, back, keys[2], fresh)
    there, cooling, inner_down = _leg(path, back, betas, keys[3], far)
    log_ratio = jnp.where(jnp.isnan(heating + cooling), -jnp.inf, heating + cooling)
    accepted = jnp.log(jax.random.uniform(keys[4])) < log_ratio
    chosen = jnp.where(accepted, there.position[0], here.position[0])
    key_own, key_move = jax.random.split(keys[5])
    moved, info = transition.step(
        key_move, _particle(path, transition, key_own, chosen), path, jnp.asarray(1.0)
    )
    inner = (inner_up + inner_down + info.accept_rate[0]) / (2 * len(betas) - 3)
    return _Excursion(moved.position[0], log_ratio, accepted, inner)


def _particle(path: Path, transition, key, position) -> KernelState:
    """Return the state of one particle; the kernel's own variables are drawn afresh."""
    position = jnp.asarray(position)[None]
    return KernelState(position, path.evaluate(position), transition.init(key, position))


def _leg(path: Path, transition, betas, key, state: KernelState):
    """Change beta and move, up to the last change, after which there is no move.

    Returns the state, the sum of the log ratios, and of the acceptance probabilities.
    """

    def body(carry, inputs):
        state, log_ratio, total = carry
        key, start, stop = inputs
        log_ratio = log_ratio + path.log_ratio(state.terms, start, stop)[0]
        state, info = transition.step(key, state, path, stop)
        return (state, log_ratio, total + info.accept_rate[0]), None

    keys = jax.random.split(key, len(betas) - 1)[: len(betas) - 2]
    inputs = (keys, betas[:-2], betas[1:-1])
    zero = jnp.zeros(())
    (state, log_ratio, total), _ = jax.lax.scan(body, (state, zero, zero), inputs)
    return state, log_ratio + path.log_ratio(state.terms, betas[-2], betas[-1])[0], total
