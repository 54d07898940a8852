"""Models with discrete variables, from their supports to the result of a run."""

import itertools

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from scipy import stats

import pymc_anneal as pma

from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.base.arviz_compat import group
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.sampling import tempered_transition
from tests.problems import (
    Problem,
    change_point,
    ising,
    mixture_indicators,
    outlier_effects,
    unknown_trials,
)

CUT = np.array([-1.0, 0.0, 1.0])


def of_random_size():
    return pm.Binomial("x", pm.Poisson("n", 4.0), 0.3)


def of_data():
    return pm.Binomial("x", pm.Data("n", [2, 5]), 0.3, shape=2)


# Variables named x, and the values that each of their entries can take.
SUPPORTS: list[tuple[Callable, tuple | None]] = [
    (lambda: pm.Bernoulli("x", 0.3, shape=2), ((0, 1), (0, 1))),
    (lambda: pm.Bernoulli("x", pm.Beta("p", 1, 2)), ((0, 1),)),
    (lambda: pm.Categorical("x", [0.2, 0.5, 0.3]), ((0, 2),)),
    (lambda: pm.Categorical("x", pm.Dirichlet("p", np.ones(4)), shape=2), ((0, 3), (0, 3))),
    (lambda: pm.OrderedLogistic("x", eta=pm.Normal("e"), cutpoints=CUT), ((0, 3),)),
    (lambda: pm.DiscreteUniform("x", -2, 5), ((-2, 5),)),
    (lambda: pm.DiscreteUniform("x", [0, 3], 7), ((0, 7), (3, 7))),
    (lambda: pm.DiscreteUniform("x", 0, pm.Poisson("top", 3.0)), None),
    (lambda: pm.Binomial("x", 6, 0.5), ((0, 6),)),
    (of_data, ((0, 2), (0, 5))),
    (of_random_size, None),
    (lambda: pm.BetaBinomial("x", 1.0, 2.0, n=3), ((0, 3),)),
    (lambda: pm.HyperGeometric("x", N=10, k=4, n=7), ((1, 4),)),
    (lambda: pm.Poisson("x", 3.0), None),
    (lambda: pm.NegativeBinomial("x", 3.0, 1.0), None),
    (lambda: pm.ZeroInflatedPoisson("x", 0.4, 3.0), None),
    (lambda: pm.Geometric("x", 0.4), None),
]


@pytest.mark.parametrize(("declare", "support"), SUPPORTS)
def test_supports(declare: Callable, support: tuple | None) -> None:
    with pm.Model() as model:
        declare()
    compiled = pma.compile_model(model)
    variable = next(v for v in compiled.variables if v.name == "x")
    assert variable.discrete
    assert variable.support == support
    draws = compiled.sample_prior(np.random.SeedSequence(1), 2000)[:, variable.start :]
    for column, (low, high) in zip(draws.T, support or (), strict=False):
        assert (column.min(), column.max()) == (low, high)  # all of it, and nothing outside


def declared() -> pm.Model:
    """Discrete and continuous variables in turns."""
    with pm.Model(coords={"site": ["a", "b", "c"]}) as model:
        p = pm.Beta("p", 2, 3)
        z = pm.Bernoulli("z", p, dims="site")
        mu = pm.Normal("mu", 0, 2)
        n = pm.Poisson("n", 3.0)
        pm.Deterministic("total", z.sum() + n)
        pm.Normal("y", mu + z, 1.0 + n, observed=[1.0, 2.0, -0.5])
    return model


@pytest.fixture(scope="module")
def compiled() -> CompiledModel:
    return pma.compile_model(declared())


class TestModel:
    def test_layout(self, compiled: CompiledModel) -> None:
        assert [v.name for v in compiled.discrete] == ["z", "n"]
        assert [(v.start, v.stop) for v in compiled.discrete] == [(1, 4), (5, 6)]

    def test_whole_numbers_stay_whole(self, compiled: CompiledModel) -> None:
        x = compiled.sample_prior(np.random.SeedSequence(1), 50)
        assert x.dtype == np.float64
        values = compiled.constrain(x)
        for name in ("z", "n", "total"):
            assert values[name].dtype == np.int64
        np.testing.assert_array_equal(values["z"], x[:, 1:4])
        np.testing.assert_allclose(compiled.unconstrain(values), x, rtol=1e-12, atol=1e-12)

    def test_derivatives_are_of_the_continuous_ones(self, compiled: CompiledModel) -> None:
        x = compiled.sample_prior(np.random.SeedSequence(2), 20)
        with jax.enable_x64(True):
            slope = jax.vmap(jax.grad(lambda x: compiled.log_terms(x).log_posterior))(x)
        assert (slope[:, [1, 2, 3, 5]] == 0).all()
        assert (slope[:, [0, 4]] != 0).all()

    def test_counts_with_a_fixed_sum_are_refused(self) -> None:
        for declare in (
            lambda: pm.Multinomial("x", 4, [0.2, 0.8]),
            lambda: pm.DirichletMultinomial("x", 4, [1.0, 2.0]),
        ):
            with pm.Model() as model:
                declare()
            with pytest.raises(NotImplementedError, match="'x' holds counts with a fixed sum"):
                pma.compile_model(model)


class Identity(Op):
    """Returns what it is given: an Op without a JAX form."""

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.array(inputs[0])  # a copy: PyTensor writes into its results

    def pullback(self, inputs, outputs, cotangents):
        return [cotangents[0]]

    def grad(self, inputs, cotangents):
        return [cotangents[0]]


@pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning")
def test_without_a_jax_form() -> None:
    def build(wrap: Callable) -> pm.Model:
        with pm.Model() as model:
            z = pm.Bernoulli("z", 0.4, shape=2)
            x = pm.Normal("x", 0, 1)
            pm.Normal("y", wrap(x) + z.sum(), 1.0, observed=0.7)
        return model

    first, second = pma.compile_model(build(Identity())), pma.compile_model(build(lambda x: x))
    assert first.notes
    draws = first.sample_prior(np.random.SeedSequence(3), 5)
    with jax.enable_x64(True):
        both = [
            jax.vmap(jax.value_and_grad(lambda x, c=c: c.log_terms(x).log_posterior))(draws)
            for c in (first, second)
        ]
    for left, right in zip(*both, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-9)


class TestChoice:
    """Which kernels move which variables."""

    def test_kernels(self, compiled: CompiledModel) -> None:
        rest, gibbs, walk = pma.default_transition(model=compiled).parts
        assert isinstance(rest.kernel, pma.HMC)
        assert rest.coordinates == (0, 4)
        assert gibbs == pma.Gibbs([1, 2, 3], [(0, 1)] * 3)
        assert walk == pma.DiscreteRandomWalk([5])

    def test_large_supports_are_walked(self) -> None:
        with pm.Model() as model:
            pm.DiscreteUniform("few", 0, 31)
            pm.DiscreteUniform("many", 0, 32)
        gibbs, walk = pma.default_transition(model=model).parts
        assert (gibbs.coordinates, walk.coordinates) == ((0,), (1,))

    def test_supports_of_a_size_share_a_kernel(self) -> None:
        with pm.Model() as model:
            pm.Binomial("x", [1, 20, 1, 17], 0.4)
            pm.Bernoulli("b", 0.4)
        small, large = pma.default_transition(model=model).parts
        assert (small.coordinates, large.coordinates) == ((0, 2, 4), (1, 3))

    def test_without_discrete_variables(self) -> None:
        with pm.Model() as model:
            pm.Normal("x")
        kernel = pma.MALA()
        assert pma.default_transition(kernel, model=model) is kernel

    @pytest.mark.parametrize(
        ("kernel", "message"),
        [
            (pma.MALA(), "'z' is discrete, and transition MALA moves real numbers"),
            (pma.HMC(0.1, 3, 1.0), "'z' is discrete, and transition HMC moves .*compose_tr"),
            (pma.Gibbs([1, 2], [(0, 1)] * 2), "'z' is discrete, and transition Gibbs does not"),
            (pma.Gibbs([1, 2, 3], [(0, 1)] * 3), "'n' is discrete, and transition Gibbs does"),
            (
                pma.Composition(
                    [pma.BlockTransition(pma.HMC(), [0, 5]), pma.DiscreteRandomWalk([1, 2, 3])]
                ),
                "'n' is discrete, and transition HMC moves real numbers",
            ),
        ],
    )
    def test_what_cannot_move_them(self, compiled, kernel, message: str) -> None:
        with pytest.raises(TypeError, match=message):
            pma.sample_ais(model=compiled, transition=kernel, progressbar=False)

    def test_what_cannot_be_a_part(self, compiled) -> None:
        with pytest.raises(TypeError, match="`continuous` is a Composition"):
            pma.default_transition(pma.Composition([pma.HMC()]), model=compiled)


class TestRefused:
    """References that live on the real numbers."""

    @pytest.mark.parametrize(
        "reference",
        ["pilot", "laplace", "auto", pma.GaussianReference(np.zeros(6), np.ones(6))],
        ids=str,
    )
    def test_reference(self, compiled, reference) -> None:
        with pytest.raises(NotImplementedError, match="'z' is discrete.*prior as reference"):
            pma.sample_ais(model=compiled, reference=reference, progressbar=False)

    @pytest.mark.parametrize("call", [pma.fit_reference, pma.bridge_evidence])
    def test_fits(self, compiled, call) -> None:
        with pytest.raises(NotImplementedError, match="real numbers.*'z' is discrete"):
            call(None, model=compiled)

    def test_laplace(self, compiled) -> None:
        with pytest.raises(NotImplementedError, match="'z' is discrete"):
            pma.laplace_reference(compiled)


# Small enough for one step to do.
SMALL = [ising(2), mixture_indicators(3), unknown_trials(), change_point(9), outlier_effects(2)]


@pytest.mark.parametrize("problem", SMALL, ids=lambda problem: problem.name)
def test_unbiased(problem: Problem) -> None:
    compiled = pma.compile_model(problem.build())
    kernel = pma.default_transition(pma.HMC(0.15, 1, 1.0), model=compiled)
    walking = {"step_size": 0.5, "n_steps": 1, "scale": 1.0}
    parts = [
        replace(part, **walking) if isinstance(part, pma.DiscreteRandomWalk) else part
        for part in kernel.parts
    ]
    path, particles = pma.GeometricPath(compiled.log_terms), 20_000
    for steps in range(1, 6):
        position = compiled.sample_prior(np.random.SeedSequence(steps), particles)
        betas, seed = pma.power_schedule(steps), np.random.SeedSequence(steps)
        block = Block(path, pma.Composition(parts), betas, position, 2, seed)
        weight = np.exp(run_block(block).log_weight.ravel() - problem.log_evidence)
        assert weight.sum() ** 2 / (weight**2).sum() > 0.02 * particles
        assert abs(weight.mean() - 1) < 5 * weight.std() / np.sqrt(particles)


QUICK = {"draws": 100, "chains": 2, "random_seed": 1, "progressbar": False}


@pytest.fixture(scope="module")
def result(compiled: CompiledModel):
    return pma.sample_ais(model=compiled, reverse_from="draws", **QUICK)


class TestResult:
    def test_draws_keep_their_type(self, result) -> None:
        posterior = group(result, "posterior")
        assert posterior["z"].dtype == posterior["n"].dtype == np.int64
        assert posterior["z"].dims == ("chain", "draw", "site")
        assert set(np.unique(posterior["z"])) == {0, 1}
        total = posterior["z"].sum("site") + posterior["n"]
        np.testing.assert_array_equal(posterior["total"], total)

    def test_evidence_of_both_directions(self, result) -> None:
        evidence = pma.log_evidence(result)
        assert evidence.verdict.trusted
        assert evidence.mcse < 0.1

    def test_words(self, result) -> None:
        words = group(result, "evidence").attrs
        assert words["transition"] == "HMC, Gibbs, DiscreteRandomWalk"
        assert (group(result, "annealing")["step_size"] > 0).all()

    def test_it_goes_where_other_results_go(self, result, compiled, tmp_path) -> None:
        again = pma.sample_ais(model=compiled, steps=10, reverse_from=result, **QUICK)
        table = pma.compare({"once": result, "again": again})
        assert table["log_evidence"].notna().all()
        assert pma.compare_estimators(result)["agrees"].all()
        assert "z[a]" in pma.summary(result).index
        result.to_netcdf(tmp_path / "result.nc")

    def test_same_seed_same_bits(self, result, compiled) -> None:
        again = pma.sample_ais(model=compiled, reverse_from="draws", **QUICK)
        for name in ("z", "n", "mu"):
            np.testing.assert_array_equal(
                group(again, "posterior")[name], group(result, "posterior")[name]
            )


SPINS = np.array(list(itertools.product((0, 1), repeat=4)))


def spin_mass(power: float) -> np.ndarray:
    """Probability of each of ``SPINS`` in the model of ``ising(2)``, raised to a power."""
    s = 2 * SPINS - 1
    energy = 0.4 * (s[:, [0, 0, 3, 3]] * s[:, [1, 2, 1, 2]]).sum(axis=1) + 0.1 * s.sum(axis=1)
    mass = np.exp(power * energy)
    return mass / mass.sum()


class TestOtherRuns:
    """What else moves particles moves discrete variables as whole numbers."""

    @pytest.mark.slow
    def test_power_posterior(self) -> None:
        found = pma.power_posterior(
            [0.5, 3.0], model=ising(2).build(), draws=1000, random_seed=1, progressbar=False
        )
        up = group(found, "posterior")["up"]
        assert up.dtype == np.int64
        flat = up.transpose("power", "chain", "draw", ...).values.reshape(2, -1, 4)
        for power, draws in zip((0.5, 3.0), flat, strict=True):
            index = draws @ [8, 4, 2, 1]
            expected = spin_mass(power) * len(index)
            observed = np.bincount(index, minlength=16)
            common = expected > 20
            error = np.sqrt(expected[common])
            assert (np.abs(observed[common] - expected[common]) < 6 * error).all()

    @pytest.mark.parametrize("right", [True, False], ids=["reversal", "same order"])
    def test_tempered_transition(self, right: bool, monkeypatch) -> None:
        # Heating has to sweep the other way than cooling; three spins in strong fields show it.
        if not right:
            monkeypatch.setattr(tempered_transition, "reversal_of", lambda kernel: kernel)
        coupling = np.array([[-3.0, 5.0, -3.0], [0.0, 1.0, 4.0], [0.0, 0.0, -2.0]])
        path = pma.GeometricPath(lambda x: LogTerms(-3 * jnp.log(2.0), x @ coupling @ x))
        kernel, betas, draws = pma.Gibbs(range(3), [(0, 1)] * 3), jnp.array([0, 0.5, 1]), 300_000
        states = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
        mass = np.exp(np.einsum("ni,ij,nj->n", states, coupling, states))
        mass /= mass.sum()
        rng = np.random.default_rng(0)
        position = states[rng.choice(8, size=draws, p=mass)]
        fresh = states[rng.integers(8, size=draws)]

        def one(key, position, fresh):
            excursion = (
                tempered_transition._excursion.__wrapped__
            )  # what is broken is not compiled before
            return excursion(path, kernel, betas, key, position, fresh).position

        with jax.enable_x64(True):
            keys = jax.random.split(jax.random.key(2), draws)
            end = np.asarray(jax.jit(jax.vmap(one))(keys, position, fresh))
        observed = np.bincount((end @ [4, 2, 1]).astype(int), minlength=8)
        assert (stats.chisquare(observed, mass * draws).pvalue > 1e-6) == right

    def test_tempered_step(self) -> None:
        with ising(2).build() as model:
            step = pma.TemperedTransition(
                schedule=[0, 0.5, 1], transition=pma.Gibbs(range(4), [(0, 1)] * 4), rng=1
            )
        point, (statistics,) = step.step(model.initial_point())
        assert point["up"].dtype == np.int64
        assert 0 <= statistics["accept"] <= 1


def test_binary_variables_alone() -> None:
    problem = ising(2)
    result = pma.sample_ais(model=problem.build(), **QUICK)
    evidence = pma.log_evidence(result)
    assert abs(evidence.log_evidence - problem.log_evidence) < 4 * evidence.mcse
    assert group(result, "evidence").attrs["transition"] == "Gibbs"
    annealing = group(result, "annealing")
    assert np.isnan(annealing["step_size"]).all()  # there is none
    assert (annealing["accept_rate"] > 0).all()
    pma.plot_annealing(result)
