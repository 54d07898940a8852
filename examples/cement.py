"""Which of four minerals explain the heat of hardening cement? All sixteen regressions.

With standardised heat `y` and regressors `X`, and a g-prior with the weight of one observation
(Zellner 1986; g = n = 13),

    y ~ N(a + X_m b_m, sigma),  b_m ~ N(0, g sigma^2 (X_m' X_m)^-1),
    a ~ N(0, 5 sigma),  sigma^2 ~ InverseGamma(3, 2),

each model `m` has a closed-form evidence, so the sixteen probabilities are known exactly.
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


def g_prior_factor(x, mask):
    """Return L with `L L' = g (X_m' X_m)^-1` for the regressors of the mask, and zeros."""
    factor = np.zeros((x.shape[1], x.shape[1]))
    chosen = np.flatnonzero(mask)
    precision = x[:, chosen].T @ x[:, chosen] / len(x)
    factor[np.ix_(chosen, chosen)] = np.linalg.cholesky(np.linalg.inv(precision))
    return factor


def build(x, y, minerals):
    """Return the regression; the factor of the prior covariance, as data, selects regressors."""
    with pm.Model(coords={"mineral": minerals}) as model:
        factor = pm.Data("factor", g_prior_factor(x, np.ones(x.shape[1])))
        sigma = pm.math.sqrt(pm.InverseGamma("variance", 3, 2))
        intercept = sigma * pm.Normal("a", 0, 5)
        z = pm.Normal("z", dims="mineral")
        slope = pm.Deterministic("slope", sigma * pm.math.dot(factor, z), dims="mineral")
        pm.Normal("heat", intercept + pm.math.dot(x, slope), sigma, observed=y)
    return model


def exact_log_evidence(x, y, factor):
    """Return the exact log evidence: given all but sigma^2 normal, a multivariate t in total."""
    effects = x @ factor
    shape = (np.eye(len(y)) + 25 + effects @ effects.T) * 2 / 3
    return stats.multivariate_t.logpdf(y, np.zeros(len(y)), shape, df=6)


def draw_figure(found, inclusion, exact_inclusion, path):
    """Save a figure of the inclusion probabilities and of the six most probable models."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    row = np.arange(len(inclusion))
    left.barh(row, inclusion["probability"], color="C0", alpha=0.5)
    left.plot(exact_inclusion, row, "k|", markersize=14, label="exact")
    left.axvline(0.5, color="0.6", linewidth=0.8, linestyle="--")
    left.set_yticks(row, inclusion.index)
    left.set(xlim=(0, 1), xlabel="inclusion probability", title="Which minerals?")
    left.invert_yaxis()
    left.legend(frameon=False, loc="lower right")
    best = found.sort_values(ascending=False)[:6]
    right.barh(best.index, best, color="C1", alpha=0.6)
    right.tick_params("y", labelsize=7)
    right.invert_yaxis()
    right.set(xlabel="posterior probability", title="Six best of sixteen")
    figure.savefig(path, dpi=100)


def main():
    data = pd.read_csv(HERE / "data" / "cement.csv")
    data = (data - data.mean()) / data.std(ddof=0)
    minerals = list(data.columns[:-1])
    x, y = data[minerals].to_numpy(), data["heat"].to_numpy()
    masks = list(itertools.product([0, 1], repeat=len(minerals)))
    subsets = [list(itertools.compress(minerals, mask)) for mask in masks]
    included = {" + ".join(subset) or "none": subset for subset in subsets}
    factors = dict(zip(included, (g_prior_factor(x, mask) for mask in masks), strict=True))
    results = pma.sample_models(
        {name: {"factor": factor} for name, factor in factors.items()},
        model=build(x, y, minerals), reference="prior", random_seed=1, progressbar=False,
    )  # fmt: skip
    comparison = pma.compare(results)
    exact = {name: exact_log_evidence(x, y, factor) for name, factor in factors.items()}
    for name, row in comparison.table.head(6).iterrows():
        print(
            f"{name}: log evidence {row['log_evidence']:.3f} +- {row['mcse']:.3f} "
            f"(exact {exact[name]:.3f}), probability {row['probability']:.3f}, {row['verdict']}"
        )
    probability = softmax(list(exact.values()))
    member = np.array([[m in subset for subset in subsets] for m in minerals])
    inclusion = pma.inclusion(results, included).loc[minerals]
    exact_inclusion = member @ probability
    print("\nprobability that a mineral belongs to the model:")
    for (name, row), value in zip(inclusion.iterrows(), exact_inclusion, strict=True):
        error = (row["probability_upper"] - row["probability_lower"]) / (2 * 1.96)
        print(f"{name}: {row['probability']:.3f} +- {error:.3f} (exact {value:.3f})")
    slopes = pma.average(results, "slope").round(3)
    print(f"\nslopes, averaged over the models:\n{slopes}")
    print(f"\n{comparison.verdict}")
    (HERE / "output").mkdir(exist_ok=True)
    found = comparison.table["probability"]
    draw_figure(found, inclusion, exact_inclusion, HERE / "output" / "cement.png")


if __name__ == "__main__":
    main()
