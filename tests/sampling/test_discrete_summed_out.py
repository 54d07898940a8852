"""`sample_ais(discrete=)`: variables that are summed out, and the same number as without."""

import numpy as np
import pymc as pm
import pytest

from scipy import special, stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from pymc_anneal.model.sum_out import SummedModel, sum_out
from pymc_anneal.pipeline.settings import check_word
from tests.model.summed_models import magnet

SETTINGS = {"random_seed": 1, "progressbar": False}
CAUGHT = np.array([[3, 2, 4], [1, 0, 2], [5, 4, 3], [0, 1, 0]])


def animals(rate: float = 0.2) -> pm.Model:
    """Counts of animals at four sites, of each of which a visit sees one with probability p."""
    with pm.Model() as model:
        mean = pm.Gamma("mean", 2, rate)
        p = pm.Beta("p", 2, 2)
        number = pm.Poisson("number", mean, shape=4)
        pm.Binomial("y", number[:, None], p, observed=CAUGHT)
    return model


def exact_animals() -> float:
    """Log evidence by sums over up to 400 animals and quadrature."""
    node, weight = np.polynomial.legendre.leggauss(120)
    p, mean = (node + 1) / 2, np.exp(np.linspace(-3, 5, 400))
    n = np.arange(400)
    prior = stats.poisson.logpmf(n, mean[:, None])
    total = stats.gamma.logpdf(mean, 2, scale=5)[:, None] + np.log(mean)[:, None]
    total = total + stats.beta.logpdf(p, 2, 2) + np.log(weight / 2) + np.log(8 / 399)
    for row in CAUGHT:
        seen = stats.binom.logpmf(row[:, None, None], n, p[:, None]).sum(axis=0)
        total = total + special.logsumexp(prior[:, None] + seen, axis=2)
    return float(special.logsumexp(total))


@pytest.mark.slow
class TestCounts:
    def test_evidence_and_draws(self) -> None:
        idata = pma.sample_ais(model=animals(), target_mcse=0.03, **SETTINGS)
        found = pma.log_evidence(idata)
        assert found.verdict.trusted
        assert abs(found.log_evidence - exact_animals()) < 4 * found.mcse
        number = group(idata, "posterior")["number"]
        assert number.dtype == np.int64
        assert (number.values >= CAUGHT.max(axis=1)).all()
        assert "'number' (0 to" in group(idata, "evidence").attrs["notes"]

    def test_moved_they_give_the_same(self) -> None:
        summed, moved = (
            pma.sample_ais(model=animals(), discrete=how, **SETTINGS) for how in ("auto", "sample")
        )
        a, b = pma.log_evidence(summed), pma.log_evidence(moved)
        assert abs(a.log_evidence - b.log_evidence) < 4 * np.hypot(a.mcse, b.mcse)
        for name in ("mean", "p", "number"):
            one, two = (
                group(r, "posterior")[name].mean(("chain", "draw")) for r in (summed, moved)
            )
            assert (np.abs(one - two) < 0.2 * group(moved, "posterior")[name].std()).all()


class TestEndOfASum:
    def test_a_sum_that_ends_too_soon_is_doubted(self) -> None:
        """The data want many more animals than any draw of a sharp prior has."""
        found = sum_out(pma.compile_model(animals()))
        assert isinstance(found, SummedModel)
        usual = found.sample_prior(np.random.SeedSequence(1), 32)
        assert found.doubt_density(usual) == ""
        (variable,) = found.taken_out
        last = variable.support[0][1]
        beyond = found.unconstrain(
            {"mean": np.full(8, 1.0 * last), "p": np.full(8, 0.01), "number": np.ones((8, 4), int)}
        )
        assert "ends too soon" in found.doubt_density(beyond)

    def test_not_where_the_prior_needs_it(self) -> None:
        with pm.Model() as model:
            k = pm.Poisson("k", 2)
            x = pm.Normal("x", k, 1)
            pm.Normal("y", x, 1, observed=1.0)
        compiled = pma.compile_model(model)
        found = sum_out(compiled)
        assert [v.name for v in found.discrete] == ["k"]
        assert [v.name for v in found.taken_out] == ["x"]


@pytest.mark.slow
def test_nothing_is_left_to_anneal() -> None:
    """Of spins alone the sum is the evidence, exactly, and all draws are independent."""
    idata = pma.sample_ais(model=magnet(), draws=200, **SETTINGS)
    found = pma.log_evidence(idata)
    up = np.indices((2,) * 9).reshape(9, -1).T.reshape(-1, 3, 3)
    spin = 2 * up - 1
    energy = (spin[:, 1:] * spin[:, :-1]).sum((1, 2)) + (spin[..., 1:] * spin[..., :-1]).sum((1, 2))
    log_prior = stats.bernoulli.logpmf(up, 0.4).sum(axis=(1, 2))
    assert found.log_evidence == pytest.approx(
        special.logsumexp(log_prior + 0.6 * energy), abs=1e-6
    )
    assert found.mcse < 1e-9
    assert found.verdict.trusted
    share = special.softmax(log_prior + 0.6 * energy)
    mean = group(idata, "posterior")["up"].values.mean()
    expected = share @ up.mean(axis=(1, 2))
    spread = np.sqrt(share @ (up.mean(axis=(1, 2)) - expected) ** 2 / 800)
    assert abs(mean - expected) < 4 * spread


def test_an_unknown_value() -> None:
    with pytest.raises(ValueError, match=r"`discrete` is 'sum'.*\"auto\".*\"sample\""):
        check_word("discrete", "sum")
