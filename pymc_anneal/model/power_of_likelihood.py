"""A model whose likelihood is raised to a power, as a PyMC model of its own.

With all observed variables and potentials as ``V``, a potential ``(b - 1) V`` makes ``b V`` of it;
where the likelihood is zero it stays so.
"""

import pymc as pm
import pytensor.tensor as pt

from pymc.distributions.distribution import PartialObservedRV
from pytensor.graph.basic import Variable

from pymc_anneal.model.copy_model import copy_model
from pymc_anneal.model.missing_values import integrate_missing
from pymc_anneal.model.spatial import missing_terms


def raise_likelihood(model: pm.Model, power: float) -> pm.Model:
    """Return a copy of a model with its likelihood, potentials included, to a power.

    Missing values that are integrated out belong to no prior: the likelihood is without them.
    """
    copy = copy_model(integrate_missing(model))
    terms = [_log_density(copy, rv) for rv in copy.observed_RVs]
    terms += [*missing_terms(copy.observed_RVs), *copy.potentials]
    total = sum((pt.as_tensor(term).sum() for term in terms), pt.constant(0.0))
    with copy:
        rest = pt.switch(pt.isinf(total), -pt.inf, (power - 1) * total)
        pm.Potential("rest_of_the_likelihood", rest)
    return copy


def _log_density(model: pm.Model, observed: Variable) -> Variable:
    """Return the log density of an observed variable, of its observed entries if some are not."""
    value = model.rvs_to_values[observed]
    if type(observed.owner.op) is not PartialObservedRV:
        return pm.logp(observed, value)
    dist, mask = observed.owner.inputs
    whole = pt.empty(mask.data.shape)
    whole = pt.set_subtensor(whole[mask.data], observed.owner.outputs[1])
    return pm.logp(dist, pt.set_subtensor(whole[~mask.data], value))[~mask.data]
