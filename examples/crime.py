"""Which of eight variables explain crime in 47 states of the USA? All 256 regressions.

With the logarithms of the rate of crime `y` and of the regressors `X`, standardised,

    y ~ N(a + X_m b_m, sigma),  b_j ~ N(0, 0.7 sigma),  a ~ N(0, 5 sigma),
    sigma^2 ~ InverseGamma(3, 2),

each model `m` has a closed-form evidence, so the 256 probabilities are known exactly.
"""

import itertools

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm

from scipy import stats
from scipy.special import softmax

import pymc_anneal as pma

HERE = Path(__file__).parent


def read_data():
    """Return names of the regressors, their values and the response, logarithms standardised."""
    data = np.log(pd.read_csv(HERE / "data" / "us_crime.csv"))
    data = (data - data.mean()) / data.std(ddof=0)
    x = data.drop(columns="crime")
    return [name.replace("_", " ") for name in x], x.to_numpy(), data["crime"].to_numpy()


def build(names, x, y):
    """Return the regression; a mask, as data, selects the regressors."""
    with pm.Model(coords={"regressor": names}) as model:
        mask = pm.Data("mask", np.ones(len(names)), dims="regressor")
        sigma = pm.math.sqrt(pm.InverseGamma("variance", 3, 2))
        intercept = pm.Normal("intercept", 0, 5 * sigma)
        slope = pm.Normal("slope", 0, 0.7 * sigma, dims="regressor")
        effect = pm.Deterministic("effect", mask * slope, dims="regressor")
        pm.Normal("crime", intercept + pm.math.dot(x, effect), sigma, observed=y)
    return model


def exact_log_evidence(x, y, mask):
    """Return the exact log evidence: given all but sigma^2 normal, a multivariate t in total."""
    chosen = x * mask
    shape = (np.eye(len(y)) + 25 + 0.49 * chosen @ chosen.T) * 2 / 3
    return stats.multivariate_t.logpdf(y, np.zeros(len(y)), shape, df=6)


def draw_figure(inclusion, exact, effects, path):
    """Save a figure of the inclusion probabilities and of the averaged effects."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
    row = np.arange(len(inclusion))
    left.barh(row, inclusion["probability"], color="C0", alpha=0.5)
    left.plot(exact, row, "k|", markersize=12, label="exact")
    left.axvline(0.5, color="0.6", linewidth=0.8, linestyle="--")
    left.set_yticks(row, inclusion.index)
    left.set(xlim=(0, 1.02), xlabel="inclusion probability", title="Which variables?")
    left.invert_yaxis()
    left.legend(frameon=False, loc="lower right")
    right.errorbar(effects["mean"], row, xerr=effects["sd"], fmt="o", color="C1", capsize=3)
    right.axvline(0, color="0.6", linewidth=0.8)
    right.set(xlabel="standard deviations of log crime", title="Effects, averaged over models")
    figure.savefig(path, dpi=100)


def main():
    names, x, y = read_data()
    masks = list(itertools.product([0.0, 1.0], repeat=len(names)))
    subsets = [list(itertools.compress(names, mask)) for mask in masks]
    included = {" + ".join(subset) or "none": subset for subset in subsets}
    exact = {n: exact_log_evidence(x, y, m) for n, m in zip(included, masks, strict=True)}
    results = pma.sample_models(
        {name: {"mask": mask} for name, mask in zip(included, masks, strict=True)},
        model=build(names, x, y), random_seed=1, progressbar=False,
    )  # fmt: skip
    comparison = pma.compare(results)
    for name, row in comparison.table.head(5).iterrows():
        without = ", ".join(n for n in names if n not in included[name]) or "nothing"
        print(
            f"all but {without}: log evidence {row['log_evidence']:.3f} +- {row['mcse']:.3f} "
            f"(exact {exact[name]:.3f}), probability {row['probability']:.3f}, {row['verdict']}"
        )
    details = comparison.table
    error = details["log_evidence"] - pd.Series(exact)
    z = (error / details["mcse"]).abs().max()
    trusted = (details["verdict"] == "trust").sum()
    print(f"\n{trusted} of 256 verdicts: trust; largest error: {z:.1f} standard errors")
    inclusion = pma.inclusion(results, included).loc[names]
    member = np.array([[name in subset for subset in subsets] for name in names])
    exact_inclusion = member @ softmax(list(exact.values()))
    print("\nprobability that a variable belongs to the model:")
    for (name, row), value in zip(inclusion.iterrows(), exact_inclusion, strict=True):
        width = (row["probability_upper"] - row["probability_lower"]) / (2 * 1.96)
        print(f"{name}: {row['probability']:.4f} +- {width:.4f} (exact {value:.4f})")
    effects = pma.average(results, "effect").round(3)
    print(f"\neffects, averaged over the models:\n{effects}")
    print(f"\n{comparison.verdict}")
    (HERE / "output").mkdir(exist_ok=True)
    draw_figure(inclusion, exact_inclusion, effects, HERE / "output" / "crime.png")


if __name__ == "__main__":
    main()
