"""The kernels that move the variables of a model, chosen by their kinds and supports."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.flat_likelihood import FlatLikelihoodError
from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.pipeline.choose_transition import choose_transition, walk_along_steps
from tests.model.discrete_model import discrete_model
from tests.problems import (
    Problem,
    change_point,
    ising,
    mixture_indicators,
    outlier_effects,
    unknown_trials,
)


class TestDefaultTransition:
    def test_one_kernel_for_each_kind_of_variable(self) -> None:
        rest, gibbs, flip, walk = pma.default_transition(model=discrete_model()).parts
        assert isinstance(rest.kernel, pma.HMC)
        assert rest.coordinates == (0, 4)
        assert gibbs == pma.Gibbs([1, 2, 3], [(0, 1)] * 3)
        assert flip == pma.JointFlip([1, 2, 3], [(0, 1)] * 3, [0, 4])
        assert walk == pma.DiscreteRandomWalk([5])

    def test_large_supports_take_a_random_walk(self) -> None:
        with pm.Model() as model:
            pm.DiscreteUniform("few", 0, 31)
            pm.DiscreteUniform("many", 0, 32)
        gibbs, walk = pma.default_transition(model=model).parts
        assert (gibbs.coordinates, walk.coordinates) == ((0,), (1,))

    def test_supports_of_similar_size_share_a_kernel(self) -> None:
        with pm.Model() as model:
            pm.Binomial("x", [1, 20, 1, 17], 0.4)
            pm.Bernoulli("b", 0.4)
        small, large, flip = pma.default_transition(model=model).parts
        assert flip.coordinates == (0, 1, 2, 3, 4)
        assert (small.coordinates, large.coordinates) == ((0, 2, 4), (1, 3))

    def test_few_entries_change_together_with_few_continuous_ones(self) -> None:
        with pm.Model() as model:
            pm.Bernoulli("on", 0.5, shape=2)
            pm.Categorical("fixed", [1.0])
            pm.Normal("many", shape=17)
        flip = pma.default_transition(model=model).parts[-1]
        assert flip == pma.JointFlip([0, 1], [(0, 1)] * 2)
        with pm.Model() as model:
            pm.Bernoulli("on", 0.5, shape=33)
            pm.Normal("x")
        assert [type(part).__name__ for part in pma.default_transition(model=model).parts] == [
            "BlockTransition",
            "Gibbs",
        ]

    @pytest.mark.parametrize(
        ("name", "kernel"),
        [
            ("hmc", pma.HMC()),
            ("random_walk", pma.RandomWalkMetropolis()),
        ],
    )
    def test_names(self, name: str, kernel) -> None:
        with pm.Model() as model:
            pm.Normal("x")
        assert pma.default_transition(name, model=model) == kernel

    def test_without_discrete_variables(self) -> None:
        with pm.Model() as model:
            pm.Normal("x")
        kernel = pma.MALA()
        assert pma.default_transition(kernel, model=model) is kernel

    def test_the_kernel_of_the_continuous_variables_is_given(self) -> None:
        kernel = pma.MALA(n_steps=3)
        rest = pma.default_transition(kernel, model=discrete_model()).parts[0]
        assert rest == pma.BlockTransition(kernel, [0, 4])
        by_name = pma.default_transition("hmc", model=discrete_model()).parts[0]
        assert by_name == pma.BlockTransition(pma.HMC(), [0, 4])

    @pytest.mark.parametrize(
        "kernel",
        [
            pma.Composition([pma.HMC()]),
            pma.Gibbs([1], [(0, 1)]),
            pma.DiscreteRandomWalk([5]),
            pma.BlockTransition(pma.HMC(), [0]),
            pma.BlackJAXKernel(None),
        ],
        ids=lambda kernel: type(kernel).__name__,
    )
    def test_kernels_of_all_coordinates_or_of_given_ones_are_refused(self, kernel) -> None:
        name = type(kernel).__name__
        with pytest.raises(TypeError, match=f"`continuous` is a {name}, expected a kernel that"):
            pma.default_transition(kernel, model=discrete_model())

    def test_unknown_name(self) -> None:
        with pytest.raises(ValueError, match="Unknown `continuous` 'gibbs'; expected one of"):
            pma.default_transition("gibbs", model=discrete_model())


class TestChooseTransition:
    def test_a_name_stands_for_the_default_transition(self) -> None:
        chosen = choose_transition("random_walk", discrete_model())
        assert chosen == pma.default_transition("random_walk", model=discrete_model())

    def test_a_kernel_that_moves_every_variable_is_taken_as_it_is(self) -> None:
        kernel = pma.default_transition(model=discrete_model())
        assert choose_transition(kernel, discrete_model()) is kernel

    @pytest.mark.parametrize(
        ("kernel", "message"),
        [
            (pma.MALA(), "'z' is discrete, and transition MALA moves real numbers"),
            (pma.HMC(0.1, 3, 1.0), "'z' is discrete, and transition HMC moves .*default_tr"),
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
    def test_a_kernel_that_does_not_move_them_is_refused(self, kernel, message: str) -> None:
        with pytest.raises(TypeError, match=message):
            choose_transition(kernel, discrete_model())


class TestWalkAlongSteps:
    def test_only_coordinates_with_steps_walk(self) -> None:
        model = discrete_model()
        kernel = pma.default_transition(model=model)
        compiled, (rest, walk, *others) = _walks(kernel, [4])
        assert (rest.kernel, rest.coordinates) == (pma.HMC(), (0,))
        assert (walk.kernel, walk.coordinates) == (pma.RandomWalkMetropolis(), (4,))
        assert others == list(kernel.parts[1:])
        (name,) = [v.name for v in compiled.variables if 4 in range(v.start, v.stop)]
        assert f"Random walks move '{name}'" in compiled.notes[-1]
        assert compiled.derivatives == model.derivatives

    def test_without_a_slope_anywhere_the_model_has_no_gradient(self) -> None:
        kernel = pma.default_transition(model=discrete_model())
        compiled, (walk, *_) = _walks(kernel, [0, 4])
        assert (walk.kernel, walk.coordinates) == (pma.RandomWalkMetropolis(), (0, 4))
        assert compiled.derivatives.order == 0

    def test_blocks_without_a_step_stay_and_those_of_steps_alone_walk(self) -> None:
        kernel = pma.Composition([pma.BlockTransition(pma.MALA(), [j]) for j in (0, 4)])
        _, parts = _walks(kernel, [0])
        walk = pma.BlockTransition(pma.RandomWalkMetropolis(), [0])
        assert parts == (walk, kernel.parts[1])


def _walks(kernel: pma.Transition, coordinates: list[int]):
    error = FlatLikelihoodError("Flat.", coordinates)
    found, chosen = walk_along_steps(discrete_model(), kernel, error)
    return found, chosen.parts


# Small enough for even weights after one step.
SMALL = [ising(2), mixture_indicators(3), unknown_trials(), change_point(9), outlier_effects(2)]


@pytest.mark.parametrize("problem", SMALL, ids=lambda problem: problem.name)
@pytest.mark.slow
def test_default_transitions_are_unbiased(problem: Problem) -> None:
    compiled = pma.compile_model(problem.build())
    kernel = pma.default_transition(pma.HMC(0.15, 1, 1.0), model=compiled)
    walking = {"step_size": 0.5, "n_steps": 1, "scale": 1.0}
    settings = {pma.DiscreteRandomWalk: walking, pma.JointFlip: {"n_steps": 1}}
    parts = [replace(part, **settings.get(type(part), {})) for part in kernel.parts]
    path, particles = pma.GeometricPath(compiled.log_terms), 20_000
    for steps in range(1, 6):
        position = compiled.sample_prior(np.random.SeedSequence(steps), particles)
        betas, seed = pma.power_schedule(steps), np.random.SeedSequence(steps)
        block = Block(path, pma.Composition(parts), betas, position, 2, seed)
        weight = np.exp(run_block(block).log_weight.ravel() - problem.log_evidence)
        assert weight.sum() ** 2 / (weight**2).sum() > 0.02 * particles
        assert abs(weight.mean() - 1) < 5 * weight.std() / np.sqrt(particles)


BLACKJAX = pma.BlackJAXKernel(lambda log_density: log_density)
WRONG = {
    "repeated": (lambda: pma.BlockTransition(pma.HMC(), [0, 0]), ValueError, r"\[0, 0\], expected"),
    "negative": (lambda: pma.BlockTransition(pma.HMC(), [-1]), ValueError, "of the model: 0 to 1"),
    "beyond": (lambda: pma.Gibbs([2], [(0, 1)]), ValueError, r"Gibbs moves the coordinates \[2\]"),
    "none": (lambda: pma.BlockTransition(pma.HMC(), []), ValueError, "at least one"),
    "half": (lambda: pma.BlockTransition(pma.HMC(), [0.5]), TypeError, "float"),
    "no kernel": (lambda: pma.Composition([]), ValueError, "Composition of no kernels"),
    "particles": (lambda: pma.BlockTransition(BLACKJAX, [0]), TypeError, "hold a BlackJAXKernel"),
    "no steps": (lambda: pma.HMC(n_steps=0), ValueError, "`n_steps` of HMC is 0"),
    "part of a step": (lambda: pma.MALA(n_steps=2.5), ValueError, "a positive whole number"),
    "nan": (lambda: pma.HMC(step_size=np.nan), ValueError, "`step_size` of HMC is nan"),
    "back": (lambda: pma.HMC(step_size=-0.1), ValueError, "`step_size` of HMC is -0.1"),
    "two sizes": (lambda: pma.HMC(step_size=[0.1, 0.2]), ValueError, "a positive number"),
    "word": (lambda: pma.HMC(step_size="long"), ValueError, "`step_size` of HMC is long"),
    "scales": (lambda: pma.HMC(scale=np.ones(3)), ValueError, "a positive number, 2 of them"),
    "no scale": (lambda: pma.MALA(scale=0.0), ValueError, "`scale` of MALA is 0.0"),
    "matrix": (lambda: pma.HMC(scale=np.diag([1.0, -1.0])), ValueError, "positive diagonal"),
    "block": (
        lambda: pma.BlockTransition(pma.HMC(scale=np.ones(2)), [0]),
        ValueError,
        "1 of them",
    ),
    "persistence": (
        lambda: pma.GeneralizedHMC(momentum_persistence=1.0),
        ValueError,
        "`momentum_persistence` of GeneralizedHMC is 1.0, expected a number from 0 to below 1",
    ),
    "jitter": (lambda: pma.HMC(jitter=1.1), ValueError, "`jitter` of HMC is 1.1"),
    "target": (
        lambda: pma.BlockTransition(pma.MALA(target_accept=-0.1), [0]),
        ValueError,
        "`target_accept`",
    ),
}


class TestGivenKernels:
    @pytest.mark.parametrize(("make", "error", "words"), WRONG.values(), ids=WRONG)
    def test_wrong_ones(self, make, error: type, words: str) -> None:
        with pm.Model() as model:
            pm.Normal("x", shape=2)
        with pytest.raises(error, match=words):
            choose_transition(make(), pma.compile_model(model))

    @pytest.mark.parametrize(
        "kernel",
        [
            pma.HMC(0.5, np.int64(2), np.array([[1.0, 0.0], [0.3, 2.0]]), jitter=1.0),
            pma.BlockTransition(pma.MALA(0.5, 1, [2.0]), [1]),
            pma.GeneralizedHMC(momentum_persistence=0.0),
            BLACKJAX,
        ],
        ids=lambda kernel: kernel.name,
    )
    def test_right_ones(self, kernel) -> None:
        with pm.Model() as model:
            pm.Normal("x", shape=2)
        assert choose_transition(kernel, pma.compile_model(model)) is kernel

    def test_of_a_point_null(self) -> None:
        with pm.Model() as model:
            pm.Normal("y", observed=1.0)
        kernel = pma.HMC(0.5, 2, 1.0)
        assert choose_transition(kernel, pma.compile_model(model)) is kernel
