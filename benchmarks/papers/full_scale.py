"""Run Table 2 of Grosse et al. (2013) and Table 2 of Kiwaki (2015) at the papers' scale, on a GPU.

    python benchmarks/papers/full_scale.py --data mnist.npz --minutes 8 --peak 67
    python benchmarks/papers/full_scale.py --scale test                # 140 s on one core

Stopped by Ctrl-C or when `--minutes` are over, the script resumes where it stopped if it is called
again: trained weights, knots of splines and finished cells are files, and so are an unfinished
training and an unfinished cell. Only the knots of a spline are fitted in one go. The script looks
at its clock between compiled calls, so that it may stop a little later. The order is

1. training of CD1, PCD and CD25 with 500 hidden units, 250,000 updates each;
2. Grosse: 5,000 chains along the geometric path, the moment-average spline and its cheap variant,
   from the uniform reference and from the base rates, K = 100,000 first and K = 100 last;
3. Kiwaki: 1,000 chains, seven schedules with K = 100,000, then four with fewer steps.

Then the tables, in Markdown, and the figures are written, with the cells that are finished. For
each cell the script prints the rate of the two matrix products of its Gibbs sweeps, and their share
of `--peak`, Tflop/s. Its seconds include compilation, on a GPU also the third product of splines.
"""

import math
import time

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import cells
import clock
import common
import curves
import grosse_table_2
import jax
import machines
import series

# Folder of the RBMs trained at the scale of the papers.
WEIGHTS = machines.WEIGHTS / "paper_scale"
COUNTS = (100_000, 10_000, 3_000, 1_000, 300, 100)
# Kiwaki has a fifth of the particles of Grosse et al.
SHARE = 5
OPTIONS = {
    "minutes": {"type": float, "default": math.inf, "help": "time after which to stop"},
    "peak": {"type": float, "help": "peak rate of the device in Tflop/s"},
}


@dataclass(frozen=True)
class Table:
    """Cells of a table and of its figures: the lines of the table, and numbers of steps for each.

    ``drawn`` are the schedules of which fewer steps than the largest number are run too.
    """

    draws: int
    counts: tuple[int, ...]
    references: list[str]
    paths: list[str]
    schedules: list[str]
    drawn: list[str] = field(default_factory=list)

    def cells(self, names: list[str]) -> Iterator[tuple[str, str, str, str, int]]:
        """Yield machine, reference, path, schedule and number of steps, the largest first."""
        for steps in self.counts:
            schedules = self.schedules if steps == self.counts[0] else self.drawn
            for line in product(names, self.references, self.paths, schedules):
                yield *line, steps


def tables(args) -> tuple[Table, Table]:
    """Return the tables of Grosse et al. and of Kiwaki, less what is not selected."""
    counts = tuple(k for k in COUNTS if k <= args.steps)
    names = {
        "references": cells.selected(args.references, grosse_table_2.REFERENCES),
        "paths": cells.selected(args.paths, grosse_table_2.PATHS),
    }
    schedules = cells.selected(args.schedules, cells.KIWAKI_SCHEDULES)
    powers = tuple(k for k in counts if k not in (300, 3_000))
    drawn = [name for name in schedules if name in series.SCHEDULES]
    grosse = Table(args.draws, powers, schedules=["linear"], drawn=["linear"], **names)
    kiwaki = Table(args.draws // SHARE, counts, ["base rate"], ["GA"], schedules, drawn)
    return grosse, kiwaki


def train(args, name: str) -> None:
    """Train an RBM if it is not trained yet."""
    if machines.weights(name, args.weights).exists():
        return
    begin, file = time.perf_counter(), machines.weights(name, args.output / "training")
    file.parent.mkdir(exist_ok=True)
    # A training that is stopped repeats its last fiftieth.
    machines.train(name, cells.images(args.data)[0], args.scale, args.weights, file, args.clock)
    print(f"# {name} trained, {time.perf_counter() - begin:.0f} s", flush=True)
    file.unlink()


def run(args, names: list[str]) -> None:
    """Train the RBMs and compute the cells that are missing."""
    for name in names:
        args.clock.check()
        train(args, name)
    for table in tables(args):
        for line in table.cells(names):
            args.clock.check()
            row = cells.cell(args, *line, draws=table.draws)
            if not row["resumed"]:
                print(f"#   {rate(row['operations'] / row['seconds'], args.peak)}", flush=True)


def rate(per_second: float, peak: float | None) -> str:
    """Return the rate of matrix products as text, with its share of the peak of the device."""
    share = f", {per_second / peak / 1e12:.1%} of the peak" if peak else ""
    return f"{per_second / 1e12:.2f} Tflop/s{share}"


def finished(args, table: Table, names: list[str]) -> list[dict]:
    """Return the finished cells of a table."""
    keys = (cells.cell_key(args, *line, draws=table.draws) for line in table.cells(names))
    found = (common.find(args.output / "cells.jsonl", key) for key in keys)
    return [row for row in found if row is not None]


def estimate(rows: list[dict], **wanted) -> str:
    """Return log Z and its error of the row with the given entries, as text."""
    found = common.pick(rows, **wanted)
    return f"{found[0]['log_z']:.2f} +- {found[0]['mcse']:.2f}" if found else "not run"


def effective(rows: list[dict], **wanted) -> str:
    """Return the effective sample size of the row with the given entries, as text."""
    found = common.pick(rows, **wanted)
    return f"{found[0]['ess']:,.0f}" if found else ""


def grosse_rows(table: Table, names: list[str], rows: list[dict]) -> list[dict]:
    """Return the lines of Table 2 of Grosse et al.: estimates by K, ESS at the largest."""
    lines = []
    for machine, reference, path in product(names, table.references, table.paths):
        key = {"machine": machine, "reference": reference, "path": path}
        by_steps = {f"K = {k:,}": estimate(rows, **key, steps=k) for k in table.counts[::-1]}
        ess = effective(rows, **key, steps=table.counts[0])
        lines.append({**key, **by_steps, f"ESS of {table.draws:,}": ess})
    return lines


def kiwaki_rows(table: Table, names: list[str], rows: list[dict]) -> list[dict]:
    """Return the lines of Table 2 of Kiwaki: estimates and ESS by RBM at the largest K."""
    lines = []
    for schedule in table.schedules:
        line, key = {"schedule": schedule}, {"schedule": schedule, "steps": table.counts[0]}
        for machine in names:
            line[machine] = estimate(rows, **key, machine=machine)
            line[f"ESS of {table.draws:,}, {machine}"] = effective(rows, **key, machine=machine)
        lines.append(line)
    return lines


def report(args, names: list[str]) -> None:
    """Write both tables and the figures, with the cells that are finished."""
    grosse, kiwaki = tables(args)
    first, second = (finished(args, table, names) for table in (grosse, kiwaki))
    for title, lines in {
        "Grosse, Table 2": grosse_rows(grosse, names, first),
        f"Kiwaki, Table 2, K = {kiwaki.counts[0]:,}": kiwaki_rows(kiwaki, names, second),
    }.items():
        text = common.table(lines, list(lines[0]))
        print(f"\n{title}\n\n{text}")
        (args.output / f"{title.split(',')[0].lower()}_table_2.md").write_text(text)
    first = [r | {"panel": r["machine"], "label": f"{r['path']}, {r['reference']}"} for r in first]
    second = [r | {"panel": r["machine"], "label": r["schedule"]} for r in second]
    labels = [f"{path}, {base}" for base, path in product(grosse.references, grosse.paths)]
    for rows, lines, column, file in (
        (first, labels, "log_z", "grosse_figure_5"),
        (second, kiwaki.drawn, "log_z", "kiwaki_figure_5"),
        (second, kiwaki.drawn, "ess", "kiwaki_figure_6"),
    ):
        panels = [name for name in names if common.pick(rows, panel=name)]
        if panels:
            file = args.output / f"{file}.png"
            curves.against_steps(rows, panels, lines, column=column, file=file)


def main() -> None:
    args = cells.parse(__doc__, scale="paper", **OPTIONS)
    args.output = args.output / f"full_scale_{args.scale}"
    args.output.mkdir(parents=True, exist_ok=True)
    args.weights = WEIGHTS if args.scale == "paper" else args.output / "weights"
    args.checkpoints, args.clock = True, clock.Clock(args.minutes)
    if not jax.config.jax_compilation_cache_dir:  # compile once, not after each interruption
        jax.config.update("jax_compilation_cache_dir", str(args.output / "compiled"))
    names = cells.selected(args.machines, machines.LARGE)
    try:
        with clock.ClockedExecutor(args.clock) as args.executor:
            run(args, names)
    except KeyboardInterrupt:
        print("# interrupted: the same command resumes here", flush=True)
    else:
        print("# complete", flush=True)
    report(args, names)


if __name__ == "__main__":
    main()
