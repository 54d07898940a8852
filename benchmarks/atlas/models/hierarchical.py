"""Normal hierarchies: schools, radon in houses, pilots, rats, dugongs."""

from collections.abc import Callable

import pymc as pm

from pytensor.tensor import TensorVariable

from benchmarks.atlas.stored import Data


def eight_schools_centered(d: Data) -> None:
    """Effects of coaching in eight schools (Rubin 1981), centred: a funnel."""
    mu = pm.Normal("mu", 0, 5)
    tau = pm.HalfCauchy("tau", 5)
    theta = pm.Normal("theta", mu, tau, shape=8)
    pm.Normal("y", theta, d["sigma"], observed=d["y"])


def eight_schools_noncentered(d: Data) -> None:
    """Effects of coaching in eight schools (Rubin 1981), non-centred."""
    mu = pm.Normal("mu", 0, 5)
    tau = pm.HalfCauchy("tau", 5)
    trans = pm.Normal("theta_trans", 0, 1, shape=8)
    theta = pm.Deterministic("theta", mu + tau * trans)
    pm.Normal("y", theta, d["sigma"], observed=d["y"])


# Radon in houses of Minnesota or of all states (Gelman & Hill 2007, chapter 12). The floor has
# values 0, 1, 2, 3 and 9 in the data of all states (9 = missing, as in posteriordb).


def radon_pooled(d: Data) -> None:
    """One line for all counties."""
    alpha, beta = pm.Normal("alpha", 0, 10), pm.Normal("beta", 0, 10)
    _radon(d, alpha + beta * d["floor_measure"])


def radon_county_intercept(d: Data) -> None:
    """A line for each county, with one slope; no pooling."""
    alpha = pm.Normal("alpha", 0, 10, shape=d["J"])
    _radon(d, alpha[d["county_idx"] - 1] + pm.Normal("beta", 0, 10) * d["floor_measure"])


def radon_partially_pooled(centered: bool) -> Callable[[Data], None]:
    """Means of counties, without the floor."""
    return lambda d: _radon(d, _effects("alpha", d, centered))


def radon_variable_intercept(centered: bool) -> Callable[[Data], None]:
    """Intercepts of counties, one slope."""

    def build(d: Data) -> None:
        alpha = _effects("alpha", d, centered)
        _radon(d, alpha + pm.Normal("beta", 0, 10) * d["floor_measure"])

    return build


def radon_hierarchical_intercept(centered: bool) -> Callable[[Data], None]:
    """Intercepts of counties, with the uranium of the soil."""

    def build(d: Data) -> None:
        alpha = _effects("alpha", d, centered)
        beta = pm.Normal("beta", 0, 10, shape=2)
        _radon(d, alpha + beta[0] * d["log_uppm"] + beta[1] * d["floor_measure"])

    return build


def radon_variable_slope(centered: bool) -> Callable[[Data], None]:
    """Slopes of counties, one intercept."""

    def build(d: Data) -> None:
        alpha = pm.Normal("alpha", 0, 10)
        _radon(d, alpha + d["floor_measure"] * _effects("beta", d, centered))

    return build


def radon_variable_intercept_slope(centered: bool) -> Callable[[Data], None]:
    """Intercepts and slopes of counties, independent of each other."""

    def build(d: Data) -> None:
        alpha = _effects("alpha", d, centered)
        _radon(d, alpha + d["floor_measure"] * _effects("beta", d, centered))

    return build


def _radon(d: Data, mean: TensorVariable) -> None:
    pm.Normal("log_radon", mean, pm.HalfNormal("sigma_y", 1), observed=d["log_radon"])


def _effects(name: str, d: Data, centered: bool) -> TensorVariable:
    """Return the effect of the county for each house."""
    mu = pm.Normal(f"mu_{name}", 0, 10)
    sigma = pm.HalfNormal(f"sigma_{name}", 1)
    if centered:
        effects = pm.Normal(name, mu, sigma, shape=d["J"])
    else:
        raw = pm.Normal(f"{name}_raw", 0, 1, shape=d["J"])
        effects = pm.Deterministic(name, mu + sigma * raw)
    return effects[d["county_idx"] - 1]


def radon_county(d: Data) -> None:
    """Means of counties (Bales et al. 2019)."""
    mu = pm.Normal("mu_a", 0, 1)
    sigma_a = pm.Uniform("sigma_a", 0, 100)
    sigma_y = pm.Uniform("sigma_y", 0, 100)
    a = pm.Normal("a", mu, sigma_a, shape=d["J"])
    pm.Normal("y", a[d["county"] - 1], sigma_y, observed=d["y"])


def pilots(d: Data) -> None:
    """Recovery of pilots by group and scenario (Gelman & Hill 2007)."""
    mu_a = pm.Normal("mu_a", 0, 1)
    mu_b = pm.Normal("mu_b", 0, 1)
    sigma_a = pm.Uniform("sigma_a", 0, 100)
    sigma_b = pm.Uniform("sigma_b", 0, 100)
    sigma_y = pm.Uniform("sigma_y", 0, 100)
    a = pm.Normal("a", 10 * mu_a, sigma_a, shape=d["n_groups"])
    b = pm.Normal("b", 10 * mu_b, sigma_b, shape=d["n_scenarios"])
    pm.Normal("y", a[d["group_id"] - 1] + b[d["scenario_id"] - 1], sigma_y, observed=d["y"])


def rats(d: Data) -> None:
    """Weights of 30 rats over five weeks (Gelfand et al. 1990; BUGS examples)."""
    mu_alpha = pm.Normal("mu_alpha", 0, 100)
    mu_beta = pm.Normal("mu_beta", 0, 100)
    sigma_y = pm.HalfNormal("sigma_y", 100)
    sigma_alpha = pm.HalfNormal("sigma_alpha", 100)
    sigma_beta = pm.HalfNormal("sigma_beta", 100)
    alpha = pm.Normal("alpha", mu_alpha, sigma_alpha, shape=d["N"])
    beta = pm.Normal("beta", mu_beta, sigma_beta, shape=d["N"])
    rat = d["rat"] - 1
    pm.Normal("y", alpha[rat] + beta[rat] * (d["x"] - d["xbar"]), sigma_y, observed=d["y"])


def dugongs(d: Data) -> None:
    """Length of dugongs by age, a growth curve (Carlin & Gelfand 1991; BUGS examples)."""
    alpha = pm.Normal("alpha", 0, 1000)
    beta = pm.Normal("beta", 0, 1000)
    lam = pm.Uniform("lambda", 0.5, 1)
    tau = pm.Gamma("tau", 1e-4, 1e-4)
    pm.Normal("Y", alpha - beta * lam ** d["x"], tau=tau, observed=d["Y"])
