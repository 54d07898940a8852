"""Time exact sums over the states of an RBM with 20 hidden units, and compare with NumPy.

    python benchmarks/state_sums.py
    python benchmarks/state_sums.py --hidden 16 --visible 100

Both sums run over all 2^20 states of the hidden layer, with 784 visible units: the log partition
function, and the same with the moments of all units. The limits are those of the project: 1 s on
two idle cores, an error below 1e-9 of log Z, and 500 MB. The peak of the process is printed with
what it had before the sums, which is the imports. Seconds of the processor are printed as well,
since other work on the machine prolongs the time but hardly changes them. The reference takes
every field by a product of its own and every softplus by `logaddexp`, in double precision: half a
minute.
"""

import argparse
import resource
import sys
import time

import numpy as np

from scipy.special import expit, logsumexp

from pymc_anneal import rbm

# Limits: seconds, error relative to log Z, MB.
SECONDS, ERROR, MEMORY = 1.0, 1e-9, 500.0
BLOCK_BITS = 10


def random_rbm(visible: int, hidden: int) -> rbm.RBM:
    """Return an RBM with random parameters, in single precision as after training."""
    rng = np.random.default_rng(0)
    shapes = (-1, 1, visible), (0, 1, hidden), (0, 0.3, (visible, hidden))
    return rbm.RBM(*(rng.normal(*arguments).astype(np.float32) for arguments in shapes))


def reference(model: rbm.RBM) -> tuple[float, np.ndarray]:
    """Return log Z and ``E[v]`` by NumPy, in blocks of states."""
    a, b, w = (
        np.asarray(p, np.float64) for p in (model.visible_bias, model.hidden_bias, model.weights)
    )
    bits = np.arange(min(BLOCK_BITS, len(b)))
    log_z, mean = -np.inf, np.zeros(len(a))
    for start in range(0, 2 ** len(b), 2 ** len(bits)):
        index = start + np.arange(2 ** len(bits))
        states = ((index[:, None] >> np.arange(len(b))) & 1).astype(float)
        field = a + states @ w.T
        log_weight = states @ b + np.logaddexp(0, field).sum(axis=1)
        total = np.logaddexp(log_z, logsumexp(log_weight))
        mean = mean * np.exp(log_z - total) + np.exp(log_weight - total) @ expit(field)
        log_z = total
    return float(log_z), mean


def timed(function, rounds: int):
    """Return the result, and the shortest wall and processor times in seconds."""
    result = function()  # compiles
    wall, cpu = [], []
    for _ in range(rounds):
        begin = time.perf_counter(), time.process_time()
        result = function()
        wall.append(time.perf_counter() - begin[0])
        cpu.append(time.process_time() - begin[1])
    return result, min(wall), min(cpu)


def peak_memory() -> float:
    """Return the peak memory of the process in MB."""
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--visible", type=int, default=784)
    parser.add_argument("--hidden", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    model = random_rbm(args.visible, args.hidden)
    before = peak_memory()
    log_z, *alone = timed(lambda: rbm.log_partition_function(model), args.rounds)
    moments, *with_moments = timed(lambda: rbm.exact_moments(model), args.rounds)
    memory = peak_memory()
    exact, mean = reference(model)
    for name, (wall, cpu) in {"log Z": alone, "moments": with_moments}.items():
        print(f"{name:8s}{wall:8.2f} s, {cpu:.2f} s of the processor (limit {SECONDS:g} s)")
    print(f"error of log Z {abs(log_z / exact - 1):.1e} of it (limit {ERROR:g})")
    print(f"largest error of E[v] {np.abs(moments.visible - mean).max():.1e}")
    print(f"peak memory {memory:.0f} MB, {before:.0f} MB before the sums (limit {MEMORY:g} MB)")


if __name__ == "__main__":
    main()
