"""Radon in houses of Minnesota: one line, a line for each county, or something in between?

The logarithm of the radon in house `i`, on floor `x_i` (0: basement), of county `c_i`, with the
uranium `u` of its soil (Gelman & Hill 2007, chapter 12):

    y_i ~ N(a_c + b_c x_i, sigma),    a_c ~ N(m_a + g u_c, s_a),    b_c ~ N(m_b, s_b),

with `s_a`, `s_b` and `g` zero where a model leaves them out, or `a_c ~ N(0, 10)` without pooling,
m_a, m_b, g ~ N(0, 10) and sigma, s_a, s_b ~ HalfNormal(1). The evidence is known: closed form given
the scales, quadrature over these.
"""

from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm

from scipy import stats

import pymc_anneal as pma

HERE = Path(__file__).parent
MODELS = {
    "one line": set(),
    "no pooling": {"each"},
    "intercepts": {"intercepts"},
    "slopes": {"slopes"},
    "both": {"intercepts", "slopes"},
    "uranium": {"intercepts", "uranium"},
}
# Bounds of the quadrature: of sigma, and of the scales of intercepts and slopes.
NOISE, SCALE, NODES = (0.6, 0.95), (0.0, 1.2), 24


def build(data, terms):
    """Return the model with these terms, its coefficients of counties non-centred."""
    county, floor = data["county"].to_numpy() - 1, data["floor"].to_numpy()
    uranium = data.groupby("county")["log_uranium"].first().to_numpy()
    with pm.Model(coords={"county": np.unique(data["county"])}) as model:

        def varying(name, mean):
            scale = pm.HalfNormal(f"s_{name}", 1)
            z = pm.Normal(f"z_{name}", dims="county")
            return pm.Deterministic(name, mean + scale * z, dims="county")[county]

        slope = pm.Normal("m_b", 0, 10)
        if "each" in terms:
            intercept = pm.Normal("a", 0, 10, dims="county")[county]
        else:
            intercept = pm.Normal("m_a", 0, 10)
            if "uranium" in terms:
                intercept = intercept + pm.Normal("g", 0, 10) * uranium
            if "intercepts" in terms:
                intercept = varying("a", intercept)
        if "slopes" in terms:
            slope = varying("b", slope)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", intercept + slope * floor, sigma, observed=np.log(data["radon"]))
    return model


def exact_log_evidence(data, terms):
    """Return the exact log evidence of the model with these terms."""
    one, x = np.ones(len(data)), data["floor"].to_numpy(float)
    y, u = np.log(data["radon"].to_numpy()), data["log_uranium"].to_numpy()
    common = [x] if "each" in terms else [one, x, *([u] if "uranium" in terms else [])]
    own = [one] if terms & {"each", "intercepts"} else []
    own += [x] if "slopes" in terms else []
    free = len(own) if "each" not in terms else 0  # scales with a prior
    both = np.column_stack([*own, *common, y])
    blocks = np.array([f.T @ f for _, f in ((c, both[data["county"] == c]) for c in range(1, 86))])

    def log_marginal(sigma, *scales):
        """Integrate the coefficients of counties out, then those in common."""
        k, scale = len(own), np.array(scales or [10.0] * len(own))
        inner = np.eye(k) + scale[:, None] * blocks[:, :k, :k] * scale / sigma**2
        right = scale[:, None] * blocks[:, :k, k:] / sigma**2
        rest = (blocks[:, k:, k:] / sigma**2).sum(0)
        rest -= (right.transpose(0, 2, 1) @ np.linalg.solve(inner, right)).sum(0)
        precision = rest[:-1, :-1] + np.eye(len(common)) / 100
        fit = rest[-1, :-1] @ np.linalg.solve(precision, rest[:-1, -1])
        log_det = np.linalg.slogdet(inner)[1].sum() + np.linalg.slogdet(100 * precision)[1]
        constant = len(y) * np.log(2 * np.pi * sigma**2)
        return -0.5 * (rest[-1, -1] - fit + log_det + constant)

    node, weight = np.polynomial.legendre.leggauss(NODES)
    axes = []
    for low, high in [NOISE, *[SCALE] * free]:
        at = low + (high - low) * (node + 1) / 2
        axes.append(zip(at, weight * (high - low) / 2 * stats.halfnorm.pdf(at), strict=True))
    points = [tuple(zip(*point, strict=True)) for point in product(*map(list, axes))]
    log_f = np.array([log_marginal(*at) + np.log(w).sum() for at, w in points])
    return np.logaddexp.reduce(log_f)


def draw_figure(data, results, exact, path):
    """Save a figure of the log evidences, and of the intercepts with and without pooling."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    names = sorted(results, key=lambda name: exact[name])
    row = np.arange(len(names))
    best = max(exact.values())
    found = [pma.log_evidence(results[name]).log_evidence - best for name in names]
    left.barh(row, found, color="0.75")
    left.plot([exact[name] - best for name in names], row, "k|", markersize=14)
    left.set(yticks=row, yticklabels=names, xlabel="log evidence below the best, nats")
    left.set_xlim(-70, 2)
    left.text(-69, 0, f"{found[0]:.0f}", va="center")
    size = data.groupby("county").size()
    for name, offset, colour in (("no pooling", -0.12, "0.6"), ("uranium", 0.12, "C0")):
        a = results[name]["posterior"]["a"]
        mean, sd = a.mean(("chain", "draw")), a.std(("chain", "draw"))
        at = size.to_numpy() * np.exp(offset)
        right.errorbar(at, mean, yerr=sd, fmt=".", color=colour, markersize=4, lw=0.7, label=name)
    right.set(xscale="log", xlabel="houses in the county", ylabel="intercept of the county")
    right.legend()
    figure.savefig(path, dpi=150)


def main():
    """Run all models, and compare them."""
    data = pd.read_csv(HERE / "data" / "radon.csv")
    exact = {name: exact_log_evidence(data, terms) for name, terms in MODELS.items()}
    results = {
        name: pma.sample_ais(model=build(data, terms), random_seed=1, progressbar=False)
        for name, terms in MODELS.items()
    }
    for name, idata in results.items():
        found = pma.log_evidence(idata)
        print(
            f"{name}: log evidence {found.log_evidence:.3f} +- {found.mcse:.3f} "
            f"(exact {exact[name]:.3f}), {found.verdict.status}"
        )
    print(pma.compare(results))
    a = results["uranium"]["posterior"]
    slope, scale = float(a["g"].mean()), float(a["s_a"].mean())
    other = float(results["intercepts"]["posterior"]["s_a"].mean())
    print(f"\nslope of uranium {slope:.2f}; sd of counties {scale:.2f}, without it {other:.2f}")
    (HERE / "output").mkdir(exist_ok=True)
    draw_figure(data, results, exact, HERE / "output" / "radon.png")


if __name__ == "__main__":
    main()
