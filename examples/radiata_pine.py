"""Compare two regressions of the strength of radiata pine: on density or on resin-adjusted density.

The two regressions are not nested (Williams 1959; Carlin & Chib 1995). With the conjugate priors
of Friel & Pettitt (2008) both evidences are known exactly:

    y_i = a + b (x_i - mean(x)) + e_i,    e_i ~ N(0, 1/tau),
    a | tau ~ N(3000, 1/(0.06 tau)),  b | tau ~ N(185, 1/(6 tau)),  tau ~ Gamma(3, 180000).

The script prints the estimates next to the exact values, and writes a figure and one netCDF file
per model to `examples/output`.
"""

import csv
import sys
import warnings

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

from scipy.special import gammaln

import pymc_anneal as pma

# The warning does not apply: the model runs on JAX and does not use PyTensor's BLAS.
warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")

HERE = Path(__file__).parent
PRIOR_MEAN = np.array([3000.0, 185.0])
PRIOR_PRECISION = np.diag([0.06, 6.0])
SHAPE, RATE = 3.0, 180_000.0
BARS = sys.stdout.isatty()  # no progress bars in a file
COLUMNS = {"density": "x", "adjusted density": "z"}


def read_data():
    """Return strength `y`, density `x` and resin-adjusted density `z` of 42 specimens."""
    with open(HERE / "data" / "radiata_pine.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in ("y", "x", "z")}


def build(strength, density):
    """Return the regression of the strength on a density."""
    with pm.Model(coords={"specimen": np.arange(1, len(strength) + 1)}) as model:
        tau = pm.Gamma("tau", SHAPE, RATE)
        a = pm.Normal("a", PRIOR_MEAN[0], tau=PRIOR_PRECISION[0, 0] * tau)
        b = pm.Normal("b", PRIOR_MEAN[1], tau=PRIOR_PRECISION[1, 1] * tau)
        mean = a + b * (density - density.mean())
        pm.Normal("y", mean, tau=tau, observed=strength, dims="specimen")
    return model


def exact_log_evidence(strength, density):
    """Return the exact log evidence; the normal-gamma prior is conjugate."""
    design = np.column_stack([np.ones_like(density), density - density.mean()])
    precision = design.T @ design + PRIOR_PRECISION
    moment = design.T @ strength + PRIOR_PRECISION @ PRIOR_MEAN
    residual = (
        strength @ strength
        + PRIOR_MEAN @ PRIOR_PRECISION @ PRIOR_MEAN
        - moment @ np.linalg.solve(precision, moment)
    )
    n, log_det = len(strength), np.linalg.slogdet
    shape, rate = SHAPE + n / 2, RATE + residual / 2
    return (
        -n / 2 * np.log(2 * np.pi)
        + (log_det(PRIOR_PRECISION)[1] - log_det(precision)[1]) / 2
        + SHAPE * np.log(RATE)
        - shape * np.log(rate)
        + gammaln(shape)
        - gammaln(SHAPE)
    )


def draw_figure(data, results, path):
    """Save a figure of the data with both regressions, and of the weights of the particles."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    for i, (name, idata) in enumerate(results.items()):
        x = np.sort(data[COLUMNS[name]])
        a, b = (idata["posterior"][v].values.ravel()[:, None] for v in ("a", "b"))
        lines = a + b * (x - x.mean())
        left.plot(data[COLUMNS[name]], data["y"], f"C{i}o", markersize=3, alpha=0.6)
        left.plot(x, lines.mean(axis=0), color=f"C{i}", label=name)
        left.fill_between(x, *np.quantile(lines, [0.025, 0.975], axis=0), color=f"C{i}", alpha=0.2)
        excess = idata["annealing"]["log_weight"].values.ravel()
        excess = excess - pma.log_evidence(idata).log_evidence
        right.hist(excess, np.linspace(-3, 2, 71), histtype="step", label=name)
    left.set(xlabel="density", ylabel="strength", title="42 specimens of radiata pine")
    right.axvline(0, color="black", linewidth=0.8)
    right.set(xlabel="log weight minus log evidence (nats)", ylabel="particles")
    right.set_title("Weights of the particles")
    left.legend(frameon=False)
    figure.savefig(path, dpi=100)


def main():
    """Run both models, print the comparison and save the results."""
    data, output = read_data(), HERE / "output"
    output.mkdir(exist_ok=True)
    results, exact = {}, {}
    for seed, (name, column) in enumerate(COLUMNS.items(), start=1):
        model = build(data["y"], data[column])
        results[name] = pma.sample_ais(model=model, random_seed=seed, progressbar=BARS)
        results[name].to_netcdf(output / f"radiata_pine_{column}.nc")
        exact[name] = exact_log_evidence(data["y"], data[column])
    for name, idata in results.items():
        print(f"{name}:\n{pma.log_evidence(idata)}\n(exact {exact[name]:.3f})\n")
    plain, adjusted = (pma.log_evidence(idata) for idata in results.values())
    log_factor = adjusted.log_evidence - plain.log_evidence
    error = np.hypot(adjusted.mcse, plain.mcse)
    exact_factor = exact["adjusted density"] - exact["density"]
    print(
        f"log Bayes factor for the adjusted density: {log_factor:.3f} +- {error:.3f} "
        f"(exact {exact_factor:.3f});\nthe Bayes factor is {np.exp(log_factor):.0f}, "
        f"95 % interval {np.exp(log_factor - 1.96 * error):.0f} to "
        f"{np.exp(log_factor + 1.96 * error):.0f} (exact {np.exp(exact_factor):.0f})."
    )
    draw_figure(data, results, output / "radiata_pine.png")
    print("\nThe figure and the netCDF files are in examples/output.")


if __name__ == "__main__":
    main()
