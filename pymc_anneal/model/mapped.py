"""Models in other positions, which are mapped to those of the model that they come from."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from jax.tree_util import Partial

from pymc_anneal.model.branches import Branches
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.pickling import PicklableFunction
from pymc_anneal.model.shared_program import SharedProgram
from pymc_anneal.model.variables import FreeVariable

Mapped = TypeVar("Mapped", bound="MappedModel")


@dataclass(frozen=True, eq=False)
class MappedModel(CompiledModel):
    """A compiled model whose positions are mapped to those of another one.

    Attributes
    ----------
    _full : CompiledModel
        The other model.
    """

    _full: CompiledModel

    @abstractmethod
    def to_model(self, position: np.ndarray) -> np.ndarray:
        """Map positions, shape ``(n, d)``, to those of the other model."""

    @abstractmethod
    def from_model(self, position: np.ndarray) -> np.ndarray:
        """Map positions of the other model to those of this one, shape ``(n, d)``."""

    @property
    def taken_out(self) -> tuple[FreeVariable, ...]:
        """Variables that are taken out of the density, which is one of the others."""
        return self._full.taken_out

    @property
    def evaluations(self) -> int:
        """Evaluations of the model's density in one of ``log_terms``."""
        return self._full.evaluations

    @property
    def branches(self) -> Branches | None:  # type: ignore[override]
        """None: those of the other model are in its own positions."""
        return None

    def sample_prior(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        """Draw from the prior, shape ``(draws, d)``."""
        return self.from_model(self._full.sample_prior(seed, draws))

    def constrain(self, position: np.ndarray) -> dict[str, np.ndarray]:
        """Map positions, shape ``(n, d)``, to the model's variables and deterministics."""
        return self._full.constrain(self.to_model(position))

    def unconstrain(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Map values of the free variables to positions, shape ``(n, d)``."""
        return self.from_model(self._full.unconstrain(values))

    def pointwise_log_likelihood(self, position: np.ndarray) -> dict[str, np.ndarray]:
        """Compute the log likelihood of each observation at positions, shape ``(n, d)``."""
        return self._full.pointwise_log_likelihood(self.to_model(position))

    def explain_nan(self, position: np.ndarray) -> str:
        """Say which term of the model is NaN at a position of shape ``(d,)``."""
        return self._full.explain_nan(self.to_model(position[None])[0])


def map_model(
    kind: type[Mapped],
    compiled: CompiledModel,
    log_terms: PicklableFunction,
    note: str,
    variables: tuple[FreeVariable, ...],
    **own: Any,
) -> Mapped:
    """Return a model in other positions.

    Parameters
    ----------
    kind
        Its class.
    compiled
        The model.
    log_terms
        JAX function of a position to `LogTerms`.
    note
        What was done, in words.
    variables
        Those that are mapped, with their places in the positions.
    own
        Attributes of the class.
    """
    ndim = variables[-1].stop if variables else 0
    program = SharedProgram(log_terms, ndim)
    given: dict[str, Any] = {
        **fields_of(compiled),
        "variables": variables,
        "ndim": ndim,
        "log_terms": Partial(program, *program.arrays),  # type: ignore[no-untyped-call]
        "notes": (*compiled.notes, note),
    }
    return kind(**given, _full=copy_of(compiled), **own)


def fields_of(compiled: CompiledModel) -> dict[str, Any]:
    """Return the fields of a compiled model by name, without those of its class alone."""
    return {f.name: getattr(compiled, f.name) for f in fields(CompiledModel)}


def copy_of(compiled: CompiledModel) -> CompiledModel:
    """Return a copy: what is known of a model may not refer to it, and keep it alive."""
    return replace(compiled)
