"""Kiwaki (2015), Figures 5 and 6: estimates and effective sample sizes against K, 500 hidden units.

    python benchmarks/papers/kiwaki_figures_5_6.py --scale reduced

The paper finds large errors of VAROPT at small K, which fall quickly as K grows.
"""

import cells
import machines
import series


def main() -> None:
    args = cells.parse(__doc__)
    series.draw(args, machines.LARGE, ("kiwaki_figure_5", "kiwaki_figure_6"))


if __name__ == "__main__":
    main()
