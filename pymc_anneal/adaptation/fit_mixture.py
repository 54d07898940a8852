"""Fit of a mixture of references to particles of the target.

Each mode among the particles (`modes.py`) gets two components at the place and scale of its
particles, a normal one and a Student-t one with heavier tails. The weights come from importance
sampling with the mixture itself (`mixture_weights.py`). The largest mode may have a third
component, wider along some coordinates (`wider_component.py`). Components for modes that no
particle has met come from a search (`peaks.py`). Those for tails are at the particles under the
weights ``f / r``, the ratio of target to mixture, which are large where the mixture is too low;
their scale is the covariance there or follows from the curvature (`curvature.py`), whichever brings
the mixture nearer to the target.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import numpy as np

from pymc_anneal.adaptation.curvature import locate_by_curvature, locate_tail
from pymc_anneal.adaptation.fitted_reference import (
    FittedReference,
    draw_start,
    membership,
    normalised,
)
from pymc_anneal.adaptation.missing import LEAST_PEAK, Missing, height_above, missed_on_the_way
from pymc_anneal.adaptation.mixture_weights import fit_weights, log_ratio
from pymc_anneal.adaptation.mode_mixture import ModeMixture
from pymc_anneal.adaptation.modes import group_by_mode
from pymc_anneal.adaptation.peaks import (
    CALLS_OF_A_ROUND,
    MAX_DIMENSIONS,
    Search,
    Top,
    candidates,
    climb,
    weigh_top,
)
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.adaptation.wider_component import columns_to_widen, widened
from pymc_anneal.base.batches import COSTLY_BATCH
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.derivatives import NO_GRADIENT, SMOOTH
from pymc_anneal.paths.geometric import GeometricPath, ReferencePath
from pymc_anneal.paths.mixed_draws import Sampler
from pymc_anneal.paths.references import GaussianReference

# Share of the prior in a reference.
PRIOR_SHARE = 0.05
# Shares of the normal and the Student-t component of a mode before the weights are fitted.
_SHARES = np.array([0.8, 0.2])
# Draws of the mixture for its weights, and as many to measure it, for each particle of the survey:
# a mode of 5 % has to have enough of them for a weight. They take no gradients.
_DRAWS_PER_PARTICLE = 4
# Draws of the search for peaks: a share of the evaluations of the survey, but at least so many for
# each coordinate that the spike of 20 dimensions in the tests of DNest4, which one draw in 4,000
# meets, is found. They take no gradients.
_SEARCH, _LEAST_PER_COORDINATE, _MOST_SEARCH = 0.5, 1600, 50_000
# Least and largest number of climbs from the prior at a time: as many as a small survey has
# particles, since more coordinates do not mean more modes.
_LEAST_STARTS, _MOST_STARTS = 32, 320
# Evaluations of the survey, at least, for each further round of climbs from the prior, and the
# largest number of rounds.
_PER_ROUND, _MOST_ROUNDS = 50_000, 16
# Share of a new component before the weights are fitted; climbs whatever they take, and the largest
# number, for which a mixture has room.
_NEW_SHARE, _FEW_CLIMBS, _MAX_CLIMBS = 0.1, 16, 48
# Nats by which another fit may lower the mixture where it was high, weights being bounded below.
_LOWERED = 5.0
# Climbs in a row to tops that are known, or hold nothing, after which the search ends. With 2 it
# ended before the last of 32 modes in 4 of 6 runs, up to 0.2 nats too low; with 8 in none.
# Components for what is missed on the way to such a top (`missing.py`): with none, half of the runs
# of Neal's funnel were trusted and up to 0.5 nats too low; with 24, 38 of 40 runs are trusted, and
# none of these is off by more than 2.1 standard errors.
_MAX_FAILURES, _ON_THE_WAY = 8, 24
# Discrepancy from which components are added for tails, and their number.
_FAR, _MAX_TAILS = 0.3, 3
# Share of the wider component before the weights are fitted, which it keeps at least: along all
# coordinates, and along a part of them, where runs have no moves that bring particles to the tails.
_WIDE_SHARE, _PARTLY_WIDE_SHARE = 0.1, 0.2
# Smallest weight of a component, as a share of what it had before the weights were fitted.
_LEAST_SHARE = 0.2
# Share of further draws that are higher than all particles, above which they are a mode.
_HIGHER = 0.1
# Modes with components of their own, the largest ones; smaller ones count to the last of these.
_MAX_MODES = 8


def may_have_mixture(compiled: CompiledModel) -> bool:
    """Whether a mixture can be a reference of a model, and the prior is not the posterior."""
    return compiled.ndim > 0 and compiled.has_likelihood and not compiled.lacking


def fit_to_particles(
    compiled: CompiledModel,
    position: np.ndarray,
    seed: np.random.SeedSequence,
    evaluations: int = 0,
    log_concave: bool = False,
    surveyed: int | None = None,
    further: np.ndarray | None = None,
    hints: np.ndarray | None = None,
    most: float = 0.0,
) -> FittedReference:
    """Fit a mixture to particles of a posterior, and to modes that they have missed.

    Without gradients the fit takes the moments of the particles; without second derivatives there
    is no search for further modes.

    Parameters
    ----------
    compiled
        The model.
    position : ndarray, shape (n, d)
        Particles, equally weighted.
    evaluations
        Those that brought the particles to the posterior.
    log_concave
        Whether the posterior is known to have one mode: nothing is searched.
    surveyed
        Number of particles of the survey from which these were taken, the effort of the fit and the
        number of positions that are evaluated together. Default: as many as there are, and nothing
        is known of the density at draws of the prior: it has to be a number.
    further : ndarray, shape (m, d), optional
        Draws of the posterior by other means, which may show further modes.
    hints : ndarray, shape (h, d), optional
        Further starts of the search.
    most
        Evaluations that a search which goes on finding modes may take, if they are more.
    """
    order = compiled.derivatives.order
    searched = order == SMOOTH and not log_concave
    effort = surveyed or len(position)
    size = COSTLY_BATCH if compiled.costly else effort
    path = GeometricPath(compiled.log_terms)
    target = TargetDensity(path, size, order != NO_GRADIENT, nan_is_zero=surveyed is not None)
    search = None
    if searched:
        search = search_of(compiled, effort, evaluations, target.effort(compiled.ndim))
        search = replace(search, hints=hints, evaluations=max(search.evaluations, most))
    found = position, compiled.sample_prior, seed, search, columns_to_widen(compiled)
    return fit_mixture(target, *found, draws=_DRAWS_PER_PARTICLE * effort, further=further)


def search_of(
    compiled: CompiledModel, particles: int, evaluations: int, share: float = 1.0
) -> Search:
    """Return the effort of a search in the dimensions that may have several modes.

    Of a costly density (`TargetDensity.effort`) it is a share of the usual one.
    """
    dimensions, all_ = compiled.ndim - len(compiled.unimodal_columns), max(compiled.ndim, 1)
    effort = evaluations * dimensions // all_
    least = int(share * min(_LEAST_PER_COORDINATE * dimensions, _MOST_SEARCH))
    starts = int(np.clip(particles * dimensions // all_, _LEAST_STARTS, share * _MOST_STARTS))
    return Search(
        draws=int(np.clip(int(_SEARCH * effort), least, _MOST_SEARCH)),
        starts=starts,
        # A round takes no more evaluations than the survey has taken for it.
        rounds=min(effort // max(_PER_ROUND, starts * CALLS_OF_A_ROUND), _MOST_ROUNDS),
        branches=compiled.branches,
        evaluations=effort,
        share=share,
    )


@double_precision
def fit_mixture(
    target: TargetDensity,
    position: np.ndarray,
    draw_prior: Sampler,
    seed: np.random.SeedSequence,
    search: Search | None = None,
    widen: Sequence[int] | np.ndarray = (),
    draws: int | None = None,
    further: np.ndarray | None = None,
) -> FittedReference:
    """Fit a mixture to particles of the target.

    Parameters
    ----------
    position : ndarray, shape (n, d)
        Particles of the target, equally weighted.
    search
        How to search for modes that no particle has met; None: not at all.
    widen : sequence of int
        Coordinates along which the largest mode gets a wider component; the others are about normal
        given these.
    draws : int, optional
        Draws of the mixture for its weights, and as many to measure it. Default: four for each
        particle.
    further : ndarray, shape (m, d), optional
        Draws of the target by other means, whose modes get components too.
    """
    seed_fit, seed_search, seed_tails = seed.spawn(3)
    every, label = _group(target, position, further)
    mixture = _one_for_each_mode(target, every, label)
    modes = len(mixture.mean)
    if len(widen):
        mixture = _with_wider_component(mixture, np.asarray(widen))
    draws = draws or _DRAWS_PER_PARTICLE * len(position)
    fitter = MixtureFitter(target, position, draw_prior, len(mixture.mean) - modes, draws)
    found = fitter.fit(mixture, seed_fit, modes)
    climbs, effort = 0, 1.0
    # Without a draw in the support nothing tells a peak from the rest.
    known = found.log_z > -np.inf and position.shape[1] <= MAX_DIMENSIONS
    if search is not None and known:
        mixture, found = fitter.add_peaks(mixture, found, seed_search, search, every)
        climbs, effort = search.starts, search.share
    found = fitter.add_tails(mixture, found, seed_tails)
    return replace(found, evaluations=target.evaluations, climbs=climbs, effort=effort)


@dataclass(frozen=True)
class MixtureFitter:
    """Fits of mixtures to the same particles, shape ``(n, d)``.

    The first components of each mixture are those of modes; wider ones follow, if there are any.
    """

    target: TargetDensity
    position: np.ndarray
    draw_prior: Sampler
    wide: int
    draws: int

    def fit(
        self, mixture: ModeMixture, seed: np.random.SeedSequence, modes: int
    ) -> FittedReference:
        """Fit the weights of a mixture, and measure it.

        The wider components keep what they have at least: few draws show what they are for.
        """
        seed_fit, seed_check = seed.spawn(2)
        target = self.target
        start = ReferencePath(target.path.log_terms, mixture, PRIOR_SHARE)
        draws = draw_start(start, self.draw_prior)(seed_fit, self.draws)
        floor = np.full(len(mixture.weight), _LEAST_SHARE)
        floor[2 * modes : 2 * (modes + self.wide)] = 1.0
        weighted = fit_weights(start, draws, target, floor * mixture.weight)
        return self.measure(replace(start, reference=weighted.with_room()), modes, seed_check)

    def measure(
        self, found: ReferencePath, modes: int, seed: np.random.SeedSequence
    ) -> FittedReference:
        """Measure a mixture by new draws of it."""
        target, position = self.target, self.position
        checked = draw_start(found, self.draw_prior)(seed, self.draws)
        return FittedReference(
            path=found,
            log_ratio_draws=log_ratio(found, checked, target.evaluate_draws(checked)),
            log_ratio_particles=log_ratio(found, position, target.evaluate(position)),
            modes=modes,
            evaluations=target.evaluations,
            membership=membership(found, checked, modes),
            particle_share=membership(found, position, modes).mean(axis=0),
        )

    def add_peaks(
        self,
        mixture: ModeMixture,
        found: FittedReference,
        seed: np.random.SeedSequence,
        search: Search,
        particles: np.ndarray,
    ) -> tuple[ModeMixture, FittedReference]:
        """Search for peaks, and fit again with components for those that the mixture misses."""
        seed_search, *seeds = seed.spawn(1 + _MAX_CLIMBS)
        target = self.target
        near = candidates(target, mixture.normals, particles, self.draw_prior, seed_search, search)
        near, terms = _keep_high(found, near, target.evaluate(near))
        open_ = np.isfinite(np.asarray(terms.log_posterior))
        failures, room, unresolved = 0, _ON_THE_WAY, False
        begun, barren = target.evaluations, list[Top]()  # tops that hold nothing new
        for i, own in enumerate(seeds):
            height = height_above(found, near, terms)
            best = np.where(open_, height, -np.inf).argmax()
            if not (open_[best] and height[best] > LEAST_PEAK) or failures >= _MAX_FAILURES:
                break
            most = begun + search.evaluations * found.price()
            if i >= _FEW_CLIMBS and target.evaluations > most:
                return mixture, replace(found, complete=False)
            seed_climb, seed_again, seed_way = own.spawn(3)
            missing = Missing(target, found)
            top = climb(target, near[best], mixture.spread_near(near[best]))
            open_[best] = False
            if any(top.is_same(target, other) for other in barren):
                failures += 1
                continue
            peak = weigh_top(target, missing.log_density, top, seed_climb)
            new = [peak] if peak is not None and missing.is_new(peak) else []
            if not new and room:
                new = missed_on_the_way(missing, near[best], seed_way, most)[:room]
                room = room - len(new) if new else 0
            barren = [] if new else [*barren, top]
            failures = 0 if new else failures + 1
            unresolved |= peak is None and not new
            for one in new:
                mixture = with_component(mixture, one.normal, found.modes)
            if new:
                found = self.fit(mixture, seed_again, found.modes + len(new))
        else:
            return mixture, replace(found, complete=False)
        return mixture, replace(found, unresolved=unresolved)

    def add_tails(
        self, mixture: ModeMixture, found: FittedReference, seed: np.random.SeedSequence
    ) -> FittedReference:
        """Add components where the target is above the mixture, and return the best fit.

        The best of several is measured again: it may be the one with the luckiest draws.
        """
        fits, (again, *seeds) = [found], seed.spawn(1 + _MAX_TAILS)
        for own in seeds:
            if fits[-1].discrepancy < _FAR:
                break
            mixture, fit = self._with_tail(mixture, fits[-1], own)
            fits.append(fit)
        best = min(fits, key=lambda fit: fit.discrepancy)
        if len(fits) > 1:
            best = self.measure(best.path, best.modes, again)
        return replace(best, complete=found.complete)

    def _with_tail(
        self, mixture: ModeMixture, fit: FittedReference, seed: np.random.SeedSequence
    ) -> tuple[ModeMixture, FittedReference]:
        """Add a component where the target is above the mixture, of several the one that fits best.

        By its moments it is too wide, by its curvature it may be too narrow.
        """
        tails = locate_tail(self.target, self.position, normalised(fit.log_ratio_particles))
        places = [GaussianReference(*at) for at in tails]
        wider = [with_component(mixture, at, len(mixture.mean)) for at in places]
        each = zip(wider, seed.spawn(len(wider)), strict=True)
        tried = [(one, self.fit(one, own, fit.modes)) for one, own in each]
        return min(tried, key=lambda pair: pair[1].discrepancy)


def _keep_high(
    found: FittedReference, near: np.ndarray, terms: LogTerms
) -> tuple[np.ndarray, LogTerms]:
    """Return the candidates where the target is above the mixture, or may be after another fit.

    At least one is returned, with the log densities of all that are.
    """
    height = np.nan_to_num(height_above(found, near, terms), nan=-np.inf)
    high = height >= min(LEAST_PEAK - _LOWERED, height.max())
    return near[high], jax.tree.map(lambda term: np.asarray(term)[high], terms)


def with_component(
    mixture: ModeMixture, normal: GaussianReference, place: int, share: float = _NEW_SHARE
) -> ModeMixture:
    """Return a mixture with one more normal component and its Student-t companion at a place."""
    normals = mixture.normals
    weight = np.insert((1 - share) * mixture.weight, 2 * place, share * _SHARES)
    return ModeMixture.at([*normals[:place], normal, *normals[place:]], weight)


def _with_wider_component(mixture: ModeMixture, columns: np.ndarray) -> ModeMixture:
    """Return a mixture with a component that is wider than the first one along some columns."""
    modes, d = mixture.mean.shape
    share = _WIDE_SHARE if len(columns) == d else _PARTLY_WIDE_SHARE
    return with_component(mixture, widened(mixture.normals[0], columns), modes, share)


def _group(
    target: TargetDensity, position: np.ndarray, further: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return particles and further draws, and the mode of each.

    Many that are higher than all particles are grouped by themselves: no valley leads to a step up.
    """
    if further is None:
        return position, group_by_mode(target.log_density, position).clip(max=_MAX_MODES - 1)
    higher = target.log_density(further) > np.nanmax(target.log_density(position))
    if higher.mean() <= _HIGHER:
        higher[:] = False
    parts = [np.concatenate([position, further[~higher]]), further[higher]]
    labels = [group_by_mode(target.log_density, part) for part in parts if len(part)]
    label = labels[0].clip(max=_MAX_MODES - len(labels))
    above = [np.where(own < 0, own, own + label.max() + 1) for own in labels[1:]]
    return np.concatenate(parts), np.concatenate([label, *above]).clip(max=_MAX_MODES - 1)


def _one_for_each_mode(
    target: TargetDensity, position: np.ndarray, label: np.ndarray
) -> ModeMixture:
    """Return a normal and a Student-t component for each mode, weighted by its particles."""
    slope = target.gradient(position)
    of_mode = [label == mode for mode in range(label.max() + 1)]
    located = [locate_by_curvature(target, position[own], slope[own]) for own in of_mode]
    normals = [GaussianReference(*at) for at in located]
    weight = np.concatenate([own.mean() * _SHARES for own in of_mode])
    return ModeMixture.at(normals, weight / weight.sum())
