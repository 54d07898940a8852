"""The path between two models, and the choice of its coordinates.

There are three: those of the joint space with the priors as pseudo-priors (`joint_space.py`), which
any two models have; those that map the posteriors onto each other (`warp.py`), which are better if
the posteriors are nearly normal; and the same with latent normal variables in coordinates given the
data, whose densities take longer to evaluate, if the others are not close. A probe of some draws
measures the variance of the log weights of one step along each path; the smallest one is taken.
"""

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Protocol, TypeAlias

import jax
import numpy as np

from pymc_anneal.base.contracts import NanDensityError
from pymc_anneal.between.from_draws import GivenDraws, Probe, probe
from pymc_anneal.between.joint_space import JointSpace
from pymc_anneal.between.warp import fit_warp
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.paths.between_models import BetweenModels, EndTerms
from pymc_anneal.pipeline.model_target import ModelTarget

# Variance of the log weights of one step up to which no other coordinates are tried.
_CLOSE = 0.5


class Coordinates(Protocol):
    """Coordinates ``z`` of the path between two models."""

    @property
    def space(self) -> JointSpace:
        """The two models."""

    @property
    def models(self) -> tuple[CompiledModel, CompiledModel]:
        """The two models, whose own coordinates may be others than in the space."""

    @property
    def path(self) -> BetweenModels:
        """The path from the first model to the second."""

    @property
    def evaluations(self) -> int:
        """Evaluations of gradient or density, of one model each, to find the coordinates."""

    def complete_first(self, seed: np.random.SeedSequence, draws: np.ndarray) -> np.ndarray:
        """Return ``z``, shape ``(n, D)``, of draws of the first model, shape ``(n, d)``."""

    def complete_second(self, seed: np.random.SeedSequence, draws: np.ndarray) -> np.ndarray:
        """Return ``z`` of draws of the second model."""

    def add_to_second(self, seed: np.random.SeedSequence, position: np.ndarray) -> np.ndarray:
        """Return ``z`` of positions of the second of `models`."""

    def positions(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return positions of the first and of the second of `models`, shapes ``(n, d)``."""


@dataclass(frozen=True)
class OwnPriors:
    """The coordinates of the joint space: variables that one model lacks have their priors."""

    space: JointSpace
    evaluations: int = 0

    @property
    def models(self) -> tuple[CompiledModel, CompiledModel]:
        """The two models."""
        return self.space.first, self.space.second

    @property
    def path(self) -> BetweenModels:
        """The path from the first model to the second."""
        return _path(self.space)

    def complete_first(self, seed: np.random.SeedSequence, draws: np.ndarray) -> np.ndarray:
        """Return ``z`` of draws of the first model, the rest drawn from its prior."""
        return self.space.complete_first(seed, draws)

    def complete_second(self, seed: np.random.SeedSequence, draws: np.ndarray) -> np.ndarray:
        """Return ``z`` of draws of the second model, the rest drawn from its prior."""
        return self.space.complete_second(seed, draws)

    def add_to_second(self, seed: np.random.SeedSequence, position: np.ndarray) -> np.ndarray:
        """Return ``z`` of positions of the second model."""
        return self.complete_second(seed, position)

    def positions(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return positions of the first and of the second model at ``z``."""
        return z[:, : self.space.first.ndim], z[:, self.space.columns]


# JAX caches its programs by function: the same space must give the same function.
@lru_cache(maxsize=8)
def _path(space: JointSpace) -> BetweenModels:
    return BetweenModels(partial(_ends, space))


def _ends(space: JointSpace, x: jax.Array) -> EndTerms:
    return EndTerms(space.log_first(x), space.log_second(x))


_Probed: TypeAlias = tuple[Coordinates, Probe]


@dataclass(frozen=True)
class Chosen:
    """Coordinates, the probe along their path, and the evaluations of the choice."""

    coordinates: Coordinates
    probe: Probe
    evaluations: int


def choose_coordinates(
    space: JointSpace, draws: np.ndarray, seed: np.random.SeedSequence
) -> Chosen:
    """Choose the coordinates along whose path the weights are most even.

    Parameters
    ----------
    space
        The two models.
    draws : ndarray, shape (chains, n, d)
        Draws of the first, which are not counted.
    seed
        Source of randomness.

    Raises
    ------
    ValueError
        A log density is NaN at a draw.
    """
    seed_fit, seed_probe, seed_given = seed.spawn(3)
    own = OwnPriors(space)
    try:
        probed = _probe(own, draws, seed_probe)
    except NanDensityError as error:
        target = JointTarget(space.second, coordinates=own)
        raise ValueError(target.explain_nan(error.position)) from error
    if len(space.only_first.coordinates):
        # Tails of a prior are heavier than those of the posterior: the weights of one step are
        # those of a harmonic mean, whose tail a probe does not show.
        probed = replace(probed, tail=np.inf)
    probes: list[_Probed] = [(own, probed), *_mapped(space, draws, seed_fit, seed_probe)]
    tried = list(probes)
    if not any(found.one_step and found.variance <= _CLOSE for _, found in probes):
        given_data = _mapped(space, draws, seed_given, seed_probe, given_data=True)
        tried += given_data
        # Moves would take long there.
        probes += [pair for pair in given_data if pair[1].one_step]
    spent = sum(2 * p.evaluations for _, p in tried) + sum(c.evaluations for c, _ in tried)
    return Chosen(*min(probes, key=_unevenness), spent)


def _mapped(
    space: JointSpace,
    draws: np.ndarray,
    seed_fit: np.random.SeedSequence,
    seed_probe: np.random.SeedSequence,
    given_data: bool = False,
) -> list[_Probed]:
    """Return the map between the posteriors and the probe along its path, or nothing."""
    warp = fit_warp(space, draws.reshape(-1, draws.shape[2]), seed_fit, given_data)
    try:
        return [] if warp is None else [(warp, _probe(warp, draws, seed_probe))]
    except NanDensityError:  # far from the posteriors
        return []


def _unevenness(pair: _Probed) -> tuple[bool, float]:
    """Sort paths whose weights have a heavy tail behind the others."""
    return not pair[1].one_step, pair[1].variance


def _probe(coordinates: Coordinates, draws: np.ndarray, seed: np.random.SeedSequence) -> Probe:
    return probe(coordinates.path, GivenDraws(draws, coordinates.complete_first), seed)


@dataclass(frozen=True)
class JointTarget(ModelTarget):
    """The second of two models as the target of a run between them.

    Attributes
    ----------
    coordinates : Coordinates
        Those of the path.
    """

    coordinates: Coordinates | None = None

    def explain_nan(self, position: np.ndarray) -> str:
        """Say which term of which model is NaN at a position ``z`` of shape ``(D,)``."""
        coordinates = self.coordinates
        assert coordinates is not None  # a default is needed behind those of the base class
        x = [positions[0] for positions in coordinates.positions(position[None])]
        models = coordinates.models
        which = int(np.isnan(float(models[1].log_terms(x[1]).log_posterior)))
        return models[which].explain_nan(x[which])
