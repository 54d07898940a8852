"""Reproduce Table 2 of Kiwaki (2015): six schedules on RBMs with 500 hidden units.

    python benchmarks/papers/kiwaki_table_2.py --scale reduced

The paper uses K = 100,000 and 1,000 particles, and decelerated VAROPT schedules have the largest
effective sample sizes on all three RBMs.
"""

import cells
import common
import machines


def main() -> None:
    args = cells.parse(__doc__)
    rows = [
        cells.cell(args, machine, "base rate", "GA", schedule, args.steps)
        for machine in cells.selected(args.machines, machines.LARGE)
        for schedule in cells.selected(args.schedules, cells.KIWAKI_SCHEDULES)
    ]
    columns = ("machine", "schedule", "log_z", "mcse", "ess", "steps", "draws")
    text = common.table(rows, columns)
    print(text)
    (common.output() / f"kiwaki_table_2_{args.scale}.md").write_text(text)


if __name__ == "__main__":
    main()
