"""How many clusters: normal mixtures with one to four components for 82 galaxies.

With velocities `y` in 1000 km/s and the priors of Chib (1995) and Neal (1999),

    y_i ~ sum_j w_j N(mu_j, v_j),  mu_j ~ N(20, 10),  v_j ~ InverseGamma(3, 20),
    w ~ Dirichlet(1, ..., 1).

The evidence of one component is known by quadrature, those of two to four by importance sampling
with millions of draws; Neal (1999) gives -226.791 +- 0.089 for three.
"""

from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm

from pymc.distributions.transforms import ordered
from scipy import integrate, stats

import pymc_anneal as pma

HERE = Path(__file__).parent
REFERENCE = {2: (-232.880, 0.001), 3: (-226.790, 0.002), 4: (-226.61, 0.02)}  # value, error
BAR = {"markersize": 22, "zorder": 3}


def build(y, k):
    """Return a mixture of `k` normals; the order of the means only names the components."""
    with pm.Model() as model:
        variance = pm.InverseGamma("variance", 3, 20, shape=k)
        if k == 1:
            mu = pm.Normal("mu", 20, 10, shape=1)
            pm.Normal("y", mu, pm.math.sqrt(variance), observed=y)
        else:
            mu = pm.Normal("mu", 20, 10, shape=k, transform=ordered)
            weight = pm.Dirichlet("weight", np.ones(k))
            pm.NormalMixture("y", weight, mu, pm.math.sqrt(variance), observed=y)
    return model


def exact_one_component(y):
    """Return the log evidence of one normal: closed form in the mean, quadrature in log v."""
    n, total, squares = len(y), (y - 20).sum(), ((y - 20) ** 2).sum()

    def log_integrand(log_v):
        v = np.exp(log_v)
        fit = squares / v - (total / v) ** 2 / (n / v + 1 / 100)
        log_likelihood = -0.5 * (n * np.log(2 * np.pi * v) + np.log(100 * n / v + 1) + fit)
        return log_likelihood + stats.invgamma.logpdf(v, 3, scale=20) + log_v

    top = log_integrand(np.log(y.var()))
    mass, _ = integrate.quad(lambda u: np.exp(log_integrand(u) - top), 0, 7, points=[3])
    return top + np.log(mass)


def density(idata, grid):
    """Return the posterior mean of the density of the velocities on a grid."""
    draws = {name: v.values.reshape(-1, v.shape[-1]) for name, v in idata["posterior"].items()}
    weight = draws.get("weight", 1.0)
    sd = np.sqrt(draws["variance"])
    return np.array([(weight * stats.norm.pdf(x, draws["mu"], sd)).sum(1).mean() for x in grid])


def draw_figure(y, results, path):
    """Save a figure of the data with the densities, and of the log evidence by components."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    grid = np.linspace(5, 38, 300)
    left.hist(y, 40, density=True, color="0.85")
    for k, idata in results.items():
        left.plot(grid, density(idata, grid), label=components(k), linewidth=1.3)
        evidence = pma.log_evidence(idata)
        error = 1.96 * evidence.mcse
        right.errorbar(int(k), evidence.log_evidence, yerr=error, fmt="o", capsize=4)
    right.plot(REFERENCE.keys(), [v for v, _ in REFERENCE.values()], "k_", label="reference", **BAR)
    left.set(xlabel="velocity (1000 km/s)", ylabel="density", title="82 galaxies")
    left.legend(frameon=False, fontsize=8)
    right.set(xticks=[1, 2, 3, 4], xlabel="components", ylabel="log evidence (nats)")
    right.legend(frameon=False, loc="lower right")
    right.set_title("How many clusters?")
    figure.savefig(path, dpi=100)


def components(k):
    return "1 component" if k == "1" else f"{k} components"


def describe(k, idata, y):
    """Return a line with the estimate and what is known."""
    found = pma.log_evidence(idata)
    exact, error = REFERENCE[k] if k > 1 else (exact_one_component(y), 0.0)
    known = f"reference {exact:.2f} +- {error:.3f}" if error else f"exact {exact:.3f}"
    return (
        f"{k}: log evidence {found.log_evidence:.3f} +- {found.mcse:.3f} ({known}), {found.verdict}"
    )


def main():
    y = pd.read_csv(HERE / "data" / "galaxies.csv")["velocity"].to_numpy() / 1000
    number = pma.count(partial(build, y), range(1, 5), random_seed=1)
    for k, idata in number.results.items():
        print(describe(int(k), idata, y))
    print(f"\n{number}")
    (HERE / "output").mkdir(exist_ok=True)
    draw_figure(y, number.results, HERE / "output" / "galaxies.png")


if __name__ == "__main__":
    main()
