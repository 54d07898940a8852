"""Test whether two drugs differ in the hours of sleep that they add (Student 1908).

The t-test of Jeffreys, Zellner and Siow for the differences `y` of ten patients:

    y_i ~ N(delta sigma, sigma),  delta ~ Cauchy(0, r),  log sigma uniform,

against `delta = 0`. The Bayes factor is known by quadrature over the t statistic (Rouder et al.
2009, eq. 1), and is 17.26 for `r = sqrt(2) / 2`. It is estimated twice, by the Savage-Dickey ratio
and from the evidences of both models, and for priors of other scales from the draws of one run
where they reach, and of another run where they do not.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

from scipy import integrate, stats

import pymc_anneal as pma

HERE = Path(__file__).parent
SLEEP = np.array([-1.2, -2.4, -1.3, -1.3, 0.0, -1.0, -1.8, -0.8, -4.6, -1.4])
SCALES = np.geomspace(0.1, 2, 15)


def build():
    """Return the model, with the scale of the prior as data, and the null."""
    with pm.Model() as model:
        r = pm.Data("r", np.sqrt(2) / 2)
        delta = pm.Cauchy("delta", 0, r)
        sigma = pm.math.exp(pm.Uniform("log_sigma", -5, 5))
        pm.Normal("y", delta * sigma, sigma, observed=SLEEP)
    with pm.Model() as null:
        sigma = pm.math.exp(pm.Uniform("log_sigma", -5, 5))
        pm.Normal("y", 0, sigma, observed=SLEEP)
    return model, null


def exact_log_bayes_factor(r):
    """Return the log Bayes factor against the null, by quadrature over the effect size."""
    n = len(SLEEP)
    t = stats.ttest_1samp(SLEEP, 0).statistic

    def integrand(delta):
        return stats.nct.pdf(t, n - 1, delta * np.sqrt(n)) * stats.cauchy.pdf(delta, 0, r)

    edges = np.linspace(-4, 1.5, 23)
    mass = sum(integrate.quad(integrand, *ends)[0] for ends in zip(edges, edges[1:], strict=False))
    return np.log(mass / stats.t.pdf(t, n - 1))


def draw_figure(robust, idata, path):
    """Save a figure of the curve of Bayes factors, and of prior and posterior of the effect."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    pma.plot_robustness(robust, axes=[left])
    exact = left.plot(SCALES, np.exp([exact_log_bayes_factor(r) for r in SCALES]), "k.")
    left.set(xlabel="scale r of the prior", title="Does the prior decide?")
    left.legend(exact, ["exact"], frameon=False, loc="lower right")
    grid = np.linspace(-4, 1.5, 200)
    right.plot(grid, stats.cauchy.pdf(grid, 0, np.sqrt(2) / 2), color="0.5", label="prior")
    draws = idata["posterior"]["delta"].values.ravel()
    right.hist(draws, 60, density=True, color="C0", alpha=0.5, label="posterior")
    right.axvline(0, color="black", linewidth=0.8)
    right.set(xlim=(-4, 1.5), xlabel="effect size", ylabel="density")
    right.set_title("The effect after the data")
    right.legend(frameon=False)
    figure.savefig(path, dpi=100)


def main():
    model, null = build()
    full = pma.sample_ais(model=model, target_mcse=0.02, random_seed=1, progressbar=False)
    reduced = pma.sample_ais(model=null, target_mcse=0.02, random_seed=2, progressbar=False)
    exact = exact_log_bayes_factor(np.sqrt(2) / 2)
    factors = {
        "evidences of both models": pma.log_bayes_factor(full, reduced),
        "Savage-Dickey ratio": pma.savage_dickey(full, {"delta": 0}, model=model),
    }
    for name, factor in factors.items():
        print(
            f"{name}: log Bayes factor {factor.log_bayes_factor:.3f} +- {factor.mcse:.3f} "
            f"(exact {exact:.3f}), {factor.verdict}"
        )
    robust = pma.robustness(full, {"delta": "r"}, SCALES, model=model, random_seed=3)
    print("\nlog Bayes factors with other scales of the prior:")
    for r, row in zip(SCALES, robust.table.itertuples(), strict=True):
        print(
            f"r = {r:.2f}: {row.log_bayes_factor:.3f} +- {row.log_bayes_factor_mcse:.3f} "
            f"(exact {exact_log_bayes_factor(r):.3f}), {row.verdict}, "
            f"by draws at {row.draws_at:.2f}"
        )
    print(f"\n{robust}")
    (HERE / "output").mkdir(exist_ok=True)
    draw_figure(robust, full, HERE / "output" / "sleep.png")


if __name__ == "__main__":
    main()
