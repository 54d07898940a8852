"""Many models in one call: all subsets of regressors, with their exact evidences."""

import time

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from tests.sampling import subsets
from tests.sampling.small_model import QUICK, build_small_model, small_model


def check_subsets(x: np.ndarray, y: np.ndarray) -> dict:
    """Run all subsets; compare evidences, inclusion probabilities and averages with exact ones."""
    masks = subsets.masks(x.shape[1])
    results = pma.sample_models(
        {name: {"mask": mask} for name, mask in masks.items()},
        model=subsets.model(x, y),
        random_seed=1,
        progressbar=False,
    )
    found = {name: pma.log_evidence(result) for name, result in results.items()}
    exact = {name: subsets.log_evidence(x, y, mask) for name, mask in masks.items()}
    z = np.array([(found[n].log_evidence - exact[n]) / found[n].mcse for n in masks])
    # A standard error may be off: 4.5 for hundreds of models is 4 for one of them.
    assert np.abs(z).max() < (4 if len(masks) < 100 else 4.5)
    included = {n: [f"x{j}" for j in np.flatnonzero(mask)] for n, mask in masks.items()}
    table = pma.inclusion(results, included)
    mass = np.exp(np.array(list(exact.values())) - max(exact.values()))
    for j in range(x.shape[1]):
        inside = np.array([mask[j] == 1 for mask in masks.values()])
        log_odds = np.log(mass[inside].sum() / mass[~inside].sum())
        row = table.loc[f"x{j}"]
        assert abs(row["log_bayes_factor"] - log_odds) < 3 * row["log_bayes_factor_mcse"]
    return results


def test_two_regressors() -> None:
    x, y = subsets.standardised(subsets.CEMENT)
    check_subsets(x[:, :2], y)


@pytest.mark.slow
def test_all_subsets_of_the_cement_data() -> None:
    results = check_subsets(*subsets.standardised(subsets.CEMENT))
    assert len(results) == 16


@pytest.mark.slow
def test_256_subsets_in_two_minutes() -> None:
    rng = np.random.default_rng(47)
    x = rng.normal(size=(47, 8)) @ np.linalg.cholesky(0.5 * np.eye(8) + 0.5).T
    y = x @ [0.8, 0.5, 0.0, 0.0, 0.3, 0.0, 0.0, 0.15] + rng.normal(size=47)
    begin = time.process_time()
    check_subsets(*subsets.standardised(np.column_stack([x, y])))
    assert time.process_time() - begin < 120


class TestModels:
    def results(self, **settings) -> dict:
        models = {"small": build_small_model(), "other": small_model()}
        return pma.sample_models(models, **{**QUICK, "draws": 20, **settings})

    def test_separate_models(self) -> None:
        results = self.results()
        assert list(results) == ["small", "other"]
        first, second = (pma.log_evidence(r).log_evidence for r in results.values())
        assert first != second  # seeds of their own
        again = {n: pma.log_evidence(r).log_evidence for n, r in self.results().items()}
        assert list(again.values()) == [first, second]

    def test_errors_name_the_model(self) -> None:
        with pytest.raises(ValueError, match="`draws` is 0") as caught:
            self.results(draws=0)
        assert caught.value.__notes__ == ["This happened in the model 'small'."]

    @pytest.mark.parametrize("models", [{}, [small_model()]])
    def test_no_models(self, models) -> None:
        with pytest.raises(ValueError, match="expected a dict of at least one model"):
            pma.sample_models(models)

    def test_values_without_a_model(self) -> None:
        with pytest.raises(TypeError, match="[Nn]o model on context stack"):
            pma.sample_models({"a": {"mask": [1.0]}})

    def test_progress(self, capsys) -> None:
        with pm.Model() as model:
            pm.Normal("x")
        pma.sample_models({"only": model}, **{**QUICK, "draws": 10, "progressbar": True})
        assert "Models" in capsys.readouterr().out
