"""Count runs with a wrong evidence and the verdict "trust", on posteriors that hide their modes.

    python benchmarks/silent_misses.py --seeds 20
    python benchmarks/silent_misses.py --problems pair --reference prior --seeds 10
    python benchmarks/silent_misses.py --problems slab pair --opaque

The problems, with exact evidences:

- `slab`: spike and slab in a box (Brewer, Partay & Csanyi 2011; the test of DNest4), in 5, 10 and
  20 dimensions, with the spike at the centre of the slab and beside it.
- `pair`: two normal modes in ten dimensions, with several weights, distances and scales.
- `corner`: half of the posterior in a spike of width 1e-3 in the corner of a ten-dimensional box.
- `several`: five modes in two dimensions; the many-well density; a mixture of two normals with
  both labellings.
- `scales`: two modes in three dimensions whose scales differ by a factor of 100.
- `period`: 40 values of a sine of unknown period, over longer and longer times.

A run is "wrong" if it is more than four standard errors off, and at least 1e-3 nats.

The basin of the narrower of two modes is the ball in which its density is the higher one. With
`--opaque` nothing but draws and climbs can find such a mode, and where the basin has less than 1e-6
of the prior it is a needle: they meet it by luck alone. These runs are counted apart.
"""

import argparse
import time
import warnings

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from scipy import integrate, special, stats

import pymc_anneal as pma

warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")

# Standard errors off from which a run is wrong.
LIMIT = 4.0

# Share of the prior in a basin below which its mode is a needle, met by luck alone.
LEAST_BASIN = 1e-6

# How two terms are added. `--opaque` takes a form in which the search does not see the terms.
add = pt.logaddexp


@dataclass(frozen=True)
class Hidden:
    """A model, its exact log evidence, and the share of the prior in the basin of a narrow mode."""

    name: str
    build: Callable[[], pm.Model]
    log_evidence: float
    basin: float = 1.0


def add_opaque(first, second):
    """Add two terms given by their logs as no search for terms can see."""
    return second + pt.softplus(first - second)


def log_normal(x, mean, sd, d: int):
    """Return the log density of independent normals with one scale, summed over ``d``."""
    return -0.5 * ((x - mean) ** 2).sum() / sd**2 - d * np.log(sd * np.sqrt(2 * np.pi))


def basin_ball(gain: float, centres: np.ndarray, scales: tuple[float, float]):
    """Return centre and radius of the ball where the first of two normal densities is higher.

    ``gain`` is the log of the ratio of their weights, ``centres`` has shape ``(2, d)``.
    """
    first, second = np.square(1 / np.array(scales))
    excess, d = first - second, centres.shape[1]
    centre = (first * centres[0] - second * centres[1]) / excess
    height = gain + 0.5 * d * np.log(first / second)
    apart = np.square(centres[0] - centres[1]).sum()
    return centre, np.sqrt(2 * height / excess + first * second / excess**2 * apart)


def share_of_normal(centre: np.ndarray, radius: float, sd: float) -> float:
    """Return the share of independent normals around zero in a ball."""
    return float(stats.ncx2.cdf((radius / sd) ** 2, len(centre), (centre / sd) @ (centre / sd)))


def volume(radius: float, d: int) -> float:
    """Return the volume of a ball in ``d`` dimensions: its share of a unit box around it."""
    return float(np.exp(d * np.log(np.sqrt(np.pi) * radius) - special.gammaln(d / 2 + 1)))


def slab(d: int, shift: float) -> Hidden:
    """Spike and slab: 100 N(x; shift, 0.01) + N(x; 0, 0.1) in the unit box around zero."""

    def build():
        with pm.Model() as model:
            x = pm.Uniform("x", -0.5, 0.5, shape=d)
            spike, wide = log_normal(x, shift, 0.01, d), log_normal(x, 0.0, 0.1, d)
            pm.Potential("data", add(np.log(100) + spike, wide))
        return model

    inside = d * np.log(np.diff(stats.norm.cdf([-0.5, 0.5], scale=0.1))[0])
    _, radius = basin_ball(np.log(100), np.full((2, d), [[shift], [0.0]]), (0.01, 0.1))
    exact = np.logaddexp(np.log(100), inside)
    return Hidden(f"slab {d}-d shift {shift}", build, exact, volume(radius, d))


def pair(weight: float, distance: float, ratio: float, d: int = 10, sd: float = 0.05) -> Hidden:
    """Two normal modes: the first of ``weight``, the second ``ratio`` times as wide.

    ``distance`` is that of the centres, in standard deviations of the wider mode in all directions
    together.
    """
    centre = 0.5 * distance * sd * ratio / np.sqrt(d)
    prior_sd = 3.0

    def build():
        with pm.Model() as model:
            x = pm.Normal("x", 0, prior_sd, shape=d)
            first = np.log(weight) + log_normal(x, centre, sd, d)
            second = np.log1p(-weight) + log_normal(x, -centre, ratio * sd, d)
            pm.Potential("data", add(first, second))
        return model

    def log_product(own_sd):
        return d * stats.norm.logpdf(centre, 0, np.hypot(prior_sd, own_sd))

    first = np.log(weight) + log_product(sd)
    second = np.log1p(-weight) + log_product(ratio * sd)
    name, basin = f"pair {weight} at {distance} sd, scales 1:{ratio}", 1.0
    if ratio > 1:
        gain, centres = np.log(weight / (1 - weight)), np.full((2, d), [[centre], [-centre]])
        basin = share_of_normal(*basin_ball(gain, centres, (sd, ratio * sd)), prior_sd)
    return Hidden(name, build, float(np.logaddexp(first, second)), basin)


def corner(d: int = 10, width: float = 1e-3) -> Hidden:
    """Half of the mass in a spike near the corner of a box, half in the flat rest."""

    def build():
        with pm.Model() as model:
            x = pm.Uniform("x", 0, 1, shape=d)
            pm.Potential("data", add(0.0, log_normal(x, 0.95, width, d)))
        return model

    # The spike is above the flat rest up to this radius.
    radius = width * np.sqrt(-2 * d * np.log(width * np.sqrt(2 * np.pi)))
    return Hidden(f"corner {d}-d", build, float(np.log(2)), volume(radius, d))


def five_modes() -> Hidden:
    """Five modes in two dimensions, of weights 0.1 to 0.3."""
    centres = np.array([[-6.0, -6], [6, -5], [0, 0], [-5, 6], [7, 7]])
    weight, sd = np.array([0.3, 0.25, 0.2, 0.15, 0.1]), 0.3

    def build():
        with pm.Model() as model:
            x = pm.Normal("x", 0, 6, shape=2)
            each = -0.5 * ((x - centres) ** 2).sum(axis=1) / sd**2 - 2 * np.log(
                sd * np.sqrt(2 * np.pi)
            )
            pm.Potential("data", pt.logsumexp(each + np.log(weight)))
        return model

    height = stats.norm.logpdf(centres, 0, np.hypot(6, sd)).sum(axis=1)
    return Hidden("five modes", build, float(special.logsumexp(height + np.log(weight))))


def many_well(wells: int = 4) -> Hidden:
    """Double wells in each of several dimensions: 2^wells modes."""

    def log_well(x):
        return -(x**4) + 6 * x**2 + 0.5 * x

    def build():
        with pm.Model() as model:
            x = pm.Normal("x", 0, 2, shape=wells)
            pm.Potential("data", log_well(x).sum())
        return model

    one = integrate.quad(
        lambda x: np.exp(log_well(x)) * stats.norm.pdf(x, 0, 2), -6, 6, points=[-1.7, 1.7]
    )[0]
    return Hidden(f"{2**wells} wells", build, wells * float(np.log(one)))


def labels() -> Hidden:
    """Means of a mixture of two normals, whose labels can be exchanged."""
    y = np.array([-2.1, -1.7, -2.6, -1.9, 2.2, 1.8, 2.4, 1.6, 2.9])

    def build():
        with pm.Model() as model:
            mu = pm.Normal("mu", 0, 5, shape=2)
            pm.NormalMixture("y", w=[0.5, 0.5], mu=mu, sigma=0.7, observed=y)
        return model

    grid = np.linspace(-15, 15, 3001)
    log_each = stats.norm.logpdf(y[:, None], grid, 0.7) - np.log(2)
    both = np.logaddexp(log_each[:, :, None], log_each[:, None, :1501]).sum(axis=0)
    both += stats.norm.logpdf(grid, 0, 5)[:, None] + stats.norm.logpdf(grid[:1501], 0, 5)
    step = grid[1] - grid[0]
    # Half of the plane by symmetry; the line in the middle counts half.
    edge = np.ones(1501)
    edge[-1] = 0.5
    total = special.logsumexp(both + np.log(edge)) + 2 * np.log(step) + np.log(2)
    return Hidden("labels", build, float(total))


def scales() -> Hidden:
    """Two modes in three dimensions: 0.7 of scale 0.02 and 0.3 of scale 2."""

    def build():
        with pm.Model() as model:
            x = pm.Normal("x", 0, 10, shape=3)
            narrow = np.log(0.7) + log_normal(x, -5.0, 0.02, 3)
            pm.Potential("data", add(narrow, np.log(0.3) + log_normal(x, 5.0, 2.0, 3)))
        return model

    narrow = np.log(0.7) + 3 * stats.norm.logpdf(5, 0, np.hypot(10, 0.02))
    wide = np.log(0.3) + 3 * stats.norm.logpdf(5, 0, np.hypot(10, 2))
    ball = basin_ball(np.log(0.7 / 0.3), np.full((2, 3), [[-5.0], [5.0]]), (0.02, 2.0))
    basin = share_of_normal(*ball, 10.0)
    return Hidden("scales", build, float(np.logaddexp(narrow, wide)), basin)


def period(span: float) -> Hidden:
    """A sine of period 15.9 in noise: its peak in the log period is about ``3 / span`` wide.

    For a given frequency the model is linear, and its evidence is known.
    """
    rng = np.random.default_rng(5)
    t = np.sort(rng.uniform(0, span, 40))
    y = 4 * np.sin(2 * np.pi * t / 15.9 + 1) + rng.normal(size=40)
    shortest, longest, sd = 1.25, 1e4, 5.0

    def build():
        with pm.Model() as model:
            log_period = pm.Uniform("log_period", np.log(shortest), np.log(longest))
            a = pm.Normal("a", 0, sd, shape=2)
            angle = 2 * np.pi * t / pt.exp(log_period)
            pm.Normal("y", a[0] * pt.sin(angle) + a[1] * pt.cos(angle), 1, observed=y)
        return model

    frequency = np.linspace(1 / longest, 1 / shortest, int(200 * span))
    angle = 2 * np.pi * np.outer(frequency, t)
    design = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    precision = design @ design.transpose(0, 2, 1) + np.eye(2) / sd**2
    slope = design @ y
    fit = (slope * np.linalg.solve(precision, slope[..., None])[..., 0]).sum(axis=1)
    log_likelihood = (fit - np.linalg.slogdet(precision)[1]) / 2 - 2 * np.log(sd)
    log_likelihood -= y @ y / 2 + len(y) / 2 * np.log(2 * np.pi)
    log_prior = -np.log(frequency) - np.log(np.log(longest / shortest))
    total = special.logsumexp(log_likelihood + log_prior) + np.log(frequency[1] - frequency[0])
    return Hidden(f"period, {span:g} days", build, float(total))


PROBLEMS: dict[str, list[Callable[[], Hidden]]] = {
    "slab": [partial(slab, d, shift) for d in (5, 10, 20) for shift in (0.0, 0.031)],
    "pair": [
        partial(pair, weight, distance, ratio)
        for weight, distance, ratio in (
            (0.5, 4.0, 1.0),
            (0.8, 10.0, 1.0),
            (0.95, 38.0, 1.0),
            (0.98, 40.0, 1.0),
            (0.2, 12.0, 3.0),
            (0.5, 8.0, 10.0),
            (0.5, 4.0, 100.0),
            (0.02, 10.0, 10.0),
            (0.98, 10.0, 10.0),
        )
    ],
    "corner": [corner],
    "several": [five_modes, many_well, labels],
    "scales": [scales],
    "period": [partial(period, span) for span in (600.0, 2000.0, 6000.0)],
}


def run(
    problem: Hidden, model, reference: str, seed: int, max_minutes: float
) -> tuple[float, str, float, int]:
    """Return the error in standard errors, the verdict, the log evidence, the evaluations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        idata = pma.sample_ais(
            model=model,
            reference=reference,
            random_seed=seed,
            max_minutes=max_minutes,
            progressbar=False,
        )
    found = pma.log_evidence(idata)
    off = found.log_evidence - problem.log_evidence
    z = 0.0 if abs(off) < 1e-3 else off / max(found.mcse, 1e-300)
    spent = int(idata["evidence"]["evaluations"])
    return z, found.verdict.status, found.log_evidence, spent


def outcome(z: float, status: str, basin: float) -> str:
    """Say whether a run is right, and trusted: "SILENT" is wrong and trusted."""
    if abs(z) <= LIMIT:
        return "right" if status == "trust" else "right, doubted"
    if status != "trust":
        return "wrong, doubted"
    return "SILENT" if basin >= LEAST_BASIN else "SILENT, needle"


def main() -> None:
    """Print one line for each problem, and the totals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--reference", default="auto")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument(
        "--opaque", action="store_true", help="hide the terms of the densities from the search"
    )
    parser.add_argument(
        "--max-minutes", type=float, default=10.0, help="for each run; long from the prior"
    )
    parser.add_argument("--name", default="", help="only problems whose name contains this")
    options = parser.parse_args()
    if options.opaque:
        global add
        add = add_opaque
    total: Counter[str] = Counter()
    for build in (b for name in options.problems for b in PROBLEMS[name]):
        problem = build()
        if options.name not in problem.name:
            continue
        model, begin, found = problem.build(), time.process_time(), []
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            try:
                found.append(run(problem, model, options.reference, seed, options.max_minutes))
            except ValueError as error:
                print(f"  seed {seed}: {error}")
                total["refused"] += 1
        if not found:
            continue
        basin = problem.basin if options.opaque else 1.0
        counts = Counter(outcome(z, status, basin) for z, status, _, _ in found)
        total += counts
        print(
            f"{problem.name:34} exact {problem.log_evidence:9.3f}  z "
            f"{' '.join(f'{z:.1f}' for z, *_ in found)}  evaluations "
            f"{np.median([spent for *_, spent in found]):.3g}, "
            f"{(time.process_time() - begin) / len(found):.1f} CPU s a run  {dict(counts)}",
            flush=True,
        )
    print(dict(total))


if __name__ == "__main__":
    main()
