"""A likelihood that waits."""

import time

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op


class Waiting(Op):
    """A normal log density after 4 ms."""

    def make_node(self, x):
        return Apply(self, [pt.as_tensor(x)], [pt.dscalar()])

    def perform(self, node, inputs, outputs):
        time.sleep(0.004)
        outputs[0][0] = np.asarray(-0.5 * inputs[0] ** 2)


def waiting_model() -> pm.Model:
    """Return a model of one variable with such a likelihood."""
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("likelihood", Waiting()(x))
    return model
