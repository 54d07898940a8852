"""Shared function of Figures 2, 3, 5 and 6 of Kiwaki (2015): schedules against steps."""

import cells
import curves

SCHEDULES = ("VAROPT0.009", "LINEAR", "GMS13", "SM08")


def draw(args, names, files: tuple[str, str], exact: dict[str, float] | None = None) -> None:
    """Compute the cells and draw the figures of the estimate and the effective sample size."""
    rows, schedules = [], cells.selected(args.schedules, SCHEDULES)
    names = cells.selected(args.machines, names)
    for machine in names:
        for steps in (k for k in (100, 300, 1_000, 3_000, 10_000, 100_000) if k <= args.steps):
            for schedule in schedules:
                row = cells.cell(args, machine, "base rate", "GA", schedule, steps)
                rows.append({**row, "panel": machine, "label": schedule})
    for file, column in zip(files, ("log_z", "ess"), strict=True):
        picture = f"{file}_{args.scale}.png"
        shown = exact if column == "log_z" else None
        curves.against_steps(rows, names, schedules, column=column, file=picture, exact=shown)
