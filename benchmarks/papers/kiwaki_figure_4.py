"""Reproduce Figure 4 of Kiwaki (2015): effective sample size along the path, PCD(20).

    python benchmarks/papers/kiwaki_figure_4.py --scale reduced

In the paper the effective sample size of VAROPT drops steeply at the beginning, and deceleration
reduces the drop.
"""

import cells
import common

MACHINE, SCHEDULES = "PCD(20)", ("VAROPT", "VAROPT0.009", "LINEAR")


def main() -> None:
    import matplotlib.pyplot as plt

    args = cells.parse(__doc__)
    counts = [k for k in (1_000, 10_000, 100_000) if k <= args.steps] or [args.steps]
    figure, axes = plt.subplots(
        1, len(counts), figsize=(4.2 * len(counts), 3.4), squeeze=False, layout="constrained"
    )
    for axis, steps in zip(axes[0], counts, strict=True):
        for schedule in SCHEDULES:
            row = cells.cell(args, MACHINE, "base rate", "GA", schedule, steps)
            axis.plot(*row["ess_on_the_way"], label=schedule)
        axis.set(xlabel="beta", title=f"K = {steps:,}", yscale="log")
    axes[0, 0].set_ylabel("effective sample size")
    axes[0, 0].legend(fontsize=8)
    file = common.output() / f"kiwaki_figure_4_{args.scale}.png"
    figure.savefig(file, dpi=150)
    print(f"wrote {file.name}")


if __name__ == "__main__":
    main()
