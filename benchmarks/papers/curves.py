"""Figures of estimates and effective sample sizes against the number of steps."""

import common


def against_steps(rows, panels, lines, *, column, file, exact=None) -> None:
    """Draw one panel for each value of ``panels`` and one line for each label of ``lines``.

    Parameters
    ----------
    rows : list of dict
        Cells, each with ``panel``, ``label`` and ``steps``.
    panels, lines : sequence of str
        Values of ``panel`` and ``label``, in order.
    column : str
        "log_z", drawn with its 95 % interval, or "ess".
    file : str or Path
        Name of the image file in the output folder, or its absolute path.
    exact : dict of str to float, optional
        True values by panel.
    """
    import matplotlib.pyplot as plt

    size = (4.2 * len(panels), 3.4)
    figure, axes = plt.subplots(1, len(panels), figsize=size, squeeze=False, layout="constrained")
    for axis, panel in zip(axes[0], panels, strict=True):
        for i, label in enumerate(lines):
            picked = sorted(common.pick(rows, panel=panel, label=label), key=lambda r: r["steps"])
            k, value = [r["steps"] for r in picked], [r[column] for r in picked]
            axis.plot(k, value, ".-", color=f"C{i}", label=label)
            if column == "log_z":
                low, high = ([r[c] for r in picked] for c in ("low", "high"))
                axis.fill_between(k, low, high, color=f"C{i}", alpha=0.15)
        if exact:
            axis.axhline(exact[panel], color="k", ls="--", lw=0.8)
        axis.set(xscale="log", xlabel="steps K", title=panel)
    axes[0, 0].set_ylabel({"log_z": "estimate of log Z", "ess": "effective sample size"}[column])
    axes[0, 0].legend(fontsize=7)
    path = common.output() / file
    figure.savefig(path, dpi=150)
    print(f"wrote {path.name}")
