"""Gaussian processes and splines."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.tensor import TensorVariable

from benchmarks.atlas.models.terms import exp_quad
from benchmarks.atlas.stored import Data


def gp_pois_regr(d: Data) -> None:
    """Counts with the exponential of a Gaussian process as rate (stat_comp_benchmarks of Stan)."""
    rho = pm.Gamma("rho", 25, 4)
    alpha = pm.HalfNormal("alpha", 2)
    f_tilde = pm.Normal("f_tilde", 0, 1, shape=d["N"])
    cov = exp_quad(d["x"].astype(float), alpha, rho) + 1e-10 * np.eye(d["N"])
    f = pm.Deterministic("f", pt.dot(pt.linalg.cholesky(cov), f_tilde))
    pm.Poisson("k", pt.exp(f), observed=d["k"])


def gp_regr(d: Data) -> None:
    """Regression on a Gaussian process; sigma is the noise variance, as in Stan."""
    rho = pm.Gamma("rho", 25, 4)
    alpha = pm.HalfNormal("alpha", 2)
    sigma = pm.HalfNormal("sigma", 1)
    cov = exp_quad(d["x"].astype(float), alpha, rho) + sigma * np.eye(d["N"])
    pm.MvNormal("y", np.zeros(d["N"]), chol=pt.linalg.cholesky(cov), observed=d["y"])


def accel_gp(d: Data) -> None:
    """Acceleration of a head in a crash (Silverman 1985): mean, log sd by spectral GPs (brms)."""
    intercept = pm.StudentT("Intercept", nu=3, mu=-13, sigma=36)
    mu = intercept + _spectral_gp(d, "", "")
    intercept_sigma = pm.StudentT("Intercept_sigma", nu=3, mu=0, sigma=10)
    log_sigma = intercept_sigma + _spectral_gp(d, "_sigma", "sigma_")
    pm.Normal("Y", mu, pt.exp(log_sigma), observed=d["Y"].astype(float))


def _spectral_gp(d: Data, part: str, short: str) -> TensorVariable:
    """Return a Gaussian process by eigenfunctions (Riutort-Mayol et al. 2023)."""
    x, slambda = d[f"Xgp{part}_1"], d[f"slambda{part}_1"][:, 0]
    sd = pm.HalfStudentT(f"sdgp_{short}1", nu=3, sigma=36)
    scale = pm.InverseGamma(f"lscale_{short}1", 1.124909, 0.0177)
    z = pm.Normal(f"zgp_{short}1", 0, 1, shape=x.shape[1])
    root = (2 * np.pi) ** 0.25 * pt.sqrt(scale) * pt.exp(-0.25 * scale**2 * slambda**2)
    return pt.dot(x, sd * root * z)


def accel_splines(d: Data) -> None:
    """Acceleration of a head in a crash (Silverman 1985): mean and log sd by splines (brms)."""
    intercept = pm.StudentT("Intercept", nu=3, mu=-13, sigma=36)
    bs = pm.Normal("bs", 0, 1000, shape=1)
    zs = pm.Normal("zs_1_1", 0, 1, shape=d["knots_1"])
    sds = pm.HalfStudentT("sds_1_1", nu=3, sigma=36)
    intercept_s = pm.StudentT("Intercept_sigma", nu=3, mu=0, sigma=10)
    bs_s = pm.Normal("bs_sigma", 0, 100, shape=1)
    zs_s = pm.Normal("zs_sigma_1_1", 0, 1, shape=d["knots_sigma_1"])
    sds_s = pm.HalfStudentT("sds_sigma_1_1", nu=3, sigma=36)
    mu = intercept + pt.dot(d["Xs"], bs) + pt.dot(d["Zs_1_1"], sds * zs)
    log_sigma = intercept_s + pt.dot(d["Xs_sigma"], bs_s) + pt.dot(d["Zs_sigma_1_1"], sds_s * zs_s)
    pm.Normal("Y", mu, pt.exp(log_sigma), observed=d["Y"].astype(float))


def hierarchical_gp(d: Data) -> None:
    """Presidential votes by state: long and short Gaussian processes (Trangucci 2017)."""
    years, states, regions = d["N_years"], d["N_states"], d["N_regions"]
    gp_region_std = pm.Normal("GP_region_std", 0, 1, shape=(years, regions))
    gp_state_std = pm.Normal("GP_state_std", 0, 1, shape=(years, states))
    year_std = pm.Normal("year_std", 0, 1, shape=d["N_years_obs"])
    state_std = pm.Normal("state_std", 0, 1, shape=states)
    region_std = pm.Normal("region_std", 0, 1, shape=regions)
    tot_var = pm.Gamma("tot_var", 3, 3)
    prop_var = pm.Dirichlet("prop_var", np.full(17, 2.0))
    mu = pm.Normal("mu", 0.5, 0.5)
    region_long = pm.Weibull("length_GP_region_long", 30, 8)
    state_long = pm.Weibull("length_GP_state_long", 30, 8)
    region_short = pm.Weibull("length_GP_region_short", 30, 3)
    state_short = pm.Weibull("length_GP_state_short", 30, 3)
    sd = pt.sqrt(17 * prop_var * tot_var)
    t = np.arange(1.0, years + 1)
    jitter = 1e-6 * np.eye(years)
    cov_region = exp_quad(t, sd[12], region_long) + exp_quad(t, sd[14], region_short) + jitter
    cov_state = exp_quad(t, sd[13], state_long) + exp_quad(t, sd[15], state_short) + jitter
    gp_region = pt.dot(pt.linalg.cholesky(cov_region), gp_region_std)
    gp_state = pt.dot(pt.linalg.cholesky(cov_state), gp_state_std)
    sigma_state = sd[2:12][d["state_region_ind"] - 1]
    year, state, region = d["year_ind"] - 1, d["state_ind"] - 1, d["region_ind"] - 1
    obs_mu = (
        mu
        + (sd[0] * year_std)[year]
        + (sigma_state * state_std)[state]
        + (sd[1] * region_std)[region]
        + gp_region[year, region]
        + gp_state[year, state]
    )
    pm.Normal("y", obs_mu, sd[16], observed=d["y"])
