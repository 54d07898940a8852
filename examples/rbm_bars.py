"""Train a small restricted Boltzmann machine, and measure the likelihood of its test images.

The images of 8 x 8 pixels have some filled rows and columns and a few flipped pixels. The log
likelihood of an image needs the partition function `Z`, a sum over all images. With 16 hidden units
the sum over the states of the hidden layer is feasible, so the estimate can be checked:

    log p(v) = -F(v) - log Z,    Z = sum over 2^16 states h of exp(...).
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pymc_anneal as pma

from pymc_anneal import rbm

HERE = Path(__file__).parent


def bars(n, rng, side=8):
    """Return images with filled rows and columns, flattened, as zeros and ones."""
    rows, columns = rng.random((2, n, side)) < 0.2
    pictures = rows[:, :, None] | columns[:, None, :]
    flipped = pictures ^ (rng.random(pictures.shape) < 0.02)
    return flipped.reshape(n, -1).astype(np.float32)


def rate(share):
    """Return the learning rate after a fraction of the updates."""
    return 0.1 * (1 - share)


def draw_figure(model, test, result, exact, path):
    """Save a figure of filters, samples and data, and of the running estimate of log Z."""
    figure = plt.figure(figsize=(8, 3.6), layout="constrained")
    left, right = figure.subfigures(1, 2)
    panels = left.subplots(5, 8)
    limit = np.abs(model.weights).max()
    samples = model.sample(16, steps=1000, random_seed=6)
    for axis, filter_ in zip(panels[:2].flat, model.weights.T, strict=True):
        axis.imshow(filter_.reshape(8, 8), cmap="RdBu_r", vmin=-limit, vmax=limit)
    for axis, picture in zip(panels[2:].flat, [*samples, *test[:8]], strict=True):
        axis.imshow(picture.reshape(8, 8), cmap="gray_r")
    for axis in panels.flat:
        axis.set(xticks=[], yticks=[])
    for row, name in ((0, "filters"), (2, "samples"), (4, "data")):
        panels[row, 0].set_ylabel(name, fontsize=8)
    axis = right.subplots()
    annealing = result["annealing"]
    axis.plot(
        annealing["beta"].mean("chain"), annealing["log_z"].mean("chain"), label="forward runs"
    )
    axis.plot(1, exact, "kx", label="exact")
    axis.set(xlabel="inverse temperature", ylabel="running log Z (nats)")
    axis.set_title("From uniform noise to the RBM")
    axis.legend(frameon=False)
    figure.savefig(path, dpi=100)


def main():
    rng = np.random.default_rng(1)
    data, test = bars(2000, rng), bars(500, rng)
    trained = rbm.train(
        data, 16, method="pcd", updates=20_000, learning_rate=rate, random_seed=1, progressbar=False
    )
    model, exact = trained.model, rbm.log_partition_function(trained.model)
    result = rbm.sample_ais(
        model, 250, steps=2000, reverse_from=data, random_seed=2, progressbar=False
    )
    found = pma.log_evidence(result)
    print(
        f"log Z: {found.log_evidence:.3f} +- {found.mcse:.3f} (exact {exact:.3f}), {found.verdict}"
    )
    print(f"\nmean log likelihood of test images:\n{rbm.log_likelihood(test, result)}")
    truth = float(np.mean(-np.asarray(model.free_energy(test)))) - exact
    print(f"(exact {truth:.3f})")
    (HERE / "output").mkdir(exist_ok=True)
    draw_figure(model, test, result, exact, HERE / "output" / "rbm_bars.png")


if __name__ == "__main__":
    main()
