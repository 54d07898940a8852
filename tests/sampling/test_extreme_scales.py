"""Likelihoods, penalties, gradients and priors with scales from 1e-300 to 1e300.

The squares of such numbers overflow or vanish, and sums of them lose their differences.
"""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import stats

import pymc_anneal as pma

Y = 1.5
# A standard normal prior and one datum with an error of one.
LOG_EVIDENCE, POSTERIOR = stats.norm.logpdf(Y, 0, np.sqrt(2)), stats.norm(Y / 2, np.sqrt(0.5))


def sharp(scale: float) -> tuple[pm.Model, float]:
    """A log likelihood of this scale."""
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("data", -0.5 * pt.constant(scale) * x**2)
    return model, -0.5 * np.log1p(scale)


def forbidden(scale: float) -> tuple[pm.Model, float]:
    """A finite penalty below one."""
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("bound", pt.switch(x > 1, 0.0, pt.constant(-scale)))
        pm.Normal("y", x, 1.0, observed=Y)
    return model, LOG_EVIDENCE + POSTERIOR.logsf(1)


def cliff(scale: float) -> tuple[pm.Model, float]:
    """A gradient of this scale below zero."""
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("bound", -pt.constant(scale) * pt.maximum(0.0, -x))
        pm.Normal("y", x, 1.0, observed=Y)
    return model, LOG_EVIDENCE + POSTERIOR.logsf(0)


def wide(scale: float) -> tuple[pm.Model, float]:
    """A parameter, and its prior, of this scale."""
    with pm.Model() as model:
        x = pm.Normal("x", 0, scale)
        pm.Normal("y", x / scale, 1.0, observed=Y)
    return model, LOG_EVIDENCE


QUICK = [(sharp, 1e300), (forbidden, 1e300), (wide, 1e-300), (wide, 1e300)]
OTHERS = [(sharp, s) for s in (1e-300, 1e-30, 1e10, 1e100, 1e200)]
OTHERS += [(forbidden, s) for s in (1e5, 1e30, 1e150)]
OTHERS += [(cliff, s) for s in (1e5, 1e30, 1e150, 1e300)]
OTHERS += [(wide, s) for s in (1e-150, 1e-30, 1e30, 1e150)]


@pytest.mark.quick_cases("wide-1e-300")
@pytest.mark.parametrize(
    ("build", "scale"), [*QUICK, *(pytest.param(*case, marks=pytest.mark.slow) for case in OTHERS)]
)
def test_the_evidence_is_right_and_nothing_overflows(build, scale: float) -> None:
    with warnings.catch_warnings():
        # PyTensor tries whether a constant fits into 32 bits.
        warnings.filterwarnings("ignore", "overflow encountered in cast", RuntimeWarning)
        model, exact = build(scale)
        idata = pma.sample_ais(400, model=model, random_seed=1, progressbar=False, warnings=False)
    found = pma.log_evidence(idata)
    assert abs(found.log_evidence - exact) < 4 * found.mcse + 0.005
    assert found.mcse < 0.1
