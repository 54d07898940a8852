"""Targets made of functions: exact evidences, the whole engine, priors that do not match."""

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

Y = np.array([0.4, 1.9, -0.3])
# y ~ N(a + b, 1) and a, b ~ N(0, 2).
EXACT = float(stats.multivariate_normal.logpdf(Y, np.zeros(3), np.eye(3) + 8))


def log_likelihood(theta):
    return jax.scipy.stats.norm.logpdf(Y, theta[0] + theta[1], 1.0).sum()


def in_numpy(theta) -> float:
    return float(stats.norm.logpdf(Y, np.asarray(theta).sum(), 1.0).sum())


def log_prior(theta):
    return jax.scipy.stats.norm.logpdf(theta, 0.0, 2.0).sum()


def sample_prior(rng, n):
    return rng.normal(0.0, 2.0, size=(n, 2))


def prior_transform(u):
    return 2.0 * jax.scipy.stats.norm.ppf(u)


def check(target, **settings) -> object:
    idata = pma.sample_ais(target, random_seed=1, progressbar=False, **settings)
    found = pma.log_evidence(idata)
    assert found.log_evidence == pytest.approx(EXACT, abs=4 * found.mcse)
    assert found.mcse < 0.03
    assert found.verdict.trusted
    return idata


def test_density_and_draws_of_the_prior() -> None:
    target = pma.Target.from_functions(
        log_likelihood, log_prior=log_prior, sample_prior=sample_prior, names=["a", "b"]
    )
    idata = check(target)
    assert idata["posterior"]["theta"].coords["parameter"].values.tolist() == ["a", "b"]


def test_prior_transform() -> None:
    target = pma.Target.from_functions(log_likelihood, prior_transform=prior_transform, ndim=2)
    assert isinstance(target, pm.Model)
    compiled = pma.compile_model(target)
    position = np.array([[9.0, 0.5], [-40.0, 0.0]])
    theta = compiled.constrain(position)["theta"]
    assert np.isfinite(theta).all()
    assert theta[0, 1] == pytest.approx(1.0)
    loaded = cloudpickle.loads(cloudpickle.dumps(compiled))
    assert loaded.log_terms(position[0]) == compiled.log_terms(position[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "prior",
    [
        {"prior_transform": lambda u: stats.norm.ppf(u, 0, 2), "ndim": 2},
        {
            "log_prior": lambda x: stats.norm.logpdf(np.asarray(x), 0, 2).sum(),
            "sample_prior": sample_prior,
        },
    ],
    ids=["transform", "density"],
)
def test_functions_that_jax_cannot_trace(prior) -> None:
    check(pma.Target.from_functions(in_numpy, **prior), transition="random_walk")


@pytest.mark.slow
def test_other_functions_take_targets() -> None:
    target = pma.Target.from_functions(log_likelihood, prior_transform=prior_transform, ndim=2)
    idata = check(target)
    bridged = pma.bridge_evidence(idata, model=target, random_seed=1)
    assert bridged.log_evidence == pytest.approx(EXACT, abs=4 * bridged.mcse)
    nested = pma.log_evidence(pma.nested_evidence(target, sampler="blackjax", random_seed=1))
    assert nested.log_evidence == pytest.approx(EXACT, abs=4 * nested.mcse)


def test_notes_speak_of_functions() -> None:
    """Not of potentials and Ops, which a user of functions has not made."""
    prior = {"prior_transform": prior_transform, "ndim": 2}
    assert pma.compile_model(pma.Target.from_functions(log_likelihood, **prior)).notes == ()
    notes = " ".join(pma.compile_model(pma.Target.from_functions(in_numpy, **prior)).notes)
    assert "the function 'in_numpy', not written in JAX" in notes
    assert "_Called" not in notes
    assert "otential" not in notes


def test_on_a_stack_of_models() -> None:
    with pm.Model() as outer:
        pm.Normal("theta")
        target = pma.Target.from_functions(in_numpy, prior_transform=prior_transform, ndim=2)
    assert [v.name for v in outer.free_RVs] == ["theta"]
    assert [v.name for v in target.free_RVs] == ["z"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"log_prior": lambda x: log_prior(x) + 0.2},  # a constant is missing
        {"sample_prior": lambda rng, n: 1.2 * sample_prior(rng, n)},
        {"log_prior": lambda x: stats.norm.logpdf(np.asarray(x), 0, 2).sum() + 0.2},
    ],
    ids=["constant", "draws", "constant in NumPy"],
)
def test_a_prior_that_does_not_match_its_draws(wrong) -> None:
    """The functions are a `_Prior`, which `check_agreement` takes as a reference."""
    prior = {"log_prior": log_prior, "sample_prior": sample_prior} | wrong
    with pytest.raises(ValueError, match="`log_prior` and `sample_prior` do not match"):
        pma.Target.from_functions(log_likelihood, **prior)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, TypeError, "pass one of these pairs"),
        ({"log_prior": log_prior}, TypeError, "pass one of these pairs"),
        (
            {"log_prior": log_prior, "prior_transform": prior_transform},
            TypeError,
            "pass one of these pairs",
        ),
        ({"prior_transform": prior_transform}, ValueError, "`ndim` is None"),
        (
            {"prior_transform": lambda u: u[:1], "ndim": 2},
            ValueError,
            r"`prior_transform` returned an array of shape \(1,\) for one point",
        ),
        (
            {"log_prior": log_prior, "sample_prior": lambda rng, n: rng.normal(size=n)},
            ValueError,
            r"returned an array of shape \(4,\), expected \(4, d\)",
        ),
        (
            {"log_prior": lambda x: -0.5 * jnp.square(x), "sample_prior": sample_prior},
            ValueError,
            "`log_prior` returned an array of shape",
        ),
        (
            {"prior_transform": prior_transform, "ndim": 2, "names": ["a"]},
            ValueError,
            "1 `names` for 2 parameters",
        ),
    ],
)
def test_errors(arguments, error, message: str) -> None:
    with pytest.raises(error, match=message):
        pma.Target.from_functions(log_likelihood, **arguments)
