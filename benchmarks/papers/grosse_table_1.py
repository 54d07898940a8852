"""Grosse, Maddison & Salakhutdinov (2013), Table 1: tractable machines, annealing from uniform.

    python benchmarks/papers/grosse_table_1.py --scale reduced

The paper reports, with K = 100,000 and 5,000 chains, ESS of 248, 124, 2686, 2619 (CD1) and 204,
142, 289, 934 (PCD) for the rows in this order. Beside its rows, biased moments (its footnote 3).
"""

import cells
import common
import machines

from pymc_anneal import rbm

MACHINES = ("CD1(20)", "PCD(20)", *machines.TINY)
ROWS = (
    ("GA", "linear"),
    ("GA", "optimal binned"),
    ("MAS", "linear"),
    ("MAS", "optimal binned"),
    ("MAS biased", "linear"),
)


def main() -> None:
    args = cells.parse(__doc__)
    rows = []
    for machine in cells.among(args.machines, MACHINES):
        exact = rbm.log_partition_function(machines.load(machine))
        paths = cells.among(args.paths, [path for path, _ in ROWS])
        for path, schedule in (row for row in ROWS if row[0] in paths):
            row = cells.cell(args, machine, "uniform", path, schedule, args.steps)
            rows.append({**row, "exact": exact, "score": (row["log_z"] - exact) / row["mcse"]})
    columns = ("machine", "path", "schedule", "exact", "log_z", "mcse", "score", "ess", "steps")
    text = common.table(rows, (*columns, "draws"))
    print(text)
    (common.output() / f"grosse_table_1_{args.scale}.md").write_text(text)


if __name__ == "__main__":
    main()
