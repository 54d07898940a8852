"""Reproduce Figure 4 of Grosse, Maddison & Salakhutdinov (2013): samples along both paths.

    python benchmarks/papers/grosse_figure_4.py --scale reduced

Visible activations of Gibbs samples from the RBMs between the base rates and PCD(500). In the paper
the samples of the geometric path are black for a wide range of beta, and those of the
moment-averaged path are blurred digits.
"""

import cells
import common
import jax
import machines
import numpy as np

from pymc_anneal import rbm

MACHINE, BETAS = "PCD(500)", (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
SAMPLES, SWEEPS = 4, 500


def main() -> None:
    import matplotlib.pyplot as plt

    args = cells.parse(__doc__)
    model = machines.load(MACHINE)
    base = cells.reference_of(args, "base rate", model).astype(np.float32)
    key = {"machine": MACHINE, "reference": "base rate", "path": "MAS", "scale": args.scale}
    paths = {
        "geometric": rbm.GeometricRBMPath(base.visible_bias, model),
        "moments": cells.splines(args, key, model, base).path,
    }
    side = int(np.sqrt(model.n_visible))
    size = (1.1 * len(BETAS), 1.1 * SAMPLES * len(paths))
    figure, axes = plt.subplots(2 * SAMPLES, len(BETAS), figsize=size, layout="constrained")
    for p, (name, path) in enumerate(paths.items()):
        for column, beta in enumerate(BETAS):
            model_at_beta = jax.tree.map(np.asarray, path.model_at(beta))
            visible = model_at_beta.sample(SAMPLES, steps=SWEEPS, random_seed=4)
            shown = model_at_beta.visible_probability(model_at_beta.hidden_probability(visible))
            for k, picture in enumerate(shown):
                axis = axes[SAMPLES * p + k, column]
                axis.imshow(picture.reshape(side, side), cmap="gray", vmin=0, vmax=1)
                axis.set(xticks=[], yticks=[])
            axes[0, column].set_title(f"beta = {beta:g}", fontsize=8)
        axes[SAMPLES * p, 0].set_ylabel(name)
    file = common.output() / f"grosse_figure_4_{args.scale}.png"
    figure.savefig(file, dpi=150)
    print(f"wrote {file.name}")


if __name__ == "__main__":
    main()
