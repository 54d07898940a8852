"""Black boxes that take batches are called once for all points; others, and wrong ones, are not."""

import pickle

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pytensor.compile.ops import wrap_py
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.graph.replace import _vectorize_node
from scipy import stats

import pymc_anneal as pma

from pymc_anneal.model.host_calls import Calls, PointFunction
from tests.model.models import evaluate

pytestmark = pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning")

TIMES = np.linspace(0.0, 4.0, 5)
DATA = np.array([0.4, 1.9, 2.2, 3.5, 4.4])


class Likelihood(Op):
    """Log likelihood of a line, for parameters of shape ``(2,)`` or with leading axes."""

    shapes: list = []

    def make_node(self, theta):
        theta = pt.as_tensor(theta)
        return Apply(self, [theta], [pt.tensor(dtype="float64", shape=(None,) * (theta.ndim - 1))])

    def perform(self, node, inputs, outputs):
        [theta] = inputs
        self.shapes.append(theta.shape)
        mean = theta[..., :1] * TIMES + theta[..., 1:]
        outputs[0][0] = np.asarray(stats.norm.logpdf(DATA, mean).sum(axis=-1))


class BatchLikelihood(Likelihood):
    shapes: list = []


class FailingLikelihood(Likelihood):
    """Raises if a slope is above one."""

    shapes: list = []

    def perform(self, node, inputs, outputs):
        if (inputs[0][..., 0] > 1).any():
            raise ArithmeticError("no convergence")
        super().perform(node, inputs, outputs)


class WrongLikelihood(Likelihood):
    """Planted fault: sums over the points of a batch too."""

    shapes: list = []

    def perform(self, node, inputs, outputs):
        super().perform(node, inputs, outputs)
        outputs[0][0] = np.full_like(outputs[0][0], outputs[0][0].sum())


@_vectorize_node.register(BatchLikelihood)
@_vectorize_node.register(FailingLikelihood)
@_vectorize_node.register(WrongLikelihood)
def vectorize(op, node, theta):
    return op.make_node(theta)


def model_of(op: Op) -> pm.Model:
    op.shapes.clear()
    with pm.Model() as model:
        theta = pm.Normal("theta", 0, 2, shape=2)
        pm.Potential("likelihood", op(theta))
    return model


def log_likelihood(theta: np.ndarray) -> np.ndarray:
    return stats.norm.logpdf(DATA, theta[:, :1] * TIMES + theta[:, 1:]).sum(axis=1)


@pytest.mark.parametrize(
    ("op", "count", "words"),
    [(Likelihood(), 40, "one particle at a time"), (BatchLikelihood(), 1, "many particles")],
)
def test_calls(op: Op, count: int, words: str) -> None:
    compiled = pma.compile_model(model_of(op))
    assert words in compiled.notes[1]
    x = compiled.sample_prior(np.random.SeedSequence(1), 40)
    evaluate(compiled, x)  # the first values are compared with those of single calls
    op.shapes.clear()
    np.testing.assert_allclose(evaluate(compiled, x).log_likelihood, log_likelihood(x), rtol=1e-10)
    assert len(op.shapes) == count
    assert op.shapes[0] == ((40, 2) if count == 1 else (2,))


def test_points_that_fail_are_found() -> None:
    theta = np.array([[0.5, 0.1], [1.5, 0.2], [np.nan, 0.0], [-0.3, 0.4]])
    x = pt.vector("x", shape=(2,))
    calls = Calls()
    rows = PointFunction(([x], [FailingLikelihood()(x)]), calls)([(row,) for row in theta])
    assert [row is None for row in rows] == [False, True, True, False]
    assert rows[3][0] == pytest.approx(log_likelihood(theta[3:])[0])
    assert calls.failures == 1
    assert "no convergence" in calls.error


def test_a_wrong_batch_form_is_noticed() -> None:
    compiled = pma.compile_model(model_of(WrongLikelihood()))
    x = compiled.sample_prior(np.random.SeedSequence(1), 8)
    with pytest.warns(UserWarning, match="other values for a batch of points"):
        found = evaluate(compiled, x)
    np.testing.assert_allclose(found.log_likelihood, log_likelihood(x), rtol=1e-10)


def test_survives_a_pickle() -> None:
    compiled = pma.compile_model(model_of(BatchLikelihood()))
    copy = pickle.loads(pickle.dumps(compiled.log_terms))
    x = compiled.sample_prior(np.random.SeedSequence(1), 1)[0]
    assert float(copy(x).log_likelihood) == pytest.approx(log_likelihood(x[None])[0])


@pytest.mark.slow
def test_a_run() -> None:
    slow, fast = (pma.compile_model(model_of(op)) for op in (Likelihood(), BatchLikelihood()))
    settings = {"random_seed": 1, "progressbar": False, "transition": "random_walk", "steps": 5}
    # Levels draw as often as the time of a call allows.
    settings |= {"audit": "off", "warnings": False, "schedule": "linear"}
    first, second = (pma.sample_ais(40, model=m, **settings) for m in (slow, fast))
    assert pma.log_evidence(first).log_evidence == pytest.approx(
        pma.log_evidence(second).log_evidence, rel=1e-10
    )
    assert float(second["evidence"]["calls"]) < 0.1 * float(first["evidence"]["calls"])


@wrap_py(itypes=[pt.dvector], otypes=[pt.dscalar])
def wrapped(theta):
    return np.asarray(log_likelihood(theta[None])[0])


def test_wrapped_functions_are_called_point_by_point() -> None:
    with pm.Model() as model:
        pm.Potential("likelihood", wrapped(pm.Normal("theta", 0, 2, shape=2)))
    compiled = pma.compile_model(model)
    assert "one particle at a time" in compiled.notes[1]
