"""Grosse, Maddison & Salakhutdinov (2013), Figure 3: estimates on PCD(20) against K.

    python benchmarks/papers/grosse_figure_3.py --scale reduced

Geometric path and moment-average spline from uniform, exact (perfect) and Gibbs transitions. The
paper finds both paths accurate from K = 100 on under exact sampling, and the spline accurate at
much smaller K than the geometric path under Gibbs sampling.
"""

import cells
import curves
import machines

from pymc_anneal import rbm

MACHINE = "PCD(20)"
MAX_PERFECT_STEPS = 100  # every one enumerates a million states


def main() -> None:
    args = cells.parse(__doc__)
    rows = []
    for transition in ("perfect", "gibbs"):
        most = min(args.steps, MAX_PERFECT_STEPS) if transition == "perfect" else args.steps
        for steps in (k for k in (10, 30, 100, 300, 1_000, 3_000, 10_000, 100_000) if k <= most):
            for path in ("GA", "MAS"):
                row = cells.cell(
                    args, MACHINE, "uniform", path, "linear", steps, transition=transition
                )
                rows.append({**row, "panel": transition, "label": path})
    exact = rbm.log_partition_function(machines.load(MACHINE))
    curves.against_steps(
        rows,
        ("perfect", "gibbs"),
        ("GA", "MAS"),
        column="log_z",
        file=f"grosse_figure_3_{args.scale}.png",
        exact={"perfect": exact, "gibbs": exact},
    )


if __name__ == "__main__":
    main()
