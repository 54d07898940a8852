"""Bugs in the folders evidence and pipeline, and in the draws of the posterior."""

from tests.mutants.mutant import Rows

ROWS: Rows = [
    (
        "evidence/held_out",
        "tests/evidence/test_held_out.py",
        [
            ("float(len(family) ** 2 / max(np.square(count).sum(), 1))", "float(len(family))"),
            ("mass * draws + 1, np.maximum(draws * (1 - mass), 1e-9)", "mass * draws + 1e-9, np.maximum(draws * (1 - mass), 1e-9)"),
            ("np.where(families > 0, gammainc(families, expected)", "np.where(families > 0, gammainc(families + 1, expected)"),
            ("np.where(families > 0, gammainc(families, expected)", "np.where(families > 0, gammainc(families, 0.1 * expected)"),
            ("expected = families * mass /", "expected = mass /"),
            ("np.minimum(most / known, 1.0)", "np.minimum(most, 1.0)"),
            ("gammainc(families, expected) < level", "gammainc(1.0, expected / families) < level"),
            ("families * np.exp(log_evidence", "np.exp(log_evidence"),
        ],
    ),
    (
        "evidence/levels",
        "tests/evidence/test_levels.py",
        [
            ("level * np.log(2) - np.log(number)", "level * np.log(2) - np.log(number) + 0.5"),
            ("(found.log_prior > part.log_height) & found.above(level)", "found.above(level)"),
            ("(found.log_prior > part.log_height) & found.above(level)", "found.log_prior > part.log_height"),
            ("tied = (self.log_likelihood == log_likelihood) & (self.label > label)", "tied = self.log_likelihood == log_likelihood"),
            ("beyond = beyond + 1 if _is_negligible(upper, log_z, len(off)) else 0", "beyond = beyond + 1"),
            ("np.sqrt(max(by_levels, of_family @ of_family))", "np.sqrt(by_levels)"),
            ("np.sqrt(max(by_levels, of_family @ of_family))", "np.sqrt(of_family @ of_family)"),
            ("copies.label[active], copies.family[active])", "copies.label[active], active)"),
            ("if len(lower) + len(upper) > kept:", "if len(lower) + len(upper) > 4 * kept:"),
            ("complete = False", "complete = True"),
        ],
    ),
    (
        "pipeline/split_levels",
        "tests/pipeline/test_split_levels.py",
        [
            ("most = _SLACK * predicted", "most = 0.0"),
            ('audit == "auto" and _leads_on(session, compiled, surveyed)', 'audit == "auto"'),
            ("return not flat or likelihood_is_constant(compiled)", "return not flat"),
            ("return not flat or likelihood_is_constant(compiled)", "return True"),
            ("levels.position[index], levels.family[index]", "levels.position[index], index"),
            ("if hole.p_value >= level:", "if hole.p_value >= 0:"),
            ("if hole.p_value >= level:", "if hole.p_value >= 2:"),
            ("_MOST_NUMBERS / numbers", "_MOST_NUMBERS"),
            ("normalised(levels.log_weight)", "np.ones(len(levels.log_weight))"),
        ],
    ),
    (
        "pipeline/check_transition",
        "tests/pipeline/test_choose_transition.py",
        [
            ("if not kernel.parts:", "if False:"),
            ("wrong or not moved or len(set(moved)) < len(moved)", "wrong or not moved"),
            ("wrong or not moved or len(set(moved)) < len(moved)", "wrong or len(set(moved)) < len(moved)"),
            ("if inner is not part and not inner.restrictable:", "if False:"),
            ("np.issubdtype(array.dtype, np.integer) and array >= 1", "array >= 1"),
            ("finite and array.ndim == 0 and array > 0", "finite and array.ndim == 0"),
            ("np.diagonal(array) if array.ndim == 2 else array", "array"),
            ("or (closed and value == 1)", "or value == 1"),
            ("getattr(inner, name, 0.5)", "getattr(part, name, 0.5)"),
            ("_fault(name, value, len(moved))", "_fault(name, value, ndim)"),
        ],
    ),
    (
        "pipeline/counted_run",
        "tests/pipeline/test_counted_run.py",
        [
            ("if np.diff(betas).max() > most * (1 + 1e-9):", "if False:"),
            ("math.ceil((1 - 1e-12) / most)", "1"),
        ],
    ),
    (
        "pipeline/session",
        "tests/execution/test_checkpoint.py",
        [("        stack.callback(log.save)\n", "")],
    ),
    (
        "pipeline/run",
        "tests/execution/test_checkpoint.py",
        [("            return replace(stages, interrupted=True)", "            return stages")],
    ),
    (
        "model/parents",
        "tests/model/test_jumps.py tests/model/test_constant_likelihood.py tests/pipeline/test_split_levels.py",
        [
            ("return not likelihood_has_parents(compiled) or not", "return not"),
            ("bool(maybe & parameters_of_likelihood(compiled))", "True"),
            ("blockers=compiled.model.free_RVs", "blockers=None"),
            ("maybe = names & {v.name for v in direct}", "maybe = names"),
            ("_, likelihood = compiled.freeze(", "_, likelihood = list("),
            ("if data[rv.name].size", ""),
            ('("canonicalize", "specialize")', '("canonicalize",)'),
        ],
    ),
    (
        "model/jumps",
        "tests/model/test_jumps.py",
        [
            (", blockers=model.free_RVs", ""),
            ("scalar.Ceil | scalar.Floor", "scalar.Ceil"),
            ("scalar.RoundHalfAwayFromZero | scalar.RoundHalfToEven", "scalar.RoundHalfAwayFromZero"),
            ("[*parameters, *model.potentials]", "parameters"),
            ("any(_agree_at_border(ends, v, i) for i in (0, 1) if real[i])", "_agree_at_border(ends, v, real.index(True))"),
            ("MergeOptimizer().rewrite(copy)", "pass"),
            ("0).sum(axis=wide, keepdims=True)", "0).max(axis=wide, keepdims=True)"),
            ("pt.where(chosen, yes, asked)", "yes"),
            ("{moved: at_border, asked:", "{asked:"),
            ("conclusive = False", "conclusive = True"),
            ("partial(np.allclose, equal_nan=True)", "np.allclose"),
            ("Shape | Shape_i | RNGConsumerOp", "Shape | Shape_i"),
            ('np.dtype(getattr(variable.type, "dtype", float)).kind in "iub"', "False"),
            ("_DRAWS = 256", "_DRAWS = 8"),
            ("other + 1e-3", "other"),
        ],
    ),
    (
        "adaptation/fit_mixture",
        "tests/adaptation/test_fit_mixture.py::TestStepUp",
        [
            ("if higher.mean() <= _HIGHER:", "if True:"),
        ],
    ),
    (
        "adaptation/fitted_reference",
        "tests/adaptation/test_fit_mixture.py",
        [
            ("weight[weight > 0], log_u[weight > 0]", "weight, log_u"),
        ],
    ),
    (
        "rbm/mean_field",
        "tests/rbm/test_mean_field.py",
        [
            ("_entropy(mu) + _entropy(nu)", "_entropy(mu) + 2 * _entropy(nu)"),
            ("np.ones((1, n)), np.eye(n)[strongest]", "np.zeros((1, n))"),
            ("nu = expit(field)", "nu = expit(b)"),
        ],
    ),
    (
        "posthoc/null_point",
        "tests/posthoc/test_savage_dickey.py",
        [
            ("null & set(ancestors([rv]))", "rv in null"),
            ("or isinstance(transform, Interval)", "or False"),
        ],
    ),
    (
        "posthoc/savage_dickey",
        "tests/posthoc/test_savage_dickey.py",
        [
            ("abs(logsumexp(there) - logsumexp(values))", "np.abs(there - values).max()"),
            ("abs(logsumexp(there) - logsumexp(values))", "0.0 * np.abs(there - values).max()"),
        ],
    ),
    (
        "posthoc/contrast_bayes_factor",
        "tests/posthoc/test_contrast_bayes_factor.py",
        [("if compiled.log_prior_mass != 0:", "if False:")],
    ),
    (
        "posthoc/prior_sensitivity",
        "tests/posthoc/test_prior_sensitivity.py",
        [("change.log_ratio(values) > highest", "change.log_ratio(values) > np.inf")],
    ),
    (
        "posthoc/average",
        "tests/posthoc/test_inclusion.py",
        [("by_model[first].keys() ^ by_model[model].keys()", "set()")],
    ),
    (
        "posthoc/prior_change",
        "tests/posthoc/test_prior_sensitivity.py",
        [
            ("beyond |= reached & np.isneginf(self.log_old(place))", "beyond |= False"),
            ("own - _NEGLIGIBLE", "own - 1e9"),
        ],
    ),
    (
        "evidence/ais",
        "tests/evidence/test_ais.py tests/evidence/test_estimators.py",
        [
            ("logsumexp(log_weight) - np.log(n)),", "logsumexp(log_weight) - np.log(n - 1)),"),
            ("rse_squared *= units.size / (units.size - 1)", "rse_squared *= 1.0"),
            ("np.sqrt(np.log1p(rse_squared))", "np.sqrt(2 * rse_squared)"),
            ("acceleration = (deviation**3)", "acceleration = -(deviation**3)"),
            ("student_t.ppf(0.975, count - 1)", "student_t.ppf(0.975, count)"),
            ("np.sqrt((len(left_out) - 1) * np.var(left_out))", "np.sqrt(np.var(left_out))"),
            ("means: np.ndarray = logsumexp(rows, axis=-1) - np.log(population_size)", "means: np.ndarray = logsumexp(rows, axis=-1)"),
        ],
    ),
    (
        "evidence/agreement",
        "tests/evidence/test_agreement.py tests/evidence/test_thresholds.py",
        [
            ("len(values) - 1) > LEVEL / 3", "len(values)) > LEVEL / 3"),
            ("norm.isf(LEVEL / 3) * self.mcse", "norm.isf(LEVEL) * self.mcse"),
            ("weights=errors**-2)", "weights=errors)"),
            ("return self.coefficient / self.steps", "return self.coefficient"),
            ("_SHORT * count >= longest", "count >= longest"),
            ("level = LEVEL / 3 / max(len(earlier), 1)", "level = LEVEL / 3"),
        ],
    ),
    (
        "base/arviz_compat",
        "tests/evidence/test_diagnostics.py::TestParetoK",
        [("if ordered[-tail] == ordered[-tail - 1]:", "if False:")],
    ),
    (
        "evidence/diagnostics",
        "tests/evidence/test_diagnostics.py tests/evidence/test_thresholds.py",
        [
            ("return float(max(by_ess, by_quartiles))", "return float(by_ess)"),
            ("float(1 / np.exp(log_weight - log_weight.max()).mean())", "float(np.exp(log_weight - log_weight.max()).mean())"),
            ("and weight_pareto_k(finite) <= MAX_PARETO_K:", "and True:"),
            ("if by_quartiles > _CLUSTERS * by_ess and", "if False and"),
            ("factor = max(2.0, (mcse / target) ** 2)", "factor = max(2.0, mcse / target)"),
            ("if mcse > target:", "if mcse > 2 * target:"),
            ("if ess < MIN_ESS:", "if ess < 0:"),
            ("return k > MAX_PARETO_K and", "return k > 1 and"),
            ("missing_share(log_weight, LARGEST_K) > _HARMLESS", "True"),
            ("missing_share(log_weight, LARGEST_K) > _HARMLESS", "False"),
            ("1 / (1 - np.clip(k, 0.0, LARGEST_K))", "1 / (1 + np.clip(k, 0.0, LARGEST_K))"),
            ("(beyond * largest_weight(log_weight) - 1)", "beyond * largest_weight(log_weight)"),
        ],
    ),
    (
        "evidence/heavy_tail",
        "tests/evidence/test_heavy_tail.py tests/results/test_container.py",
        [
            ("np.hypot(mcse, np.log1p(missing_share(log_weight, k)))", "mcse"),
            ("if not k > -np.inf or", "if not k > 1 / 3 or"),
            ("k = LARGEST_K", "k = MAX_PARETO_K"),
        ],
    ),
    (
        "evidence/bennett",
        "tests/evidence/test_bennett.py tests/evidence/test_estimators.py",
        [
            ("np.log(n_reverse / a.size)", "np.log(a.size / n_reverse)"),
            ("reverse = -np.logaddexp(0, b - log_z + log_odds)", "reverse = -np.logaddexp(0, b - log_z)"),
            ("f.var() / (n_forward * f.mean() ** 2) + r.var()", "f.var() / (n_forward * f.mean() ** 2) - r.var()"),
            ("(s**2).mean() - (t * (1 - t)).mean()", "s.mean() - (t * (1 - t)).mean()"),
        ],
    ),
    (
        "evidence/ladder",
        "tests/evidence/test_ladder.py",
        [
            ("correction = -float(", "correction = float("),
            ("(h * (mean[1:] + mean[:-1])).sum()) / 2", "(h * mean[1:]).sum())"),
            ("count = 1 / (share**2).sum(axis=1)", "count = 1 / share.sum(axis=1)"),
        ],
    ),
    (
        "evidence/ladder",
        "tests/evidence/test_ladder.py::TestByHand",
        [
            ("-ladder.log_ratio_down[1:]", "ladder.log_ratio_down[1:]"),
            ("- logsumexp(log_weight, axis=1)\n", "- np.log(log_weight.shape[1])\n"),
            ("np.isfinite(ladder.velocity[:1])", "np.isfinite(ladder.velocity[-1:])"),
        ],
    ),
    (
        "nested/nested_sampling",
        "tests/nested/test_nested_sampling.py",
        [
            ('side="left") - np.arange(len(death))', 'side="left") - np.arange(len(death)) + 1'),
            ("- np.log(2) + log_likelihood", "+ log_likelihood"),
            ("freedom = len(runs) - 1", "freedom = len(runs)"),
            ("float(log_z.std(ddof=1))", "float(log_z.std(ddof=1)) / 2"),
        ],
    ),
    (
        "nested/nested_sampling",
        "tests/nested/test_nested_sampling.py::test_insertion_ranks_by_hand tests/nested/test_nested_sampling.py::test_insertion_ranks_of_a_plateau tests/nested/test_nested_sampling.py::test_information_by_hand tests/nested/test_nested_sampling.py::TestCombineRuns",
        [
            ("(low + within) / (len(live) + 1)", "(low + within) / len(live)"),
            ("(birth < threshold) & (death > threshold)", "death > threshold"),
            ("within = rng.uniform(size=len(new)) * (high - low + 1)", "within = rng.uniform(size=len(new))"),
            (".sum() - log_evidence)", ".sum())"),
            ("np.sqrt((errors**2).sum()) / len(runs) * widened", "np.sqrt((errors**2).mean()) * widened"),
        ],
    ),
    (
        "evidence/mean_ratio",
        "tests/evidence/test_mean_ratio.py tests/evidence/test_estimators.py",
        [
            ("ratio.var() / ratio.mean() ** 2", "ratio.var() / ratio.mean()"),
            ("relative_variance / draws_ess(ratio)", "relative_variance / ratio.size"),
            ("draws_ess(ratio) / (1 + relative_variance)", "draws_ess(ratio)"),
        ],
    ),
    (
        "posthoc/window",
        "tests/posthoc/test_window.py",
        [
            ("- log_volume - np.log(_MASS)", "- log_volume"),
            ("k * chi2.cdf(self._edge, k + 2) / _MASS", "k"),
            ("mean + share * (value - mean)", "value"),
        ],
    ),
    (
        "posthoc/shear",
        "tests/posthoc/test_shear.py",
        [
            ("x + (there - here) @ self.coefficient", "x - here @ self.coefficient"),
            ("np.sqrt(weight)[:, None]", "np.ones((len(b), 1))"),
        ],
    ),
    (
        "posthoc/density_at_point",
        "tests/evidence/test_mean_ratio.py::TestPosteriorDensity",
        [
            ("_choose(first, log_density", "_choose(second, log_density"),
            ("if self.deviation <= _ERRORS:", "if True:"),
            ("for degree in (1, 2):", "for degree in (1,):"),
        ],
    ),
    (
        "evidence/mode_audit",
        "tests/evidence/test_mode_audit.py tests/evidence/test_thresholds.py::TestModeAudit",
        [
            ("np.hypot(self.share_mcse * self._measured, self.among_draws_mcse)", "self.share_mcse"),
            ("np.where(self._measured, self._least_share(), self.at_least)", "self._measured * self._least_share()"),
            ("at_least=fitted.least_share(log_evidence)", "at_least=fitted.least_share()"),
            ("error = 1 / np.sqrt(np.maximum(self.rest_ess, 1))", "error = 1 / np.maximum(self.rest_ess, 1)"),
            ("np.log1p(-drawn)).T", "np.log(drawn)).T"),
            ("value - weight @ value)).sum(axis=0)", "value)).sum(axis=0)"),
            ("each.among_draws < _LEAST_SHARE", "each.share < _LEAST_SHARE"),
            ("member[:, chosen].sum(axis=1, keepdims=True)", "member[:, chosen].max(axis=1, keepdims=True)"),
            ("if not self.missed[0]:", "if True:"),
        ],
    ),
    (
        "evidence/posterior_density",
        "tests/evidence/test_posterior_density.py",
        [
            ("weights=np.arange(len(x))).astype(int) % copies", "weights=np.arange(len(x))).astype(int) * 0"),
            ('x[np.argsort(place[index], kind="stable")]', "x"),
        ],
    ),
    (
        "evidence/bridge_sampling",
        "tests/evidence/test_bridge_sampling.py::TestHalves tests/evidence/test_thresholds.py::TestBridge",
        [
            ("_fit(compiled, first.reshape(-1, compiled.ndim), seed_fit)", "_fit(compiled, draws.reshape(-1, compiled.ndim), seed_fit)"),
            ("from_normal(density, first, second, rng", "from_normal(density, draws, second, rng"),
            ("if k > MAX_PARETO_K:", "if k > 1:"),
            ("factor = (mcse / target_mcse) ** 2", "factor = mcse / target_mcse"),
            ("terms.mean() > _LARGE_MEAN * terms.max()", "terms.mean() > _LARGE_MEAN"),
        ],
    ),
    (
        "evidence/bridge_proposals",
        "tests/evidence/test_bridge_sampling.py::TestHalves tests/evidence/test_bridge_sampling.py::test_correlated_draws_by_hand tests/evidence/test_estimators.py tests/evidence/test_bridge_sampling.py::TestExact::test_scalars_and_zero_size",
        [
            ("return value + log_volume", "return value"),
            ("log_density(centre - step)) - np.log(2)", "log_density(centre - step))"),
            ("solve_triangular(root, (second - centre)", "solve_triangular(root.T, (second - centre)"),
        ],
    ),
    (
        "evidence/combined_verdict",
        "tests/evidence/test_verdict.py",
        [
            ("if doubts or not objections:", "if doubts:"),
            ('v.status == "do not trust"]', 'v.status != "trust"]'),
        ],
    ),
    (
        "pipeline/reverse",
        "tests/pipeline/test_irreversible_kernels.py tests/pipeline/test_reverse.py",
        [
            ("forward.transition.reversal()", "forward.transition"),
            ("log_reference - run.log_weight", "log_reference + run.log_weight"),
            ("-ais(-self.backward).log_evidence", "ais(self.backward).log_evidence"),
            ("if not k > MAX_PARETO_K:", "if k > MAX_PARETO_K:"),
        ],
    ),
    (
        "annealing/resampling",
        "tests/pipeline/test_result.py::TestDrawPosterior tests/pipeline/test_result.py::TestPairs",
        [
            ("for row in log_weight])", "for row in log_weight[::-1]])"),
            ("index = np.sort(index, axis=1)", "index = np.sort(index, axis=0)"),
        ],
    ),
    (
        "pipeline/result",
        "tests/pipeline/test_result.py",
        [
            ("mcse=reverse.mcse if reverse else estimate.mcse", "mcse=estimate.mcse"),
            ("step_size=forward.step_size[::-1]", "step_size=forward.step_size"),
        ],
    ),
    (
        "pipeline/trial",
        "tests/pipeline/test_trial.py tests/pipeline/test_bad_plans.py",
        [
            ("steps=trial.steps,", "steps=1,"),
            ("return (found.bias / (HARMLESS_BIAS * mcse)) ** 2", "return found.bias / (HARMLESS_BIAS * mcse)"),
            ("trial.seconds / (trial.steps * trial.particles)", "trial.seconds / trial.steps"),
            ("growth = max(growth, variance)", "growth = max(growth, 1.0)"),
            ("if hopeless or _are_stuck(trials):", "if _are_stuck(trials):"),
            ("if hopeless or _are_stuck(trials):", "if hopeless:"),
            ("if _are_stuck(trials):\n        note", "if False:\n        note"),
            ("_STUCK_SHARE * first)", "0 * first)"),
            ("return bool(much_longer and", "return bool("),
            ("max(_MAX_TRIAL_VARIANCE, _STUCK_SHARE", "max(0.0, _STUCK_SHARE"),
            ("time = _TRIAL_SHARE * session", "time = session"),
            ("if as_trial < time and (", "if ("),
            ("long or plan.predicted_mcse > _HOPELESS_ERROR", "True"),
            ("max([least_steps, *after_short])", "least_steps"),
        ],
    ),
    (
        "evidence/draws_audit",
        "tests/evidence/test_draws_audit.py",
        [
            ("or is_log_concave_model(compiled.model):", "or False:"),
            ("_LEAST_SHARE < fitted.share[mode] < 1 - _LEAST_SHARE", "False"),
            ('if verdict.status == "do not trust" else {}', "if False else {}"),
            ("look_for_missed_modes(compiled, draws, seed)", "()"),
            ("*missed, *doubt_divergences(idata)", "*missed,"),
            ("diverging.mean() <= _DIVERGENT", "diverging.any()"),
        ],
    ),
    (
        "between/from_draws",
        "tests/between/test_from_draws.py",
        [
            ("return draws[:, :first], draws[:, min(first, n - 1) :]", "return draws[:, :first], draws"),
        ],
    ),
    (
        "between/from_draws",
        "tests/between/test_from_draws.py tests/sampling/test_sample_bayes_factor.py::TestExactValue",
        [
            ("np.linspace(0, n - 1, count).round().astype(int)", "np.zeros(count, dtype=int)"),
            ("return -anneal_back(", "return anneal_back("),
        ],
    ),
    (
        "between/constraint_mass",
        "tests/sampling/test_constraint_bayes_factor.py tests/between/test_from_draws.py",
        [
            ("(slacks > 0).all(axis=2)", "(slacks > 0).any(axis=2)"),
            ("outside / (share * ess)", "outside / ess"),
        ],
    ),
    (
        "between/constraint_mass",
        "tests/sampling/test_constraint_bayes_factor.py::TestFiveMeans",
        [
            ("np.where(inside, run.log_weight, -np.inf)", "run.log_weight"),
            ("LogTerms(log_density(x), -_PENALTY * violation)", "LogTerms(log_density(x), _PENALTY * violation)"),
        ],
    ),
    (
        "between/pseudo_priors",
        "tests/between/test_pseudo_priors.py",
        [
            ("math.log(2 * _SCALE * math.gamma(1 / 3) / 3)", "math.log(2 * _SCALE * math.gamma(1 / 3))"),
            ("_SCALE * np.cbrt(rng.gamma(1 / 3, size=shape))", "_SCALE * np.cbrt(rng.gamma(1 / 2, size=shape))"),
            ("stats.t.logpdf(z, _DEGREES_OF_FREEDOM)", "stats.t.logpdf(z, _DEGREES_OF_FREEDOM - 1)"),
        ],
    ),
    (
        "between/warp",
        "tests/sampling/test_sample_bayes_factor.py::TestPseudoPriors",
        [
            ("log_terms(x).log_posterior + log_volume", "log_terms(x).log_posterior"),
            ("jnp.split(z, [layout.shared, len(layout.first)])", "jnp.split(z, [layout.shared, len(layout.second)])"),
        ],
    ),
    (
        "pipeline/counted_run",
        "tests/pipeline/test_counted_run.py",
        [
            ("betas[::-1].copy(), transition.reversal()", "betas[::-1].copy(), transition"),
            ("np.union1d(betas, settings.stops)) if settings.stops else betas", "betas) if settings.stops else betas"),
        ],
    ),
    (
        "pipeline/call_budget",
        "tests/pipeline/test_call_budget.py::test_evaluations_for_which_there_is_time tests/pipeline/test_call_budget.py::test_the_counted_run_of_a_model_in_jax_has_a_quarter_of_the_time_at_least",
        [
            ("self.max_minutes - self.seconds_passed / 60", "self.max_minutes + self.seconds_passed / 60"),
            ("_LEAST_SHARE if self.seconds_per_evaluation is None else 0.0", "_LEAST_SHARE"),
            ("_LEAST_SHARE if self.seconds_per_evaluation is None else 0.0", "0.0"),
        ],
    ),
    (
        "pipeline/reverse_start",
        "tests/pipeline/test_reverse_start.py",
        [
            ("equal_weights(last.position, last.log_weight, n, rng)", "equal_weights(last.position, 0 * last.log_weight, n, rng)"),
        ],
    ),
    (
        "nested/result",
        "tests/nested/test_result.py",
        [
            ("run.position[resample(run.log_weight, draws, rng)]", "run.position[resample(0 * run.log_weight, draws, rng)]"),
        ],
    ),
    (
        "pipeline/audit",
        "tests/pipeline/test_audit.py",
        [
            ("normalised(forward.run.log_weight.ravel())", "normalised(0 * forward.run.log_weight.ravel())"),
        ],
    ),
]  # fmt: skip
