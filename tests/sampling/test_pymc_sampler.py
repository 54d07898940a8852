"""The contract of external samplers: settings in the constructor, keywords, nothing ignored."""

import pytest

import pymc_anneal as pma

from pymc_anneal.sampling import pymc_sampler


def test_settings_and_call_arrive(monkeypatch) -> None:
    sampler, made = pma.ais(target_mcse=0.05, reference="prior"), []
    monkeypatch.setattr(pymc_sampler, "sample_ais", lambda **given: made.append(given) or "result")
    call = {"draws": 20, "chains": 2, "cores": 1, "random_seed": 3, "progressbar": False}
    found = sampler.sample_from_init(model="model", tune=1000, initvals=None, trace=None, **call)
    assert found == "result"
    assert made == [{**call, "model": "model", "target_mcse": 0.05, "reference": "prior"}]


@pytest.mark.parametrize("ignored", [{"tune": 500}, {"initvals": {"a": 0}}, {"step": object()}])
def test_nothing_is_ignored(ignored) -> None:
    with pytest.raises(TypeError, match=f"has no use for ..{next(iter(ignored))}"):
        pma.ais().sample_from_init(model="model", **ignored)


def test_settings_that_are_none() -> None:
    with pytest.raises(TypeError, match=r"\['draws'\] belong to the call"):
        pma.ais(draws=10)
    with pytest.raises(TypeError, match=r"\['thin'\] are not settings of sample_ais"):
        pma.ais(thin=2)
