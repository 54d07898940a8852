"""Reverse runs: the relation between the two directions, bounds, and their combination.

Trajectories of the two directions have densities in the ratio ``e^w / Z`` (Crooks 1998), so that

    E_forward[e^a h(a)] = Z E_reverse[h(b)]

for every function ``h``. With ``h(w) = e^-w`` it says that reverse weights are unbiased for 1/Z,
which holds for any kernels that leave the densities invariant; for other functions it needs the
reversals.
"""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.base.arviz_compat import container, group, has_group
from pymc_anneal.evidence.bennett import bar
from pymc_anneal.execution.blocks import anneal
from pymc_anneal.execution.progress import ProgressDisplay
from pymc_anneal.pipeline import run
from pymc_anneal.pipeline.reverse import Reverse
from pymc_anneal.pipeline.session import Session
from pymc_anneal.results.container import dataset
from tests.cases import (
    SCALE,
    TRANSITIONS,
    Case,
    log_gamma_draws,
    log_gamma_evidence,
    log_gamma_terms,
)
from tests.posteriors import exact_draws
from tests.problems import by_name

PARTICLES = 40_000


def both_directions(kernel, backward, steps: int, seed: int = 1):
    """Return log weights of forward and of reverse runs, as forward weights."""
    path, betas = pma.GeometricPath(log_gamma_terms), pma.power_schedule(steps, 2.0)
    rng = np.random.default_rng(seed)
    seeds = np.random.SeedSequence(seed).spawn(2)
    first, last = (log_gamma_draws(b, PARTICLES, rng) for b in (0.0, 1.0))
    forward = run_block(Block(path, kernel, betas, first, 1, seeds[0])).log_weight
    reverse = run_block(Block(path, backward, betas[::-1].copy(), last, 1, seeds[1])).log_weight
    return forward.ravel() - log_gamma_evidence(), -reverse.ravel() - log_gamma_evidence()


def crooks(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest violation of the relation over some functions, in standard errors."""

    def score(h) -> float:
        left, right = np.exp(a) * h(a), h(b)
        error = np.sqrt(left.var() / a.size + right.var() / b.size)
        return abs(left.mean() - right.mean()) / error

    quartiles = np.quantile(b, [0.1, 0.25, 0.5, 0.75])
    functions = [lambda w, q=q: (w > q).astype(float) for q in quartiles]
    return max(score(h) for h in [lambda w: 1 / (1 + np.exp(w)), np.tanh, *functions])


# Kernels of the quick tests; every case compiles programs of its own.
QUICK = {"hmc", "generalized_hmc", "random_walk"}


@pytest.mark.quick_cases(
    "random_walk-1", "random_walk-5", "hmc-3", "hmc-5", "generalized_hmc-3", "generalized_hmc-5"
)
@pytest.mark.parametrize("steps", [1, 3, 5])
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(c, marks=[] if c.name in QUICK else pytest.mark.slow, id=c.name)
        for c in TRANSITIONS
    ],
)
def test_both_directions(case: Case, steps: int) -> None:
    kernel = case.make()
    assert crooks(*both_directions(kernel, kernel.reversal(), steps)) < 5


class TestBrokenReversals:
    kernel = pma.GeneralizedHMC(1.3, 1, SCALE, momentum_persistence=0.95)

    def test_the_kernel_is_right(self) -> None:
        assert crooks(*both_directions(self.kernel, self.kernel.reversal(), 5)) < 5

    def test_a_kernel_that_is_not_the_reversal(self) -> None:
        # The momentum is forgotten after every move, which is invariant, but no reversal.
        forgetful = replace(self.kernel, momentum_persistence=0.0)
        assert crooks(*both_directions(self.kernel, forgetful, 5)) > 5

    @pytest.mark.slow
    def test_a_start_that_is_not_the_target(self) -> None:
        path, kernel = pma.GeometricPath(log_gamma_terms), pma.HMC(0.5, 1, 1.0)
        forward = both_directions(kernel, kernel, 3)[0]
        start = 0.9 * log_gamma_draws(1.0, PARTICLES, np.random.default_rng(1))
        betas = pma.power_schedule(3, 2.0)[::-1].copy()
        wrong = run_block(Block(path, kernel, betas, start, 1, np.random.SeedSequence(1)))
        assert crooks(forward, -wrong.log_weight.ravel() - log_gamma_evidence()) > 5


@pytest.mark.slow
def test_both_directions_cost_the_same() -> None:
    # 3, 3, 2 and 4 integrator steps, by temperature: a reverse run moves at the old temperature.
    (kernel,) = (case.make() for case in TRANSITIONS if case.name == "tuned")
    path, betas = pma.GeometricPath(log_gamma_terms), pma.power_schedule(4, 2.0)
    position = log_gamma_draws(0.0, 20, np.random.default_rng(1))
    for schedule in (betas, betas[::-1].copy()):
        block = Block(path, kernel, schedule, position, 2, np.random.SeedSequence(1))
        found = anneal([block], ProgressDisplay(False), "")
        assert found.evaluations == 20 * (7 + 7 + 5 + 9)


@pytest.fixture(scope="module")
def schools():
    problem = by_name("eight_schools")
    return problem, pma.compile_model(problem.build())


@pytest.fixture(scope="module")
def posterior(schools):
    """Exact draws of the posterior, two chains of 500."""
    x = exact_draws(schools[1], 1000, 1)
    values = {k: v.reshape(2, 500, *v.shape[1:]) for k, v in schools[1].constrain(x).items()}
    return container({"posterior": dataset(values, ("chain", "draw"))})


def sample_nuts(model: pm.Model):
    return pm.sample(
        500,
        tune=500,
        chains=2,
        cores=1,
        model=model,
        progressbar=False,
        random_seed=1,
        compute_convergence_checks=False,
    )


@pytest.mark.parametrize("tail", [1.0, 0.2])
def test_a_rough_upper_bound_is_a_note_and_no_doubt(tail: float) -> None:
    """Weights ``e^-b`` with a Pareto tail of this index; Bennett's ratio bounds them."""
    rng = np.random.default_rng(1)
    b = -tail * rng.exponential(size=(4, 500))
    # As e^a has to weight it for b to be a draw of the target.
    a = rng.choice(b.ravel(), (4, 500), p=np.exp(-b).ravel() / np.exp(-b).sum())
    reverse = Reverse(a, b, None, bar(a, b), "")
    assert not reverse.doubts
    assert ("Pareto k" in reverse.note) == (tail > 0.7)


class TestSampleAis:
    @pytest.mark.parametrize(
        "start", ["exact", *(pytest.param(s, marks=pytest.mark.slow) for s in ("draws", "nuts"))]
    )
    def test_eight_schools(self, start, schools, posterior) -> None:
        problem, model = schools
        given = {"exact": posterior, "nuts": start == "nuts" and sample_nuts(model.model)}
        idata = pma.sample_ais(
            model=model,
            reverse_from=given.get(start, start),
            progressbar=False,
            random_seed=5,
        )
        found = pma.log_evidence(idata)
        numbers = group(idata, "evidence")
        assert found.verdict.trusted
        assert abs(found.log_evidence - problem.log_evidence) < 4 * found.mcse
        assert found.mcse < float(numbers["lower_bound_mcse"])
        assert found.interval[0] < found.log_evidence < found.interval[1]
        # Their expectations lie on either side; the tail of e^-b makes the upper one rough.
        for name, side in (("lower_bound", 1), ("upper_bound", -1)):
            error = float(numbers[f"{name}_mcse"])
            assert side * (float(numbers[name]) - problem.log_evidence) < 4 * error
            assert abs(float(numbers[name]) - problem.log_evidence) < 0.3
        assert float(numbers["gap"]) > 0
        assert "reverse runs" in repr(found)

    def test_container(self, schools, posterior) -> None:
        settings = {"steps": 30, "model": schools[1], "progressbar": False, "random_seed": 5}
        idata = pma.sample_ais(100, reverse_from=posterior, **settings)
        forward, reverse = (group(idata, n) for n in ("annealing", "reverse_annealing"))
        assert reverse["log_weight"].shape == forward["log_weight"].shape == (4, 100)
        np.testing.assert_array_equal(
            reverse["beta"].values, np.c_[forward["beta"].values[:, -2::-1], np.zeros(4)]
        )
        # Relative to the posterior, the running estimate ends at the reference, whose log Z is 0.
        pooled = np.log(np.exp(reverse["log_z"].values[:, -1]).mean())
        assert pooled == pytest.approx(0, abs=1.0)
        assert group(idata, "evidence").attrs["reverse_start"] == "posterior draws"

    @pytest.mark.slow
    def test_the_forward_run_does_not_depend_on_it(self, schools) -> None:
        settings = {"steps": 20, "reference": "prior", "model": schools[1], "random_seed": 3}
        settings["progressbar"] = False
        alone = pma.sample_ais(50, **settings)
        both = pma.sample_ais(50, reverse_from="draws", **settings)
        np.testing.assert_array_equal(
            group(alone, "annealing")["log_weight"], group(both, "annealing")["log_weight"]
        )
        np.testing.assert_array_equal(
            group(alone, "posterior")["mu"], group(both, "posterior")["mu"]
        )

    @pytest.mark.slow
    def test_generalized_hmc(self, schools) -> None:
        problem, model = schools
        idata = pma.sample_ais(
            model=model,
            reverse_from="draws",
            transition=pma.GeneralizedHMC(),
            progressbar=False,
            random_seed=6,
        )
        found = pma.log_evidence(idata)
        assert abs(found.log_evidence - problem.log_evidence) < 4 * found.mcse

    @pytest.mark.slow
    def test_draws_of_another_posterior_are_noticed(self, schools, posterior) -> None:
        # Shifted draws, and transitions that hardly move them: the directions contradict.
        shifted = group(posterior, "posterior").copy()
        shifted["mu"] = shifted["mu"] + 8
        idata = pma.sample_ais(
            model=schools[1],
            reverse_from=container({"posterior": shifted}),
            steps=60,
            transition=pma.HMC(0.2, 1, 1.0),
            progressbar=False,
            random_seed=5,
        )
        verdict = str(pma.log_evidence(idata).verdict)
        assert verdict.startswith("do not trust")
        assert "not of the posterior" in verdict

    def test_an_interrupted_reverse_run_keeps_the_forward_run(self, schools, monkeypatch) -> None:
        def stopped(*args):
            raise KeyboardInterrupt

        monkeypatch.setattr(run, "run_reverse", stopped)
        settings = {"steps": 20, "reference": "prior", "model": schools[1], "random_seed": 3}
        settings["progressbar"] = False
        idata = pma.sample_ais(50, reverse_from="draws", **settings)
        found = pma.log_evidence(idata)
        assert "interrupted" in str(found.verdict)
        assert found.log_evidence == pma.log_evidence(pma.sample_ais(50, **settings)).log_evidence

    def test_interrupted_further_moves_keep_the_forward_run(self, schools, monkeypatch) -> None:
        # The reverse run would start from some of the draws only.
        anneal = Session.anneal

        def interrupted(session: Session, name: str, blocks):
            return replace(anneal(session, name, blocks), interrupted=name == "Further moves")

        monkeypatch.setattr(Session, "anneal", interrupted)
        settings = {"steps": 20, "model": schools[1], "progressbar": False, "random_seed": 3}
        idata = pma.sample_ais(50, reverse_from="draws", **settings)
        assert "interrupted" in str(pma.log_evidence(idata).verdict)
        assert not has_group(idata, "reverse_annealing")

    @pytest.mark.parametrize("value", ["posterior", 3, {}])
    def test_bad_start(self, value, schools) -> None:
        with pytest.raises(ValueError, match="group 'posterior'"):
            pma.sample_ais(model=schools[1], reverse_from=value, progressbar=False)

    def test_draws_of_another_model(self, schools) -> None:
        other = container({"posterior": dataset({"x": np.zeros((2, 9))}, ("chain", "draw"))})
        with pytest.raises(ValueError, match="'mu' of the model is not among"):
            pma.sample_ais(model=schools[1], reverse_from=other, progressbar=False)
