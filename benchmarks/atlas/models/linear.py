"""Gaussian linear regressions: y ~ N(X b, sigma^2), with normal or flat priors of b in Stan.

A flat prior is replaced by one that is far wider than the posterior, as the registry states.
"""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from benchmarks.atlas.stored import Data

Design = Callable[[Data], tuple[np.ndarray, np.ndarray]]


def regression(design: Design, scale: float, cauchy: bool = False) -> Callable[[Data], None]:
    """Return the builder of a regression with b ~ N(0, scale^2), sigma ~ HalfNormal(scale).

    With `cauchy`, sigma ~ HalfCauchy(2.5), as in Stan's programs of the kidscore data.
    """

    def build(d: Data) -> None:
        x, y = design(d)
        beta = pm.Normal("beta", 0.0, scale, shape=x.shape[1])
        sigma = pm.HalfCauchy("sigma", 2.5) if cauchy else pm.HalfNormal("sigma", scale)
        pm.Normal("y", pt.dot(x, beta), sigma, observed=y)

    return build


def columns(*values: np.ndarray | float) -> np.ndarray:
    """Return a design whose columns are arrays or constants; the last is an array."""
    size = np.shape(values[-1])
    return np.column_stack([np.broadcast_to(np.asarray(v, float), size) for v in values])


def deviation(x: np.ndarray) -> float:
    return np.std(x, ddof=1)


# Earnings and height of adults (Gelman & Hill 2007, chapters 4 and 6)


def earn_height(d: Data) -> tuple[np.ndarray, np.ndarray]:
    return columns(1, d["height"]), d["earn"].astype(float)


def logearn_height(d: Data) -> tuple[np.ndarray, np.ndarray]:
    return columns(1, d["height"]), np.log(d["earn"])


def log10earn_height(d: Data) -> tuple[np.ndarray, np.ndarray]:
    return columns(1, d["height"]), np.log10(d["earn"])


def logearn_height_male(d: Data) -> tuple[np.ndarray, np.ndarray]:
    return columns(1, d["height"], d["male"]), np.log(d["earn"])


def logearn_interaction(d: Data) -> tuple[np.ndarray, np.ndarray]:
    height, male = d["height"], d["male"]
    return columns(1, height, male, height * male), np.log(d["earn"])


def logearn_interaction_z(d: Data) -> tuple[np.ndarray, np.ndarray]:
    z = (d["height"] - d["height"].mean()) / deviation(d["height"])
    return columns(1, z, d["male"], z * d["male"]), np.log(d["earn"])


def logearn_logheight_male(d: Data) -> tuple[np.ndarray, np.ndarray]:
    return columns(1, np.log(d["height"]), d["male"]), np.log(d["earn"])


# Test scores of children (Gelman & Hill 2007, chapter 3)


def kidscore(*names: str) -> Design:
    """Return the design of the scores on characteristics of the mother."""
    return lambda d: (columns(1, *(d[n] for n in names)), d["kid_score"].astype(float))


def kidscore_interaction(d: Data) -> tuple[np.ndarray, np.ndarray]:
    return _interaction(d, d["mom_hs"], d["mom_iq"])


def kidscore_interaction_c(d: Data) -> tuple[np.ndarray, np.ndarray]:
    return _interaction(d, *(d[n] - d[n].mean() for n in ("mom_hs", "mom_iq")))


def kidscore_interaction_c2(d: Data) -> tuple[np.ndarray, np.ndarray]:
    return _interaction(d, d["mom_hs"] - 0.5, d["mom_iq"] - 100)


def kidscore_interaction_z(d: Data) -> tuple[np.ndarray, np.ndarray]:
    scaled = ((d[n] - d[n].mean()) / (2 * deviation(d[n])) for n in ("mom_hs", "mom_iq"))
    return _interaction(d, *scaled)


def _interaction(d: Data, school: np.ndarray, iq: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return columns(1, school, iq, school * iq), d["kid_score"].astype(float)


def kidscore_mom_work(d: Data) -> tuple[np.ndarray, np.ndarray]:
    work = d["mom_work"]
    return columns(1, work == 2, work == 3, work == 4), d["kid_score"].astype(float)


# Yield of mesquite bushes (Gelman & Hill 2007, chapter 4)


def mesquite(d: Data) -> tuple[np.ndarray, np.ndarray]:
    names = ["diam1", "diam2", "canopy_height", "total_height", "density", "group"]
    return columns(1, *(d[n] for n in names)), d["weight"].astype(float)


def logmesquite(*names: str) -> Design:
    """Return the design of the log weights on logarithms of sizes and their combinations."""

    def design(d: Data) -> tuple[np.ndarray, np.ndarray]:
        area = d["diam1"] * d["diam2"]
        values = {
            "diam1": np.log(d["diam1"]),
            "diam2": np.log(d["diam2"]),
            "canopy_height": np.log(d["canopy_height"]),
            "total_height": np.log(d["total_height"]),
            "density": np.log(d["density"]),
            "group": d["group"],
            "volume": np.log(area * d["canopy_height"]),
            "area": np.log(area),
            "shape": np.log(d["diam1"] / d["diam2"]),
        }
        return columns(1, *(values[n] for n in names)), np.log(d["weight"])

    return design


# National Election Study, one year each (Gelman & Hill 2007, chapter 4)


def nes(d: Data) -> tuple[np.ndarray, np.ndarray]:
    age = d["age_discrete"]
    ages = (age == 2, age == 3, age == 4)
    x = columns(1, d["real_ideo"], d["race_adj"], *ages, d["educ1"], d["gender"], d["income"])
    return x, d["partyid7"].astype(float)


def sesame(d: Data) -> tuple[np.ndarray, np.ndarray]:
    """Sesame Street: watched or not, on encouragement (Gelman & Hill 2007, chapter 10)."""
    return columns(1, d["encouraged"]), d["watched"].astype(float)


def blr(d: Data) -> tuple[np.ndarray, np.ndarray]:
    """Simulated regressions of posteriordb, with correlated or independent columns."""
    return d["X"], d["y"]


# Regressions with parameters of other names


def ar_k(d: Data) -> None:
    """Autoregression of order K, given the first K values (stat_comp_benchmarks of Stan)."""
    k, y = d["K"], d["y"]
    t = np.arange(k, len(y))
    lags = np.column_stack([y[t - i] for i in range(1, k + 1)])
    alpha = pm.Normal("alpha", 0, 10)
    beta = pm.Normal("beta", 0, 10, shape=k)
    sigma = pm.HalfCauchy("sigma", 2.5)
    pm.Normal("y", alpha + pt.dot(lags, beta), sigma, observed=y[t])


def kilpisjarvi(d: Data) -> None:
    """Summer temperatures at Kilpisjarvi, 1952 to 2013: a trend (Bales et al. 2019)."""
    alpha = pm.Normal("alpha", d["pmualpha"], d["psalpha"])
    beta = pm.Normal("beta", d["pmubeta"], d["psbeta"])
    sigma = pm.HalfNormal("sigma", 100)
    pm.Normal("y", alpha + beta * d["x"], sigma, observed=d["y"])


def diamonds(d: Data) -> None:
    """Log prices of 5,000 diamonds on 24 centred columns (Wickham 2016; brms)."""
    x = d["X"][:, 1:]
    xc = x - x.mean(0)
    b = pm.Normal("b", 0, 1, shape=xc.shape[1])
    intercept = pm.StudentT("Intercept", nu=3, mu=8, sigma=10)
    sigma = pm.HalfStudentT("sigma", nu=3, sigma=10)
    pm.Normal("Y", intercept + pt.dot(xc, b), sigma, observed=d["Y"])
