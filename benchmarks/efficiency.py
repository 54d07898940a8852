"""Compare the efficiency 1 / (MSE x seconds) of AIS with that of two SMC samplers.

    python benchmarks/efficiency.py
    python benchmarks/efficiency.py --models pima,schools --seeds 20 --methods ais,blackjax
    python benchmarks/efficiency.py --tune                 # step sizes for BlackJAX

The methods, each after compilation (a model is compiled once and run with many seeds):

ais
    `pymc_anneal.sample_ais` with its default settings on the result of `compile_model`: the whole
    call, including pilot, trial, plan, annealing and result.
smc
    `pymc.sample_smc` with its default settings (2,000 draws, independent Metropolis, one process
    per processor): the whole call. The log evidences of its chains are combined in two ways, by the
    log of the mean evidence and by the mean of the logs; the one with the smaller MSE is reported.
blackjax
    BlackJAX's adaptive tempered SMC with HMC: 2,000 particles, target ESS 0.9, systematic
    resampling, three moves of five leapfrog steps, the variance of the particles as the inverse
    mass matrix, in one jitted loop over the temperatures. It uses the same log prior and log
    likelihood as `ais`, and for each model the best step size found by `--tune`.
blackjax_plain
    The same with the log densities of PyMC's own translation to JAX.

The error is log Z^ - log Z, so the MSE includes the bias. Every method has its own process, and the
methods take turns, seed by seed, so that the load of the machine affects all of them; seconds are
medians. For comparison, the report includes CPU seconds, with those of child processes, and the
geometric mean over the models on which the error of the other method is below one nat ("error < 1
nat").
"""

import argparse
import json
import logging
import multiprocessing
import resource
import time
import warnings

from collections import defaultdict
from pathlib import Path

import models as zoo
import numpy as np

METHODS = ("ais", "smc", "blackjax", "blackjax_plain")
SMC_PARTICLES, TARGET_ESS, MOVES, LEAPFROGS = 2000, 0.9, 3, 5
# Step sizes in units of the particles' standard deviations; best values found by --tune.
STEP_SIZE = {
    "logistic": 0.3,
    "pima": 0.3,
    "schools": 0.45,
    "pine": 0.3,
    "regression": 0.2,
    "hierarchical": 0.2,
}
GRID = (0.1, 0.15, 0.2, 0.3, 0.45, 0.65)


# Methods: each function prepares a model and returns a function of a seed.


def prepare_ais(model: zoo.BenchmarkModel, args):
    """Return a function of a seed that runs `sample_ais`."""
    import pymc_anneal  # local: the process of `smc` forks, and JAX's threads do not survive a fork

    compiled = pymc_anneal.compile_model(model.build())

    def run(seed: int) -> dict[str, float]:
        idata = pymc_anneal.sample_ais(
            model=compiled, random_seed=seed, progressbar=False, **given(args)
        )
        estimate = pymc_anneal.log_evidence(idata)
        numbers = {k: float(idata["evidence"][k]) for k in ("steps", "particles")}
        return {"log_evidence": estimate.log_evidence, "mcse": estimate.mcse, **numbers}

    return run


def given(args) -> dict:
    """Return the arguments of `sample_ais` from the command line."""
    names = ("draws", "chains", "target_mcse", "transition")
    return {n: getattr(args, n) for n in names if getattr(args, n) is not None}


def prepare_smc(model: zoo.BenchmarkModel, args):
    """Return a function of a seed that runs `pymc.sample_smc`."""
    import pymc as pm

    logging.getLogger("pymc").setLevel(logging.ERROR)
    built = model.build()

    def run(seed: int) -> dict[str, float]:
        idata = pm.sample_smc(model=built, random_seed=seed, progressbar=False)
        stats = idata["sample_stats"]
        by_chain = final_values(stats["log_marginal_likelihood"].values)
        stages = np.size(np.atleast_1d(stats["beta"].values)[0])
        return {
            "log_evidence": float(np.logaddexp.reduce(by_chain) - np.log(len(by_chain))),
            "mean_of_logs": float(by_chain.mean()),
            "chains": len(by_chain),
            "temperatures": stages,
        }

    return run


def final_values(values: np.ndarray) -> np.ndarray:
    """Return the last value of each chain; the shape depends on the version of PyMC."""
    if all(isinstance(v, list | np.ndarray) for v in values.ravel()):
        chains = list(values.ravel())
    else:
        chains = list(np.atleast_2d(values))
    return np.array([float(np.asarray(c, dtype=float).ravel()[-1]) for c in chains])


def prepare_blackjax(model: zoo.BenchmarkModel, args, plain: bool = False):
    """Return a function of a seed that runs BlackJAX's adaptive tempered SMC."""
    import jax

    import pymc_anneal

    jax.config.update("jax_enable_x64", True)
    compiled = pymc_anneal.compile_model(model.build())
    terms = plain_terms(compiled) if plain else compiled.log_terms
    run_jitted = blackjax_loop(terms)

    def run(seed: int, step_size: float = STEP_SIZE[model.name]) -> dict[str, float]:
        seed_prior, seed_run = np.random.SeedSequence(seed).spawn(2)
        particles = compiled.sample_prior(seed_prior, SMC_PARTICLES)
        key = jax.random.key(int(seed_run.generate_state(1)[0]))
        log_z, temperatures, accept = run_jitted(key, particles, step_size)
        return {
            "log_evidence": float(log_z),
            "temperatures": int(temperatures),
            "accept_rate": float(accept),
        }

    return run


def prepare_blackjax_plain(model: zoo.BenchmarkModel, args):
    """Return the same on the log densities of PyMC's translation to JAX."""
    return prepare_blackjax(model, args, plain=True)


def plain_terms(compiled):
    """Return log prior and log likelihood as translated to JAX by PyMC."""
    from pymc.sampling.jax import get_jaxified_graph

    model = compiled.model
    graph = get_jaxified_graph(inputs=model.value_vars, outputs=[model.varlogp, model.datalogp])
    return lambda x: graph(*(x[v.start : v.stop].reshape(v.shape) for v in compiled.variables))


def blackjax_loop(terms):
    """Return a jitted function from key, prior draws and step size to the log evidence."""
    import blackjax
    import jax
    import jax.numpy as jnp

    from blackjax.smc import extend_params
    from blackjax.smc.resampling import systematic

    hmc = blackjax.hmc.build_kernel()

    def move(key, state, log_density, **parameters):
        return hmc(key, state, log_density, num_integration_steps=LEAPFROGS, **parameters)

    def parameters(particles, weights, step_size):
        mean = weights @ particles
        variance = weights @ (particles - mean) ** 2
        return extend_params({"step_size": step_size, "inverse_mass_matrix": variance})

    def run(key, particles, step_size):
        uniform = jnp.full(len(particles), 1 / len(particles))
        sampler = blackjax.inner_kernel_tuning(
            smc_algorithm=blackjax.adaptive_tempered_smc,
            logprior_fn=lambda x: terms(x)[0],
            loglikelihood_fn=lambda x: terms(x)[1],
            mcmc_step_fn=move,
            mcmc_init_fn=blackjax.hmc.init,
            resampling_fn=systematic,
            mcmc_parameter_update_fn=lambda _, state, __: parameters(
                state.particles, state.weights, step_size
            ),
            initial_parameter_value=parameters(particles, uniform, step_size),
            num_mcmc_steps=MOVES,
            target_ess=TARGET_ESS,
        )

        def cool(carry):
            key, state, log_z, count, _ = carry
            key, step_key = jax.random.split(key)
            state, info = sampler.step(step_key, state)
            accept = info.update_info.acceptance_rate.mean()
            return key, state, log_z + info.log_likelihood_increment, count + 1, accept

        start = sampler.init(particles)
        inner = start.sampler_state._replace(tempering_param=jnp.asarray(0.0))
        carry = (key, start._replace(sampler_state=inner), 0.0, 0, 0.0)
        unfinished = lambda carry: carry[1].sampler_state.tempering_param < 1  # noqa: E731
        _, _, log_z, count, accept = jax.lax.while_loop(unfinished, cool, carry)
        return log_z, count, accept

    return jax.jit(run)


PREPARE = {
    "ais": prepare_ais,
    "smc": prepare_smc,
    "blackjax": prepare_blackjax,
    "blackjax_plain": prepare_blackjax_plain,
}


# One process per method


def serve(connection, method: str, args) -> None:
    """Run a method on request; the first request for a model compiles it."""
    warnings.simplefilter("ignore")
    if args.data:
        zoo.data_folders.insert(0, args.data)
    name, run = None, None
    while True:
        wanted, seed = connection.recv()
        if wanted != name:
            name, run = wanted, PREPARE[method](zoo.MODELS[wanted], args)
        connection.send(timed(run, seed))


def timed(run, *arguments) -> dict[str, float]:
    """Call a function and add seconds and CPU seconds to its record."""
    cpu, begin = cpu_seconds(), time.perf_counter()
    record = run(*arguments)
    seconds = time.perf_counter() - begin
    return {**record, "seconds": seconds, "cpu": cpu_seconds() - cpu}


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and its children."""
    usages = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usages)


def collect(args) -> list[dict]:
    """Run all methods on all models; the methods take turns."""
    context = multiprocessing.get_context("spawn")
    connections, processes = {}, []
    for method in args.methods:
        connections[method], there = context.Pipe()
        processes.append(context.Process(target=serve, args=(there, method, args)))
        processes[-1].start()
    records = []
    try:
        for name in args.models:
            records += collect_model(connections, name, args)
            if args.save:
                args.save.write_text("".join(json.dumps(r) + "\n" for r in records))
            report_model(records, name)
    finally:
        for process in processes:
            process.terminate()
    return records


def collect_model(connections, name: str, args) -> list[dict]:
    """Run all methods on one model, seed by seed."""
    for method, connection in connections.items():
        for i in range(args.warm_up):
            ask(connection, (name, 10_000 + i))
            print(f"# {name} {method} compiled", flush=True)
    records = []
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        for method, connection in connections.items():
            if method == "smc" and seed >= args.first_seed + args.smc_seeds:
                continue
            record = ask(connection, (name, seed))
            error = record["log_evidence"] - zoo.MODELS[name].log_evidence
            records.append({"model": name, "method": method, "seed": seed, **record})
            print(f"# {name} {method} {seed}: {error:+.4f}, {record['seconds']:.2f} s", flush=True)
    return records


def ask(connection, request) -> dict:
    """Send a model and a seed to the process of a method and return its record."""
    connection.send(request)
    return connection.recv()


# Report


def score(records: list[dict], name: str, method: str) -> dict[str, float] | None:
    """Return MSE, seconds and efficiency of a method on a model; None without runs."""
    mine = [r for r in records if (r["model"], r["method"]) == (name, method)]
    if not mine:
        return None
    truth = zoo.MODELS[name].log_evidence
    forms = [k for k in ("log_evidence", "mean_of_logs") if k in mine[0]]
    errors = min(
        (np.array([r[k] for r in mine]) - truth for k in forms), key=lambda e: np.mean(e**2)
    )
    seconds = float(np.median([r["seconds"] for r in mine]))
    mse = float(np.mean(errors**2))
    return {
        "count": len(mine),
        "seconds": seconds,
        "cpu": float(np.median([r["cpu"] for r in mine])),
        "bias": float(errors.mean()),
        "rmse": mse**0.5,
        "efficiency": 1 / (mse * seconds),
        "cpu_efficiency": 1 / (mse * np.median([r["cpu"] for r in mine])),
    }


def report_model(records: list[dict], name: str) -> None:
    """Print a row for each method on a model."""
    for method in METHODS:
        if s := score(records, name, method):
            print(
                f"{name:14s}{method:16s}{s['count']:4d}{s['seconds']:10.2f}{s['cpu']:10.2f}"
                f"{s['bias']:+10.4f}{s['rmse']:10.4f}{s['efficiency']:12.3g}",
                flush=True,
            )


def report(records: list[dict]) -> None:
    """Print all rows, the ratios of the efficiencies and their geometric means."""
    names = list(dict.fromkeys(r["model"] for r in records))
    print(
        f"\n{'model':14s}{'method':16s}{'runs':>4s}{'seconds':>10s}{'CPU s':>10s}{'bias':>10s}"
        f"{'rmse':>10s}{'efficiency':>12s}"
    )
    for name in names:
        report_model(records, name)
    others = [m for m in METHODS[1:] if any(r["method"] == m for r in records)]
    if not any(r["method"] == "ais" for r in records):
        return
    print("\nefficiency of ais / efficiency of the other method\n" + " " * 14, end="")
    print("".join(f"{m:>16s}" for m in others))
    for name in names:
        print(f"{name:14s}" + "".join(f"{ratio(records, name, m):16.2f}" for m in others))
    rows = {
        "geometric mean": lambda m: geometric_mean(records, names, m),
        "by CPU seconds": lambda m: geometric_mean(records, names, m, "cpu_efficiency"),
        "error < 1 nat": lambda m: geometric_mean(records, accurate(records, names, m), m),
    }
    for title, value in rows.items():
        print(f"{title:14s}" + "".join(f"{value(m):16.2f}" for m in others))
    intervals = [bootstrap(records, names, m) for m in others]
    print(f"{'90 % interval':14s}" + "".join(f"{f'{a:.1f} to {b:.1f}':>16s}" for a, b in intervals))


def accurate(records: list[dict], names: list[str], other: str) -> list[str]:
    """Return the models on which a method has an rmse below one nat.

    A single failure of the other method can dominate the geometric mean of the ratios.
    """
    scores = {n: score(records, n, other) for n in names}
    return [n for n, s in scores.items() if s and s["rmse"] < 1]


def ratio(records, name: str, other: str, key: str = "efficiency") -> float:
    """Return the efficiency of `ais` over that of another method; NaN if one has no runs."""
    ours, theirs = score(records, name, "ais"), score(records, name, other)
    return ours[key] / theirs[key] if ours and theirs else np.nan


def geometric_mean(records, names, other: str, key: str = "efficiency") -> float:
    """Return the geometric mean of the ratios over models."""
    ratios = np.array([ratio(records, n, other, key) for n in names])
    known = ratios[np.isfinite(ratios)]
    return float(np.exp(np.log(known).mean())) if len(known) else np.nan


def bootstrap(records: list[dict], names: list[str], other: str) -> tuple[float, float]:
    """Return the 90 % interval of the geometric mean, by bootstrap over the runs."""
    groups = defaultdict(list)
    for r in records:
        groups[r["model"], r["method"]].append(r)
    rng = np.random.default_rng(0)

    def resampled() -> list[dict]:
        return [g[i] for g in groups.values() for i in rng.integers(len(g), size=len(g))]

    means = [geometric_mean(resampled(), names, other) for _ in range(200)]
    return float(np.quantile(means, 0.05)), float(np.quantile(means, 0.95))


def tune(args) -> None:
    """Print the error and the efficiency of BlackJAX for each step size."""
    if args.data:
        zoo.data_folders.insert(0, args.data)
    warnings.simplefilter("ignore")
    print(
        f"{'model':14s}{'step':>6s}{'seconds':>10s}{'temps':>7s}{'accept':>8s}{'rmse':>9s}{'eff':>10s}"
    )
    for name in args.models:
        run = prepare_blackjax(zoo.MODELS[name], args)
        run(0)
        for step_size in args.grid:
            runs = [timed(run, 20_000 + i, step_size) for i in range(args.seeds)]
            print_tuned(name, step_size, runs)


def print_tuned(name: str, step_size: float, runs: list[dict]) -> None:
    """Print the row of one step size."""
    errors = np.array([r["log_evidence"] for r in runs]) - zoo.MODELS[name].log_evidence
    mse, seconds = np.mean(errors**2), np.median([r["cpu"] for r in runs])
    temperatures = np.mean([r["temperatures"] for r in runs])
    accept = np.mean([r["accept_rate"] for r in runs])
    print(
        f"{name:14s}{step_size:6.2f}{seconds:10.2f}{temperatures:7.0f}{accept:8.2f}{mse**0.5:9.4f}"
        f"{1 / (mse * seconds):10.3g}",
        flush=True,
    )


def main() -> None:
    args = parse()
    if args.tune:
        tune(args)
        return
    if args.merge:
        lines = [line for path in args.merge for line in path.read_text().splitlines()]
        records = [json.loads(line) for line in lines]
    else:
        records = collect(args)
    report(records)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    comma = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("--models", type=comma, default=list(zoo.MODELS))
    parser.add_argument("--methods", type=comma, default=list(METHODS[:3]))
    parser.add_argument("--seeds", type=int, default=15)
    parser.add_argument(
        "--smc-seeds", type=int, default=8, help="seeds of sample_smc, which is slow"
    )
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--warm-up", type=int, default=1, help="runs that are not counted")
    parser.add_argument("--draws", type=int, help="argument of sample_ais")
    parser.add_argument("--chains", type=int, help="argument of sample_ais")
    parser.add_argument("--target-mcse", type=float, help="argument of sample_ais")
    parser.add_argument("--transition", help="argument of sample_ais")
    parser.add_argument("--tune", action="store_true", help="try step sizes for BlackJAX")
    numbers = lambda text: [float(t) for t in text.split(",")]  # noqa: E731
    parser.add_argument("--grid", type=numbers, default=GRID, help="step sizes to try")
    parser.add_argument("--data", type=Path, help="additional folder with data files")
    parser.add_argument("--save", type=Path, help="write one line per run to this file")
    parser.add_argument("--merge", type=Path, nargs="+", help="report on files written by --save")
    return parser.parse_args()


if __name__ == "__main__":
    main()
