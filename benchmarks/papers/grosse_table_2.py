"""Reproduce Table 2 and Figure 5 of Grosse, Maddison & Salakhutdinov (2013): 500 hidden units.

    python benchmarks/papers/grosse_table_2.py --scale reduced

References: uniform and base rates. Paths: geometric, moment-average spline with moments from Gibbs
chains, and its cheap variant with moments of the data. Figure 5 shows the same estimates against K.
In the paper the geometric path from the uniform reference is up to 20 nats too low on CD1(500).
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
    names = cells.selected(args.machines, machines.LARGE)
    paths = cells.selected(args.paths, PATHS)
    references = cells.selected(args.references, REFERENCES)
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
