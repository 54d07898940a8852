"""Radon in 919 houses of 85 counties of Minnesota: from complete pooling to varying slopes.

The logarithm of the radon of house `i` in county `j`, measured on floor `x_i` (0: basement, 1:
first floor), with the logarithm `u_i` of the uranium in the soil:

    y_i ~ N(a + b x_i + g u_i, sigma),  sigma ~ HalfNormal(1),  coefficients ~ N(0, 10),

where intercept and slope are the same in all counties, differ freely, or vary, as
`a_j ~ N(mu, tau)` with `mu ~ N(0, 10)` and `tau ~ HalfNormal(1)`. Given `sigma` and the `tau` the
evidence has a closed form; over these it is known by quadrature.
"""

import itertools

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm

from scipy import linalg, optimize, stats

import pymc_anneal as pma

HERE = Path(__file__).parent
# Intercept and slope: the same in all counties, free in each, varying, or none; and uranium.
MODELS = {
    "complete pooling": ("same", "same", False),
    "no pooling": ("free", "same", False),
    "partial pooling": ("varying", "none", False),
    "varying intercepts": ("varying", "same", False),
    "varying slopes": ("same", "varying", False),
    "both vary": ("varying", "varying", False),
    "intercepts, uranium": ("varying", "same", True),
    "both vary, uranium": ("varying", "varying", True),
}


def read_data():
    """Return county (from 0), floor, log radon and log uranium of each house."""
    table = pd.read_csv(HERE / "data" / "radon.csv")
    return table["county"].to_numpy() - 1, table["floor"], table["log_radon"], table["log_uranium"]


def coefficient(name, kind):
    """Return a coefficient of each county."""
    if kind == "varying":
        mu, tau = pm.Normal(f"mu_{name}", 0, 10), pm.HalfNormal(f"tau_{name}", 1)
        return pm.Normal(name, mu, tau, dims="county")
    if kind == "free":
        return pm.Normal(name, 0, 10, dims="county")
    return pm.Normal(name, 0, 10) * np.ones(85) if kind == "same" else np.zeros(85)


def build(county, floor, y, uranium, *, intercept, slope, with_uranium):
    """Return a model."""
    with pm.Model(coords={"county": range(85)}) as model:
        mean = coefficient("intercept", intercept)[county]
        mean += coefficient("slope", slope)[county] * floor.to_numpy()
        if with_uranium:
            mean += pm.Normal("uranium", 0, 10) * uranium.to_numpy()
        pm.Normal("log_radon", mean, pm.HalfNormal("sigma", 1), observed=y)
    return model


def given_scales(county, floor, y, uranium, *, intercept, slope, with_uranium):
    """Return the log evidence as a function of sigma and the tau, coefficients integrated out."""
    columns = [uranium.to_numpy()[:, None]] if with_uranium else []
    known, varying = list(columns), []
    in_county = np.eye(85)[county]
    parts = (in_county, intercept), (in_county * floor.to_numpy()[:, None], slope)
    for part, kind in parts:
        known += [part.sum(axis=1, keepdims=True)] * (kind in ("same", "varying"))
        known += [part] * (kind == "free")
        varying += [part] * (kind == "varying")
    x = np.hstack([*known, *varying])
    gram, moment, square = x.T @ x, x.T @ y, float(y @ y)
    fixed = sum(part.shape[1] for part in known)

    def log_density(sigma, *tau):
        prior = np.concatenate([np.full(fixed, 100.0), np.repeat(np.square(tau), 85)])
        root = linalg.cholesky(np.diag(1 / prior) + gram / sigma**2, lower=True)
        fitted = linalg.solve_triangular(root, moment / sigma**2, lower=True)
        log_volume = len(y) * np.log(2 * np.pi * sigma**2) + np.log(prior).sum()
        log_volume += 2 * np.log(np.diag(root)).sum()
        return -(log_volume + square / sigma**2 - fitted @ fitted) / 2

    return log_density


def exact_log_evidence(*data, **kind):
    """Return the log evidence, by quadrature over the scales."""
    given, varying = given_scales(*data, **kind), list(kind.values()).count("varying")
    # The log of sigma has a standard deviation of about (2 n)^(-1/2); no tau is above 1.
    z, hermite = np.polynomial.hermite_e.hermegauss(10)
    t, legendre = np.polynomial.legendre.leggauss(24)
    t, legendre = (t + 1) / 2, legendre / 2
    centre = optimize.minimize_scalar(lambda s: -given(s, *[0.3] * varying), bounds=(0.3, 2)).x
    sigma = centre * np.exp(1.3 / np.sqrt(2 * len(data[2])) * z)
    weight = hermite * np.exp(z**2 / 2) * 1.3 / np.sqrt(2 * len(data[2])) * sigma
    terms = []
    for k in range(len(z)):
        for choice in map(list, itertools.product(range(len(t)), repeat=varying)):
            log_prior = stats.halfnorm.logpdf([sigma[k], *t[choice]]).sum()
            log_weight = np.log(weight[k] * legendre[choice].prod())
            terms.append(given(sigma[k], *t[choice]) + log_prior + log_weight)
    return np.logaddexp.reduce(terms)


def county_means(results, name):
    """Return posterior mean of the intercept of each county."""
    return results[name]["posterior"]["intercept"].mean(("chain", "draw")).to_numpy()


def draw_figure(table, exact, houses, free, varying, path):
    """Save a figure of the log evidences and of what pooling does to the counties."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6), layout="constrained")
    row, best = np.arange(len(table)), max(exact.values())
    left.barh(row, table["log_evidence"] - best, color="C0", alpha=0.5)
    left.plot([exact[n] - best for n in table.index], row, "k|", markersize=10, label="exact")
    left.set_yticks(row, table.index)
    left.set(xlabel="log evidence, from the best (nats)", title="Which model?")
    left.invert_yaxis()
    left.set_xscale("symlog", linthresh=10)
    left.legend(frameon=False, loc="lower left")
    jitter = houses * np.exp(np.random.default_rng(0).normal(0, 0.04, len(houses)))
    right.vlines(jitter, free, varying, color="0.8", linewidth=0.8)
    right.plot(jitter, free, "o", markersize=3, color="0.6", label="no pooling")
    right.plot(jitter, varying, "o", markersize=3, color="C1", label="varying intercepts")
    right.set(xscale="log", xlabel="houses in the county", ylabel="intercept (log radon)")
    right.legend(frameon=False)
    figure.savefig(path, dpi=100)


def main():
    data = read_data()
    names = ("intercept", "slope", "with_uranium")
    kinds = {name: dict(zip(names, kind, strict=True)) for name, kind in MODELS.items()}
    exact = {name: exact_log_evidence(*data, **kind) for name, kind in kinds.items()}
    results = pma.sample_models(
        {name: build(*data, **kind) for name, kind in kinds.items()},
        random_seed=1, progressbar=False,
    )  # fmt: skip
    comparison = pma.compare(results)
    table = comparison.table
    for name, found in table.iterrows():
        print(
            f"{name}: log evidence {found['log_evidence']:.3f} +- {found['mcse']:.3f} "
            f"(exact {exact[name]:.3f}), probability {found['probability']:.3g}, {found['verdict']}"
        )
    uranium = results[table.index[0]]["posterior"]["uranium"]
    print(f"\nuranium, in the best model: {uranium.mean():.2f} +- {uranium.std():.2f}")
    print(f"\n{comparison.verdict}")
    (HERE / "output").mkdir(exist_ok=True)
    free, varying = (county_means(results, n) for n in ("no pooling", "varying intercepts"))
    houses = np.bincount(data[0], minlength=85)
    draw_figure(table, exact, houses, free, varying, HERE / "output" / "radon.png")


if __name__ == "__main__":
    main()
