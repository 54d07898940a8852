"""Reproduce Table 1 of Kiwaki (2015): six schedules on RBMs with 20 hidden units.

    python benchmarks/papers/kiwaki_table_1.py --scale reduced

The paper uses K = 100,000 and 1,000 particles, and VAROPT0.009 has the largest effective sample
size on all three RBMs. Names of the schedules: VAROPT, variational; VAROPTx, decelerated to steps
of at most x; GMS13, optimal binned; SM08, Salakhutdinov & Murray (2008).
"""

import cells
import common
import machines

from pymc_anneal import rbm


def main() -> None:
    args = cells.parse(__doc__)
    rows = []
    for machine in cells.selected(args.machines, machines.SMALL):
        exact = rbm.log_partition_function(machines.load(machine))
        for schedule in cells.selected(args.schedules, cells.KIWAKI_SCHEDULES):
            row = cells.cell(args, machine, "base rate", "GA", schedule, args.steps)
            rows.append({**row, "exact": exact, "score": (row["log_z"] - exact) / row["mcse"]})
    columns = ("machine", "schedule", "exact", "log_z", "mcse", "score", "ess", "steps", "draws")
    text = common.table(rows, columns)
    print(text)
    (common.output() / f"kiwaki_table_1_{args.scale}.md").write_text(text)


if __name__ == "__main__":
    main()
