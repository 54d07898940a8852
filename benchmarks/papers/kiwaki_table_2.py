"""Kiwaki (2015), Table 2: six schedules on machines with 500 hidden units.

    python benchmarks/papers/kiwaki_table_2.py --scale reduced

The paper reports, at K = 100,000 with 1,000 particles, the highest ESS for decelerated VAROPT
schedules on all three machines.
"""

import cells
import common
import machines


def main() -> None:
    args = cells.parse(__doc__)
    rows = [
        cells.cell(args, machine, "base rate", "GA", schedule, args.steps)
        for machine in cells.among(args.machines, machines.LARGE)
        for schedule in cells.among(args.schedules, cells.KIWAKI_SCHEDULES)
    ]
    columns = ("machine", "schedule", "log_z", "mcse", "ess", "steps", "draws")
    text = common.table(rows, columns)
    print(text)
    (common.output() / f"kiwaki_table_2_{args.scale}.md").write_text(text)


if __name__ == "__main__":
    main()
