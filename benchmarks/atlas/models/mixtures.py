"""Mixtures, and a topic model: posteriors with one mode for each permutation of the labels."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from benchmarks.atlas.models.terms import ordered
from benchmarks.atlas.stored import Data


def low_dim_gauss_mix(d: Data) -> None:
    """Two normal components with ordered means, simulated (stat_comp_benchmarks of Stan)."""
    mu = pm.Normal("mu", 0, 2, shape=2, transform=ordered, initval=[-1.0, 1.0])
    sigma = pm.HalfNormal("sigma", 2, shape=2)
    theta = pm.Beta("theta", 5, 5)
    pm.NormalMixture("y", w=pt.stack([theta, 1 - theta]), mu=mu, sigma=sigma, observed=d["y"])


def low_dim_gauss_mix_collapse(d: Data) -> None:
    """Two normal components close to each other, means not ordered, simulated (ibid.)."""
    mu = pm.Normal("mu", 0, 2, shape=2)
    sigma = pm.HalfNormal("sigma", 2, shape=2)
    theta = pm.Beta("theta", 5, 5)
    pm.NormalMixture("y", w=pt.stack([theta, 1 - theta]), mu=mu, sigma=sigma, observed=d["y"])


def normal_mixture(d: Data) -> None:
    """Two normal components of unit variance (Stan example models)."""
    theta = pm.Uniform("theta", 0, 1)
    mu = pm.Normal("mu", 0, 10, shape=2)
    pm.NormalMixture("y", w=pt.stack([theta, 1 - theta]), mu=mu, sigma=1.0, observed=d["y"])


def normal_mixture_k(d: Data) -> None:
    """Five normal components, simulated: 120 modes."""
    k = d["K"]
    theta = pm.Dirichlet("theta", np.ones(k))
    mu = pm.Normal("mu", 0, 10, shape=k)
    sigma = pm.Uniform("sigma", 0, 10, shape=k)
    pm.NormalMixture("y", w=theta, mu=mu, sigma=sigma, observed=d["y"])


def lda_k2(d: Data) -> None:
    """Two topics (Blei et al. 2003), those of the words summed out; data of Jonasson (2021)."""
    counts = np.zeros((d["M"], d["V"]))
    np.add.at(counts, (d["doc"] - 1, d["w"] - 1), 1)
    theta = pm.Dirichlet("theta", np.ones((d["M"], 2)))
    phi = pm.Dirichlet("phi", np.ones((2, d["V"])))
    pm.Potential("words", (counts * pt.log(pt.dot(theta, phi))).sum())
