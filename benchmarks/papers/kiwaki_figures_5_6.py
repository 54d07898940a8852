"""Reproduce Figures 5 and 6 of Kiwaki (2015): estimates and ESS against K, 500 hidden units.

    python benchmarks/papers/kiwaki_figures_5_6.py --scale reduced

In the paper VAROPT has large errors at small K, which decrease quickly with K.
"""

import cells
import machines
import series


def main() -> None:
    args = cells.parse(__doc__)
    series.draw(args, machines.LARGE, ("kiwaki_figure_5", "kiwaki_figure_6"))


if __name__ == "__main__":
    main()
