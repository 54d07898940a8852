"""`sample_bayes_factor`: the Bayes factor of two models along a direct path between them.

Two models that share most of their parameters have posteriors that are closer to each other than
either is to the prior. On their joint space (`between/joint_space.py`) the particles go from the
posterior of one model to that of the other,

    f_beta = f_a^(1 - beta) f_b^beta,    E[w] = Z_b / Z_a

(Lartillot & Philippe 2006, eq. 11; Neal 2001). It starts at posterior draws of one model; with
draws of both, the second direction is run as well, and Bennett's acceptance ratio combines them.
A part of the draws of the first model is fitted to, and not counted (`between/from_draws.py`).
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pymc as pm

from scipy.stats import norm

from pymc_anneal.base.arguments import check_target
from pymc_anneal.base.arviz_compat import Container, draws_ess
from pymc_anneal.base.contracts import Transition
from pymc_anneal.base.data_hash import hash_data
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed, seed_sequence
from pymc_anneal.between.audit_end import audit_end
from pymc_anneal.between.between_models import Chosen, JointTarget, choose_coordinates
from pymc_anneal.between.from_draws import (
    GivenDraws,
    RunFromDraws,
    log_ratios,
    reverse_weights,
    run_from_draws,
    split_draws,
)
from pymc_anneal.between.joint_space import JointSpace, join_models
from pymc_anneal.evidence.bennett import bar, disagreement, reweighting_p_value
from pymc_anneal.evidence.combined_verdict import combined_verdict
from pymc_anneal.evidence.diagnostics import MAX_DISAGREEMENT
from pymc_anneal.evidence.draws_audit import judge_draws
from pymc_anneal.evidence.mean_ratio import mean_ratio
from pymc_anneal.evidence.posterior_density import grouped_draws
from pymc_anneal.evidence.verdict import Verdict, warn_unless_trusted
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.pipeline.choose_transition import TransitionName, choose_transition
from pymc_anneal.pipeline.session import Session, open_session
from pymc_anneal.pipeline.settings import Settings, Steps
from pymc_anneal.results.bayes_factor import LogBayesFactor
from pymc_anneal.results.compare_models import log_bayes_factor
from pymc_anneal.sampling.sample_ais import sample_ais

# Least number of particles, over all chains.
_PARTICLES = 400
# Level of the test that the weights turn one direction into the other: false alarms in about one
# run of 10,000.
_REWEIGHTING_LEVEL = 1e-4
# Ratio of error to target up to which the target counts as reached: the error itself is known to a
# few per cent.
_NEARLY = 1.05
_REMEDY = "the models are too far apart for this path; take more steps, or compare two evidences"


@double_precision
def sample_bayes_factor(
    model_a: pm.Model | CompiledModel,
    model_b: pm.Model | CompiledModel,
    *,
    draws_a: Container | None = None,
    draws_b: Container | None = None,
    target_mcse: float = 0.1,
    steps: Steps = "auto",
    transition: TransitionName | Transition = "auto",
    cores: int | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    warnings: bool = True,
) -> LogBayesFactor:
    """Estimate the log Bayes factor of two models along a direct path between their posteriors.

    For models that share most of their parameters: a covariate more or less, another likelihood
    or prior, pooled against hierarchical. Variables are matched by name. A variable that only one
    model has is drawn from its prior in the other one, which does not change the Bayes factor.

    A model without free variables, a point null, has no posterior to start from: both evidences are
    estimated (its own is exact), and draws are not used.

    Parameters
    ----------
    model_a, model_b : pymc.Model or CompiledModel
        Models of the same data, without discrete variables.
    draws_a, draws_b : InferenceData or DataTree, optional
        Posterior draws of the models, from :func:`pymc.sample` or :func:`sample_ais`. With those
        of one model, particles go from it to the other; with both, in both directions. Default:
        :func:`sample_ais` runs for the model of fewer parameters.
    target_mcse : float
        Wanted Monte Carlo standard error of the log Bayes factor, in nats.
    steps : int or "auto"
        Number of steps between the models, or "auto": planned for ``target_mcse``; a single one
        (importance sampling) if the posteriors are near.
    transition : {"auto", "hmc", "random_walk"} or Transition
        As for :func:`sample_ais`.
    cores : int, optional
        Worker threads. Default: the available processors.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress.
    warnings : bool
        Whether to warn if the verdict is not "trust".

    Returns
    -------
    LogBayesFactor
        ``log Z_a - log Z_b`` in nats, positive if the data favour ``model_a``. For exact draws of
        one model, the ratio of the evidences (the other over this one) is unbiased; the error
        accounts for autocorrelated draws. Errors of the draws themselves (a chain that missed a
        mode) are not seen from draws of one model.

    Raises
    ------
    ValueError
        The models are of different observed data; a variable of both has another shape or another
        transform in one of them; draws are not of their model; or draws of one model have a
        density of zero in the other.
    NotImplementedError
        A model has discrete variables or a prior whose density is not normalised.

    Warns
    -----
    EvidenceWarning
        The verdict is not "trust".

    See Also
    --------
    log_bayes_factor : From two evidences, for any two models.

    References
    ----------
    Lartillot & Philippe (2006), Computing Bayes factors using thermodynamic integration, eq. 11.
    Baele, Lemey & Vansteelandt (2013), Make the most of your samples: Bayes factor estimators for
    high-dimensional models of sequence evolution. Bennett (1976), Efficient estimation of free
    energy differences from Monte Carlo data.

    Examples
    --------
    >>> idata = pymc.sample(model=pooled)
    >>> pymc_anneal.sample_bayes_factor(pooled, hierarchical, draws_a=idata)
    """
    check_target(target_mcse)
    a, b = as_compiled(model_a), as_compiled(model_b)
    _check_models(a, b)
    seed_draws, seed_choice, seed_run = seed_sequence(random_seed).spawn(3)
    if not (a.ndim and b.ndim):
        run = partial(
            sample_ais,
            target_mcse=target_mcse,
            steps=steps,
            transition=transition,
            cores=cores,
            progressbar=progressbar,
            warnings=False,
        )
        results = run(a, random_seed=seed_draws), run(b, random_seed=seed_run)
        return _finish(log_bayes_factor(*results), (a, b), warnings)
    without_draws = draws_a is None and draws_b is None
    # The path goes from b to a: it starts where draws are given, or else at the smaller model.
    backward = b.ndim < a.ndim if without_draws else draws_a is None
    first, second = (b, a) if backward else (a, b)
    draws: list[Container | None] = [draws_b, draws_a] if backward else [draws_a, draws_b]
    space = join_models(first, second)  # refuses models that do not match, before anything runs
    spent = 0
    if without_draws:
        idata = sample_ais(
            first, cores=cores, random_seed=seed_draws, progressbar=progressbar, warnings=False
        )
        draws[0], spent = idata, int(idata["evidence"]["evaluations"])
    start = grouped_draws(draws[0], first)
    settings = Settings(
        draws=-(-_PARTICLES // len(start)),
        chains=len(start),
        steps=steps,
        target_mcse=target_mcse,
        cores=cores,
    )
    kernel = choose_transition(transition, min((a, b), key=lambda m: m.derivatives.order))
    fitted, counted = split_draws(start)
    chosen = choose_coordinates(space, fitted, seed_choice)
    with open_session(
        JointTarget(second, coordinates=chosen.coordinates),
        settings,
        random_seed=seed_run,
        progressbar=progressbar,
    ) as session:
        between = _Between(session, chosen, draws, fitted, counted, kernel)
        ratio = between.one_way() if draws[1] is None else between.both_ways()
    ratio = replace(ratio, mcse=float(np.hypot(ratio.mcse, _error_of_priors(a, b))))
    found = _log_bayes_factor(ratio, 1.0 if backward else -1.0, spent + chosen.evaluations)
    return _finish(found, (a, b), warnings)


def _finish(
    found: LogBayesFactor, models: tuple[CompiledModel, CompiledModel], warnings: bool
) -> LogBayesFactor:
    """Give a Bayes factor the names of the models, and warn if it is not trusted."""
    names = [str(m.model.name or default) for m, default in zip(models, found.models, strict=True)]
    if warnings:
        warn_unless_trusted(found.verdict, "log Bayes factor")
    return replace(found, models=(names[0], names[1]))


def _error_of_priors(a: CompiledModel, b: CompiledModel) -> float:
    """Return the error of the masses of priors that transforms cut; a mass of both cancels."""
    if a.log_prior_mass == b.log_prior_mass:
        return 0.0
    return float(np.hypot(a.log_prior_mass_mcse, b.log_prior_mass_mcse))


def _check_models(a: CompiledModel, b: CompiledModel) -> None:
    for compiled in (a, b):
        compiled.require_normalised("A path between two models")
    found = [hash_data(m.observed_data()) for m in (a, b)]
    if all(found) and found[0] != found[1]:
        raise ValueError(
            f"The models are of different observed data: {_describe(a)} (hash {found[0]}) and "
            f"{_describe(b)} (hash {found[1]}). A Bayes factor compares models of the same data."
        )


def _describe(compiled: CompiledModel) -> str:
    shapes = [f"'{k}' of shape {np.shape(v)}" for k, v in compiled.observed_data().items()]
    return ", ".join(shapes) or "no data"


@dataclass(frozen=True)
class _Ratio:
    """Log ratio of the normalisers at the end and at the start of the path, in nats."""

    value: float
    mcse: float
    verdicts: dict[str, Verdict]
    barrier: float
    evaluations: int


@dataclass(frozen=True)
class _Between:
    """Runs between two models, from draws of the first or of both."""

    session: Session
    chosen: Chosen
    containers: list[Any]
    fitted: np.ndarray
    counted: np.ndarray
    kernel: Transition

    @property
    def space(self) -> JointSpace:
        """The two models."""
        return self.chosen.coordinates.space

    def one_way(self) -> _Ratio:
        """Go from the first model to the second, and look for what the particles missed there."""
        run = self._run()
        ratio = mean_ratio(run.log_weight)
        flat = run.position.reshape(-1, run.position.shape[2])
        _, position = self.chosen.coordinates.positions(flat)
        seed = self.session.seeds.audit
        compiled = self.chosen.coordinates.models[1]
        audit = audit_end(compiled, position, run.log_weight.ravel(), self._is_outside, seed)
        verdicts = {
            **self._of_draws(),
            "the particles": Verdict("do not trust", tuple(audit.doubts))
            if audit.doubts
            else _FINE,
            "the weights": ratio.verdict(_REMEDY),
            "the error": _missed(ratio.mcse, self.session.settings.target_mcse),
        }
        evaluations = 2 * self.session.meter.evaluations + audit.evaluations
        return _Ratio(ratio.log_mean, ratio.mcse, verdicts, run.barrier, evaluations)

    def both_ways(self) -> _Ratio:
        """Go from each model to the other, and combine both directions."""
        run, coordinates = self._run(), self.chosen.coordinates
        other = _regroup(grouped_draws(self.containers[1], self.space.second), len(self.counted))
        start = GivenDraws(other, coordinates.complete_second)
        back = reverse_weights(self.session, coordinates.path, run, start)
        _check_reverse(back)
        forward = run.log_weight
        terms = bar(forward, back)
        ess_f, ess_r = (_capped_ess(t) for t in (terms.forward_terms, terms.reverse_terms))
        estimate = bar(forward, back, ess_r)
        mcse = estimate.mcse(ess_r, ess_f)
        verdicts = {
            **self._of_draws(),
            "the two directions": _agreement(forward, back, ess_r, ess_f),
            "the error": _missed(mcse, self.session.settings.target_mcse),
        }
        total = 2 * self.session.meter.evaluations
        return _Ratio(estimate.log_evidence, mcse, verdicts, run.barrier, total)

    def _of_draws(self) -> dict[str, Verdict]:
        """Return the verdicts on the draws of both ends, as far as they are doubtful."""
        found: dict[str, Verdict] = {}
        models = self.space.first, self.space.second
        seeds = self.session.seeds.witnesses.spawn(2)
        for place, idata, model, seed in zip(
            ("start", "end"), self.containers, models, seeds, strict=True
        ):
            if idata is not None:
                judged = judge_draws(idata, model, grouped_draws(idata, model), seed)
                found |= {f"the {name} ({place})": verdict for name, verdict in judged.items()}
        return found

    def _run(self) -> RunFromDraws:
        coordinates = self.chosen.coordinates
        fitted, start = (
            GivenDraws(part, coordinates.complete_first) for part in (self.fitted, self.counted)
        )
        near = self.chosen.probe
        return run_from_draws(self.session, coordinates.path, fitted, start, self.kernel, near)

    def _is_outside(self, position: np.ndarray) -> np.ndarray:
        """Whether positions of the second model, ``(n, d)``, have density zero in the first."""
        coordinates = self.chosen.coordinates
        z = coordinates.add_to_second(self.session.seeds.prior, position)
        return np.isposinf(log_ratios(coordinates.path, z))


_FINE = Verdict("trust")


def _capped_ess(terms: np.ndarray) -> float:
    return min(draws_ess(terms), float(terms.size)) if np.ptp(terms) > 0 else float(terms.size)


def _regroup(draws: np.ndarray, chains: int) -> np.ndarray:
    """Return draws of shape ``(other chains, n, d)`` as another number of chains, in order."""
    if len(draws) == chains:
        return draws
    flat = draws.reshape(-1, draws.shape[2])
    size = len(flat) // chains
    return flat[: chains * size].reshape(chains, size, -1)


def _check_reverse(log_weight: np.ndarray) -> None:
    outside = int(np.isposinf(log_weight).sum())
    if outside:
        raise ValueError(
            f"{outside} of {log_weight.size} draws of one model have a density of zero in the "
            "other: no direct path leads there. Compare the evidences of two runs of sample_ais."
        )


def _agreement(a: np.ndarray, b: np.ndarray, reverse_ess: float, forward_ess: float) -> Verdict:
    """Return whether the two directions agree."""
    score = abs(disagreement(a, b))
    if score > MAX_DISAGREEMENT:
        return Verdict(
            "do not trust", (f"they contradict each other by {score:.1f} standard errors",)
        )
    if reweighting_p_value(a, b, reverse_ess, forward_ess) < _REWEIGHTING_LEVEL:
        return Verdict("do not trust", ("one leaves out a part of what the other one samples",))
    return _FINE


def _missed(mcse: float, target: float) -> Verdict:
    if mcse <= _NEARLY * target:
        return _FINE
    times = (mcse / target) ** 2
    reason = f"{mcse:.3g} nats, above the target {target:.3g}; take {times:.1f} times the draws"
    return Verdict("more draws needed", (reason,))


def _log_bayes_factor(ratio: _Ratio, sign: float, spent: int) -> LogBayesFactor:
    value, half = sign * ratio.value, float(norm.ppf(0.975)) * ratio.mcse
    return LogBayesFactor(
        log_bayes_factor=value,
        mcse=ratio.mcse,
        interval=(value - half, value + half),
        verdict=combined_verdict(ratio.verdicts),
        barrier=ratio.barrier,
        evaluations=ratio.evaluations + spent,
    )
