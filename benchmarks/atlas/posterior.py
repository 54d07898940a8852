"""A posterior: name, builder, dimensions, and what replaces a flat prior."""

from collections.abc import Callable
from dataclasses import dataclass

import pymc as pm

from benchmarks.atlas import stored


@dataclass(frozen=True)
class Posterior:
    """A posterior; `build` adds its variables to the open model, from the data it is given."""

    name: str
    build: Callable[[stored.Data], None]
    dims: int
    replaces: str = ""
    needs_data: bool = True

    @property
    def dataset(self) -> str:
        """Name of the data, which come before the first hyphen."""
        return self.name.split("-")[0]

    @property
    def proper(self) -> bool:
        """Whether the priors are those of the Stan program."""
        return not self.replaces

    def model(self) -> pm.Model:
        """Build the model."""
        data = stored.load(self.dataset) if self.needs_data else {}
        with pm.Model() as model:
            self.build(data)
        return model
