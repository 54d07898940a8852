"""Compute the log evidences of the everyday models by NumPy alone.

    python benchmarks/everyday.py --reference mixture

recomputes one and prints it next to the stored value. Most parameters are integrated out exactly:
the coefficients of the linear models with normal noise, the missing values, and by Gauss-Hermite
quadrature the abilities of the persons. The others, on the real line after taking logs, are
integrated by draws of a Student-t distribution that is fitted to their posterior. The function
values of the Gaussian process are drawn from their Laplace approximation, given mean, scale and
length.
"""

from collections.abc import Callable

import everyday_models as zoo
import numpy as np

from everyday_integrals import half_normal, importance_sampling, log_normal, log_scale
from scipy import special, stats

__all__ = ["RECOMPUTE", "REFERENCES"]

# Log evidence in nats and its standard error; no entry for data that do not come with the scripts.
REFERENCES: dict[str, tuple[float, float]] = {
    "hierarchical_centred": (-149.0658, 0.0009),
    "hierarchical_noncentred": (-149.0658, 0.0009),
    "varying_slopes": (-385.4620, 0.0014),
    "poisson": (-388.9646, 0.0003),
    "robust": (-245.7779, 0.0005),
    "random_walk": (-134.4689, 0.0011),
    "irt": (-228.9835, 0.0045),
    "horseshoe": (-159.8436, 0.0066),
    "latent_gp": (-273.1515, 0.0017),
    "mixture": (-381.8717, 0.0020),
    "pima_interactions": (-305.5580, 0.0043),
    "negative_binomial": (-444.1100, 0.0004),
    "regression": (-395.9810, 0.0007),
    "missing": (-437.3369, 0.0003),
}
NEWTON_STEPS = 25
# Batches of draws where a draw takes little time.
BATCHES = 400


# Linear models with normal noise


def linear(design: np.ndarray, y: np.ndarray):
    """Return a function of factors F and noise s to the log density of `y`.

    The response is `design @ F @ z + s e` with standard normal z and e; F has shape (..., k, k).
    """
    gram, moment, square = design.T @ design, design.T @ y, y @ y

    def log_density(factor: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        transposed = np.swapaxes(factor, -1, -2)
        precision = transposed @ gram @ factor / sigma[..., None, None] ** 2
        precision = precision + np.eye(len(moment))
        shift = (transposed @ moment) / sigma[..., None] ** 2
        gain = (shift * np.linalg.solve(precision, shift[..., None])[..., 0]).sum(axis=-1)
        log_volume = np.linalg.slogdet(precision)[1] + len(y) * np.log(2 * np.pi * sigma**2)
        return -0.5 * (log_volume + square / sigma**2 - gain)

    return log_density


def diagonal(*parts: tuple[np.ndarray | float, int]) -> np.ndarray:
    """Return diagonal matrices from pairs of a scale, shape (...), and its number of entries."""
    shape = np.broadcast_shapes(*(np.shape(scale) for scale, _ in parts))
    entries = [np.broadcast_to(np.asarray(s)[..., None], (*shape, count)) for s, count in parts]
    return np.concatenate(entries, axis=-1)[..., None, :] * np.eye(sum(c for _, c in parts))


def reference_hierarchical() -> tuple[float, float]:
    """Integrate over log tau and log sigma."""
    group, x, y = zoo.hierarchical_data()
    design = np.column_stack([np.ones(120), x, np.eye(8)[group]])
    log_density = linear(design, y)

    def log_joint(u: np.ndarray) -> np.ndarray:
        tau, sigma = np.exp(u[..., 0]), np.exp(u[..., 1])
        prior = half_normal(u, 1.0).sum(axis=-1)
        return prior + log_density(diagonal((2.0, 2), (tau, 8)), sigma)

    return importance_sampling(log_joint, np.zeros(2))


def reference_varying_slopes() -> tuple[float, float]:
    """Integrate over the logs of three scales and the inverse tanh of the correlation."""
    group, x, y = zoo.varying_slopes_data()
    member = np.eye(20)[group]
    common = np.column_stack([np.ones(300), x])
    design = np.column_stack([common, member, member * x[:, None]])
    log_density = linear(design, y)

    def log_joint(u: np.ndarray) -> np.ndarray:
        first, second, sigma = (np.exp(u[..., i]) for i in range(3))
        correlation = np.tanh(u[..., 3])
        prior = log_scale(u[..., :3], stats.expon()).sum(axis=-1)
        # LKJ with eta = 2: density 3/4 (1 - r^2); dr/du = 1 - r^2.
        prior = prior + np.log(0.75) + 2 * np.log1p(-(correlation**2))
        factor = diagonal((2.0, 2), (first, 20), (second * np.sqrt(1 - correlation**2), 20))
        factor = factor + coupling((second * correlation)[..., None, None])
        return prior + log_density(factor, sigma)

    return importance_sampling(log_joint, np.zeros(4))


def coupling(scale: np.ndarray) -> np.ndarray:
    """Return the part of the slopes, in the columns of the intercepts."""
    lower = np.zeros((42, 42))
    lower[22:, 2:22] = np.eye(20)
    return scale * lower


def reference_random_walk() -> tuple[float, float]:
    """Integrate over the logs of both scales."""
    y = zoo.random_walk_data()
    log_density = linear(np.tril(np.ones((100, 100))), y)

    def log_joint(u: np.ndarray) -> np.ndarray:
        step, sigma = np.exp(u[..., 0]), np.exp(u[..., 1])
        prior = half_normal(u, 1.0).sum(axis=-1)
        return prior + log_density(diagonal((3.0, 1), (step, 99)), sigma)

    return importance_sampling(log_joint, np.zeros(2))


def reference_regression() -> tuple[float, float]:
    """Integrate over log sigma."""
    x, y = zoo.regression_data()
    log_density = linear(x, y)

    def log_joint(u: np.ndarray) -> np.ndarray:
        return half_normal(u[..., 0], 2.0) + log_density(np.eye(50), np.exp(u[..., 0]))

    return importance_sampling(log_joint, np.zeros(1))


def reference_horseshoe() -> tuple[float, float]:
    """Integrate over the logs of 22 scales."""
    x, y = zoo.horseshoe_data()
    log_density = linear(x, y)

    def log_joint(u: np.ndarray) -> np.ndarray:
        tau, local, sigma = u[..., 0], u[..., 1:21], u[..., 21]
        prior = log_scale(tau, stats.halfcauchy(scale=0.2)) + half_normal(sigma, 2.0)
        prior = prior + log_scale(local, stats.halfcauchy()).sum(axis=-1)
        scales = np.exp(tau[..., None] + local)
        return prior + log_density(scales[..., None, :] * np.eye(20), np.exp(sigma))

    return importance_sampling(log_joint, np.zeros(22), draws=40_000)


def reference_missing() -> tuple[float, float]:
    """Integrate over the five parameters; the missing values have a normal distribution."""
    x, y = zoo.missing_data()
    known = ~np.isnan(x)

    def log_joint(u: np.ndarray) -> np.ndarray:
        mean, log_spread, a, b, log_sigma = (u[..., i, None] for i in range(5))
        spread, sigma = np.exp(log_spread), np.exp(log_sigma)
        prior = log_normal(mean, 3) + log_normal(a, 2) + log_normal(b, 1)
        prior = prior + half_normal(log_spread, 2) + half_normal(log_sigma, 1)
        seen = log_normal(x[known], spread, mean) + log_normal(y[known], sigma, a + b * x[known])
        unseen = log_normal(y[~known], np.hypot(b * spread, sigma), a + b * mean)
        return prior[..., 0] + seen.sum(axis=-1) + unseen.sum(axis=-1)

    return importance_sampling(log_joint, np.zeros(5), batches=BATCHES)


# Other likelihoods


def reference_poisson() -> tuple[float, float]:
    x, exposure, y = zoo.poisson_data()

    def log_joint(u: np.ndarray) -> np.ndarray:
        log_likelihood = log_poisson(y, u[..., :1] + u[..., 1:] @ x.T + np.log(exposure))
        return log_normal(u[..., 0], 2) + log_normal(u[..., 1:], 1).sum(axis=-1) + log_likelihood

    return importance_sampling(log_joint, np.zeros(5), batches=BATCHES)


def reference_negative_binomial() -> tuple[float, float]:
    x, y = zoo.negative_binomial_data()

    def log_joint(u: np.ndarray) -> np.ndarray:
        mu, alpha = np.exp(u[..., :1] + u[..., 1:5] @ x.T), np.exp(u[..., 5:])
        log_likelihood = stats.nbinom(alpha, alpha / (alpha + mu)).logpmf(y)
        prior = log_normal(u[..., 0], 2) + log_normal(u[..., 1:5], 1).sum(axis=-1)
        prior = prior + log_scale(u[..., 5], stats.expon(scale=2.0))
        return prior + log_likelihood.sum(axis=-1)

    return importance_sampling(log_joint, np.zeros(6), batches=BATCHES)


def reference_robust() -> tuple[float, float]:
    x, y = zoo.robust_data()

    def log_joint(u: np.ndarray) -> np.ndarray:
        mean, sigma, nu = u[..., :1] + u[..., 1:4] @ x.T, np.exp(u[..., 4:5]), np.exp(u[..., 5:])
        log_likelihood = stats.t(nu, mean, sigma).logpdf(y)
        prior = log_normal(u[..., 0], 2) + log_normal(u[..., 1:4], 1).sum(axis=-1)
        prior = prior + half_normal(u[..., 4], 2)
        prior = prior + log_scale(u[..., 5], stats.gamma(2, scale=10.0))
        return prior + log_likelihood.sum(axis=-1)

    return importance_sampling(log_joint, np.array([0, 0, 0, 0, 0, 1.0]), batches=BATCHES)


def reference_mixture() -> tuple[float, float]:
    """Integrate over the first mean below the second, twice: the labels are exchangeable."""
    y = zoo.mixture_data()

    def log_joint(u: np.ndarray) -> np.ndarray:
        first, gap = u[..., 0], np.exp(u[..., 1])
        means = (first, first + gap)
        share = special.expit(u[..., 4])
        log_shares = (np.log(share), np.log1p(-share))
        prior = np.log(2) + log_normal(means[0], 3) + log_normal(means[1], 3) + u[..., 1]
        prior = prior + half_normal(u[..., 2:4], 2).sum(axis=-1)
        prior = prior + stats.beta(2, 2).logpdf(share) + log_shares[0] + log_shares[1]
        parts = [
            log_shares[i][..., None]
            + log_normal(y, np.exp(u[..., 2 + i, None]), means[i][..., None])
            for i in (0, 1)
        ]
        return prior + np.logaddexp(*parts).sum(axis=-1)

    return importance_sampling(log_joint, np.zeros(5))


def reference_irt() -> tuple[float, float]:
    """Integrate over the parameters of the items; abilities by quadrature."""
    y = zoo.irt_data()
    nodes, weights = np.polynomial.hermite_e.hermegauss(31)
    log_weights = np.log(weights / weights.sum())

    def log_joint(u: np.ndarray) -> np.ndarray:
        difficulty, log_slope = u[..., :10], u[..., 10:]
        logit = np.exp(log_slope)[..., None, :] * (nodes[:, None] - difficulty[..., None, :])
        log_yes, log_no = -np.logaddexp(0, -logit), -np.logaddexp(0, logit)
        by_person = log_yes @ y.T + log_no @ (1 - y).T + log_weights[:, None]
        log_likelihood = special.logsumexp(by_person, axis=-2).sum(axis=-1)
        prior = log_normal(difficulty, 1.5).sum(axis=-1) + log_normal(log_slope, 0.5).sum(axis=-1)
        return prior + log_likelihood

    return importance_sampling(log_joint, np.zeros(20), draws=20_000, df=10)


def reference_gp() -> tuple[float, float]:
    """Integrate over log scale and log length; mean and process by importance sampling."""
    x, counts = zoo.gp_data()
    y, repeats = counts.sum(axis=0), len(counts)
    # The sums are Poisson with the mean of `repeats` counts; given them, the counts multinomial.
    constant = special.gammaln(y + 1).sum() - special.gammaln(counts + 1).sum()
    constant = constant - y.sum() * np.log(repeats)
    rng = np.random.default_rng(2)
    distance = (x[:, None] - x) ** 2

    def approximate(u: np.ndarray, correct: bool = False) -> np.ndarray:
        """Return the Laplace approximation, or an unbiased estimate by a draw from it."""
        scale, length = np.exp(u[..., 0]), np.exp(u[..., 1])
        kernel = scale[..., None, None] ** 2 * np.exp(
            -0.5 * distance / length[..., None, None] ** 2
        )
        root = np.linalg.cholesky(kernel + 1e-6 * np.eye(len(x)))
        # The mean is one more standard normal variable, with the standard deviation 2.
        root = np.concatenate([np.full((*scale.shape, len(x), 1), 2.0), root], axis=-1)
        z, offset = np.zeros((*scale.shape, len(x) + 1)), np.full(scale.shape, np.log(repeats))
        for _ in range(NEWTON_STEPS):
            z, factor = newton_step(z, root, offset, y)
        log_volume = -np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        noise = np.zeros_like(z)
        if correct:
            noise = rng.normal(size=z.shape)
            z = z + np.linalg.solve(np.swapaxes(factor, -1, -2), noise[..., None])[..., 0]
        log_mean = np.log(repeats) + (root @ z[..., None])[..., 0]
        quadratic = 0.5 * (noise**2 - z**2).sum(axis=-1)
        prior = half_normal(u[..., 0], 1) + log_scale(u[..., 1], stats.invgamma(5, scale=5))
        return prior + log_poisson(y, log_mean) + constant + quadratic + log_volume

    start = np.array([0.0, 0.0])
    return importance_sampling(
        approximate, start, draws=4_000, final=lambda u: approximate(u, correct=True)
    )


def newton_step(z: np.ndarray, root: np.ndarray, mean: np.ndarray, y: np.ndarray):
    """Return the next z of Newton's method, and the Cholesky factor of the precision at z."""
    transposed = np.swapaxes(root, -1, -2)
    rate = np.exp(np.minimum(mean[..., None] + (root @ z[..., None])[..., 0], 10))
    precision = transposed @ (rate[..., None] * root) + np.eye(z.shape[-1])
    gradient = (transposed @ (y - rate)[..., None])[..., 0] - z
    step = np.linalg.solve(precision, gradient[..., None])[..., 0]
    return z + step, np.linalg.cholesky(precision)


def log_poisson(y: np.ndarray, log_mean: np.ndarray) -> np.ndarray:
    return (y * log_mean - np.exp(log_mean) - special.gammaln(y + 1)).sum(axis=-1)


def reference_pima() -> tuple[float, float]:
    x, y = zoo.pima_data()
    signs = np.where(y > 0, 1.0, -1.0)[:, None] * x

    def log_joint(u: np.ndarray) -> np.ndarray:
        return log_normal(u, 1).sum(axis=-1) - np.logaddexp(0, -u @ signs.T).sum(axis=-1)

    return importance_sampling(log_joint, np.zeros(64), draws=50_000, df=30)


RECOMPUTE: dict[str, Callable[[], tuple[float, float]]] = {
    "hierarchical_centred": reference_hierarchical,
    "hierarchical_noncentred": reference_hierarchical,
    "varying_slopes": reference_varying_slopes,
    "poisson": reference_poisson,
    "robust": reference_robust,
    "random_walk": reference_random_walk,
    "irt": reference_irt,
    "horseshoe": reference_horseshoe,
    "latent_gp": reference_gp,
    "mixture": reference_mixture,
    "pima_interactions": reference_pima,
    "negative_binomial": reference_negative_binomial,
    "regression": reference_regression,
    "missing": reference_missing,
}
