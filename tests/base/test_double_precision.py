"""JAX's switches for 64-bit numbers are after a call what they were before."""

import inspect
import mmap
import sys

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from types import FunctionType

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.base import programs
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.double_constants import widen_constants
from pymc_anneal.pipeline import session
from tests.model.test_copy_model import schools
from tests.sampling.black_box_models import solved
from tests.sampling.small_model import QUICK, build_small_model

# Functions of other folders than `sampling` that evaluate densities.
COMPUTING = {
    "bridge_evidence",
    "compare_estimators",
    "compile_model",
    "fit_reference",
    "prior_sensitivity",
    "savage_dickey",
}
# Kernels without gradients, which a black box has not.
WALK = {**QUICK, "transition": pma.RandomWalkMetropolis(0.3, 2, 1.0), "draws": 20}


def of_process() -> bool:
    return bool(jax.config.values["jax_enable_x64"])


@pytest.fixture
def _restored() -> Iterator[None]:
    before = of_process()
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(params=[False, True])
def setting(request: pytest.FixtureRequest, _restored: None) -> bool:
    """The setting of a user's process."""
    jax.config.update("jax_enable_x64", request.param)
    return bool(request.param)


def test_within_a_call_and_after_it(setting: bool) -> None:
    @double_precision
    def inner() -> tuple[bool, str]:
        return of_process(), str(jnp.arange(2.0).dtype)

    @double_precision
    def outer() -> tuple[bool, str]:
        inner()
        return inner()

    assert outer() == (True, "float64")
    assert of_process() == setting
    assert jnp.arange(2.0).dtype == ("float64" if setting else "float32")


@pytest.mark.parametrize("own", [False, True])
def test_a_thread_with_a_setting_of_its_own(setting: bool, own: bool) -> None:
    """A call within `with jax.enable_x64(...)` does not make that the setting of the process."""

    @double_precision
    def call() -> tuple[bool, str]:
        return of_process(), str(jnp.arange(2.0).dtype)

    with jax.enable_x64(own):
        assert call() == (True, "float64")
        assert jnp.arange(2.0).dtype == ("float64" if own else "float32")
    assert of_process() == setting


def test_after_a_failure(setting: bool) -> None:
    @double_precision
    def fail() -> None:
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        fail()
    assert of_process() == setting


def test_two_calls_at_once(setting: bool) -> None:
    """The first to end leaves the switch to the other; the last one restores it."""
    both, one = Barrier(2, timeout=30), Barrier(2, timeout=30)

    @double_precision
    def call(last: bool) -> bool:
        both.wait()
        if last:
            one.wait()
        return of_process()

    def first() -> None:
        assert call(False)
        one.wait()

    with ThreadPoolExecutor() as pool:
        found = [pool.submit(first), pool.submit(call, True)]
        assert found[1].result()
        found[0].result()
    assert of_process() == setting


@pytest.mark.quick_cases("False-solved", "True-build_small_model")
@pytest.mark.parametrize("build", [build_small_model, solved])
def test_runs_at_once_are_in_double_precision(setting: bool, build) -> None:
    """Callbacks to Python, which run in threads of XLA, included."""
    compiled = pma.compile_model(build())

    def run(seed: int) -> np.ndarray:
        found = pma.sample_ais(model=compiled, **{**WALK, "random_seed": seed})
        return np.asarray(found["annealing"]["log_weight"])

    with ThreadPoolExecutor() as pool:
        found = list(pool.map(run, (1, 2, 1)))
    assert of_process() == setting
    np.testing.assert_array_equal(found[0], found[2])
    assert found[0].dtype == np.float64
    # PyMC's own density, but for its numbers that are stored in single precision.
    (graph,) = widen_constants([compiled.model.logp()])
    log_density = compiled.model.compile_fn(graph, inputs=compiled.model.value_vars)
    for x in compiled.sample_prior(np.random.SeedSequence(1), 3):
        point = dict(
            zip([v.name for v in compiled.model.value_vars], compiled.split(x), strict=True)
        )
        terms = compiled.log_terms(x)
        found_there = float(terms.log_prior + terms.log_likelihood)
        assert found_there == pytest.approx(float(log_density(point)), rel=1e-12)
    assert of_process() == setting


@pytest.mark.usefixtures("_restored")
def test_a_default_call_gives_the_same_bits() -> None:
    """Coordinates, survey, reference, run and audit of a hierarchical model, and its draws."""
    found = {}
    for on in (False, True):
        jax.config.update("jax_enable_x64", on)
        result = pma.sample_ais(100, model=schools(), random_seed=1, progressbar=False)
        found[on] = result["annealing"]["log_weight"], result["posterior"]["theta"]
    for off, on in zip(found[False], found[True], strict=True):
        np.testing.assert_array_equal(off, on)


def test_functions_that_compute_with_jax_are_decorated() -> None:
    public = {name: getattr(pma, name) for name in pma.__all__}
    doors = {name: f for name, f in public.items() if isinstance(f, FunctionType)}
    computing = COMPUTING | {n for n, f in doors.items() if ".sampling." in f.__module__}
    assert len(computing) > 12
    assert [n for n in sorted(computing) if inspect.unwrap(doors[n]) is doors[n]] == []


def test_programs_are_kept_while_another_thread_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    @jax.jit
    def function(x: jax.Array) -> jax.Array:
        return x + 1

    monkeypatch.setattr(programs, "_functions", [function])
    monkeypatch.setattr(programs, "_models", set(range(programs._MOST_MODELS)))
    function(1.0)
    begun, end = Event(), Event()

    @double_precision
    def run() -> None:
        begun.set()
        end.wait(30)

    with ThreadPoolExecutor() as pool:
        running = pool.submit(run)
        begun.wait(30)
        double_precision(programs.count_model)("another")
        assert function._cache_size() == 1
        end.set()
        running.result()
    double_precision(programs.count_model)("one more")
    assert function._cache_size() == 0
    assert programs._models == {"one more"}


def test_programs_are_forgotten_when_they_fill_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each function of a user has programs of its own, though the model is the same."""

    @jax.jit
    def function(x: jax.Array) -> jax.Array:
        return x + 1

    monkeypatch.setattr(programs, "_functions", [function])
    monkeypatch.setattr(programs, "_models", {"model"})
    function(1.0)
    double_precision(programs.forget_if_full)()
    assert function._cache_size() == 1
    monkeypatch.setattr(programs, "_MOST_MAPS", -1)
    double_precision(programs.forget_if_full)()
    assert function._cache_size() == 0
    assert programs._models == set()


@pytest.mark.skipif(sys.platform != "linux", reason="no other system counts memory maps")
def test_memory_maps_are_counted() -> None:
    before = programs.memory_maps()
    pages = [mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_SHARED) for _ in range(32)]
    assert programs.memory_maps() >= before + 16
    for page in pages:
        page.close()


def test_runs_forget_programs_that_fill_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []
    monkeypatch.setattr(session, "forget_if_full", lambda: counted.append(1))
    pma.sample_ais(
        model=build_small_model(),
        draws=20,
        chains=1,
        steps=2,
        schedule="linear",
        reference="prior",
        transition=pma.RandomWalkMetropolis(0.5, 1, 1.0),
        progressbar=False,
    )
    assert counted == [1]


def test_a_refused_call(setting: bool) -> None:
    with pytest.raises(ValueError, match="target_mcse"):
        pma.sample_ais(model=build_small_model(), target_mcse=-1.0, progressbar=False)
    assert of_process() == setting
