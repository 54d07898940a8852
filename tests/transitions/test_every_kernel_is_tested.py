"""Every kernel that the package defines is a case of the contract tests."""

import importlib
import inspect
import pkgutil

import pytest

import pymc_anneal.rbm
import pymc_anneal.transitions

from pymc_anneal.base.contracts import Transition
from pymc_anneal.transitions.stay import Stay
from tests.cases import DISCRETE_TRANSITIONS, TRANSITIONS, USER_TRANSITIONS
from tests.rbm.small_paths import KERNELS as MACHINE_KERNELS

# No kernel that moves: it leaves all densities as they are (`tests/pipeline/test_short_road.py`).
NOT_MOVING = {Stay}


def kernels_of(package) -> set[type]:
    """Return the kernels defined in the modules of a package."""
    modules = [
        importlib.import_module(f"{package.__name__}.{found.name}")
        for found in pkgutil.iter_modules(package.__path__)
    ]
    classes = {c for module in modules for c in vars(module).values() if inspect.isclass(c)}
    return {
        c
        for c in classes
        if Transition in c.__mro__
        and not inspect.isabstract(c)
        and not c.__dict__.get("_is_protocol", False)
        and c.__module__.startswith(package.__name__)
    }


@pytest.mark.parametrize("package", [pymc_anneal.transitions, pymc_anneal.rbm])
def test_every_kernel_is_a_case(package) -> None:
    cases = [*TRANSITIONS, *USER_TRANSITIONS, *DISCRETE_TRANSITIONS]
    kernels = [*(case.make() for case in cases), *MACHINE_KERNELS.values()]
    tested = {type(k) for kernel in kernels for k in (kernel, kernel.reversal())}
    assert kernels_of(package)
    assert kernels_of(package) - NOT_MOVING <= tested
