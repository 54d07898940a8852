"""Grosse, Maddison & Salakhutdinov (2013), Table 2 and Figure 5: machines with 500 hidden units.

    python benchmarks/papers/grosse_table_2.py --scale reduced

From uniform and from the base rates; geometric path, moment-average spline with moments from Gibbs
chains, and its cheap form. Figure 5 shows the same estimates against K. The paper finds the
geometric path from uniform up to 20 nats too low on CD1(500).
"""

import cells
import common
import curves
import machines

PATHS = ("GA", "MAS", "MAS cheap")
REFERENCES = ("uniform", "base rate")


def main() -> None:
    args = cells.parse(__doc__)
    rows = []
    names = cells.among(args.machines, machines.LARGE)
    paths = cells.among(args.paths, PATHS)
    references = cells.among(args.references, REFERENCES)
    for machine in names:
        for reference in references:
            for path in paths:
                for steps in (k for k in (100, 1_000, 10_000, 100_000) if k <= args.steps):
                    row = cells.cell(args, machine, reference, path, "linear", steps)
                    rows.append({**row, "panel": machine, "label": f"{path}, {reference}"})
    columns = ("machine", "reference", "path", "log_z", "mcse", "ess", "steps", "draws")
    last = max(r["steps"] for r in rows)
    text = common.table(common.pick(rows, steps=last), columns)
    print(text)
    (common.output() / f"grosse_table_2_{args.scale}.md").write_text(text)
    labels = [f"{path}, {reference}" for reference in references for path in paths]
    file = f"grosse_figure_5_{args.scale}.png"
    curves.against_steps(rows, names, labels, column="log_z", file=file)


if __name__ == "__main__":
    main()
