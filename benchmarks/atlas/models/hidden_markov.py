"""Hidden Markov models, with the states summed out by the forward recursion.

In Stan's programs the initial state has the weight 1 in each state, and not 1/K: kept, it adds
log K. Priors of ordered vectors are independent normal densities on the ordered part.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.tensor import TensorVariable

from benchmarks.atlas.models.terms import normal_logp, ordered, positive_ordered, scan
from benchmarks.atlas.stored import Data


def forward_log_likelihood(
    log_start: TensorVariable, log_transition: TensorVariable, log_obs: TensorVariable, states: int
) -> TensorVariable:
    """Return the log likelihood; `log_obs` is of shape (T, K), `log_transition` of (K, K)."""
    first = pt.specify_shape(log_start + log_obs[0], (states,))

    def advance(obs, alpha, transition):
        new = obs + pt.logsumexp(alpha[:, None] + transition, axis=0)
        return pt.specify_shape(new, (states,))

    path = scan(
        advance, sequences=[log_obs[1:]], outputs_info=[first], non_sequences=[log_transition]
    )
    return pt.logsumexp(path[-1])


def hmm_example(d: Data) -> None:
    """Two normal states, simulated (github.com/imadmali/bball-hmm)."""
    theta1 = pm.Dirichlet("theta1", np.ones(2))
    theta2 = pm.Dirichlet("theta2", np.ones(2))
    mu = pm.Normal("mu", [3.0, 10.0], 1.0, shape=2, transform=positive_ordered, initval=[3.0, 10.0])
    log_obs = normal_logp(d["y"][:, None], mu[None, :], 1.0)
    log_a = pt.log(pt.stack([theta1, theta2]))
    pm.Potential("hmm", forward_log_likelihood(np.zeros(2), log_a, log_obs, 2))


def hmm_drive_0(d: Data) -> None:
    """Drives in basketball: two exponential features (github.com/imadmali/bball-hmm)."""
    theta1 = pm.Dirichlet("theta1", d["alpha"][0].astype(float))
    theta2 = pm.Dirichlet("theta2", d["alpha"][1].astype(float))
    phi = pm.Normal("phi", [0.0, 3.0], 1.0, shape=2, transform=positive_ordered, initval=[1.0, 3.0])
    lam = pm.Normal(
        "lambda", [0.0, 3.0], 1.0, shape=2, transform=positive_ordered, initval=[1.0, 3.0]
    )
    u, v = d["u"][:, None], d["v"][:, None]
    log_obs = pt.log(phi) - phi * u + pt.log(lam) - lam * v
    log_a = pt.log(pt.stack([theta1, theta2]))
    pm.Potential("hmm", forward_log_likelihood(np.zeros(2), log_a, log_obs, 2))


def hmm_drive_1(d: Data) -> None:
    """Drives in basketball: two normal features (github.com/imadmali/bball-hmm)."""
    theta1 = pm.Dirichlet("theta1", d["alpha"][0].astype(float))
    theta2 = pm.Dirichlet("theta2", d["alpha"][1].astype(float))
    phi = pm.Normal("phi", [0.0, 3.0], 1.0, shape=2, transform=ordered, initval=[0.0, 3.0])
    lam = pm.Normal("lambda", [0.0, 3.0], 1.0, shape=2, transform=ordered, initval=[0.0, 3.0])
    log_obs = normal_logp(d["u"][:, None], phi[None, :], d["tau"]) + normal_logp(
        d["v"][:, None], lam[None, :], d["rho"]
    )
    log_a = pt.log(pt.stack([theta1, theta2]))
    pm.Potential("hmm", forward_log_likelihood(np.zeros(2), log_a, log_obs, 2))


def hmm_gaussian(d: Data) -> None:
    """Three normal states, simulated (Damiano, Peterson & Weylandt 2018)."""
    pi1 = pm.Dirichlet("pi1", np.ones(3))
    a = pm.Dirichlet("A", np.ones((3, 3)))
    mu = pm.Normal("mu", 18, 20, shape=3, transform=ordered, initval=[10.0, 18.0, 28.0])
    sigma = pm.HalfNormal("sigma", 10, shape=3)
    log_obs = normal_logp(d["y"][:, None], mu[None, :], sigma[None, :])
    pm.Potential("hmm", forward_log_likelihood(pt.log(pi1), pt.log(a), log_obs, 3))


def iohmm_reg(d: Data) -> None:
    """Input-output hidden Markov model with regressions, simulated (Damiano et al. 2018).

    3! permutations of the states; w has a direction that only its prior identifies. As in Stan,
    the weights A[t] multiply the terms of the observation t - 1, and the last one has none.
    """
    k, m = d["K"], d["M"]
    pi1 = pm.Dirichlet("pi1", np.ones(k))
    w = pm.Normal("w", 0, 5, shape=(k, m))
    b = pm.Normal("b", 0, 5, shape=(k, m))
    sigma = pm.HalfNormal("sigma", 3, shape=k)
    score = pt.dot(d["u"], w.T)
    log_a = score - pt.logsumexp(score, axis=1, keepdims=True)
    # Stan's forward recursion: alpha[t, j] = obs[t, j] + lse_i(alpha[t - 1, i] + log A[t, i]).
    # As A does not depend on j, it is a product over t of lse_i(obs[t, i] + log A[t + 1, i]).
    log_weights = pt.concatenate([log_a[1:], np.zeros((1, k))])
    log_obs = normal_logp(d["y"][:, None], pt.dot(d["u"], b.T), sigma[None, :])
    first = pt.logsumexp(pt.log(pi1) + log_weights[0] + log_obs[0])
    rest = pt.logsumexp(log_weights[1:] + log_obs[1:], axis=1)
    pm.Potential("iohmm", first + rest.sum())
