"""Kiwaki (2015), Table 1: six schedules on tractable machines.

    python benchmarks/papers/kiwaki_table_1.py --scale reduced

The paper reports K = 100,000 with 1,000 particles, and the highest ESS for VAROPT0.009 on all three
machines. Schedules as the paper names them: VAROPT variational, VAROPTx decelerated to steps of at
most x, GMS13 optimal binned, SM08 that of Salakhutdinov & Murray (2008).
"""

import cells
import common
import machines

from pymc_anneal import rbm


def main() -> None:
    args = cells.parse(__doc__)
    rows = []
    for machine in cells.among(args.machines, machines.SMALL):
        exact = rbm.log_partition_function(machines.load(machine))
        for schedule in cells.among(args.schedules, cells.KIWAKI_SCHEDULES):
            row = cells.cell(args, machine, "base rate", "GA", schedule, args.steps)
            rows.append({**row, "exact": exact, "score": (row["log_z"] - exact) / row["mcse"]})
    columns = ("machine", "schedule", "exact", "log_z", "mcse", "score", "ess", "steps", "draws")
    text = common.table(rows, columns)
    print(text)
    (common.output() / f"kiwaki_table_1_{args.scale}.md").write_text(text)


if __name__ == "__main__":
    main()
