"""Two models as the ends of a path on their joint space (`model/joint_space.py`)."""

from dataclasses import dataclass
from functools import lru_cache, partial

import jax
import numpy as np

from pymc_anneal.model.joint_space import JointSpace
from pymc_anneal.paths.between_models import BetweenModels, EndTerms
from pymc_anneal.pipeline.model_target import ModelTarget


@dataclass(frozen=True)
class JointTarget(ModelTarget):
    """The second of two models, on their joint space.

    Attributes
    ----------
    space : JointSpace
    """

    space: JointSpace | None = None

    def explain_nan(self, position: np.ndarray) -> str:
        """Say which term of which model is NaN at a position of shape ``(ndim,)``."""
        space = self.space
        assert space is not None  # a default is needed behind those of the base class
        x = position[: space.first.ndim]
        if np.isnan(float(space.first.log_terms(x).log_posterior)):
            return space.first.explain_nan(x)
        return space.second.explain_nan(position[space.columns])


# JAX caches its programs by function: the same space must give the same function.
@lru_cache(maxsize=8)
def path_between(space: JointSpace, reverse: bool = False) -> BetweenModels:
    """Return the path from the first model to the second; `reverse`: from the second to the first."""
    return BetweenModels(partial(_ends, space, reverse))  # type: ignore[arg-type]


def _ends(space: JointSpace, reverse: bool, x: jax.Array) -> EndTerms:
    ends = space.log_first(x), space.log_second(x)
    return EndTerms(*(ends[::-1] if reverse else ends))
