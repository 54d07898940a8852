"""Annealed optimisation: particles cooled below the posterior's own temperature.

With ``p`` the posterior density of the model's own (constrained) parameters, as
:func:`pymc.find_MAP` maximises it, and ``J`` the Jacobian of the transforms, the path

    log f_beta(x) = (1 - beta) log(p(x) J(x)) + beta C log p(x)

runs from the posterior, where a pilot from the prior left its particles, to ``p^C``, ``C`` large,
whose mass sits on the highest mode (Kirkpatrick, Gelatt & Vecchi 1983). A second pilot lays out
the cooling, and its particles, resampled on the way, crowd on the highest mode. The same ones are
then cooled once more, each by itself: where they end tells which share of the posterior drains to
that mode. ``2 C (log p(x*) - log p(x))`` has about a chi-squared distribution with ``d`` degrees
of freedom for those that found the mode ``x*``; others lie far beyond it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm

from scipy import optimize
from scipy.stats import chi2

from pymc_anneal.adaptation.pilot import run_pilot
from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.base.arguments import check_count
from pymc_anneal.base.contracts import LogTerms, Path, Scalar, Transition
from pymc_anneal.base.seeds import seed_sequence
from pymc_anneal.execution.progress import ProgressDisplay
from pymc_anneal.model.compile import CompiledModel, as_compiled
from pymc_anneal.model.point_density import log_point_density
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.pipeline.choose_transition import transition_for
from pymc_anneal.pipeline.session import explaining_nan

_LEVEL = 0.999


_LENIENCE = 4.0  # for particles that the cooling left behind a little


_SLOWNESS = 4


_SETTLING = 20  # moves at the last power


# Nats by which particles may lie below the best one beyond what their temperature explains.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class MAPEstimate:
    """The highest mode that was found.

    Attributes
    ----------
    point : dict of str to ndarray
        Values of the model's variables and deterministics there.
    log_posterior : float
        Log prior plus log likelihood of the constrained parameters, without Jacobians, in nats.
    agreement : float
        Share of the particles, draws of the posterior, that ended at this mode when each was
        cooled by itself. Where it is small, other modes hold most of the posterior's mass, and
        there may be a higher one yet: run again with more particles.
    particles : int
    position : ndarray, shape (d,)
        The mode in the unconstrained space.
    """

    point: dict[str, np.ndarray]
    log_posterior: float
    agreement: float
    particles: int
    position: np.ndarray = field(repr=False)

    def __repr__(self) -> str:
        """Return some lines to read."""
        values = ", ".join(
            f"{k} = {np.array2string(v, precision=4)}" for k, v in self.point.items()
        )
        return (
            f"log posterior {self.log_posterior:.4f} nats, reached by {self.agreement:.0%} of "
            f"{self.particles} particles\n{values}"
        )


class _Terms(NamedTuple):
    log_start: jax.Array
    log_point: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CoolingPath:
    """Path from the posterior to a power of the density that is to be maximised.

    Parameters
    ----------
    log_terms
        As for :class:`GeometricPath`.
    log_point
        JAX function of one position to the log density that is maximised.
    power
        ``C``.
    """

    log_terms: Callable[[jax.Array], LogTerms] = field(metadata={"static": True})
    log_point: Callable[[jax.Array], jax.Array] = field(metadata={"static": True})
    power: Any

    def evaluate(self, position: jax.Array) -> _Terms:
        """Return both log densities, shape ``(n,)`` each, at ``(n, d)`` positions."""
        start = jax.vmap(self.log_terms)(position).log_posterior
        return _Terms(start, jax.vmap(self.log_point)(position))

    def log_density(self, terms: _Terms, beta: Scalar) -> jax.Array:
        """Return ``(1 - beta) log_start + beta C log_point``."""
        start = jnp.where(beta == 1, 0.0, (1 - beta) * terms.log_start)
        return start + jnp.where(beta == 0, 0.0, beta * self.power * terms.log_point)

    def log_ratio(self, terms: _Terms, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``(stop - start)`` times the velocity."""
        return (stop - start) * self.velocity(terms, stop)

    def velocity(self, terms: _Terms, beta: Scalar) -> jax.Array:
        """Return ``C log_point - log_start``."""
        return self.power * terms.log_point - terms.log_start


def find_map(
    model: pm.Model | CompiledModel | None = None,
    *,
    particles: int = 500,
    power: float = 1e4,
    transition: str | Transition = "hmc",
    random_seed: Any = None,
    progressbar: bool = True,
) -> MAPEstimate:
    """Find the highest mode of the posterior by annealing.

    Particles follow the likelihood from the prior to the posterior and are then cooled: the
    posterior density is raised to a power far above one. The best of them is polished by
    L-BFGS-B. Unlike a search from one start, this does not end at the nearest mode, and says how
    many particles end there too.

    Parameters
    ----------
    model
        The model, or the result of :func:`compile_model`. Default: the model on the context
        stack.
    particles
        Number of particles.
    power
        Last power of the posterior density.
    transition
        As for :func:`sample_ais`.
    random_seed, progressbar
        As for :func:`sample_ais`.

    Returns
    -------
    MAPEstimate
        Of the density that :func:`pymc.find_MAP` maximises: of the constrained parameters.

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        An argument makes no sense, or the model cannot be annealed (see :func:`compile_model`).

    References
    ----------
    Kirkpatrick, Gelatt & Vecchi (1983), Optimization by simulated annealing.

    Examples
    --------
    >>> pymc_anneal.find_map(model)
    """
    check_count("particles", particles)
    if not 1 < power < np.inf:
        raise ValueError(f"`power` is {power}, expected a number above 1.")
    compiled = as_compiled(model)
    kernel = transition_for(transition, compiled)
    log_point = log_point_density(compiled)
    seeds = seed_sequence(random_seed).spawn(4)
    with explaining_nan(compiled):
        cooled = _cooled(compiled, log_point, kernel, particles, power, seeds, progressbar)
    return _mode(compiled, log_point, cooled, power)


class _Cooled(NamedTuple):
    """Particles at the last power, shape (particles, d): resampled on the way, and not."""

    crowd: np.ndarray
    alone: np.ndarray


def _cooled(compiled, log_point, kernel, particles, power, seeds, progressbar) -> _Cooled:
    warm: Path = GeometricPath(compiled.log_terms)
    cold: Path = CoolingPath(compiled.log_terms, log_point, float(power))
    position = compiled.sample_prior(seeds[0], particles)
    with ProgressDisplay(progressbar) as display:
        display.start_pilot()
        start = run_pilot(warm, kernel, position, seeds[1], display.pilot).position
        display.start_pilot()
        pilot = run_pilot(cold, kernel, start, seeds[2], display.pilot)
        # The pilot resamples those left behind; without that the cooling has to be slower.
        knots = np.arange(len(pilot.betas)) * _SLOWNESS
        slow = np.interp(np.arange(knots[-1] + 1), knots, pilot.betas)
        betas = np.concatenate([slow, np.ones(_SETTLING)])
        alone = run_block(Block(cold, pilot.transition, betas, start, 1, seeds[3]))
    return _Cooled(pilot.position, alone.position[0])


def _mode(compiled: CompiledModel, log_point, cooled: _Cooled, power: float) -> MAPEstimate:
    with jax.enable_x64(True):
        values = jax.jit(jax.vmap(log_point))
        found = np.concatenate(cooled)
        first = found[np.nanargmax(np.asarray(values(jnp.asarray(found))))]
        real = _real_coordinates(compiled)
        best = _polished(log_point, first, real)
        highest = float(log_point(jnp.asarray(best)))
        below = highest - np.asarray(values(jnp.asarray(cooled.alone)))
        near = _near(log_point, best, cooled.alone, real)
    # By height and by place: modes may be equally high.
    allowed = _LENIENCE * chi2.ppf(_LEVEL, max(compiled.ndim, 1)) / (2 * power) + _ROUNDING
    agree = (below <= allowed) & (near <= allowed)
    return MAPEstimate(
        point={name: v[0] for name, v in compiled.constrain(best[None]).items()},
        log_posterior=highest,
        agreement=float(agree.mean()),
        particles=len(cooled.alone),
        position=best,
    )


def _real_coordinates(compiled: CompiledModel) -> np.ndarray:
    whole = [j for v in compiled.discrete for j in range(v.start, v.stop)]
    return np.setdiff1d(np.arange(compiled.ndim), whole)


def _polished(log_point, start: np.ndarray, real: np.ndarray) -> np.ndarray:
    """Climb to the top along the real coordinates; where that fails, stay."""
    if not real.size:
        return start
    slope = jax.jit(jax.value_and_grad(lambda z: -log_point(jnp.asarray(start).at[real].set(z))))
    found = optimize.minimize(
        lambda z: tuple(np.asarray(v, dtype=float) for v in slope(z)),
        start[real],
        jac=True,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-8},
    )
    best = start.copy()
    if np.isfinite(found.x).all() and found.fun <= float(-log_point(jnp.asarray(start))):
        best[real] = found.x
    return best


def _near(log_point, best: np.ndarray, position: np.ndarray, real: np.ndarray) -> np.ndarray:
    """Nats by which a quadratic at the mode says that particles lie below it, shape ``(n,)``.

    Infinite where a whole number differs.
    """
    centre = jnp.asarray(best)
    hessian = jax.hessian(lambda z: log_point(centre.at[real].set(z)))
    step = (position - best)[:, real]
    below = -0.5 * np.einsum("ni,ij,nj->n", step, np.asarray(hessian(centre[real])), step)
    others = np.delete(position - best, real, axis=1)
    return np.where((others == 0).all(axis=1), below, np.inf)
