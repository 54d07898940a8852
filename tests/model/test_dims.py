"""Models of `pymc.dims` are read as their twins of tensors are."""

import warnings

from functools import cache
from typing import Any

import jax
import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel, compile_model
from pymc_anneal.model.integrate_out import integrate_out
from pymc_anneal.model.linear_predictor import linear_predictor
from pymc_anneal.model.location_scale import location_scale_model
from pymc_anneal.model.log_concavity import is_log_concave_model

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # PyTensor 2: "experimental and full of bugs"
    dims = pytest.importorskip("pymc.dims")

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(12, 3)), RNG.normal(size=(4, 3))
GROUP, Y = np.arange(12) % 4, RNG.normal(size=12)
COUNT = RNG.poisson(2, size=12)
COORDS = {"obs": range(12), "k": range(3), "group": range(4)}


class Named:
    """The words of `pymc.dims`."""

    def __getattr__(self, kind: str) -> Any:
        if not hasattr(dims, kind):
            pytest.skip(f"this version of pymc.dims has no {kind}")
        return getattr(dims, kind)

    def data(self, value: np.ndarray, *axes: str) -> Any:
        return dims.as_xtensor(value, dims=axes)

    def observed(self, value: np.ndarray) -> dict[str, Any]:
        return {"observed": self.data(value, "obs")}

    def at(self, x: Any, index: np.ndarray) -> Any:
        return x.isel(group=self.data(index, "obs"))

    def total(self, x: Any) -> Any:
        return x.sum("k")

    def weighed(self, x: Any, weight: np.ndarray) -> Any:
        return (x * self.data(weight, "k")).sum("k")

    def exp(self, x: Any) -> Any:
        return dims.math.exp(x)


class Plain(Named):
    """The same in tensors."""

    def __getattr__(self, kind: str) -> Any:
        made = getattr(pm, kind)

        def make(*given: Any, core_dims: Any = None, **settings: Any) -> Any:
            if kind == "ZeroSumNormal":
                settings["n_zerosum_axes"] = 1
            return made(*given, **settings)

        return make

    def data(self, value: np.ndarray, *axes: str) -> Any:
        return value

    def observed(self, value: np.ndarray) -> dict[str, Any]:
        return {"observed": value, "dims": "obs"}

    def at(self, x: Any, index: np.ndarray) -> Any:
        return x[index]

    def total(self, x: Any) -> Any:
        return x.sum(axis=-1)

    def weighed(self, x: Any, weight: np.ndarray) -> Any:
        return (x * weight[:, None]).sum(axis=0)

    def exp(self, x: Any) -> Any:
        return pm.math.exp(x)


# Scales are no whole numbers: PyMC takes the logarithm of small ones with 32 bits, if in tensors.


def centred(v):
    mean, spread = v.Normal("mean", 0, 2.0), v.HalfNormal("spread", 1)
    level = v.Normal("level", mean, spread, dims="group")
    v.Normal("y", v.at(level, GROUP), v.HalfNormal("noise", 1), **v.observed(Y))


def non_centred(v):
    mean, spread = v.Normal("mean", 0, 2.0), v.HalfNormal("spread", 1)
    e = v.Normal("e", 0, 1, dims="group")
    level = v.Deterministic("level", mean + spread * e, dims="group")
    v.Normal("y", v.at(level, GROUP), 0.5, **v.observed(Y))


def student_levels(v):
    level = v.StudentT("level", nu=4.0, mu=0, sigma=v.HalfNormal("spread", 1), dims="group")
    v.StudentT("y", nu=5.0, mu=v.at(level, GROUP), sigma=1, **v.observed(Y))


def regression(v):
    slope, shift = v.Normal("slope", 0, 1, dims="k"), v.Normal("shift", 0, 2.0)
    mean = shift + v.total(v.data(X, "obs", "k") * slope)
    v.Normal("y", mean, v.HalfCauchy("noise", 1), **v.observed(Y))


def known_noise(v):
    slope = v.Normal("slope", 0, 1, dims="k")
    v.Normal("y", v.total(v.data(X, "obs", "k") * slope), 0.7, **v.observed(Y))


def poisson(v):
    slope = v.Normal("slope", 0, 1, dims="k")
    v.Poisson("y", v.exp(v.total(v.data(X, "obs", "k") * slope)), **v.observed(COUNT))


def poisson_with_spread(v):
    e = v.Normal("e", 0, v.HalfNormal("spread", 1), dims="group")
    v.Poisson("y", v.exp(v.Normal("shift", 0, 1) + v.at(e, GROUP)), **v.observed(COUNT))


def negative_binomial(v):
    mean = v.exp(v.Normal("shift", 0, 1))
    v.NegativeBinomial("y", mu=mean, alpha=v.Exponential("alpha", 1), **v.observed(COUNT))


def logistic(v):
    slope = v.Normal("slope", 0, 1, dims="k")
    eta = v.total(v.data(X, "obs", "k") * slope)
    v.Bernoulli("y", logit_p=eta, **v.observed((Y > 0).astype(int)))


def scales(v):
    total = v.Gamma("a", 2.0, 1.0) + v.InverseGamma("b", 3.0, 2.0) + v.LogNormal("c", 0, 1)
    total = total + v.Weibull("d", 2.0, 1.0) + v.Exponential("e", 1) + v.HalfStudentT("f", 4.0, 1.0)
    v.Normal("y", 0, total, **v.observed(Y))


def bounded_and_heavy(v):
    total = v.Uniform("low", -1.0, 2.0) + v.Beta("inside", 2.0, 3.0)
    total = total + v.TruncatedNormal("cut", 0, 1, lower=-0.5, upper=2.0)
    total = total + v.Cauchy("a", 0, 1) + v.Laplace("b", 0, 1)
    v.Normal("y", total, 1, **v.observed(Y))


def horseshoe(v):
    local, scale = v.HalfCauchy("local", 1, dims="k"), v.HalfCauchy("scale", 1)
    slope = v.Normal("slope", 0, 1, dims="k") * local * scale
    v.Normal("y", v.total(v.data(X, "obs", "k") * slope), 1, **v.observed(Y))


def simplex(v):
    share = v.Dirichlet("share", v.data(np.array([1.0, 2.0, 3.0]), "k"), core_dims="k", dims="k")
    mean = v.total(v.data(X, "obs", "k") * share)
    v.Normal("y", mean, 1, **v.observed(Y))


def zero_sum(v):
    effect = v.ZeroSumNormal("effect", sigma=2.0, core_dims="group", dims=("k", "group"))
    v.Normal("y", v.at(v.weighed(effect, X[0]), GROUP), 1, **v.observed(Y))


def crossed(v):
    both = v.Normal("both", 0, v.HalfNormal("spread", 1), dims=("group", "k"))
    v.Normal("y", v.at(v.total(both * v.data(Z, "group", "k")), GROUP), 1, **v.observed(Y))


def potential(v):
    slope = v.Normal("slope", 0, 1, dims="k")
    v.Potential("p", -((slope - 0.3) ** 2), dims="k")
    v.Normal("y", v.total(v.data(X, "obs", "k") * slope), 1, **v.observed(Y))


def labels(v):
    label = v.Categorical("label", p=v.data(np.ones(3) / 3, "k"), core_dims="k")
    v.Normal("y", v.Normal("x", 0, 1) + label, 1, **v.observed(Y))


def shared_data(v):
    x = v.Data("x", X[:, 0], dims="obs")
    v.Normal("y", x * v.Normal("slope", 0, 1), v.HalfNormal("noise", 1), **v.observed(Y))


def gumbel(v):
    level = v.Gumbel("level", 0, v.HalfNormal("spread", 1), dims="group")
    v.Normal("y", v.at(level, GROUP), 1, **v.observed(Y))


def censored(v):
    free = pm if isinstance(v, Plain) else dims
    dist = free.Normal.dist(v.Normal("mean", 0, 1), 1.0)
    v.Censored("y", dist, lower=-0.5, upper=None, **v.observed(np.maximum(Y, -0.5)))


KINDS = {
    f.__name__: f
    for f in (
        centred, non_centred, student_levels, regression, known_noise, poisson, poisson_with_spread,
        negative_binomial, logistic, scales, bounded_and_heavy, horseshoe, simplex,
        zero_sum, crossed, potential, labels, shared_data, gumbel, censored,
    )
}  # fmt: skip


def build(kind: str, words: Named) -> pm.Model:
    with pm.Model(coords=COORDS) as model:
        KINDS[kind](words)
    return model


@cache
def twins(kind: str) -> tuple[CompiledModel, CompiledModel]:
    return compile_model(build(kind, Named())), compile_model(build(kind, Plain()))


def what_is_known(compiled: CompiledModel) -> tuple[object, ...]:
    return (
        location_scale_model(compiled) is not None,
        linear_predictor(compiled) is not None,
        [v.name for v in integrate_out(compiled).taken_out],
        is_log_concave_model(compiled.model),
        compiled.branches is not None and len(compiled.branches.terms),
        [(v.name, v.shape, v.support) for v in compiled.variables],
    )


@pytest.mark.parametrize("kind", KINDS)
@double_precision
def test_twins_have_the_same_density_and_draws(kind: str) -> None:
    named, plain = twins(kind)
    x = plain.sample_prior(np.random.SeedSequence(1), 5)
    np.testing.assert_allclose(named.sample_prior(np.random.SeedSequence(1), 5), x, rtol=1e-12)
    for found, wanted in zip(
        *(jax.jit(jax.vmap(c.log_terms))(x) for c in (named, plain)), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
    values = plain.constrain(x)
    assert {k: v.shape for k, v in named.constrain(x).items()} == {
        k: v.shape for k, v in values.items()
    }
    assert named.fallbacks == plain.fallbacks == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_is_known_of_twins(kind: str) -> None:
    named, plain = map(what_is_known, twins(kind))
    assert named == plain


def test_something_is_known() -> None:
    """Of a model whose variables stayed as they are, nothing would be."""
    assert location_scale_model(twins("centred")[0]) is not None
    assert linear_predictor(twins("poisson")[0]) is not None
    assert integrate_out(twins("crossed")[0]).taken_out
    assert is_log_concave_model(twins("logistic")[0].model) if hasattr(dims, "Bernoulli") else True


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["poisson_with_spread", "crossed"])
def test_runs_of_twins_are_the_same(kind: str) -> None:
    if kind.startswith("poisson") and not hasattr(dims, "Poisson"):
        kind = "student_levels"
    first, second = (
        pma.sample_ais(model=build(kind, words()), random_seed=1, progressbar=False, warnings=False)
        for words in (Named, Plain)
    )
    for name in ("log_evidence", "mcse", "evaluations"):
        assert float(group(first, "evidence")[name]) == float(group(second, "evidence")[name])
    assert group(first, "posterior").sizes == group(second, "posterior").sizes


def test_axes_in_another_order() -> None:
    with pm.Model(coords=COORDS) as model:
        both = dims.Normal("both", 0, 1, dims=("k", "group"))
        flipped = dims.Deterministic("flipped", both, dims=("group", "k"))
        mean = (flipped * dims.as_xtensor(Z, dims=("group", "k"))).sum("k")
        dims.Normal("y", mean, 1, observed=dims.as_xtensor(Y[:4], dims=("group",)))
    compiled = compile_model(model)
    x = compiled.sample_prior(np.random.SeedSequence(1), 3)
    values = compiled.constrain(x)
    np.testing.assert_array_equal(values["flipped"], values["both"].swapaxes(1, 2))
    assert not compiled.fallbacks


def test_a_transform_without_a_twin_is_named() -> None:
    class Odd(dims.distributions.transforms.LogTransform):
        name = "odd"

    with pm.Model(coords=COORDS) as model:
        noise = dims.HalfNormal("noise", 1, default_transform=Odd())
        dims.Normal("y", 0, noise, observed=dims.as_xtensor(Y, dims=("obs",)))
    compiled = compile_model(model)
    assert compiled.fallbacks == [
        "Variables of pymc.dims are not read as tensors: NotImplementedError: the transform 'odd' "
        "has no twin for tensors."
    ]
    assert np.isfinite(compiled.sample_prior(np.random.SeedSequence(1), 3)).all()
