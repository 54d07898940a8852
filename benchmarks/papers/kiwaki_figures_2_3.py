"""Reproduce Figures 2 and 3 of Kiwaki (2015): estimates and ESS against K, 20 hidden units.

    python benchmarks/papers/kiwaki_figures_2_3.py --scale reduced

In the paper VAROPT0.009 has the smallest errors and the largest effective sample sizes in most
cases, especially at large K.
"""

import cells
import machines
import series

from pymc_anneal import rbm


def main() -> None:
    args = cells.parse(__doc__)
    exact = {m: rbm.log_partition_function(machines.load(m)) for m in machines.SMALL}
    series.draw(args, machines.SMALL, ("kiwaki_figure_2", "kiwaki_figure_3"), exact)


if __name__ == "__main__":
    main()
