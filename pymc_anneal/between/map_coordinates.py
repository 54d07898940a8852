"""The coordinates of a model in which a map between two posteriors is fitted.

Its own, or those of its latent normal variables given the rest and the data
(`model/conditional_normal.py`): funnels of hierarchical models are gone there, and posteriors of
latent variables are about normal.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.conditional_normal import conditional_coordinates
from pymc_anneal.model.location_scale import location_scale_model


@dataclass(frozen=True, eq=False)
class MapCoordinates:
    """A model in other coordinates.

    Attributes
    ----------
    model
        The model in its own coordinates.
    inner
        The model in those of the map; the same object if they are its own.
    """

    model: CompiledModel
    inner: CompiledModel

    def from_model(self, x: np.ndarray) -> np.ndarray:
        """Map positions of the model, shape ``(n, d)``, to these coordinates."""
        return x if self.inner is self.model else self.inner.unconstrain(self.model.constrain(x))

    def to_model(self, y: np.ndarray) -> np.ndarray:
        """Map coordinates, shape ``(n, d)``, to positions of the model."""
        return y if self.inner is self.model else self.model.unconstrain(self.inner.constrain(y))


def own_coordinates(models: Sequence[CompiledModel]) -> list[MapCoordinates]:
    """Return models in their own coordinates."""
    return [MapCoordinates(model, model) for model in models]


def coordinates_given_data(
    models: Sequence[CompiledModel], positions: Sequence[np.ndarray]
) -> list[MapCoordinates] | None:
    """Return models in coordinates given the data, as far as they have latent normal variables.

    Parameters
    ----------
    models
    positions : sequence of ndarray, shapes (n, d)
        Positions around which the likelihoods are expanded.

    Returns
    -------
    list of MapCoordinates
        None if no model has latent normal variables.
    """
    found = [_given_data(*pair) for pair in zip(models, positions, strict=True)]
    return found if any(m.inner is not m.model for m in found) else None


def _given_data(model: CompiledModel, position: np.ndarray) -> MapCoordinates:
    entries = location_scale_model(model)
    base = model if entries is None else entries.non_centred
    conditional = conditional_coordinates(base)
    if conditional is None:
        return MapCoordinates(model, model)
    centre = conditional.centre(MapCoordinates(model, base).from_model(position))
    return MapCoordinates(model, conditional.at(centre))
