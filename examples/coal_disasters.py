"""Did accidents in British coal mines become rarer, and when? Compare a change with none.

With the counts `c_t` of the years 1851 to 1962,

    c_t ~ Poisson(early) before the year s and Poisson(late) from s on,
    early, late ~ Exponential(1),  s uniform on the 112 years;

the model without a change has one rate. Both evidences are known: the rates integrate out in closed
form, and the year is a sum.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm

from scipy.special import gammaln, logsumexp

import pymc_anneal as pma

HERE = Path(__file__).parent


def build(year, count):
    """Return the models by name."""
    with pm.Model() as change:
        switch = pm.DiscreteUniform("switch", year[0], year[-1])
        early, late = pm.Exponential("early", 1), pm.Exponential("late", 1)
        rate = pm.math.switch(year < switch, early, late)
        pm.Deterministic("rate", rate)
        pm.Poisson("disasters", rate, observed=count)
    with pm.Model() as constant:
        rate = pm.Exponential("rate", 1)
        pm.Poisson("disasters", rate, observed=count)
    return {"a change": change, "no change": constant}


def exact(count):
    """Return the exact log evidences by name, and the posterior probabilities of the years."""
    n, years = count.sum(), len(count)
    before, total = np.arange(years), np.cumsum(count) - count  # years, and disasters in them

    def log_marginal(disasters, time):
        return gammaln(1 + disasters) - (1 + disasters) * np.log(1 + time)

    log_terms = log_marginal(total, before) + log_marginal(n - total, years - before)
    factorials = gammaln(count + 1).sum()
    log_evidence = {
        "a change": logsumexp(log_terms) - np.log(years) - factorials,
        "no change": log_marginal(n, years) - factorials,
    }
    return log_evidence, np.exp(log_terms - logsumexp(log_terms))


def draw_figure(year, count, idata, probability, path):
    """Save a figure of the counts with the rate, and of the year of the change."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    rate = idata["posterior"]["rate"].values.reshape(-1, len(year))
    left.bar(year, count, width=1.0, color="0.8", label="disasters")
    left.fill_between(year, *np.quantile(rate, [0.025, 0.975], axis=0), color="C0", alpha=0.3)
    left.plot(year, rate.mean(axis=0), color="C0", label="rate, with 95 % interval")
    left.set(xlabel="year", ylabel="disasters per year", title="Accidents in coal mines")
    left.legend(frameon=False)
    found = idata["posterior"]["switch"].values.ravel()
    share = [(found == y).mean() for y in year]
    right.bar(year, share, color="C0", alpha=0.5, label="posterior draws")
    right.plot(year, probability, "k.", label="exact")
    right.set(xlim=(1880, 1902), xlabel="year of the change", ylabel="probability", title="When?")
    right.legend(frameon=False)
    figure.savefig(path, dpi=100)


def main():
    coal = pd.read_csv(HERE / "data" / "coal_disasters.csv")
    year, count = coal["year"].to_numpy(), coal["disasters"].to_numpy()
    truth, probability = exact(count)
    results = {
        name: pma.sample_ais(model=model, random_seed=i, progressbar=False)
        for i, (name, model) in enumerate(build(year, count).items())
    }
    for name, idata in results.items():
        found = pma.log_evidence(idata)
        print(
            f"{name}: log evidence {found.log_evidence:.3f} +- {found.mcse:.3f} "
            f"(exact {truth[name]:.3f}), {found.verdict}"
        )
    names = ("a change", "no change")
    factor = pma.log_bayes_factor(*(results[name] for name in names), names=names)
    difference = truth["a change"] - truth["no change"]
    print(f"\n{factor}\n(exact {difference:.3f})")
    switch = results["a change"]["posterior"]["switch"].values
    print(f"\nyear of the change: 95 % between {np.quantile(switch, [0.025, 0.975]).astype(int)}")
    (HERE / "output").mkdir(exist_ok=True)
    path = HERE / "output" / "coal_disasters.png"
    draw_figure(year, count, results["a change"], probability, path)


if __name__ == "__main__":
    main()
