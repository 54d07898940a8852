"""Reproduce Table 1 of Grosse, Maddison & Salakhutdinov (2013): RBMs with 20 hidden units.

    python benchmarks/papers/grosse_table_1.py --scale reduced

Annealing starts from the uniform reference. With K = 100,000 and 5,000 chains, the paper reports
effective sample sizes of 248, 124, 2686, 2619 (CD1) and 204, 142, 289, 934 (PCD) for the rows in
this order; CD25(20) is not in its table. The last row, with biased moments, refers to its footnote
3.
"""

import cells
import common
import machines

from pymc_anneal import rbm

MACHINES = (*machines.SMALL, *machines.TINY)
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
    for machine in cells.selected(args.machines, MACHINES):
        exact = rbm.log_partition_function(machines.load(machine))
        paths = cells.selected(args.paths, [path for path, _ in ROWS])
        for path, schedule in (row for row in ROWS if row[0] in paths):
            row = cells.cell(args, machine, "uniform", path, schedule, args.steps)
            rows.append({**row, "exact": exact, "score": (row["log_z"] - exact) / row["mcse"]})
    columns = ("machine", "path", "schedule", "exact", "log_z", "mcse", "score", "ess", "steps")
    text = common.table(rows, (*columns, "draws"))
    print(text)
    (common.output() / f"grosse_table_1_{args.scale}.md").write_text(text)


if __name__ == "__main__":
    main()
