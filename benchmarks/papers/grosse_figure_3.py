"""Reproduce Figure 3 of Grosse, Maddison & Salakhutdinov (2013): estimates on PCD(20) against K.

    python benchmarks/papers/grosse_figure_3.py --scale reduced [--machines "PCD(12)"]

Geometric path and moment-average spline from the uniform reference, with perfect and with Gibbs
transitions. In the paper both paths are accurate from K = 100 on with perfect transitions, and the
spline is accurate at much smaller K than the geometric path with Gibbs transitions.
"""

import cells
import curves
import machines

from pymc_anneal import rbm

MACHINE = "PCD(20)"
# Largest number of states summed in a run: every step of perfect transitions sums over all states.
MAX_PERFECT_STATES = 2_000_000_000


def main() -> None:
    args = cells.parse(__doc__)
    (name,) = cells.selected(args.machines or [MACHINE], [*machines.SMALL, *machines.TINY])
    model = machines.load(name)
    affordable = MAX_PERFECT_STATES // 2**model.n_hidden
    rows = []
    for kind in ("perfect", "gibbs"):
        most = min(args.steps, affordable) if kind == "perfect" else args.steps
        for steps in (k for k in (10, 30, 100, 300, 1_000, 3_000, 10_000, 100_000) if k <= most):
            for path in ("GA", "MAS"):
                row = cells.cell(args, name, "uniform", path, "linear", steps, transition=kind)
                rows.append({**row, "panel": kind, "label": path})
    exact = rbm.log_partition_function(model)
    curves.against_steps(
        rows,
        ("perfect", "gibbs"),
        ("GA", "MAS"),
        column="log_z",
        file=f"grosse_figure_3_{name}_{args.scale}.png",
        exact={"perfect": exact, "gibbs": exact},
    )


if __name__ == "__main__":
    main()
