"""Compare the mean squared error of forward runs with that of both directions at equal cost.

    python benchmarks/bidirectional.py --repetitions 200 --particles 64 --variances 0.5,2

The models are the problems with known evidence of `tests/problems`. Transitions and schedule come
from a pilot, and the number of steps is that for which the pilot predicts the given variance of the
log weights (`sample_ais` plans for 0.5):

forward
    `--particles` forward runs; the log of the mean weight.
both
    Half of the particles forward, half in reverse from posterior draws; Bennett's acceptance ratio.

Repetitions run simultaneously. The posterior draws, which `sample_ais(reverse_from=...)` takes from
a fitted model, are not counted as cost. Here they come from a slow annealing run, followed by
resampling and twenty further moves. A ratio above one means that using both directions is better.
"""

import argparse
import sys
import warnings

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import pymc_anneal as pma

from pymc_anneal.adaptation.pilot import run_pilot
from pymc_anneal.adaptation.plan import effective_length
from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.annealing.resampling import resample
from pymc_anneal.evidence.ais import ais, effective_sample_size
from pymc_anneal.evidence.bennett import both_directions

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.problems import PROBLEMS, Problem

warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")

CHAINS, MOVES = 4, 20
# A duplicate model, and models without data, whose weights are all equal.
SKIPPED = {"initval", "lkj_prior_only", "no_observed"}


@dataclass(frozen=True)
class Errors:
    """Errors of the log evidence in nats, shape ``(repetitions,)``; steps; ESS per particle."""

    forward: np.ndarray
    both: np.ndarray
    steps: int
    ess: float

    @property
    def ratio(self) -> float:
        """Mean squared error of forward runs over that of both directions."""
        return float((self.forward**2).mean() / (self.both**2).mean())

    def ratio_error(self, rng: np.random.Generator) -> float:
        """Return the standard error of the log ratio, by bootstrap over repetitions."""
        n = len(self.forward)
        index = rng.integers(n, size=(500, n))
        ratios = (self.forward[index] ** 2).mean(axis=1) / (self.both[index] ** 2).mean(axis=1)
        return float(np.log(ratios).std())


class Comparison:
    """A compiled model with a pilot and posterior draws, on which both methods run."""

    def __init__(self, problem: Problem, repetitions: int, particles: int, seed: int):
        self.seeds = iter(np.random.SeedSequence(seed).spawn(99))
        self.exact, self.model = problem.log_evidence, pma.compile_model(problem.build())
        self.path = pma.GeometricPath(self.model.log_terms)
        self.shape, self.half = (repetitions, particles), particles // 2
        start = self.model.sample_prior(next(self.seeds), 1000)
        self.pilot = run_pilot(self.path, pma.HMC(), start, next(self.seeds))
        self.draws = self.posterior()

    def run(self, kernel, betas: np.ndarray, start: np.ndarray):
        """Anneal particles, shape ``(n, d)``, along a schedule."""
        return run_block(Block(self.path, kernel, betas, start, 1, next(self.seeds)))

    def schedule(self, variance: float) -> np.ndarray:
        """Return the schedule for which the pilot predicts a variance of the log weights."""
        length, weight = np.sqrt(self.pilot.discrepancy * self.pilot.tau), np.sqrt(self.pilot.cost)
        steps = int(np.ceil((length * weight).sum() * (length / weight).sum() / variance))
        return pma.variational_schedule(
            self.pilot.betas, effective_length(self.pilot), max(steps, 1)
        )

    def posterior(self) -> np.ndarray:
        """Return posterior draws from a slow annealing run, shape ``(repetitions * half, d)``."""
        count = self.shape[0] * self.half
        start, betas = self.model.sample_prior(next(self.seeds), count), self.schedule(0.2)
        finished = self.run(self.pilot.transition, betas, start)
        rng = np.random.default_rng(next(self.seeds))
        chosen = finished.position[0][resample(finished.log_weight[0], count, rng)]
        return self.run(self.pilot.transition, np.ones(MOVES + 1), chosen).position[0]

    def errors(self, variance: float) -> Errors:
        """Run both methods with the same number of particles and steps."""
        betas, kernel = self.schedule(variance), self.pilot.transition
        first = self.model.sample_prior(next(self.seeds), int(np.prod(self.shape)))
        forward = self.run(kernel, betas, first).log_weight.reshape(self.shape)
        back = self.run(kernel.reversal(), betas[::-1].copy(), self.draws)
        reverse = -back.log_weight.reshape(self.shape[0], CHAINS, -1)
        both = [
            both_directions(a[: self.half].reshape(CHAINS, -1), b).log_evidence - self.exact
            for a, b in zip(forward, reverse, strict=True)
        ]
        alone = [ais(a).log_evidence - self.exact for a in forward]
        share = effective_sample_size(forward) / forward.size
        return Errors(np.array(alone), np.array(both), len(betas) - 1, share)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--particles", type=int, default=64, help="multiple of 8, at least 16")
    parser.add_argument("--variances", type=lambda t: [float(v) for v in t.split(",")])
    parser.add_argument("--models", type=lambda t: t.split(","), help="default: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.set_defaults(variances=[0.5, 2.0])
    args = parser.parse_args()
    print("| model | steps | ESS share | rmse, forward | rmse, both | ratio of MSE |")
    print("| --- | --- | --- | --- | --- | --- |")
    ratios: dict[float, list[float]] = {variance: [] for variance in args.variances}
    for problem in PROBLEMS:
        if problem.name in (args.models or {p.name for p in PROBLEMS} - SKIPPED):
            comparison = Comparison(problem, args.repetitions, args.particles, args.seed)
            for variance in args.variances:
                errors = comparison.errors(variance)
                ratios[variance].append(errors.ratio)
                print(row(problem.name, errors), flush=True)
    for variance, found in ratios.items():
        mean, better = np.exp(np.mean(np.log(found))), int(np.sum(np.array(found) > 1))
        print(
            f"variance {variance:g}: both directions are better on {better} of {len(found)} "
            f"models, geometric mean {mean:.2f}"
        )


def row(name: str, errors: Errors) -> str:
    """Return a row of the table."""
    spread = np.exp(errors.ratio_error(np.random.default_rng(0)))
    rmse = [np.sqrt((e**2).mean()) for e in (errors.forward, errors.both)]
    return (
        f"| `{name}` | {errors.steps} | {errors.ess:.2f} | {rmse[0]:.3f} | {rmse[1]:.3f} | "
        f"{errors.ratio:.2f} ({errors.ratio / spread:.2f} to {errors.ratio * spread:.2f}) |"
    )


if __name__ == "__main__":
    main()
