"""Draws, all at once, of variables that PyMC writes as graphs with generators of their own.

Each row has to follow its own parents. The prior density of a row tells: with the parents of
another row it is lower. Its distribution is compared with that of draws made one by one.
"""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc.distributions.shape_utils import change_dist_size
from scipy import stats

import pymc_anneal as pma

from pymc_anneal.model import prior_draws
from pymc_anneal.model.prior_draws import BATCH
from tests.model.models import evaluate


def scale(**shape) -> pt.TensorVariable:
    return pm.LogNormal("scale", 0.0, 2.0, **shape)


def place() -> pt.TensorVariable:
    return pm.Normal("place", 0.0, 20.0)


def start(**shape):
    return pm.Normal.dist(0.0, 1.0, **shape)


VARIABLES: dict[str, Callable[[], object]] = {
    "zero_sum": lambda: pm.ZeroSumNormal("x", scale(), shape=(2, 4)),
    "half_student_t": lambda: pm.HalfStudentT("x", nu=3.0, sigma=scale(), shape=5),
    # An axis as long as that of the draws: shapes do not tell one from the other.
    "as_long_as_a_batch": lambda: pm.HalfStudentT("x", nu=3.0, sigma=scale(), shape=BATCH),
    "ex_gaussian": lambda: pm.ExGaussian("x", mu=place(), sigma=scale(), nu=1.0, shape=5),
    "asymmetric_laplace": lambda: pm.AsymmetricLaplace("x", kappa=scale(), mu=0.0, b=1.0, shape=5),
    "kumaraswamy": lambda: pm.Kumaraswamy("x", 1.0 + scale(shape=(2, 1)), 2.0, shape=(2, 5)),
    "mv_student_t": lambda: pm.MvStudentT(
        "x", nu=4.0, mu=place() + np.arange(3.0), scale=scale() * np.eye(3), shape=(2, 3)
    ),
    "mixture": lambda: pm.Mixture(
        "x",
        w=pm.Dirichlet("weight", np.ones(2)),
        comp_dists=[pm.Normal.dist(place(), 1.0), pm.Normal.dist(0.0, scale())],
        shape=(2, 4),
    ),
    "mixture_of_one_family": lambda: pm.NormalMixture(
        "x", w=[0.3, 0.7], mu=pm.Normal("place", 0.0, 20.0, shape=2), sigma=scale(), shape=5
    ),
    "autoregression": lambda: pm.AR(
        "x", [place() / 40, 0.2], sigma=scale(), init_dist=start(shape=2), shape=8
    ),
    "with_a_constant": lambda: pm.AR(
        "x", [place(), 0.2], sigma=scale(), constant=True, init_dist=start(), shape=8
    ),
    # Those of one series beside those of each; PyMC transposes them, from the right.
    "autoregressions": lambda: pm.AR(
        "x",
        pm.Normal("slope", 0.0, 0.3, shape=1),
        sigma=scale(shape=3) * np.array([1.0, 10.0, 100.0]),
        init_dist=start(),
        shape=(3, 6),
    ),
    "known_scales": lambda: pm.AR(
        "x",
        pm.Normal("slope", 0.0, 0.3, shape=(3, 1)),
        sigma=np.array([1.0, 10.0, 100.0]),
        init_dist=start(),
        shape=(3, 6),
    ),
    "cholesky_factor": lambda: pm.LKJCholeskyCov(
        "x", n=3, eta=2.0, sd_dist=pm.LogNormal.dist(place(), 1.0, shape=3)
    ),
    "garch": lambda: pm.GARCH11(
        "x", omega=scale(), alpha_1=0.3, beta_1=0.3, initial_vol=1.0, shape=6
    ),
    "diffusion": lambda: pm.EulerMaruyama(
        "x",
        dt=0.1,
        sde_fn=lambda x, rate: (-rate * x, rate),
        sde_pars=(scale(),),
        init_dist=start(),
        shape=6,
    ),
}
KINDS = pytest.mark.parametrize("kind", VARIABLES)


def compiled_with(kind: str) -> pma.CompiledModel:
    with pm.Model() as model:
        VARIABLES[kind]()
    return pma.compile_model(model)


def draw(compiled: pma.CompiledModel, draws: int) -> np.ndarray:
    x = compiled.sample_prior(np.random.SeedSequence(5), draws)
    # Every entry has noise of its own.
    assert all(len(np.unique(entry)) == draws for entry in x.T)
    return x


def p_value(kind: str, monkeypatch: pytest.MonkeyPatch) -> float:
    """Return how probable densities are that differ as much as those of both kinds of draws."""
    together = compiled_with(kind)
    assert "batch" in together._prior._sample.func.__name__

    def refuse(*_) -> None:
        raise NotImplementedError

    monkeypatch.setattr(prior_draws, "add_batch_axis", refuse)
    alone = compiled_with(kind)
    assert "one_by_one" in alone._prior._sample.func.__name__
    x = np.concatenate([draw(together, 4 * BATCH), draw(alone, BATCH)])
    density = np.asarray(evaluate(together, x).log_prior)  # one program for both
    return float(stats.ks_2samp(density[: 4 * BATCH], density[4 * BATCH :]).pvalue)


# One of each way of PyMC to write such a graph, and of each shape.
@pytest.mark.quick_cases(
    "zero_sum",
    "as_long_as_a_batch",
    "kumaraswamy",
    "mv_student_t",
    "mixture",
    "with_a_constant",
    "autoregressions",
    "known_scales",
    "cholesky_factor",
    "garch",
)
@KINDS
def test_rows_follow_their_own_parents(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert p_value(kind, monkeypatch) > 1e-5


@pytest.mark.quick_cases("half_student_t", "garch")
@pytest.mark.parametrize("kind", ["half_student_t", "autoregression", "garch"])
def test_parents_of_other_rows_are_seen(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = prior_draws._with_size

    def of_others(parameter, core, size, batched):
        found = own(parameter, core, size, batched)
        unchanged = found is parameter or found is batched.get(parameter)
        return found if unchanged else found[::-1]

    monkeypatch.setattr(prior_draws, "_with_size", of_others)
    assert p_value(kind, monkeypatch) < 1e-8


def test_one_by_one_where_pymc_does_not_take_other_parameters() -> None:
    """It resizes the variable with the parameters that this was made of."""
    with pm.Model() as model:
        pm.CustomDist("x", scale(), dist=lambda s, size: pm.Normal.dist(0.0, s, size=size))
    compiled = pma.compile_model(model)
    assert "one_by_one" in compiled._prior._sample.func.__name__
    draws = compiled.sample_prior(np.random.SeedSequence(6), BATCH)
    assert np.abs(draws[:, 1] / np.exp(draws[:, 0])).max() < 6


def test_a_variable_that_keeps_its_parameters_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pm.Model():
        parent = scale()
        x = pm.HalfStudentT("x", nu=3.0, sigma=parent, shape=5)
    batched = {parent: change_dist_size(parent, (BATCH,), expand=True)}
    assert prior_draws._rebuild(x, batched).eval().shape == (BATCH, 5)
    monkeypatch.setattr(prior_draws, "change_dist_size", lambda _, size: change_dist_size(x, size))
    with pytest.raises(NotImplementedError, match="parameters that it is given"):
        prior_draws._rebuild(x, batched)
