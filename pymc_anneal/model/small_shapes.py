"""Gamma, beta and Dirichlet variables of small shape, in normal scores (`score_transforms.py`)."""

import warnings

import pytensor.tensor as pt

from pymc.logprob.transforms import LogOddsTransform, LogTransform, SimplexTransform, Transform
from pymc.util import UNSET
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import BetaRV, DirichletRV, GammaRV

from pymc_anneal.model.compile import CompiledModel, compile_model
from pymc_anneal.model.copy_model import copy_model, set_own_data
from pymc_anneal.model.location_scale import may_be_changed
from pymc_anneal.model.notes import or_noted
from pymc_anneal.model.parents import known_values
from pymc_anneal.model.recent import once_per_model
from pymc_anneal.model.score_transforms import BetaScore, DirichletScore, GammaScore

# Scores, and the places of the shapes among the inputs, by random variable and transform.
_SCORES: dict[tuple[type, type], tuple[Transform, tuple[int, ...]]] = {
    (GammaRV, LogTransform): (GammaScore(), (-2,)),
    (BetaRV, LogOddsTransform): (BetaScore(), (-2, -1)),
    (DirichletRV, SimplexTransform): (DirichletScore(), (-1,)),
}
# Shape up to which scores are taken, and the number of them from which they are worth a second
# compilation: five parts of shapes 0.1 to 0.5 take 35,000 evaluations in place of 250,000, with
# half the error, and twenty 200,000 in place of 7,000,000; one takes as many.
_SMALL, _LEAST = 0.5, 4
_NOTE = (
    "Variables of small shape keep the coordinates of the model, because PyMC does not rewrite it "
    "({})."
)


@once_per_model
def score_model(compiled: CompiledModel) -> CompiledModel | None:
    """Return a model in the scores of its variables of small shape; None if it has none."""
    if not may_be_changed(compiled):
        return None
    found = {rv.name: _score(compiled, rv) for rv in compiled.model.free_RVs}
    scores = {name: transform for name, transform in found.items() if transform}
    size = sum(v.stop - v.start for v in compiled.variables if v.name in scores)
    if size < _LEAST:
        return None
    return or_noted(lambda: _compile(compiled, scores), compiled.fallbacks, _NOTE)


def _score(compiled: CompiledModel, rv: Variable) -> Transform | None:
    """Return the transform of a variable whose smallest shape is small."""
    kind = type(rv.owner.op), type(compiled.model.rvs_to_transforms[rv])
    if kind not in _SCORES:
        return None
    score, places = _SCORES[kind]
    least = [pt.min(rv.owner.inputs[place]) for place in places]
    values = known_values(compiled, least, ())
    return score if values is not None and min(values) <= _SMALL else None


def _compile(compiled: CompiledModel, scores: dict[str, Transform]) -> CompiledModel:
    model = copy_model(compiled.model)
    for name, score in scores.items():
        rv = model[name]
        del model.values_to_rvs[model.rvs_to_values[rv]]
        # `change_value_transforms` of PyMC takes the weights' number for that of the scores.
        model.create_value_var(rv, default_transform=score, transform=UNSET)
    set_own_data(model, compiled.model, compiled._data.values)
    with warnings.catch_warnings():
        # Those about the model were given when it was compiled in its own coordinates.
        warnings.simplefilter("ignore", UserWarning)
        return compile_model(model)
