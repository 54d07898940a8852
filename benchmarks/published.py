"""Compare bridge sampling on real data with published or exact log evidences.

    python benchmarks/published.py --data FOLDER
    python benchmarks/published.py --models "pima" --draws 2000

Each model is fitted by `pymc.sample`, and `bridge_evidence` estimates its evidence. The radiata
pine data (Friel & Pettitt 2008; Carlin & Chib 1995) and the Pima Indians data (Friel & Wyse 2012)
come with these scripts. `--data` names a folder with additional files:
`radiata_pine_williams1959.csv` (specimen, y, x, z), `galaxies.csv` (velocity_corrected, km/s;
Roeder 1990) and `coal_disaster_counts.csv` (disasters per year, 1851 to 1962; Jarrett 1979). Models
whose files are missing are listed as such and skipped.

The reference evidences are exact (closed form, sum or quadrature) or computed by importance
sampling with two million draws. They agree with the values of those papers, and of Neal (1999) for
the galaxies, within the errors given there. A transform orders the components of a mixture. The
package normalises the prior of the ordered components, so the evidence counts all labellings, as
the published values do.
"""

import argparse
import time
import warnings

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import models
import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.distributions.transforms import ordered

import pymc_anneal as pma

warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")


@dataclass(frozen=True)
class Published:
    """A model of real data, its log evidence and the standard error of it, in nats."""

    name: str
    build: Callable[[], pm.Model]
    log_evidence: float
    mcse: float = 0.0
    method: str = "normal"


def pine(column: str, file: str, conjugate: bool) -> Callable[[], pm.Model]:
    """Return a regression of strength on density ("x") or resin-adjusted density ("z")."""

    def build() -> pm.Model:
        table = models.columns(file)
        covariate = table[column] - table[column].mean()
        with pm.Model() as model:
            if conjugate:  # Friel & Pettitt (2008)
                tau = pm.Gamma("tau", 3, 2 * 300**2)
                alpha = pm.Normal("alpha", 3000, tau=0.06 * tau)
                beta = pm.Normal("beta", 185, tau=6 * tau)
                sigma = tau**-0.5
            else:  # Carlin & Chib (1995)
                alpha, beta = pm.Normal("alpha", 3000, 1000), pm.Normal("beta", 185, 100)
                sigma = pm.InverseGamma("variance", 3, 2 * 300**2) ** 0.5
            pm.Normal("y", alpha + beta * covariate, sigma, observed=table["y"])
        return model

    return build


def pima(names: tuple[str, ...], sd: float) -> Callable[[], pm.Model]:
    """Return a logistic regression on standardised covariates."""

    def build() -> pm.Model:
        table = models.columns("pima_532.csv")
        x = np.column_stack([table[name] for name in names])
        x = np.column_stack([np.ones(len(x)), (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)])
        with pm.Model() as model:
            b = pm.Normal("b", 0, sd, shape=x.shape[1])
            pm.Bernoulli("y", logit_p=x @ b, observed=table["diabetes"].astype(int))
        return model

    return build


def schools(mu_sd: float, tau: Callable) -> Callable[[], pm.Model]:
    """Return the non-centred model of eight schools (Rubin 1981)."""

    def build() -> pm.Model:
        with pm.Model() as model:
            effect = pm.Normal("mu", 0, mu_sd) + tau("tau") * pm.Normal("z", shape=8)
            pm.Normal("y", effect, models.SCHOOLS_SIGMA, observed=models.SCHOOLS_Y)
        return model

    return build


def galaxies(components: int, common: bool) -> Callable[[], pm.Model]:
    """Return a normal mixture with ordered means."""

    def build() -> pm.Model:
        y = models.columns("galaxies.csv")["velocity_corrected"] / 1000
        with pm.Model() as model:
            weight = pm.Dirichlet("weight", np.ones(components))
            start = np.quantile(y, (np.arange(components) + 0.5) / components)
            mu = pm.Normal(
                "mu", 20, 10, shape=components, transform=ordered, initval=np.sort(start)
            )
            variance = pm.InverseGamma("variance", 3, 20, shape=() if common else components)
            sd = pt.sqrt(variance) * np.ones(components)
            pm.NormalMixture("y", weight, mu, sd, observed=y)
        return model

    return build


def coal() -> pm.Model:
    """Return a model of the rate of disasters with a marginalised change point."""
    count = models.columns("coal_disaster_counts.csv")["disasters"]
    before, total = np.concatenate([[0.0], np.cumsum(count)[:-1]]), count.sum()
    years = np.arange(len(count))
    log_factorials = pt.gammaln(count + 1.0).sum()
    with pm.Model() as model:
        early, late = pm.Exponential("early", 1), pm.Exponential("late", 1)
        by_year = before * pt.log(early) - years * early
        by_year += (total - before) * pt.log(late) - (len(count) - years) * late
        pm.Potential("y", pt.logsumexp(by_year) - np.log(len(count)) - log_factorials)
    return model


FOUR = ("npreg", "glu", "bmi", "ped")
FRIEL, WILLIAMS = "radiata_pine.csv", "radiata_pine_williams1959.csv"
PUBLISHED = [
    Published("pine, density", pine("x", FRIEL, True), -310.1282855),
    Published("pine, adjusted density", pine("z", FRIEL, True), -301.7046021),
    Published("pine 1959, density", pine("x", WILLIAMS, False), -309.9243277),
    Published("pine 1959, adjusted density", pine("z", WILLIAMS, False), -301.4351019),
    Published("pima, model 1, sd 10", pima(FOUR, 10), -257.2327, 2e-4),
    Published("pima, model 2, sd 10", pima((*FOUR, "age"), 10), -259.8575, 2e-4),
    Published("pima, model 1, sd 1", pima(FOUR, 1), -247.3036, 2e-4),
    Published("pima, model 2, sd 1", pima((*FOUR, "age"), 1), -247.5629, 2e-4),
    Published("schools", schools(5, lambda n: pm.HalfCauchy(n, 5)), -31.3113474),
    Published("schools, half-normal", schools(5, lambda n: pm.HalfNormal(n, 5)), -31.0362394),
    Published("schools, log-normal", schools(10, lambda n: pm.LogNormal(n, 5, 1)), -36.1308159),
    Published("galaxies, 2, equal", galaxies(2, True), -239.7611, 5e-4),
    Published("galaxies, 2", galaxies(2, False), -232.880, 1e-3),
    Published("galaxies, 3, equal", galaxies(3, True), -226.812, 1e-3, "warp3"),
    Published("galaxies, 3", galaxies(3, False), -226.790, 2e-3, "warp3"),
    Published("coal", coal, -177.5165552),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="additional folder with data files")
    parser.add_argument("--models", default="", help="prefix of the names of the models to run")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.data:
        models.data_folders.insert(0, args.data)
    print("| model | reference | bridge sampling | standard errors apart | verdict | seconds |")
    print("| --- | --- | --- | --- | --- | --- |")
    for case in PUBLISHED:
        if case.name.startswith(args.models):
            try:
                model = case.build()
            except FileNotFoundError as error:
                print(f"| {case.name} | skipped: {error} | | | | |")
                continue
            print(row(case, model, args.draws, args.seed), flush=True)


def row(case: Published, model: pm.Model, draws: int, seed: int) -> str:
    """Fit the model and return its row of the table."""
    idata = pm.sample(draws, chains=4, cores=1, model=model, random_seed=seed, progressbar=False)
    begin = time.perf_counter()
    found = pma.bridge_evidence(idata, model=model, method=case.method, random_seed=seed)
    score = (found.log_evidence - case.log_evidence) / np.hypot(found.mcse, case.mcse)
    return (
        f"| {case.name} | {case.log_evidence:.4f} | {found.log_evidence:.4f} +- {found.mcse:.4f} | "
        f"{score:+.1f} | {found.verdict} | {time.perf_counter() - begin:.1f} |"
    )


if __name__ == "__main__":
    main()
