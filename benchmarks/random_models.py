"""Draw models at random whose evidences are known, and count what is wrong and trusted.

    python benchmarks/random_models.py --models 100
    python benchmarks/random_models.py --first 50 --models 1 --seeds 5

A list of models knows the mechanisms that its author thought of. Here a grammar makes them: one to
three groups of 1 to 12 coordinates, each with a prior of 15 families, a likelihood of 20 shapes at
a random place and scale (peaks, pairs, cusps, steps, boxes, plateaus, waves, holes, conflicts with
the prior), and a structure:

- `independent`, `rotated` (by an orthogonal matrix), `shear` (a banana): coordinates that a map of
  volume one makes independent, so that the evidence is a power of an integral in one dimension;
- `mixture`, `switch` (by a Bernoulli variable), `shared` (by a uniform one): a likelihood that is
  one of two products, whose evidences are added;
- `scale`, `centred scale`: normal effects of unknown standard deviation, an integral in two.

The evidence of a model is the product of those of its groups. The number of a model is its seed. A
run is wrong if it is more than four standard errors and 0.005 nats off.
"""

import argparse
import time
import warnings

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from scipy import special, stats

import pymc_anneal as pma

warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")

# Standard errors and nats off from which a run is wrong.
LIMIT, LEAST = 4.0, 0.005
# Structures and sizes of groups, and numbers of groups: each as often as it stands here.
STRUCTURES = (
    *("independent", "independent", "rotated", "shear"),
    *("scale", "centred scale", "switch", "mixture", "shared"),
)
SIZES = (1, 1, 2, 2, 3, 5, 8, 12)
GROUPS = (1, 1, 2, 3)
# Families of priors of a scale, and shapes of a likelihood of effects.
SCALES = ("Half", "LogNormal", "Gamma", "Exponential", "InverseGamma")
OF_EFFECTS = (
    *("normal", "absolute", "conflict", "pair", "cusp", "poisson", "plateau", "cauchy", "floor"),
)


@dataclass(frozen=True)
class Prior:
    """A prior in PyMC, ``make(name, shape=...)``, and in SciPy."""

    name: str
    make: Callable[..., Any]
    law: Any


@dataclass(frozen=True)
class Shape:
    """A log likelihood of one coordinate, ``value(x, module)``, in NumPy and PyTensor.

    ``places`` are centres and widths of where it changes; a width of zero is that of a jump.
    """

    name: str
    value: Callable[[Any, Any], Any]
    places: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Group:
    """Variables of a model with their likelihood, and their log evidence."""

    name: str
    build: Callable[[], None]
    log_evidence: float


def draw_priors(rng: np.random.Generator) -> list[Prior]:
    """Return one prior of each family."""
    m, s = rng.normal(0, 2), 10 ** rng.uniform(-1, 1.5)
    a, b = rng.uniform(0.6, 5, size=2)
    nu = rng.uniform(1, 6)
    wide = s / 10 + 0.1

    def prior(name: str, make: Callable[..., Any], law: Any, **parameters: float) -> Prior:
        return Prior(name, partial(make, **parameters), law)

    return [
        prior(f"Normal({m:.2g},{s:.2g})", pm.Normal, stats.norm(m, s), mu=m, sigma=s),
        prior(f"t{nu:.1f}(s={s:.2g})", pm.StudentT, stats.t(nu, 0, s), nu=nu, mu=0, sigma=s),
        prior(f"Laplace({s:.2g})", pm.Laplace, stats.laplace(m, s), mu=m, b=s),
        prior(f"Uniform(+-{s:.2g})", pm.Uniform, stats.uniform(-s, 2 * s), lower=-s, upper=s),
        prior(f"Exponential({s:.2g})", pm.Exponential, stats.expon(0, s), scale=s),
        prior(f"Gamma({a:.2g})", pm.Gamma, stats.gamma(a, 0, s), alpha=a, beta=1 / s),
        prior(f"Beta({a:.2g},{b:.2g})", pm.Beta, stats.beta(a, b), alpha=a, beta=b),
        prior(f"LogNormal({wide:.2g})", pm.LogNormal, stats.lognorm(wide), mu=0, sigma=wide),
        prior(f"HalfCauchy({s:.2g})", pm.HalfCauchy, stats.halfcauchy(0, s), beta=s),
        prior(f"HalfNormal({s:.2g})", pm.HalfNormal, stats.halfnorm(0, s), sigma=s),
        prior(f"Gumbel({s:.2g})", pm.Gumbel, stats.gumbel_r(m, s), mu=m, beta=s),
        prior(
            f"TruncatedNormal({s:.2g})",
            pm.TruncatedNormal,
            stats.truncnorm(-0.5, np.inf, m, s),
            **{"mu": m, "sigma": s, "lower": m - s / 2},
        ),
        prior(
            f"InverseGamma({a + 1:.2g})",
            pm.InverseGamma,
            stats.invgamma(a + 1, 0, s),
            **{"alpha": a + 1, "beta": s},
        ),
        prior(f"Weibull({a:.2g})", pm.Weibull, stats.weibull_min(a, 0, s), alpha=a, beta=s),
        prior("SkewNormal", pm.SkewNormal, stats.skewnorm(4, m, s), mu=m, sigma=s, alpha=4),
    ]


STANDARD_NORMAL = Prior("Normal(0,1)", partial(pm.Normal, mu=0, sigma=1), stats.norm())


def log_normal(x: Any, centre: float, sd: float) -> Any:
    """Return a normal log density without its constant."""
    return -0.5 * ((x - centre) / sd) ** 2 - np.log(sd)


def draw_shapes(rng: np.random.Generator, law: Any, d: int) -> list[Shape]:
    """Return one likelihood of each shape, relative to quantiles of a prior of ``d`` coordinates.

    Where gradients lead nowhere (steps, boxes, waves), many coordinates get lower ones.
    """
    quantile = law.ppf
    iqr = float(quantile(0.75) - quantile(0.25))
    c, c2 = (float(quantile(rng.uniform(0.02, 0.98))) for _ in range(2))
    w = iqr * 10 ** rng.uniform(-2.5, 0.3)
    w2 = w * 10 ** rng.uniform(0, 1.5)
    p, k = rng.uniform(0.05, 0.95), rng.uniform(0.5, 12)
    reach = 1.0 if quantile(1) == np.inf else 0.1
    far = float(quantile(0.5)) + iqr * rng.uniform(2, 12) * reach
    nu = rng.uniform(1, 4)
    r = abs(c) + 0.3 * iqr
    r2 = r * iqr * 10 ** rng.uniform(-2, 0)
    period = iqr * 10 ** rng.uniform(-0.7, 0.5)
    n = int(rng.integers(0, 30))
    many = d > 4
    step, outside, wave = (1.5, -np.inf, k / 4) if many else (4.0, -12.0, k)
    relative = w / iqr

    def both(first: Any, second: Any, m: Any) -> Any:
        return m.logaddexp(np.log(p) + first, np.log1p(-p) + second)

    def exponent(x: Any, m: Any) -> Any:
        return m.clip((x - c) / w, -700, 700)

    def well(x: Any, m: Any) -> Any:
        return -(((x - c) / w) ** 4) + 2 * ((x - c) / w) ** 2

    def pair(x: Any, m: Any) -> Any:
        return both(log_normal(x, c, w), log_normal(x, c2, w2), m)

    def laplace_pair(x: Any, m: Any) -> Any:
        return both(-m.abs(x - c) / w - np.log(w), -m.abs(x - c2) / w2 - np.log(w2), m)

    def square(x: Any, m: Any) -> Any:
        return log_normal((x / iqr) ** 2, (r / iqr) ** 2, r2 / iqr**2)

    def logarithm(x: Any, m: Any) -> Any:
        return -0.5 * ((m.log(m.abs(x) + 1e-12 * iqr) - np.log(r)) / (relative + 0.02)) ** 2

    def plateau(x: Any, m: Any) -> Any:
        return -m.log1p(m.exp(m.clip(((x - c) / w) ** 2 - 9, -700, 700)))

    def poisson(x: Any, m: Any) -> Any:
        return n * exponent(x, m) - m.exp(exponent(x, m))

    def rise(x: Any, m: Any) -> Any:
        return -step * m.log1p(m.exp(-m.clip((x - c) / w, -50, 50)))

    def floor(x: Any, m: Any) -> Any:
        return m.logaddexp(log_normal(x, c, w), np.log(0.01 / iqr) + 0 * x)

    top, mirrored = ((c, w),), ((r, w), (-r, w))
    in_square = ((r, r2 / r), (-r, r2 / r))
    in_log = ((r, r * (relative + 0.02)), (-r, r * (relative + 0.02)))
    edges = ((c - 3 * w, w / 5), (c + 3 * w, w / 5))
    top_of_poisson = (c + w * np.log(n + 0.5), w / np.sqrt(n + 1))
    return [
        Shape("normal", lambda x, m: log_normal(x, c, w), top),
        Shape("square", square, in_square),
        Shape("absolute", lambda x, m: log_normal(m.abs(x), r, w), mirrored),
        Shape(
            "conflict",
            lambda x, m: -(nu + 1) / 2 * m.log1p(((x - far) / w) ** 2 / nu),
            ((far, w),),
        ),
        Shape("pair", pair, ((c, w), (c2, w2))),
        Shape("step", rise, top),
        Shape(
            "box",
            lambda x, m: m.where(m.abs(x - c) < w * 5, 0.0, outside),
            ((c - 5 * w, 0.0), (c + 5 * w, 0.0)),
        ),
        Shape(
            "periodic",
            lambda x, m: wave * m.cos((x - c) * (2 * np.pi / period)),
            ((c, period),),
        ),
        Shape("cusp", lambda x, m: -m.abs(x - c) / w, top),
        Shape("cusp root", lambda x, m: -m.sqrt(m.abs(x - c) / w), top),
        Shape("quartic", well, top),
        Shape("poisson", poisson, (*top, top_of_poisson)),
        Shape("plateau", plateau, (*top, *edges)),
        Shape(
            "hole",
            lambda x, m: m.log(1e-6 + 1 - m.exp(-0.5 * ((x - c) / w) ** 2)),
            top,
        ),
        Shape("laplace pair", laplace_pair, ((c, w), (c2, w2))),
        Shape("cauchy", lambda x, m: -m.log1p(((x - c) / w) ** 2), top),
        Shape("floor", floor, top),
        Shape("log", logarithm, in_log),
        Shape(
            "sine",
            lambda x, m: log_normal(m.sin(x * (2 * np.pi / period)), p, 0.05 + relative),
            ((c, period),),
        ),
        Shape(
            "tanh",
            lambda x, m: log_normal(m.tanh((x - c) / iqr), p, 0.02 + relative),
            ((c + iqr * np.arctanh(p), iqr * 0.1),),
        ),
    ]


# Distances around a place, in its widths.
LOCAL = np.concatenate(
    [np.linspace(-12, 12, 4001), *np.outer((1, -1), np.geomspace(1e-6, 1e5, 3000))]
)


def log_integral(law: Any, shape: Shape) -> float:
    """Return the log evidence of one coordinate: trapezoids of the log density.

    The points are quantiles of the prior, its ends, and the places of the shape. Between two points
    the density is exponential; beside a jump half of it counts, over next to no length.
    """
    local = [
        centre + width * LOCAL
        if width
        else centre + np.array([-1, 1]) * 1e-13 * max(abs(centre), 1e-3)
        for centre, width in shape.places
    ]
    ends = [law.ppf(np.geomspace(1e-17, 1e-4, 4000)), law.isf(np.geomspace(1e-30, 1e-4, 8000))]
    x = np.unique(np.concatenate([*local, law.ppf(np.linspace(0, 1, 400_001)[1:-1]), *ends]))
    x = x[(x >= law.ppf(1e-17)) & (x <= law.isf(1e-30)) & np.isfinite(law.logpdf(x))]
    with np.errstate(all="ignore"):
        log_f = law.logpdf(x) + shape.value(x, np)
        fall = np.abs(np.diff(log_f))
        mean = np.where(fall < 1e-4, 1 - fall / 2, -np.expm1(-fall) / fall)
        mean = np.where(np.isfinite(fall), mean, 0.5)
        each = np.maximum(log_f[1:], log_f[:-1]) + np.log(mean) + np.log(np.diff(x))
    return float(special.logsumexp(each[np.isfinite(each)]))


def log_integral_over_scale(scale: Any, shape: Shape, d: int) -> float:
    """Return the log evidence of ``d`` normal effects of unknown standard deviation.

    The posterior may lie far beyond the prior, once at a tail of 1e-23: points are those of the
    logarithm.
    """
    usual = np.linspace(np.log(scale.ppf(1e-12)), np.log(scale.isf(1e-14)), 600)
    beyond = np.arange(usual[-1], np.log(scale.isf(1e-60)), usual[1] - usual[0])
    log_sd = np.concatenate([usual, beyond[1:]])
    log_prior = scale.logpdf(np.exp(log_sd)) + log_sd
    log_f = log_prior + d * np.array([_log_integral_of_effect(sd, shape) for sd in np.exp(log_sd)])
    return float(np.log(np.trapezoid(np.exp(log_f - log_f.max()), log_sd)) + log_f.max())


def _log_integral_of_effect(sd: float, shape: Shape) -> float:
    fine = [np.linspace(-12, 12, 801), *np.outer((1, -1), np.geomspace(1e-5, 1e4, 500))]
    local = np.concatenate(fine)
    x = np.unique(np.concatenate([sd * local, *(c + w * local for c, w in shape.places)]))
    log_f = stats.norm.logpdf(x, 0, sd) + shape.value(x, np)
    return float(np.log(np.trapezoid(np.exp(log_f - log_f.max()), x)) + log_f.max())


def draw_group(rng: np.random.Generator, name: str, structure: str) -> Group:
    """Return a group of a structure, with the name of its main variable."""
    d, every = int(rng.choice(SIZES)), draw_priors(rng)
    prior = every[rng.integers(len(every))]
    if structure in ("rotated", "shear"):
        d, prior = max(d, 2), STANDARD_NORMAL
    shapes = draw_shapes(rng, prior.law, d)
    shape, other = (shapes[rng.integers(len(shapes))] for _ in range(2))
    if "scale" in structure:
        return _effects(rng, name, structure, d, every)
    text = f"{structure}: {prior.name} x {d}, {shape.name}"
    if structure in ("mixture", "switch", "shared"):
        return _one_of_two(rng, name, structure, d, prior, (shape, other), text)
    size = {} if d == 1 else {"shape": d}
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0] if structure == "rotated" else None
    bend = rng.uniform(0.2, 2) if structure == "shear" else 0.0

    def build() -> None:
        if structure == "shear":
            along = bend * pm.Normal(f"{name}_along", 0, 1) ** 2
            x = pm.Normal(name, along, 1, **size) - along
        else:
            x = prior.make(name, **size)
        x = x if turn is None else pt.dot(turn, x)
        pm.Potential(f"{name}_data", shape.value(x, pt).sum())

    return Group(text, build, d * log_integral(prior.law, shape))


def _one_of_two(
    rng: np.random.Generator,
    name: str,
    structure: str,
    d: int,
    prior: Prior,
    shapes: tuple[Shape, Shape],
    text: str,
) -> Group:
    """Return a group with one of two likelihoods."""
    share, size = rng.uniform(0.05, 0.95), {} if d == 1 else {"shape": d}
    log_shares = np.log([share, 1 - share])

    def build() -> None:
        x = prior.make(name, **size)
        first, second = (shape.value(x, pt).sum() for shape in shapes)
        if structure == "switch":
            value = pt.switch(pm.Bernoulli(f"{name}_switch", share), first, second)
        elif structure == "shared":
            value = pt.switch(pm.Uniform(f"{name}_shared") < share, first, second)
        else:
            value = pt.logaddexp(log_shares[0] + first, log_shares[1] + second)
        pm.Potential(f"{name}_data", value)

    each = [d * log_integral(prior.law, shape) for shape in shapes]
    total = float(special.logsumexp(log_shares + each))
    return Group(f"{text} | {shapes[1].name}", build, total)


def _effects(
    rng: np.random.Generator, name: str, structure: str, d: int, every: list[Prior]
) -> Group:
    """Return normal effects of unknown standard deviation."""
    of_scale = [prior for prior in every if prior.name.startswith(SCALES)]
    scale = of_scale[rng.integers(len(of_scale))]
    shapes = draw_shapes(rng, stats.norm(0, float(scale.law.median())), d)
    shapes = [shape for shape in shapes if shape.name in OF_EFFECTS]
    shape, size = shapes[rng.integers(len(shapes))], {} if d == 1 else {"shape": d}

    def build() -> None:
        sd = scale.make(f"{name}_sd")
        if structure == "scale":
            x = sd * pm.Normal(name, 0, 1, **size)
        else:
            x = pm.Normal(name, 0, sd, **size)
        pm.Potential(f"{name}_data", shape.value(x, pt).sum())

    text = f"{structure}: {scale.name} x {d}, {shape.name}"
    return Group(text, build, log_integral_over_scale(scale.law, shape, d))


def draw_model(number: int) -> list[Group]:
    """Return the groups of the model with a number."""
    rng = np.random.default_rng(number)
    names = [f"x{i}" for i in range(int(rng.choice(GROUPS)))]
    return [draw_group(rng, n, STRUCTURES[rng.integers(len(STRUCTURES))]) for n in names]


def build(groups: list[Group]) -> pm.Model:
    """Return the model of some groups."""
    with pm.Model() as model:
        for group in groups:
            group.build()
    return model


def run(model: pm.Model, exact: float, seed: int, minutes: float) -> tuple[str, str]:
    """Return the outcome of a run and its figures."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            idata = pma.sample_ais(
                model=model, random_seed=seed, max_minutes=minutes, progressbar=False
            )
        except Exception as error:
            return "refused", f"{type(error).__name__}: {error}"[:120]
    found = pma.log_evidence(idata)
    off = found.log_evidence - exact
    wrong = not abs(off) <= LIMIT * found.mcse + LEAST
    trusted = found.verdict.trusted
    outcome = (
        ("SILENT" if wrong else "right") if trusted else "wrong, doubted" if wrong else "doubted"
    )
    figures = f"{found.log_evidence:.4f} +- {found.mcse:.4f} z {off / found.mcse:+.1f}"
    return outcome, f"{figures}, {time.process_time() - begin:.1f} CPU s"


def main() -> None:
    """Print one line for each run, and the totals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0, help="number of the first model")
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--max-minutes", type=float, default=2.0, help="for each run")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    for number in range(options.first, options.first + options.models):
        groups = draw_model(number)
        exact = sum(group.log_evidence for group in groups)
        name, model = "; ".join(group.name for group in groups), build(groups)
        for seed in range(options.seeds):
            outcome, figures = run(model, exact, seed, options.max_minutes)
            total[outcome] += 1
            print(f"{number:4} {outcome:14} {figures}, exact {exact:.4f}  {name}", flush=True)
    print(dict(total))


if __name__ == "__main__":
    main()
