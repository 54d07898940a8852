"""Compare five models of a meta-analysis: does magnesium save lives after a heart attack?

The log odds ratios `y_i` of 16 trials, with standard errors `s_i`, are modelled by

    y_i ~ N(mu + b s_i, sqrt(s_i^2 + tau^2)),  mu ~ N(0, 1),  b ~ N(0, 1),  tau ~ HalfNormal(0.5),

with or without an effect `mu`, heterogeneity `tau` and an influence `b` of the size of the trial.
The evidence is known: closed form in `mu` and `b`, quadrature over `tau`.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt

from scipy import integrate, stats

import pymc_anneal as pma

HERE = Path(__file__).parent
TERMS = {
    "fixed effect": {"mu"},
    "random effects": {"mu", "tau"},
    "random, mean zero": {"tau"},
    "effect and size": {"mu", "b"},
    "size alone": {"b"},
}


def log_odds_ratios():
    """Return names, log odds ratios and standard errors; 1/2 is added to a table with a zero."""
    trial = pd.read_csv(HERE / "data" / "magnesium.csv", index_col="trial")
    deaths = trial[["deaths_magnesium", "deaths_control"]].to_numpy(float)
    alive = trial[["patients_magnesium", "patients_control"]].to_numpy(float) - deaths
    correction = 0.5 * (deaths == 0).any(axis=1, keepdims=True)
    deaths, alive = deaths + correction, alive + correction
    log_odds = np.log(deaths / alive)
    return trial.index, log_odds[:, 0] - log_odds[:, 1], np.sqrt((1 / deaths + 1 / alive).sum(1))


def build(y, se, terms):
    """Return the model with these terms; `effect` is zero where a model leaves it out."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1) if "mu" in terms else pt.constant(0.0)
        tau = pm.HalfNormal("tau", 0.5) if "tau" in terms else 0.0
        slope = pm.Normal("b", 0, 1) if "b" in terms else 0.0
        pm.Deterministic("effect", mu)
        pm.Normal("y", mu + slope * se, pm.math.sqrt(se**2 + tau**2), observed=y)
    return model


def exact_log_evidence(y, se, terms):
    """Return the exact log evidence of the model with these terms."""
    coefficients = ("mu" in terms) + ("b" in terms) * np.outer(se, se)

    def log_marginal(tau):
        covariance = np.diag(se**2 + tau**2) + coefficients
        return stats.multivariate_normal.logpdf(y, np.zeros(len(y)), covariance)

    if "tau" not in terms:
        return log_marginal(0.0)
    top = max(log_marginal(tau) for tau in np.linspace(0, 3, 301))
    mass, _ = integrate.quad(
        lambda t: np.exp(log_marginal(t) - top) * stats.halfnorm.pdf(t, 0, 0.5), 0, 6, limit=200
    )
    return top + np.log(mass)


def draw_figure(names, y, se, results, path):
    """Save a figure of the trials with the estimates of all models, and of the probabilities."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    row = np.arange(len(y))[::-1]
    left.errorbar(y, row, xerr=1.96 * se, fmt="s", color="0.5", markersize=3, linewidth=0.8)
    left.set_yticks(row, names, fontsize=6)
    probability = pma.compare(results).table["probability"]
    for i, (name, idata) in enumerate(results.items()):
        effect = idata["posterior"]["effect"].values
        left.plot(np.quantile(effect, [0.025, 0.975]), [-1.5 - i] * 2, color=f"C{i}", linewidth=2)
        left.plot(effect.mean(), -1.5 - i, "o", color=f"C{i}", markersize=4)
        right.barh(name, probability[name], color=f"C{i}")
        right.text(probability[name] + 0.02, i, f"{probability[name]:.3f}", va="center", fontsize=8)
    left.axvline(0, color="black", linewidth=0.8)
    left.set(xlim=(-4, 2), xlabel="log odds ratio of death", title="16 trials, five models")
    right.invert_yaxis()
    right.set(xlim=(0, 1), xlabel="posterior probability", title="Which model?")
    figure.savefig(path, dpi=100)


def main():
    names, y, se = log_odds_ratios()
    models = {name: build(y, se, terms) for name, terms in TERMS.items()}
    results = pma.sample_models(models, target_mcse=0.02, random_seed=1, progressbar=False)
    for name, idata in results.items():
        found, exact = pma.log_evidence(idata), exact_log_evidence(y, se, TERMS[name])
        print(
            f"{name}: log evidence {found.log_evidence:.3f} +- {found.mcse:.3f} "
            f"(exact {exact:.3f}), {found.verdict}"
        )
    null = exact_log_evidence(y, se, set())
    print(f"no effect, fixed: exactly {null:.3f}; a model without parameters needs no run")
    classical = {name: results[name] for name in list(TERMS)[:3]}
    for title, group in {"without the size of the trial": classical, "all": results}.items():
        print(f"\n{title}:\n{pma.compare(group)}")
        print(f"averaged effect:\n{pma.average(group, 'effect').round(3)}")
    (HERE / "output").mkdir(exist_ok=True)
    draw_figure(names, y, se, results, HERE / "output" / "magnesium.png")


if __name__ == "__main__":
    main()
