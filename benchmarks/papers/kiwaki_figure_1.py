"""Reproduce Figure 1 of Kiwaki (2015): the schedules for PCD(500).

    python benchmarks/papers/kiwaki_figure_1.py

In the paper the variational schedule is close to that of Salakhutdinov & Murray (2008), and GMS13
is close to the linear schedule.
"""

import cells
import common
import machines
import numpy as np

from pymc_anneal.schedules.fixed import linear_schedule, salakhutdinov_murray_schedule

MACHINE, STEPS = "PCD(500)", 1_000


def main() -> None:
    import matplotlib.pyplot as plt

    args = cells.parse(__doc__)
    model = machines.load(MACHINE)
    base = cells.reference_of(args, "base rate", model)
    figure, axis = plt.subplots(figsize=(5, 3.6), layout="constrained")
    for name in ("VAROPT", "VAROPT0.003", "LINEAR", "GMS13", "SM08"):
        key = {"machine": MACHINE, "reference": "base rate", "scale": args.scale}
        key |= {"schedule": name, "steps": STEPS}
        arguments = cells.schedule_arguments(args, key, model, base, None)
        betas = schedule(arguments)
        axis.plot(np.linspace(0, 1, len(betas)), betas, label=name)
    axis.set(xlabel="t = k/K", ylabel="beta", title=MACHINE)
    axis.legend()
    file = common.output() / "kiwaki_figure_1.png"
    figure.savefig(file, dpi=150)
    print(f"wrote {file.name}")


def schedule(arguments: dict) -> np.ndarray:
    """Return the schedule as an array."""
    named = {"linear": linear_schedule, "salakhutdinov_murray": salakhutdinov_murray_schedule}
    given = arguments["schedule"]
    return named[given](STEPS) if isinstance(given, str) else given


if __name__ == "__main__":
    main()
