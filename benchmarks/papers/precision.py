"""Compare the log weights of an RBM in single and in double precision.

    python benchmarks/papers/precision.py --machines "CD1(20);PCD(20)" --steps 100000 --draws 20

Both runs use the transitions of the single-precision RBM with the same random numbers, so that they
visit the same states. One computes the weights with this RBM, the other with a copy in double
precision. They differ only by rounding errors: of the fields, of each increment, and of the sum of
the increments.
"""

from dataclasses import dataclass
from typing import Any

import cells
import jax
import machines
import numpy as np

from pymc_anneal import rbm
from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.rbm.paths import GeometricRBMPath
from pymc_anneal.rbm.transitions import BlockedGibbs
from pymc_anneal.schedules.fixed import linear_schedule


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class DoubleWeightPath:
    """A single-precision path with increments of the log weights in double precision."""

    single: GeometricRBMPath
    double: GeometricRBMPath

    def evaluate(self, position: jax.Array) -> tuple[Any, Any]:
        return self.single.evaluate(position), self.double.evaluate(position.astype(np.float64))

    def evaluate_at(self, position: jax.Array, beta: Any) -> tuple[Any, Any]:
        return self.evaluate(position)

    def at(self, terms: tuple[Any, Any], beta: Any) -> tuple[Any, Any]:
        return terms

    def log_density(self, terms: tuple[Any, Any], beta: Any) -> jax.Array:
        return self.single.log_density(terms[0], beta)

    def log_ratio(self, terms: tuple[Any, Any], start: Any, stop: Any) -> jax.Array:
        return self.double.log_ratio(terms[1], start, stop)

    def velocity(self, terms: tuple[Any, Any], beta: Any) -> jax.Array:
        return self.single.velocity(terms[0], beta)

    def hidden_field(self, terms: tuple[Any, Any], beta: Any) -> jax.Array:
        return self.single.hidden_field(terms[0], beta)

    def visible_field(self, hidden: jax.Array, beta: Any) -> jax.Array:
        return self.single.visible_field(hidden, beta)


def error(name: str, steps: int, draws: int) -> tuple[float, float]:
    """Return the largest relative error of a log weight, and the mean log weight."""
    model = machines.load(name)
    base = rbm.uniform_reference(model.n_visible, model.n_hidden, model.weights.dtype)
    single = GeometricRBMPath(base.visible_bias, model)
    double = jax.tree.map(lambda x: np.asarray(x, np.float64), single)
    start, betas = base.sample(draws, steps=1, random_seed=1), linear_schedule(steps)
    with jax.enable_x64(True):
        one, two = (
            run_block(Block(path, BlockedGibbs(), betas, start, 1, np.random.SeedSequence(2)))
            for path in (single, DoubleWeightPath(single, double))
        )
    if not np.array_equal(one.position, two.position):
        raise SystemExit("The two runs visited different states: the weights are not comparable.")
    return float(np.abs(one.log_weight / two.log_weight - 1).max()), float(two.log_weight.mean())


def main() -> None:
    args = cells.parse(__doc__)
    print(
        "| machine | steps | largest relative error | mean log weight |\n| --- | --- | --- | --- |"
    )
    for name in cells.selected(args.machines, machines.SMALL):
        worst, mean = error(name, args.steps, args.draws)
        print(f"| {name} | {args.steps:,} | {worst:.1e} | {mean:.2f} |", flush=True)


if __name__ == "__main__":
    main()
