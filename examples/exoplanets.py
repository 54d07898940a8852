"""How many planets: the evidence challenge of radial velocities (Nelson et al. 2020).

The velocity `v_i` of a star at the time `t_i` is a sum of Keplerian orbits and correlated noise:

    v = C + sum_j K_j (cos(omega_j + nu_j(t)) + e_j cos(omega_j)) + noise,  noise ~ N(0, S + s^2 I),
    S_ik = 3 exp(-(sin^2(pi d / 20) / 0.5^2 + d^2 / 50^2) / 2) + sigma_i^2 I_ik,  d = t_i - t_k.

Seven teams computed the evidences of zero to three planets, and differ by several nats. Without
planets the evidence is known: closed form in C and quadrature over s.

    python examples/exoplanets.py                                       # minutes
    python examples/exoplanets.py --planets 2 3                         # an hour
    python examples/exoplanets.py --planets 0 1 --prior wide --data-set 1
"""

import argparse

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt

from scipy import integrate

import pymc_anneal as pma

HERE = Path(__file__).parent
DATA = HERE / "data" / "eprv3"
TEAMS = {
    "Diaz/perrakis": "Diaz, importance sampling of the marginals",
    "Nelson/MCMC_IS_30": "Nelson, importance sampling after MCMC",
    "Rajpaul/MCMC_NestedSampler": "Rajpaul, nested sampling by MCMC",
    "TeamPUC/vb-importance-sampling-long": "PUC, variational importance sampling",
    "TeamPUC/multinest-ins-nlive2000-eff0.3": "PUC, MultiNest with importance sampling",
}


def velocities(data_set, folder=DATA):
    """Return times, velocities, eigenvalues and eigenvectors of the noise without jitter.

    The jitter adds a multiple of the identity to the covariance: the eigenvectors stay as they are,
    and so one decomposition serves every value of the jitter.
    """
    t, v, sigma = np.loadtxt(folder / f"rv_{data_set}.csv", delimiter=",", skiprows=1, unpack=True)
    lag = t[:, None] - t
    exponent = np.sin(np.pi * lag / 20) ** 2 / 0.5**2 + lag**2 / 50**2
    variance, vectors = np.linalg.eigh(3 * np.exp(-exponent / 2) + np.diag(sigma**2))
    return t - t.mean(), v, variance, vectors


def period_bounds(n, data_set, prior, folder=DATA):
    """Return the least and the largest period of each planet, in days, shape (2, n)."""
    if prior == "wide":
        return np.tile([[1.25], [10_000.0]], n)
    table = pd.read_csv(folder / f"period_bounds_{data_set}.csv")
    return table[["min_days", "max_days"]].to_numpy()[:n].T


def eccentric_longitude(longitude, h, k):
    """Solve Kepler's equation ``F - h sin(F) + k cos(F) = longitude`` by Halley's method.

    With ``h = e cos(omega)`` and ``k = e sin(omega)`` the equation has no singularity at ``e = 0``.
    Exact to rounding for e up to 0.99. The derivative of a rounded number is zero: the last step
    has the derivative of the solution, and the steps before it cost no gradients.
    """

    def halley(f):
        sine, cosine = pt.sin(f), pt.cos(f)
        error, slope = f - h * sine + k * cosine - longitude, 1 - h * cosine - k * sine
        return f - 2 * error * slope / (2 * slope**2 - error * (h * sine - k * cosine))

    side = pt.sign(h * pt.sin(longitude) - k * pt.cos(longitude))
    f = longitude + 0.85 * pt.sqrt(h**2 + k**2) * side
    for _ in range(4):
        f = halley(f)
    return halley(pt.round(f * 2.0**30) / 2.0**30)


def orbit(longitude, h, k):
    """Return ``cos(omega + nu) + e cos(omega)``, the velocity of an orbit of amplitude 1."""
    f = eccentric_longitude(longitude, h, k)
    sine, cosine = pt.sin(f), pt.cos(f)
    b = 1 / (1 + pt.sqrt(1 - h**2 - k**2))
    return h + ((1 - b * k**2) * cosine + b * h * k * sine - h) / (1 - h * cosine - k * sine)


def planets(n, data_set, prior="narrow", folder=DATA):
    """Return the model of `n` planets.

    The radius of a pair of standard normals has the distribution function
    ``u = 1 - exp(-r^2 / 2)``, and its angle is uniform and independent of it. One pair gives the
    amplitude ``K = 1000^u - 1``, whose density is ``1 / ((1 + K) log 1000)``, and the longitude
    ``M + omega`` at the mean time; another one gives the eccentricity, Rayleigh(0.2) below 1, and
    omega.
    """
    t, v, variance, vectors = velocities(data_set, folder)
    mean = np.zeros((len(t), 1))
    with pm.Model() as model:
        offset = pm.Uniform("C", -1000, 1000)
        jitter = pm.Deterministic("jitter", 100 ** pm.Uniform("u") - 1)
        if n:
            bounds = period_bounds(n, data_set, prior, folder)
            period = pt.exp(pm.Uniform("log_period", *np.log(bounds), shape=n))
            x = pm.Normal("amplitude_phase", shape=(n, 2), initval=np.ones((n, 2)))
            z = pm.Normal("eccentricity_vector", shape=(n, 2), initval=np.ones((n, 2)))
            u = -pt.expm1(-(x**2).sum(axis=1) / 2)
            amplitude = pm.Deterministic("K", 1000**u - 1)
            radius = pt.sqrt((z**2).sum(axis=1))
            # Cut where the prior has mass 1e-11, since e would be rounded to 1.
            u = -pt.expm1(-pt.minimum(radius**2 / 2, 25))
            e = pm.Deterministic("e", 0.2 * pt.sqrt(-2 * pt.log1p(np.expm1(-12.5) * u)))
            h, k = e * z[:, 0] / radius, e * z[:, 1] / radius
            longitude = 2 * np.pi * t[:, None] / period + pt.arctan2(x[:, 1], x[:, 0])
            mean = amplitude * orbit(longitude, h, k)
            pm.Deterministic("period", period)
        rotated = pt.dot(vectors.T, offset + mean.sum(axis=1))
        pm.Normal("v", rotated, pt.sqrt(variance + jitter**2), observed=vectors.T @ v)
    return model


def exact_log_evidence(data_set, folder=DATA):
    """Return the log evidence without planets: closed form in C, quadrature over the jitter."""
    _, v, variance, vectors = velocities(data_set, folder)
    y, one = vectors.T @ v, vectors.sum(axis=0)

    def log_integrand(u):
        w = 1 / (variance + (100**u - 1) ** 2)
        a, b = (w * one**2).sum(), (w * one * y).sum()
        fit = (w * y**2).sum() - b**2 / a
        terms = np.log(w).sum() - (len(y) - 1) * np.log(2 * np.pi) - np.log(a) - fit
        return terms / 2 - np.log(2000)

    top = max(map(log_integrand, np.linspace(0, 1, 200)))
    mass, _ = integrate.quad(lambda u: np.exp(log_integrand(u) - top), 0, 1, points=[0.2, 0.3])
    return top + np.log(mass)


def published(data_set, prior, n, folder=DATA):
    """Return the log evidences of the teams, in nats; the last entry of a team counts."""
    table = pd.read_csv(folder / "teams.csv")
    chosen = (table["data_set"] == data_set) & (table["prior"] == prior) & (table["planets"] == n)
    return table[chosen].groupby("team")["log_evidence_nats"].last().reindex(list(TEAMS)).dropna()


def describe(n, data_set, prior, found, folder=DATA):
    """Return a line with the estimate, the exact value if there is one, and the teams' range."""
    known = f" (exact {exact_log_evidence(data_set, folder):.3f})" if n == 0 else ""
    teams = published(data_set, prior, n, folder)
    cell = f"set {data_set}, {prior}, {n} {'planet' if n == 1 else 'planets'}"
    estimate = f"log evidence {found.log_evidence:.3f} +- {found.mcse:.3f}{known}"
    return f"{cell}: {estimate}, {found.verdict}; teams {teams.min():.2f} to {teams.max():.2f}"


def draw_figure(table, path, folder=DATA):
    """Save a figure of the evidences by number of planets, and of the teams' differences."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(8, 4), layout="constrained", width_ratios=[1, 1.7]
    )
    narrow = table.xs("narrow", level="prior")
    for data_set, rows in narrow["log_evidence"].groupby("data_set"):
        rows = rows.droplevel("data_set")
        left.plot(rows.index, rows - rows[0], "o-", label=f"data set {data_set}")
    left.set(xticks=range(4), xlabel="planets", ylabel="log Bayes factor against none (nats)")
    left.set_title("How many planets?")
    left.legend(frameon=False, fontsize=8, loc="lower right")
    cells = [cell for cell in narrow.index if cell[1] > 0]
    for i, (team, label) in enumerate(TEAMS.items()):
        teams = [published(cell[0], "narrow", cell[1], folder).get(team) for cell in cells]
        shift = np.array(teams, float) - narrow.loc[cells, "log_evidence"].to_numpy()
        at = np.arange(len(cells)) + 0.12 * (i - 2)
        right.plot(at, shift, "osD^v"[i], markersize=4, label=label)
    error = 1.96 * narrow.loc[cells, "mcse"]
    right.errorbar(np.arange(len(cells)), np.zeros(len(cells)), yerr=error, fmt="k_", capsize=5)
    right.axhline(0, color="black", linewidth=0.5)
    right.set_xticks(np.arange(len(cells)), [f"{n}\nset {k}" for k, n in cells], fontsize=8)
    right.set(xlabel="planets, data set", ylabel="team minus this package (nats)")
    right.set_title("The teams of 2018")
    figure.legend(*right.get_legend_handles_labels(), fontsize=7, ncols=3, loc="outside lower left")
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--planets", nargs="+", type=int, default=[0, 1], help="default: 0 1")
    parser.add_argument("--data-set", nargs="+", type=int, default=[1, 2, 3], help="default: all")
    parser.add_argument("--prior", choices=["narrow", "wide"], default="narrow")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data")
    options = parser.parse_args()
    # Results of earlier runs, for the cells of the figure that are not run now.
    table = pd.read_csv(DATA / "evidences.csv", index_col=["data_set", "prior", "planets"])
    for data_set in options.data_set:
        number = pma.count(
            lambda n, k=data_set: planets(n, k, options.prior, options.data),
            options.planets,
            target_mcse=0.15,
            max_minutes=60,
            random_seed=1,
        )
        for n, idata in number.results.items():
            found = pma.log_evidence(idata)
            print(describe(int(n), data_set, options.prior, found, options.data), flush=True)
            cell = data_set, options.prior, int(n)
            table.loc[cell, ["log_evidence", "mcse"]] = found.log_evidence, found.mcse
        print(f"\n{number}\n", flush=True)
    (HERE / "output").mkdir(exist_ok=True)
    draw_figure(table.sort_index(), HERE / "output" / "exoplanets.png", options.data)


if __name__ == "__main__":
    main()
