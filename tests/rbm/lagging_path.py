"""A wrong path, which the tests of transitions and weights must detect."""

from dataclasses import dataclass
from typing import Any

import jax


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LaggingPath:
    """A wrong path: its hidden units are those of a smaller beta."""

    path: Any

    def __getattr__(self, name: str) -> Any:
        if name == "path":
            raise AttributeError(name)
        return getattr(self.path, name)

    def hidden_field(self, terms, beta):
        return self.path.hidden_field(terms, 0.1 * beta)
