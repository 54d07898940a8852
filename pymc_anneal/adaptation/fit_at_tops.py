"""Fit of a mixture at the tops of climbs from the prior, without annealed particles.

The curvature at each top gives a normal density with the root ``S`` of its covariance, and by
Laplace's method the mass

    log Z_j = log f(m_j) + d/2 log 2 pi + log |S_j|.

Draws of the mixture of all tops, by their importance weights, and a few trajectories from there are
particles of the posterior, to three quarters of which a mixture is fitted (adaptive importance
sampling: Oh & Berger 1992; Cappe et al. 2008). Nothing but density and gradient is compiled.

A density is simple if nearly all climbs end at a few tops, the mixture is near to it by its own
draws and by the particles that were held out, and a search (`peaks.py`) finds no further mode, or
small ones beside which another search finds none.
There is no fit to any other: particles that are annealed see more of it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from scipy.special import logsumexp

from pymc_anneal.adaptation.climb import climb_together
from pymc_anneal.adaptation.curvature import climbing_scale, curvature, locate_by_curvature
from pymc_anneal.adaptation.fit_mixture import PRIOR_SHARE, MixtureFitter, search_of, with_component
from pymc_anneal.adaptation.fitted_reference import (
    LEAST_ESS,
    FittedReference,
    discrepancy_of,
    draw_start,
    mixture_of,
    normalised,
)
from pymc_anneal.adaptation.flat_likelihood import is_mostly_flat
from pymc_anneal.adaptation.laplace_reference import scale_of_curvature
from pymc_anneal.adaptation.mixture_weights import log_ratio
from pymc_anneal.adaptation.mode_mixture import ModeMixture
from pymc_anneal.adaptation.peak_mass import Peak
from pymc_anneal.adaptation.preconditioner import bulk_deviation
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.adaptation.trajectories import move_by_trajectories
from pymc_anneal.annealing.resampling import systematic
from pymc_anneal.base.batches import COSTLY_BATCH
from pymc_anneal.base.contracts import NanDensityError
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.evidence.diagnostics import largest_weight, weight_pareto_k
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.paths.geometric import GeometricPath, ReferencePath
from pymc_anneal.paths.mixed_draws import Sampler
from pymc_anneal.paths.references import GaussianReference

# Climbs, a batch of a costly density; one is enough where the density is log-concave, and few
# differ in length there.
_CLIMBS, _IF_LOG_CONCAVE = COSTLY_BATCH, 4
# Climbs that go on in units of the curvature where the highest has come to: predictors that are not
# standardised leave posteriors 1e3 times longer than wide, where the first climbs do not end. One
# more was enough for all 13 regressions of posteriordb that have no top after the first.
_MORE_CLIMBS = 2
# Share of the climbs that may end elsewhere, and the largest number of tops.
_ASTRAY, _MOST_TOPS = 0.05, 4
# Shares of the normal and the Student-t component of a top before the weights are fitted: nothing
# is known of its tails yet. Least share of a top.
_SHARES, _LEAST_SHARE = np.array([0.6, 0.4]), 0.01
# Rounds in which differences of the gradient find a scale; the factor up to which one is near
# enough for them to be exact; and the one by which they shrink where they find no top: the
# posterior may be 1e6 times narrower than the prior.
_ROUNDS, _NEAR_SCALE, _SHRINK = 6, 100.0, 1e-2
# Scale at a top that too few draws leave; share of effective draws with which a mixture fits a
# log-concave density; particles that locate a component.
_AT_TOP, _FITS, _LEAST_PARTICLES = 0.5, 0.5, 16
# Largest dimension: one normal density is seldom near in more, and a curvature takes 2 d gradients.
_MAX_DIMENSIONS = 100
# Pareto k of a light tail, and components that may make it so. Of 20 runs each of a robust
# regression and a mixture of two normals that 512 draws and k <= 0.7 let pass, 2 and 7 ended
# untrusted with k above 0.7; an estimate from 2,048 has a standard deviation of 0.12.
_LIGHT, _MOST_TAILS = 0.4, 2
# Largest weight, in units of the mean one, of a tail that proposals from the mixture may leave. In
# six steps of two proposals 13 of 13 runs of eight schools and of a hidden Markov model came to a k
# of at most 0.51; varying slopes with a weight of 9 had one of 0.57 to 0.85 after 4 to 16 steps.
_BOUNDED = 6.0
# Discrepancy of a fit that is near: of its draws, 37 % are effective. Discrepancy of one that
# components for its tails may bring there.
NEAR, _FAR = 1.0, 3.0
# Searches for further modes, of which the last has to find none, and what those of one may hold:
# of eight schools, a second top has 0.3 %.
_SEARCHES, _SMALL = 2, 0.05


class Effort(NamedTuple):
    """How much is evaluated for a fit."""

    draws: int = 512  # of the mixture for its weights, and as many to measure it
    many: int = 2048  # draws that show a tail
    particles: int = 320  # taken from draws of the mixture
    held_out: int = 80  # of the particles
    moves: int = 8  # trajectories of each particle
    calls: int = 100  # of the gradient for climbs

    def times(self, share: float) -> "Effort":
        """Return a share of this effort, for a costly density; not less than the least."""
        shares = zip(_LEAST_EFFORT, self, strict=True)
        return Effort(*(max(least, int(share * usual)) for least, usual in shares))


_EFFORT, _LEAST_EFFORT = Effort(), Effort(256, 1024, 96, 32, 4, 40)


class Attempt(NamedTuple):
    """A fit, or none if the posterior is not simple."""

    fitted: FittedReference | None
    evaluations: int  # of gradient or density


@double_precision
def fit_at_tops(
    compiled: CompiledModel,
    seed: np.random.SeedSequence,
    log_concave: bool = False,
    hints: np.ndarray | None = None,
) -> Attempt:
    """Fit a mixture to a simple posterior.

    Further modes are searched, from hints of shape ``(h, d)`` too, unless the density is known to
    be log-concave.
    """
    target = TargetDensity(GeometricPath(compiled.log_terms), COSTLY_BATCH)
    if not 0 < compiled.ndim <= _MAX_DIMENSIONS:
        return Attempt(None, 0)
    try:
        with np.errstate(all="ignore"):  # a density of 1e300 is not simple
            fitted = _fit_to_simple(compiled, target, seed, log_concave, hints)
    except NanDensityError:  # A survey will say where.
        fitted = None
    return Attempt(fitted, target.evaluations)


def _fit_to_simple(
    compiled: CompiledModel,
    target: TargetDensity,
    seed: np.random.SeedSequence,
    log_concave: bool,
    hints: np.ndarray | None,
) -> FittedReference | None:
    """Climb, fit, and search for what the climbs have missed."""
    seed_climb, seed_particles, seed_fit, seed_tails, *others = seed.spawn(4 + 2 * _SEARCHES)
    climbs = _IF_LOG_CONCAVE if log_concave else _CLIMBS
    tops = find_tops(target, compiled.sample_prior, seed_climb, climbs, compiled)
    if not tops:
        return None
    share = target.effort(compiled.ndim)
    effort = _EFFORT.times(share)
    position, mixture = _particles_at(compiled, target, tops, seed_particles, effort, log_concave)
    held_out, particles = np.split(position, [effort.held_out])
    fitter = MixtureFitter(target, particles, compiled.sample_prior, 0, effort.draws)
    found = fitter.fit(mixture, seed_fit, len(tops))
    found = fitter.add_tails(_mixture_of(found), found, seed_tails)
    for seed_light, seed_search in zip(others[::2], others[1::2], strict=True):
        light = _with_light_tails(fitter, found, seed_light, effort.many)
        if light is None or not _is_near(light, target, held_out):
            return None
        if log_concave:
            return light
        search = search_of(compiled, effort.particles, target.evaluations, share)
        search = replace(search, hints=hints)
        own = _mixture_of(light), light, seed_search, search, fitter.position
        _, found = fitter.add_peaks(*own)
        if not found.complete or found.unresolved or found.share[light.modes :].sum() > _SMALL:
            return None
        if found.modes == light.modes:
            return replace(found, climbs=climbs + search.starts, effort=share)
    return None


def find_tops(
    target: TargetDensity,
    draw_prior: Sampler,
    seed: np.random.SeedSequence,
    climbs: int,
    compiled: CompiledModel | None = None,
) -> list[Peak]:
    """Climb from so many draws of the prior to the tops of a density.

    Returns
    -------
    list of Peak
        The tops, the highest first, with their masses by Laplace's method; empty if the climbs end
        at many, or too often at none, or the likelihood is flat at most draws.
    """
    seed_start, seed_spread = seed.spawn(2)
    draws, start = draw_prior(seed_spread, _EFFORT.particles), draw_prior(seed_start, climbs)
    if is_mostly_flat(target, start, compiled):
        return []
    spread = bulk_deviation(draws)
    calls = _EFFORT.times(target.effort(start.shape[1])).calls
    spread[spread == 0] = 1.0
    end, scale = start, spread
    for left in reversed(range(1 + _MORE_CLIMBS)):
        end, value = climb_together(target.value_and_gradient, end, scale, calls)
        tops = _tops_at(target, end, value, spread)
        if tops or not left or not np.isfinite(value).any():
            break
        scale = climbing_scale(target, end[np.nanargmax(value)], spread)
    return tops


def _tops_at(
    target: TargetDensity, end: np.ndarray, value: np.ndarray, spread: np.ndarray
) -> list[Peak]:
    """Return the tops where climbs have ended, the highest first; empty if many ended at none."""
    order = [i for i in np.argsort(-value) if np.isfinite(value[i])]
    tops, astray = list[Peak](), 0
    for i in order:
        # No farther from a top than draws of its normal density are.
        if any(np.square(_standardised(top, end[i : i + 1])).sum() < end.shape[1] for top in tops):
            continue
        scale = _scale_at(target, end[i], spread)
        if scale is None:
            astray += 1
        else:
            normal = GaussianReference(end[i], scale)
            tops.append(Peak(normal, float(value[i] - normal.log_density(end[i : i + 1])[0])))
        if len(tops) > _MOST_TOPS or astray > _ASTRAY * len(order):
            return []
    return tops


def _scale_at(target: TargetDensity, top: np.ndarray, spread: np.ndarray) -> np.ndarray | None:
    """Return the scale of the curvature at a top, by differences in units of about this scale."""
    for _ in range(_ROUNDS):
        scale = scale_of_curvature(curvature(target, top, spread))
        if scale is None:
            spread = _SHRINK * spread
            continue
        own = np.linalg.norm(scale, axis=1)
        if np.abs(np.log(own / spread)).max() < np.log(_NEAR_SCALE):
            return scale
        spread = own
    return None


def _standardised(top: Peak, position: np.ndarray) -> np.ndarray:
    """Return positions in the coordinates of the normal density of a top, shape ``(n, d)``."""
    centred = position - np.asarray(top.normal.mean)
    return np.asarray(centred @ np.asarray(top.normal.whitening).T)


def _mixture_at(tops: Sequence[Peak]) -> ModeMixture:
    """Return a mixture with the components of all tops, weighted by their masses."""
    log_mass = np.array([top.log_mass for top in tops])
    share = np.maximum(np.exp(log_mass - logsumexp(log_mass)), _LEAST_SHARE)
    weight = np.outer(share / share.sum(), _SHARES).ravel()
    return ModeMixture.at([top.normal for top in tops], weight)


def _mixture_of(found: FittedReference) -> ModeMixture:
    return mixture_of(found.path).without_room()


def _particles_at(
    compiled: CompiledModel,
    target: TargetDensity,
    tops: Sequence[Peak],
    seed: np.random.SeedSequence,
    effort: Effort,
    log_concave: bool,
) -> tuple[np.ndarray, ModeMixture]:
    """Return particles of the posterior, shape ``(n, d)``, and a mixture located by them.

    Weighted draws of the mixture at the tops are moved on, since they do not know where it has no
    mass. Under a log-concave density that it fits there is no such place.
    """
    seed_draws, seed_particles, seed_moves = seed.spawn(3)
    mixture, highest = _mixture_at(tops), tops[0].normal
    path = ReferencePath(compiled.log_terms, mixture, PRIOR_SHARE)
    draws = draw_start(path, compiled.sample_prior)(seed_draws, effort.draws)
    weight = normalised(log_ratio(path, draws, target.evaluate_draws(draws)))
    effective = 1 / np.square(weight).sum() if weight.any() else 0.0
    if effective >= LEAST_ESS:
        start = draws[systematic(np.random.default_rng(seed_particles), weight, effort.particles)]
    else:  # Trajectories leave the top in all directions.
        drawn = highest.sample(seed_particles, effort.particles)
        start = np.asarray(highest.mean) + _AT_TOP * (drawn - np.asarray(highest.mean))
    if log_concave and effective >= _FITS * effort.draws:
        return start, mixture
    position = move_by_trajectories(target, start, highest, seed_moves, effort.moves)
    return position, _located(target, position[effort.held_out :], tops)


def _located(target: TargetDensity, particles: np.ndarray, tops: Sequence[Peak]) -> ModeMixture:
    """Return a mixture with the components of all tops at the particles nearest to each."""
    distance = [np.square(_standardised(top, particles)).sum(axis=1) for top in tops]
    nearest, slope = np.argmin(distance, axis=0), target.gradient(particles)
    share, normals = np.full(len(tops), _LEAST_SHARE), [top.normal for top in tops]
    for i in range(len(tops)):
        own = nearest == i
        if own.sum() > _LEAST_PARTICLES:
            share[i] = own.mean()
            normals[i] = GaussianReference(*locate_by_curvature(target, particles[own], slope[own]))
    return ModeMixture.at(normals, np.outer(share / share.sum(), _SHARES).ravel())


def _with_light_tails(
    fitter: MixtureFitter, found: FittedReference, seed: np.random.SeedSequence, draws: int
) -> FittedReference | None:
    """Return a fit whose weights have a light tail, by many draws, or else no large one, or None.

    A further component has the moments of the draws under their squared weights, whose sum is the
    variance (Cappe et al. 2008, section 4), widened by the scale of the largest mode.
    """
    if found.discrepancy > _FAR:
        return None
    many = replace(fitter, draws=draws)
    seed_many, *seeds = seed.spawn(1 + _MOST_TAILS)
    tried = [many.measure(found.path, found.modes, seed_many)]
    for own in seeds:
        if has_light_tail(tried[-1]):
            return tried[-1]
        seed_draws, seed_fit = own.spawn(2)
        x = draw_start(tried[-1].path, fitter.draw_prior)(seed_draws, draws)
        log_weight = log_ratio(tried[-1].path, x, fitter.target.evaluate_draws(x))
        mixture = _mixture_of(tried[-1])
        normal = _moments(x, normalised(2 * log_weight), mixture.normals[0])
        wider = with_component(mixture, normal, len(mixture.mean))
        tried.append(many.fit(wider, seed_fit, found.modes))
    if has_light_tail(tried[-1]):
        return tried[-1]
    best = min(tried, key=lambda fit: largest_weight(fit.log_ratio_draws))
    return best if largest_weight(best.log_ratio_draws) <= _BOUNDED else None


def has_light_tail(found: FittedReference) -> bool:
    """Whether the weights of the draws of a fit have a light tail."""
    return weight_pareto_k(found.log_ratio_draws) <= _LIGHT


def _moments(draws: np.ndarray, weight: np.ndarray, mode: GaussianReference) -> GaussianReference:
    """Return a normal density with the moments of weighted draws, wider by the scale of a mode."""
    mean, scale = weight @ draws, np.asarray(mode.scale)
    scale = np.diag(scale) if scale.ndim == 1 else scale
    spread = (weight[:, None] * (draws - mean)).T @ (draws - mean)
    return GaussianReference(mean, np.linalg.cholesky(spread + scale @ scale.T))


def _is_near(found: FittedReference, target: TargetDensity, held_out: np.ndarray) -> bool:
    """Whether a mixture is near to the posterior, by its draws and by held-out particles."""
    beyond = log_ratio(found.path, held_out, target.evaluate(held_out))
    return max(found.discrepancy, discrepancy_of(found.log_ratio_draws, beyond)) <= NEAR
