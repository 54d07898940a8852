"""A model whose likelihood is raised to a power, as a PyMC model of its own.

With all observed variables and potentials as ``V``, a potential ``(b - 1) V`` makes ``b V`` of it;
where the likelihood is zero it stays so.
"""

import pymc as pm
import pytensor.tensor as pt

from pymc_anneal.model.copy_model import copy_model
from pymc_anneal.model.spatial import missing_terms


def raise_likelihood(model: pm.Model, power: float) -> pm.Model:
    """Return a copy of a model with its likelihood, potentials included, to a power."""
    copy = copy_model(model)
    terms = [pm.logp(rv, copy.rvs_to_values[rv]) for rv in copy.observed_RVs]
    terms += [*missing_terms(copy.observed_RVs), *copy.potentials]
    total = sum((pt.as_tensor(term).sum() for term in terms), pt.constant(0.0))
    with copy:
        rest = pt.switch(pt.isinf(total), -pt.inf, (power - 1) * total)
        pm.Potential("rest_of_the_likelihood", rest)
    return copy
