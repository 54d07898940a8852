"""Differential equations, by fixed steps that are accurate to far below the noise of the data."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from benchmarks.atlas.models.terms import f64, scan
from benchmarks.atlas.stored import Data

TINY = 1e-30  # keeps a logarithm finite where a concentration underflows, far out in the prior


def lotka_volterra(d: Data) -> None:
    """Hares and lynxes, 1900 to 1920 (Hewitt 1921; Howard 2009).

    Runge-Kutta on the log scale, 20 steps a year, populations above e^30 clipped. The truncated
    normal densities of theta are normalised.
    """
    theta = pm.TruncatedNormal(
        "theta",
        mu=[1.0, 0.05, 1.0, 0.05],
        sigma=[0.5, 0.05, 0.5, 0.05],
        lower=0,
        shape=4,
        initval=[0.6, 0.03, 0.8, 0.03],
    )
    z_init = pm.LogNormal("z_init", np.log(10), 1, shape=2)
    sigma = pm.LogNormal("sigma", -1, 1, shape=2)
    steps, h = 20, 1 / 20

    def slope(x, th):
        z = pt.exp(pt.minimum(x, 30.0))
        return pt.stack([th[0] - th[1] * z[1], -th[2] + th[3] * z[0]])

    def advance(x, th):
        k1 = slope(x, th)
        k2 = slope(x + h / 2 * k1, th)
        k3 = slope(x + h / 2 * k2, th)
        k4 = slope(x + h * k3, th)
        return pt.specify_shape(x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), (2,))

    start = pt.specify_shape(pt.log(z_init), (2,))
    path = scan(advance, outputs_info=[start], non_sequences=[theta], n_steps=steps * d["N"])
    log_z = path[steps - 1 :: steps]
    pm.LogNormal("y_init", start, sigma, observed=d["y_init"].astype(float))
    pm.LogNormal("y", log_z, sigma, observed=d["y"])


def one_comp_mm_elim_abs(d: Data) -> None:
    """A drug with absorption and Michaelis-Menten elimination (stat_comp_benchmarks of Stan).

    Strang splitting, 20 steps of the half day between measurements: the dose exact, the
    elimination by Runge-Kutta on the log scale.
    """
    k_a = pm.HalfCauchy("k_a", 1)
    k_m = pm.HalfCauchy("K_m", 1)
    v_m = pm.HalfCauchy("V_m", 1)
    sigma = pm.HalfCauchy("sigma", 1)
    volume, total = float(d["V"]), float(d["D"])
    steps = 20
    h = float(d["times"][1] - d["times"][0]) / steps
    count = steps * d["N_t"]

    def dose(t, k_a):
        """Dose from t to t + h / 2."""
        return total / volume * pt.exp(-k_a * t) * (-pt.expm1(-k_a * h / 2))

    def slope(x, k_m, v_m):
        return -(v_m / volume) / (k_m + pt.exp(x))

    def advance(t, c, k_a, k_m, v_m):
        x = pt.log(c + dose(t, k_a) + TINY)
        k1 = slope(x, k_m, v_m)
        k2 = slope(x + h / 2 * k1, k_m, v_m)
        k3 = slope(x + h / 2 * k2, k_m, v_m)
        k4 = slope(x + h * k3, k_m, v_m)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return pt.exp(x) + dose(t + h / 2, k_a)

    path = scan(
        advance,
        sequences=[f64(h * np.arange(count))],
        outputs_info=[f64(0.0)],
        non_sequences=[k_a, k_m, v_m],
    )
    pm.LogNormal("C_hat", pt.log(path[steps - 1 :: steps] + TINY), sigma, observed=d["C_hat"])


def sir(d: Data) -> None:
    """Cholera with bacteria in the water (Grad et al. 2012).

    A splitting of second order that keeps all numbers positive, 14 steps a week.
    """
    beta = pm.HalfCauchy("beta", 2.5)
    gamma = pm.HalfCauchy("gamma", 1)
    xi = pm.HalfCauchy("xi", 25)
    delta = pm.HalfCauchy("delta", 1)
    kappa, steps = 1e6, 14
    h = 7.0 / steps

    def half(i, b, gamma, xi, delta):
        """Recovery, and production and removal of bacteria, for h / 2."""
        made = xi * i * pt.exp(-gamma * h / 4) * (-pt.expm1(-delta * h / 2) / delta)
        return i * pt.exp(-gamma * h / 2), b * pt.exp(-delta * h / 2) + made

    def advance(s, i, b, beta, gamma, xi, delta):
        i, b = half(i, b, gamma, xi, delta)
        new = s * (-pt.expm1(-h * beta * b / (b + kappa)))
        i, b = half(i + new, b, gamma, xi, delta)
        return s - new, i, b, new

    s0, i0, _, b0 = (f64(v) for v in d["y0"])
    _, _, b, new = scan(
        advance,
        outputs_info=[s0, i0, b0, None],
        non_sequences=[beta, gamma, xi, delta],
        n_steps=steps * d["N_t"],
    )
    weekly = new.reshape((d["N_t"], steps)).sum(axis=1)
    pm.Poisson("stoi_hat", weekly + 1e-12, observed=d["stoi_hat"])
    pm.LogNormal("B_hat", pt.log(b[steps - 1 :: steps] + 1e-12), 0.15, observed=d["B_hat"])


def soil_incubation(d: Data) -> None:
    """Carbon in soil, two pools with exchange (Sierra & Mueller 2014): solved in closed form."""
    k1 = pm.HalfNormal("k1", 1)
    k2 = pm.HalfNormal("k2", 1)
    alpha21 = pm.HalfNormal("alpha21", 1)
    alpha12 = pm.HalfNormal("alpha12", 1)
    gamma = pm.Beta("gamma", 10, 1)
    sigma = pm.HalfCauchy("sigma", 1)
    t, total = d["ts"], float(d["totalC_t0"])
    c1, c2 = gamma * total, (1 - gamma) * total
    middle = -(k1 + k2) / 2
    root = pt.sqrt(((k1 - k2) / 2) ** 2 + alpha12 * alpha21 * k1 * k2)
    up = pt.exp(pt.minimum((middle + root) * t, 500.0))
    down = pt.exp((middle - root) * t)
    cosh, sinh = (up + down) / 2, (up - down) / (2 * root)
    # exp(M t) = cosh I + sinh (M - middle I)
    r1 = (-k1 - middle) * c1 + alpha12 * k2 * c2
    r2 = (-k2 - middle) * c2 + alpha21 * k1 * c1
    left = cosh * (c1 + c2) + sinh * (r1 + r2)
    pm.Normal("eCO2mean", total - left, sigma, observed=d["eCO2mean"])
