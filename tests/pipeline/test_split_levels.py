"""Multilevel splitting beside a survey, the argument `audit`, and what was not examined."""

import re
import time

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from scipy import integrate, stats

import pymc_anneal as pma

from pymc_anneal.adaptation import target_density
from pymc_anneal.adaptation.fit_mixture import MixtureFitter, fit_to_particles
from pymc_anneal.adaptation.flat_likelihood import is_mostly_flat
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.evidence.levels import Levels
from pymc_anneal.model.host_calls import Calls, Values, _evaluate_singly
from pymc_anneal.pipeline import audit, fitted_mixture, split_levels
from pymc_anneal.pipeline.hear_witnesses import Draws

SEED = np.random.SeedSequence(1)

# Centres and scales of a wide and a narrow mode, and the share of the wide one.
CENTRE, SCALE, SHARE = np.array([-1.0, 2.0]), np.array([0.8, 0.02]), np.array([0.3, 0.7])
PRIOR_SD = 2.0
LOG_EVIDENCE = float(np.log(SHARE @ stats.norm.pdf(CENTRE, 0, np.hypot(PRIOR_SD, SCALE)) ** 2))


class TwoPeaks(Op):
    """The log density of two normal modes in two dimensions, without a gradient."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [pt.as_tensor_variable(x)], [pt.dscalar()])

    def perform(self, node, inputs, outputs):
        standard = (inputs[0][:, None] - CENTRE) / SCALE
        each = np.log(SHARE / (2 * np.pi * SCALE**2)) - 0.5 * np.square(standard).sum(axis=0)
        outputs[0][0] = np.asarray(np.logaddexp(*each))


@pytest.fixture(scope="module")
def black_box() -> pm.Model:
    with pm.Model() as model:
        x = pm.Normal("x", 0, PRIOR_SD, shape=2)
        pm.Potential("box", TwoPeaks()(x))
    return model


@pytest.fixture(scope="module")
def normal() -> pma.CompiledModel:
    with pm.Model() as model:
        x = pm.Normal("x")
        # Nothing proves that this is log-concave.
        pm.Normal("y", x + 0.0 * pm.math.sin(x), 0.5, observed=0.3)
    return pma.compile_model(model)


def run(model, **arguments):
    """Return the log evidence of a run."""
    idata = pma.sample_ais(
        model=model,
        random_seed=1,
        progressbar=False,
        warnings=False,
        transition="random_walk",
        **arguments,
    )
    return pma.log_evidence(idata)


class TestBlackBox:
    """A mode that one in 2,000 draws of the prior meets, and no particle of a survey."""

    def test_the_narrow_mode_is_found(self, black_box, monkeypatch) -> None:
        monkeypatch.setattr(split_levels, "_MOST_DRAWS", 16_384)
        found = run(black_box)
        assert found.verdict.trusted
        assert abs(found.log_evidence - LOG_EVIDENCE) < 4 * found.mcse
        levels = {w.kind: w for w in found.witnesses}["levels"]
        assert abs(levels.log_evidence - LOG_EVIDENCE) < 5 * levels.mcse
        assert "no second derivatives to search with" in str(found.verdict)

    def test_without_levels_it_is_missed_and_the_verdict_says_that_nothing_searched(
        self, black_box, monkeypatch
    ) -> None:
        """The twin."""
        monkeypatch.setattr(split_levels, "_SECONDS", 0.0)
        found = run(black_box)
        assert found.log_evidence < LOG_EVIDENCE - 0.5
        assert "a mode that the survey passed by may be missed" in str(found.verdict)


@pytest.mark.parametrize(
    ("seconds", "numbers", "draws"),
    [(0.0, 3, 2**20), (0.0, 256, 2**15), (14e-6, 3, 2**16), (1e-4, 3, 2**14), (1.0, 3, 2**14)],
)
def test_as_many_draws_of_the_prior_as_fit_into_a_second(seconds, numbers, draws) -> None:
    """A peak that one draw in 5,000 meets is among 16,384 of them in 96 of 100 runs only."""
    assert split_levels._number_of_draws(seconds, numbers) == draws


@pytest.mark.slow
def test_a_box_behind_a_step_is_found() -> None:
    """Its gradient shows nothing, and 6e-6 of the prior lies in it: 8 nats were missing before.

    Nine of twelve runs are trusted; the others know of it, and start from the prior, since the path
    from the mixture is too long for trajectories at cliffs.
    """
    with pm.Model() as model:
        x = pm.Uniform("x", 0, 1, shape=4)
        pm.Potential("step", pt.switch(pt.all(x < 0.05), 20.0, 0.0))
    found = [
        pma.log_evidence(
            pma.sample_ais(model=model, random_seed=seed, progressbar=False, warnings=False)
        )
        for seed in range(12)
    ]
    trusted = [one for one in found if one.verdict.trusted]
    exact = np.log1p(0.05**4 * np.expm1(20))
    assert len(trusted) >= 8
    assert all(abs(one.log_evidence - exact) < 4 * one.mcse for one in trusted)


def test_slow_calls_elsewhere_do_not_decide() -> None:
    """The first calls of a worker compile, and those of many wait for each other."""
    calls = Calls()
    row = [np.zeros(1)]
    for each, rows in ((2.0, [row]), (0.001, [row, row]), (0.0, [None]), (0.0, [])):
        calls.add(Values(rows, each=each))
    assert calls.fastest == pytest.approx(0.001)


def test_interrupted_calls_do_not_decide() -> None:
    """On a busy machine some calls of a batch wait for a time slice; the others tell."""
    asked = iter(range(20))

    def black_box(x: np.ndarray) -> list[np.ndarray]:
        if next(asked) % 4 == 0:
            time.sleep(0.02)
        return [x]

    values = _evaluate_singly(black_box, [(np.zeros(1),)] * 20)
    assert values.calls == 20
    assert values.seconds > 0.1
    assert values.each < 0.005


class TestArgument:
    def test_levels(self, normal, monkeypatch) -> None:
        monkeypatch.setattr(split_levels, "_DRAWS", 2048)
        monkeypatch.setattr(split_levels, "_MOST_DRAWS", 2048)
        monkeypatch.setattr(split_levels, "_KEPT", 128)
        found = run(normal, audit="levels")
        assert "levels" in [w.kind for w in found.witnesses]
        assert abs(found.log_evidence - stats.norm.logpdf(0.3, 0, np.hypot(1, 0.5))) < 0.05

    def test_off(self, normal) -> None:
        found = run(normal, audit="off")
        assert found.witnesses == ()
        assert str(found.verdict) == "trust: modes were not looked for: audit='off'"

    def test_levels_without_a_survey(self, normal) -> None:
        with pytest.raises(ValueError, match="`audit='levels'` works beside a survey"):
            run(normal, audit="levels", reference="prior")

    def test_unknown(self, normal) -> None:
        with pytest.raises(ValueError, match="`audit` is 'none', expected \"auto\""):
            run(normal, audit="none")


class TestNotExamined:
    def test_climbs(self, normal) -> None:
        found = str(run(normal).verdict)
        assert found.endswith("1 in 106 draws of the prior climb may be missed")

    def test_few_held_out_particles(self, normal, monkeypatch: pytest.MonkeyPatch) -> None:
        """With n of them a part of 1 - 0.05^(1/n) escapes them all with 5 %."""
        monkeypatch.setattr(audit, "_FEW", 1000)
        found = run(normal)
        number = next(w.number for w in found.witnesses if w.kind == "held-out particles")
        said = re.search(r"effectively (.*)\): a part of (\d+)% may have", str(found.verdict))
        assert said is not None
        assert float(said[1]) == pytest.approx(number, rel=0.06)
        assert (1 - int(said[2]) / 100) ** number == pytest.approx(0.05, rel=0.3)

    def test_few_climbs_of_a_costly_density(self, normal, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(target_density, "_CHEAP", 1.0)
        found = str(run(normal).verdict)
        assert "1 in 13 draws of the prior climb may be missed (12% of the usual search" in found

    @pytest.mark.slow
    def test_steps_were_given(self, normal) -> None:
        assert "the number of steps was given" in str(
            run(normal, steps=4, reference="prior").verdict
        )

    @pytest.mark.slow
    def test_discrete_variables(self) -> None:
        with pm.Model() as model:
            k = pm.Poisson("k", 3)
            pm.Normal("y", k, 1.0, observed=2.0)
        assert "configurations more than two changes" in str(run(model, discrete="sample").verdict)
        with pm.Model() as model:
            pm.Poisson("k", 3)
        assert str(run(model).verdict) == "trust"

    def test_a_doubt_is_not_followed_by_what_could_be_missed(self, normal) -> None:
        verdict = run(normal, draws=8, chains=1, steps=1).verdict
        assert not verdict.trusted
        assert "not looked for" not in str(verdict)

    @pytest.mark.slow
    def test_no_data(self) -> None:
        with pm.Model() as model:
            pm.Normal("x")
        assert str(run(model).verdict) == "trust"


@pytest.mark.parametrize(("too_high", "trusted"), [(0.0, True), (0.4, False)])
def test_levels_above_a_run_are_a_doubt(normal, monkeypatch, too_high, trusted) -> None:
    """They are an estimate with an error, which neither a mixture nor a run may fall below."""
    original = split_levels.split

    def raised(*arguments, **options) -> Levels:
        found = original(*arguments, **options)
        return replace(found, log_evidence=found.log_evidence + too_high)

    monkeypatch.setattr(split_levels, "_MOST_DRAWS", 2**16)
    monkeypatch.setattr(split_levels, "split", raised)
    found = run(normal, audit="levels")
    assert found.verdict.trusted == trusted
    assert ("levels found" in str(found.verdict)) != trusted


@pytest.fixture(scope="module")
def ask(normal):
    """Return a function of how much higher levels are, and how many draws lie in a hole."""
    fitted = fit_to_particles(normal, normal.sample_prior(SEED, 256), SEED)
    draws = np.random.default_rng(1).normal(0.24, 0.45, (256, 1))
    levels = Levels(fitted.log_z, 0.03, 9, draws, np.zeros(256), np.arange(256), 0, True)
    own = Draws.of_weights(fitted.log_ratio_draws)

    def answer(rise: float = 0.0, high: int = 0, families: int = 256) -> str:
        found = replace(levels, log_evidence=levels.log_evidence + rise)
        index = np.arange(256)
        family = np.where(index < high, index % families, 256 + index)
        by_levels = split_levels.DrawsByLevels(draws, family)
        log_ratio = np.full(256, -50.0)
        log_ratio[:high] = 50.0
        return fitted_mixture.object_by_levels(found, fitted, by_levels, lambda _: log_ratio, own)

    return answer


class TestObjection:
    """Levels and their draws, asked about a mixture."""

    @pytest.mark.parametrize(("rise", "objects"), [(-1.0, False), (0.05, False), (0.2, True)])
    def test_a_mixture_below_levels(self, ask, rise: float, objects: bool) -> None:
        assert ("+- 0.03 by levels" in ask(rise)) == objects

    @pytest.mark.parametrize(
        ("high", "families", "objects"),
        [(0, 256, False), (1, 256, False), (25, 256, True), (50, 5, True), (50, 1, False)],
    )
    def test_draws_where_the_mixture_has_nothing(self, ask, high, families, objects) -> None:
        assert ("could be" in ask(high=high, families=families)) == objects

    def test_no_levels_say_nothing(self, normal) -> None:
        fitted = fit_to_particles(normal, normal.sample_prior(SEED, 256), SEED)
        own = Draws.of_weights(fitted.log_ratio_draws)
        assert fitted_mixture.object_by_levels(None, fitted, None, len, own) == ""


HEIGHT, WIDTH = 400.0, 0.02
TENTS = {
    "switch": lambda rise, far: pt.switch(far < WIDTH, rise, 0.0),
    "maximum": lambda rise, far: pt.maximum(rise, 0.0),
    "clip": lambda rise, far: pt.clip(rise, 0.0, 1e3),
}


def tents(form: str) -> tuple[pm.Model, float]:
    """Two tents, of which 5e-6 of the prior meets both, and the exact log evidence."""
    with pm.Model() as model:
        x = pm.Normal("x", 0, 3, shape=2)
        far = pt.abs(x - 4)
        pm.Potential("tent", TENTS[form](HEIGHT * (WIDTH - far), far).sum())

    def above(v: float) -> float:
        return stats.norm.pdf(v, 0, 3) * np.expm1(HEIGHT * (WIDTH - abs(v - 4)))

    inside = integrate.quad(above, 4 - WIDTH, 4 + WIDTH, points=[4])[0]
    return model, 2 * np.log1p(inside)


def sample_tents(form: str, seed: int):
    model, exact = tents(form)
    idata = pma.sample_ais(model=model, random_seed=seed, progressbar=False, warnings=False)
    return pma.log_evidence(idata), exact


@pytest.mark.parametrize(
    ("of", "reaches"),
    [
        (lambda x: pt.maximum(9.0 - 900.0 * pt.abs(x[0] - 4), 0.0), True),
        (lambda x: 0.0 * x.sum(), False),
        (lambda x: x[0], False),  # the prior alone has the other entry
        (lambda x: pt.constant(0.0), False),
    ],
)
@double_precision
def test_a_variable_without_a_slope_may_reach_the_likelihood(of, reaches: bool) -> None:
    with pm.Model() as model:
        x = pm.Normal("x", 0, 3, shape=2)
        b = pm.Normal("b", shape=3)
        theta = pm.Normal("theta", b, 0.2)  # b itself is not in the likelihood
        pm.Potential("tent", of(x))
        pm.Normal("y", theta, 0.5, observed=[1.0, 0.0, -1.0])
    compiled = pma.compile_model(model)
    target = TargetDensity(pma.GeometricPath(compiled.log_terms), 32)
    assert is_mostly_flat(target, compiled.sample_prior(SEED, 32), compiled) == reaches


def test_draws_by_levels_know_their_families() -> None:
    weight = np.log([0.5, 1e-9, 0.5])
    position, family = np.arange(3.0)[:, None], np.array([7, 8, 9])
    levels = Levels(0.0, 0.1, 3, position, weight, family, 0, True)
    drawn = split_levels.draws_of(levels, 10, SEED)
    np.testing.assert_array_equal(drawn.family, 7 + drawn.position[:, 0])
    assert set(drawn.family) == {7, 9}


class TestFlatLikelihood:
    """Nothing leads to a tent from most draws of the prior, and to both from hardly any."""

    @pytest.mark.quick_cases("maximum")
    @pytest.mark.parametrize("form", TENTS)
    def test_levels_lead_to_both_tents(self, form: str) -> None:
        found, exact = sample_tents(form, 4)
        assert found.verdict.trusted
        assert abs(found.log_evidence - exact) < 4 * found.mcse
        assert "levels" in {w.kind for w in found.witnesses}

    def test_without_them_one_is_missed(self, monkeypatch) -> None:
        """The twin."""
        monkeypatch.setattr(split_levels, "is_mostly_flat", lambda *arguments: False)
        found, exact = sample_tents("maximum", 4)
        assert found.log_evidence < exact - 0.1

    def test_draws_by_levels_are_candidates(self, monkeypatch) -> None:
        """The twin: without them, the mixture is fitted to one tent at a time."""

        def forget(self, mixture, found, seed, search, particles):
            return add_peaks(self, mixture, found, seed, search, self.position)

        add_peaks = MixtureFitter.add_peaks
        monkeypatch.setattr(MixtureFitter, "add_peaks", forget)
        found, exact = sample_tents("maximum", 4)
        assert found.log_evidence < exact - 0.1
        assert not found.verdict.trusted
        assert "draws by levels lie where at most" in str(found.verdict)

    def test_a_likelihood_that_is_constant_needs_none(self) -> None:
        with pm.Model() as model:
            pm.Normal("y", 0.0 * pm.Normal("x"), 1.0, observed=[0.3])
        found = pma.log_evidence(
            pma.sample_ais(model=model, random_seed=1, progressbar=False, reference="pilot")
        )
        assert abs(found.log_evidence - stats.norm.logpdf(0.3)) < 4 * found.mcse
        assert "levels" not in {w.kind for w in found.witnesses}
